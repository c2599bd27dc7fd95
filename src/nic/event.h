/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine has to tell besides completions. Events are pending bits of their object, so that no
 * queue can run over; the owner takes them out with vb_nic_take_events().
 */
#ifndef VB_NIC_EVENT_H
#define VB_NIC_EVENT_H

#include <stdint.h>

struct vb_cq;
struct vb_qp;
struct vb_srq;

/* The async ones have the verbs API's numbers. */
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
	VB_EVENT_COMPLETION = 31, /* an armed CQ has something */
};

struct vb_event {
	enum vb_event_kind kind;
	struct vb_qp *qp; /* the one that the kind speaks of is set */
	struct vb_cq *cq;
	struct vb_srq *srq;
	void *owner_context; /* what the object was created with */
};

const char *vb_event_describe(enum vb_event_kind kind);

#endif
