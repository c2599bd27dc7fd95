/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: what the engine reports besides completions. Events are pending bits of their object, so
 * no queue can overrun. The owner takes them out with vb_nic_take_events().
 */
#ifndef VB_NIC_EVENT_H
#define VB_NIC_EVENT_H

#include <stdint.h>

struct vb_cq;
struct vb_qp;
struct vb_srq;

/* The async events have the numbers of the verbs API. */
enum vb_event_kind {
	VB_EVENT_CQ_ERR = 0,
	VB_EVENT_QP_FATAL = 1,
	VB_EVENT_QP_REQ_ERR = 2,
	VB_EVENT_QP_ACCESS_ERR = 3,
	VB_EVENT_COMM_EST = 4,
	VB_EVENT_SQ_DRAINED = 5,
	VB_EVENT_SRQ_ERR = 14,
	VB_EVENT_SRQ_LIMIT_REACHED = 15,
	VB_EVENT_QP_LAST_WQE_REACHED = 16,
	VB_EVENT_COMPLETION = 31, /* an armed CQ has a completion */
};

struct vb_event {
	enum vb_event_kind kind;
	struct vb_qp *qp; /* set is the one that the kind concerns */
	struct vb_cq *cq;
	struct vb_srq *srq;
	void *owner_context; /* what the object was created with */
};

const char *vb_event_describe(enum vb_event_kind kind);

#endif
