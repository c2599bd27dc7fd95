/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of fuzz_receive: QPs of every type in many states, regions and windows of every kind,
 * and the books about what is posted and what may change.
 */
#ifndef VB_TESTS_FUZZ_SUPPORT_RECEIVE_H
#define VB_TESTS_FUZZ_SUPPORT_RECEIVE_H

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

/*
 * One area. Regions lie in it with unused bytes between them; buffers of receives and of responses
 * have BUFFER_STEP bytes each, of which they use the first BUFFER_LENGTH.
 */
enum {
	ZONE_LENGTH = 2048,
	OPEN = 256, /* every remote right */
	READABLE = OPEN + ZONE_LENGTH + 256, /* REMOTE_READ alone */
	LOCAL = READABLE + ZONE_LENGTH + 256, /* LOCAL_WRITE alone: the source of sends */
	FOREIGN = LOCAL + ZONE_LENGTH + 256, /* every right, in another PD */
	WINDOWED = FOREIGN + ZONE_LENGTH + 256, /* LOCAL_WRITE and MW_BIND */
	WINDOW_1 = WINDOWED + 512, /* a type 1 window on a part of it */
	WINDOW_2 = WINDOWED + 1024, /* and a type 2 window of the first QP */
	WINDOW_LENGTH = 256,
	BUFFERS = WINDOWED + ZONE_LENGTH + 256,
	BUFFER_LENGTH = 700,
	BUFFER_STEP = 768,
	BUFFER_COUNT = 24,
	AREA_LENGTH = BUFFERS + BUFFER_COUNT * BUFFER_STEP + 256,
	DEVICE_LENGTH = 512,
};

#define IOVA 0x100000000ull
#define QKEY 0x1234u

enum {
	KEY_OPEN,
	KEY_READABLE,
	KEY_LOCAL,
	KEY_FOREIGN,
	KEY_WINDOWED,
	KEY_DEVICE,
	KEY_NULL,
	REGION_COUNT,
	KEY_WINDOW_1 = REGION_COUNT,
	KEY_WINDOW_2,
	KEY_COUNT
};

extern const uint64_t key_offsets[KEY_COUNT]; /* where in the area the memory of a key begins */

enum {
	RC_A, /* connected to RC_B, has the windows */
	RC_B,
	RC_SHARED, /* connected to itself, with an SRQ */
	RC_NO_READS, /* connected to itself; accepts no READs */
	RC_RTR,
	RC_INIT,
	RC_SQD,
	XRC_SEND,
	XRC_RECV,
	UC_A,
	UC_B,
	UC_SHARED,
	UD_A,
	UD_SHARED,
	UD_MANAGER, /* QP 1 */
	QP_COUNT
};

struct plan {
	enum vb_qp_type type;
	enum vb_qp_state state;
	uint8_t peer;
	bool is_shared;
	uint32_t reads;
};

extern const struct plan plans[QP_COUNT];

enum { REQUESTS_MAX = 512, HELD_MAX = 32, FRAME_MAX = 4096 + 128, MTU = 256, ROWS = 64 };
enum { SEND_DEPTH = 8, RECV_DEPTH = 4, SRQ_DEPTH = 4, CQ_DEPTH = 1024, NO_QP = 0xff };

struct request {
	uint8_t qp; /* the index, or NO_QP for an SRQ */
	bool is_receive;
	bool is_signaled;
	bool is_open; /* neither completed nor forgotten */
	uint8_t buffer; /* 1-based; 0: writes nothing */
};

struct held {
	struct vb_flow flow;
	uint16_t ip_id;
	uint32_t length;
	uint8_t bytes[FRAME_MAX];
};

struct rig {
	struct vb_nic *nic;
	struct vb_gid gid;
	struct vb_gid group;
	struct vb_pd *pd;
	struct vb_pd *other_pd;
	struct vb_cq *cq;
	struct vb_srq *srq;
	struct vb_srq *xrc_srq;
	struct vb_xrcd *xrcd;
	struct vb_dm *dm;
	struct vb_mr *mrs[REGION_COUNT];
	struct vb_mw *mws[2];
	struct vb_ah *ahs[2]; /* one for each: this adapter, the group */
	struct vb_qp *qps[QP_COUNT];
	uint8_t *area; /* AREA_LENGTH bytes */
	uint64_t now_ns;
	uint32_t keys[KEY_COUNT];
	struct request requests[REQUESTS_MAX];
	uint32_t request_count;
	uint32_t sent_last[QP_COUNT]; /* 1 + the last send request completed */
	bool is_buffer_open[BUFFER_COUNT];
	struct held held[HELD_MAX];
	uint32_t held_count;
};

extern struct rig rig;

/* With the ICRC on, only the adapter's own packets get in; that they do is also checked. */
void rig_create(bool has_icrc);
void rig_destroy(void);

/* Brings a QP from RESET up to the state of its plan. */
void rig_bring_up(uint32_t index);

/* Deregisters a region while it is in use, and registers it again under another key. */
void rig_renew_region(void);

/* Returns a free buffer, 1-based, or 0. */
uint8_t rig_find_buffer(void);
struct request *rig_new_request(uint32_t qp, bool is_receive, bool is_signaled, uint8_t buffer);
void rig_close_request(struct request *request);
void rig_forget_requests(uint32_t qp); /* as RESET does */

/* Whether these 8 bytes are from memory that no one may read. */
bool rig_is_secret(const uint8_t *bytes);

/* What must hold after every step: memory, completions, events. */
void rig_check(void);

/* All QPs fail: everything posted to their own queues is then complete. */
void rig_flush(void);

#endif
