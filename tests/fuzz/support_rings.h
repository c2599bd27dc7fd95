/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fuzz_rings creates, and a model of it: how many others use each object, and how far each
 * request has got.
 */
#ifndef VB_TESTS_FUZZ_SUPPORT_RINGS_H
#define VB_TESTS_FUZZ_SUPPORT_RINGS_H

#include "support_input.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"

#define MUST(call) REQUIRE((call) == VB_OK)
#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

enum {
	PD_MAX = 2,
	XRCD_MAX = 2,
	CQ_MAX = 3,
	SRQ_MAX = 3,
	MR_MAX = 3,
	MW_MAX = 2,
	AH_MAX = 2,
	DM_MAX = 2,
	QP_MAX = 5,
	REQUESTS_MAX = 400,
	KEY_ROWS = 4, /* fewer than regions and windows: the table gets full */
	QP_ROWS = 8,
	DEPTH_MAX = 8,
	CQ_DEPTH_MAX = 32,
	AREA_LENGTH = 4096,
	DEVICE_LENGTH = 256,
	FRAME_MAX = 4096 + 128,
};

#define GROUP vb_gid_from_ipv4(0xe0000001)

struct pd {
	struct vb_pd *pd;
	uint32_t user_count;
};

struct xrcd {
	struct vb_xrcd *xrcd;
	uint32_t user_count;
};

struct cq {
	struct vb_cq *cq;
	uint32_t user_count;
	uint32_t arm_count;
	uint32_t event_count;
};

struct srq {
	struct vb_srq *srq;
	struct pd *pd;
	struct xrcd *xrcd;
	struct cq *cq;
	uint32_t user_count;
	uint32_t open_count; /* posted and not completed */
};

struct mr {
	struct vb_mr *mr;
	struct pd *pd;
	struct dm *dm;
};

struct mw {
	struct vb_mw *mw;
	struct pd *pd;
};

struct ah {
	struct vb_ah *ah;
	struct pd *pd;
};

struct dm {
	struct vb_dm *dm;
	uint32_t user_count;
	uint32_t length;
};

/*
 * One queue of a QP: how many requests were put in (staged), published (posted) and completed
 * (done), until the queue is reset.
 */
struct queue {
	uint32_t depth;
	uint32_t staged;
	uint32_t posted;
	uint32_t done;
	uint16_t ids[REQUESTS_MAX]; /* the request at each sequence number */
};

struct qp {
	struct vb_qp *qp;
	enum vb_qp_type type;
	struct pd *pd;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;
	struct xrcd *xrcd;
	bool is_in_group;
	struct queue send;
	struct queue recv;
};

enum request_state { STAGED, POSTED, DONE };

struct request {
	enum request_state state;
	bool is_receive;
	bool is_signaled;
	struct qp *qp; /* NULL if the request is in an SRQ … */
	struct srq *srq; /* … and otherwise this is NULL */
	uint32_t sequence;
};

struct model {
	struct vb_nic *nic;
	struct vb_gid gid;
	uint8_t *area; /* AREA_LENGTH bytes that regions lie on */
	uint64_t now_ns;
	struct pd pds[PD_MAX];
	struct xrcd xrcds[XRCD_MAX];
	struct cq cqs[CQ_MAX];
	struct srq srqs[SRQ_MAX];
	struct mr mrs[MR_MAX];
	struct mw mws[MW_MAX];
	struct ah ahs[AH_MAX];
	struct dm dms[DM_MAX];
	struct qp qps[QP_MAX];
	struct request requests[REQUESTS_MAX];
	uint32_t request_count;
};

extern struct model model;

/* The object at a place that the input chooses; NULL if the place is empty. */
#define PICK(input, list, member)                                  \
	({                                                         \
		uint32_t at_ = input_below(input, COUNT_OF(list)); \
		(list)[at_].member ? &(list)[at_] : NULL;          \
	})

/* model_create() makes an adapter with a PD and an XRC domain; model_destroy() ends everything. */
void model_create(void);
void model_destroy(void);

/* Makes the chosen object, or destroys it if it exists. */
void model_toggle(struct input *input);
struct vb_mr_init model_draw_region(struct input *input);

void model_finish_request(struct request *request);
void model_forget_from(struct queue *queue, uint32_t from); /* the requests from there on */
void model_forget_queues(struct qp *qp);

/* Takes up to `limit` completions, and checks each against the model. */
void model_poll_cq(struct cq *cq, uint32_t limit);
void model_poll_all(void);
void model_take_events(void);

#endif
