/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation, the state table, attributes, multicast. rc_*.c, uc.c and ud.c make and
 * take the packets.
 */
#ifndef VB_NIC_QP_H
#define VB_NIC_QP_H

#include "base/err.h"
#include "nic/request.h"
#include "wire/flow.h"
#include "wire/number.h"

struct vb_ah;
struct vb_cq;
struct vb_nic;
struct vb_pd;
struct vb_qp;
struct vb_srq;
struct vb_xrcd;

enum vb_qp_type {
	VB_QP_RC = 2,
	VB_QP_UC = 3,
	VB_QP_UD = 4,
	VB_QP_XRC_SEND = 9,
	VB_QP_XRC_RECV = 10,
};

enum vb_qp_state {
	VB_STATE_RESET = 0,
	VB_STATE_INIT = 1,
	VB_STATE_RTR = 2,
	VB_STATE_RTS = 3,
	VB_STATE_SQD = 4,
	VB_STATE_SQE = 5,
	VB_STATE_ERR = 6,
};

struct vb_qp_init {
	enum vb_qp_type type;
	struct vb_cq *send_cq; /* NULL for XRC_RECV */
	struct vb_cq *recv_cq; /* NULL for XRC_SEND and XRC_RECV */
	struct vb_srq *srq; /* or NULL */
	struct vb_xrcd *xrcd; /* XRC_RECV only */
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t send_sge_max;
	uint32_t recv_sge_max;
	uint32_t inline_max;
	bool signal_all;
	vb_qpn qpn; /* 0: the adapter chooses; UD QPs may ask for 1 (the connection manager's) */
	void *owner_context;
};

/* An address vector: the destination of an address handle or a connected QP. */
struct vb_address {
	struct vb_gid destination;
	uint32_t flow_label;
	uint8_t source_index; /* in the GID table */
	uint8_t hop_limit; /* 0 is sent as 64 */
	uint8_t traffic_class;
	uint8_t service_level;
};

/* Which attributes a call of vb_qp_modify() sets. The numbers are those of the verbs API. */
enum vb_qp_attr_mask {
	VB_ATTR_STATE = 1 << 0,
	VB_ATTR_CUR_STATE = 1 << 1,
	VB_ATTR_SQD_NOTIFY = 1 << 2,
	VB_ATTR_ACCESS = 1 << 3,
	VB_ATTR_PKEY_INDEX = 1 << 4,
	VB_ATTR_PORT = 1 << 5,
	VB_ATTR_QKEY = 1 << 6,
	VB_ATTR_ADDRESS = 1 << 7,
	VB_ATTR_PATH_MTU = 1 << 8,
	VB_ATTR_TIMEOUT = 1 << 9,
	VB_ATTR_RETRY_COUNT = 1 << 10,
	VB_ATTR_RNR_RETRY = 1 << 11,
	VB_ATTR_RQ_PSN = 1 << 12,
	VB_ATTR_READS_OUT = 1 << 13, /* max_rd_atomic */
	VB_ATTR_ALT_PATH = 1 << 14,
	VB_ATTR_MIN_RNR_TIMER = 1 << 15,
	VB_ATTR_SQ_PSN = 1 << 16,
	VB_ATTR_READS_IN = 1 << 17, /* max_dest_rd_atomic */
	VB_ATTR_MIGRATION = 1 << 18,
	VB_ATTR_CAPACITY = 1 << 19,
	VB_ATTR_DESTINATION = 1 << 20,
	VB_ATTR_RATE_LIMIT = 1 << 25,
};

