/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that the initiator executes itself in the memory of a local peer. */
#ifndef VB_NIC_DIRECT_PRIV_H
#define VB_NIC_DIRECT_PRIV_H

#include "nic/qp_priv.h"

#define VB_DIRECT_TURN (128u << 10) /* bytes that may be moved in one turn */
#define VB_DIRECT_PART_MIN 4096u /* anything shorter is not worth a part */
/*
 * Longest request, in bytes, that the posting thread executes immediately or together with others.
 */
#define VB_DIRECT_SHORT_MAX 4096u

enum vb_direct {
	VB_DIRECT_REFUSED, /* it must go out in packets */
	VB_DIRECT_DONE, /* the request, or its next part, is executed */
	VB_DIRECT_LATER, /* enough was moved in this turn; the QP gets another one */
	VB_DIRECT_WAIT, /* possible once the packets in flight have arrived */
};

/* Whether the request is of a kind that the initiator can execute. */
static inline bool vb_qp_can_execute(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return wqe->traits & VB_OPERATION_MAY_BE_DIRECT &&
	       (!vb_wqe_needs_response(wqe) || qp->attr.reads_out);
}

/*
 * Executes the request at send_index. No packet of it has gone out, and the QP has peer memory
 * access.
 */
enum vb_direct vb_qp_execute_directly(struct vb_qp *qp, const struct vb_wqe *wqe);

/*
 * The same, for a caller that knows that vb_qp_can_execute(), that everything before the request
 * has arrived, and that this turn may still move VB_DIRECT_PART_MIN bytes.
 */
enum vb_direct vb_qp_execute_alone(struct vb_qp *qp, const struct vb_wqe *wqe);

/* vb_qp_write_now() for a caller that knows that the QP is quiet and has peer memory access. */
bool vb_qp_write_directly(struct vb_qp *qp, const struct vb_send_request *request);

struct vb_peer_memory_request;

/* Adds the part of the request that was executed to the log of nic/executed.h. */
void vb_executed_add(const struct vb_qp *qp, const struct vb_wqe *wqe,
		     const struct vb_peer_memory_request *request);

#endif