struct vb_qp_attr {
	enum vb_qp_state state;
	enum vb_qp_state current_state;
	bool sqd_notify;
	bool is_draining; /* query only */
	uint32_t access; /* remote rights of the QP */
	uint16_t pkey_index;
	uint8_t port; /* 1 */
	uint32_t qkey;
	struct vb_address address;
	uint32_t path_mtu; /* in bytes: 256, 512, 1024, 2048 or 4096 */
	uint8_t timeout; /* local ACK timeout 4.096 us * 2^t; 0: infinite */
	uint8_t retry_count; /* 0 to 7 */
	uint8_t rnr_retry; /* 0 to 7; 7: without limit */
	uint8_t min_rnr_timer; /* code that our RNR NAKs carry */
	uint8_t migration; /* only 0 (migrated) is accepted */
	uint32_t reads_out;
	uint32_t reads_in;
	vb_psn rq_psn;
	vb_psn sq_psn;
	vb_qpn destination;
};

/* The QP starts in RESET. The caller owns it. Depths and counts are exactly those asked for. */
VB_MUST_USE vb_err vb_qp_create(struct vb_pd *pd, const struct vb_qp_init *init,
				struct vb_qp **qp_out);

/*
 * Removes the QP's completions from the CQs, so it also needs the locks of the CQs and queues.
 * VB_EBUSY while attached to a multicast group.
 */
vb_err vb_qp_destroy(struct vb_qp *qp);

/*
 * Takes everything or nothing. VB_EINVAL: no such transition, or an attribute is missing, not
 * allowed or out of range. VB_EOPNOTSUPP: path migration. Moving to RESET needs the locks of the
 * CQs and queues, as destroy does.
 */
VB_MUST_USE vb_err vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask);
void vb_qp_query(const struct vb_qp *qp, struct vb_qp_attr *attr);

/*
 * The QP's queues have new entries. The thread that owns the engine calls this in place of the
 * doorbell (nic/rings.h).
 */
void vb_qp_on_doorbell(struct vb_qp *qp);

/*
 * What vb_qp_modify() would return, and why. If none of the masks below is set, there is no such
 * transition.
 */
struct vb_qp_refusal {
	vb_err err; /* never VB_ENOMEM */
	uint32_t missing; /* enum vb_qp_attr_mask: the transition needs these */
	uint32_t excess; /* and does not take these */
	uint32_t wrong; /* the value of this one is wrong */
	uint64_t value;
	uint64_t limit;
};
struct vb_qp_refusal vb_qp_check_modify(const struct vb_qp *qp, const struct vb_qp_attr *attr,
					uint32_t mask);

/* Iterates over the QPs of an adapter: *next_index is 0 at first. NULL at the end. */
struct vb_qp *vb_nic_next_qp(const struct vb_nic *nic, uint32_t *next_index);

/* NULL: there is none of that number. */
struct vb_qp *vb_qp_find(const struct vb_nic *nic, vb_qpn number);
vb_qpn vb_qp_number(const struct vb_qp *qp);
enum vb_qp_type vb_qp_type(const struct vb_qp *qp);
enum vb_qp_state vb_qp_state(const struct vb_qp *qp);
/* Fills in only depths, SGE counts, inline_max and signal_all. */
void vb_qp_query_init(const struct vb_qp *qp, struct vb_qp_init *init);

/*
 * UD only. A QP may be in several groups. VB_EINVAL if the GID is not a multicast one or not
 * attached.
 */
VB_MUST_USE vb_err vb_qp_attach(struct vb_qp *qp, const struct vb_gid *group);
VB_MUST_USE vb_err vb_qp_detach(struct vb_qp *qp, const struct vb_gid *group);
/* Whether any QP is in the group. */
bool vb_nic_has_group(const struct vb_nic *nic, const struct vb_gid *group);

/* An address handle is a checked address, and counts as a child of its PD. */
VB_MUST_USE vb_err vb_ah_create(struct vb_pd *pd, const struct vb_address *address,
				struct vb_ah **ah_out);
vb_err vb_ah_destroy(struct vb_ah *ah);
const struct vb_address *vb_ah_address(const struct vb_ah *ah);

/* "RTS", …, and "RC", …; "?" for an unknown number. */
const char *vb_qp_state_describe(enum vb_qp_state state);
const char *vb_qp_type_describe(enum vb_qp_type type);

#endif
