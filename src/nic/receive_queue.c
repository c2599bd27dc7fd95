/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of a message's receive: the QP's own queue, its SRQ, or the XRC SRQ that the packet
 * names. One receive is in use at a time.
 */
#include "nic/qp_priv.h"

static void set_receive(struct vb_receive *receive, const struct vb_rwqe *rwqe,
			const struct vb_sge *sges, uint32_t pd)
{
	receive->is_used = true;
	receive->wr_id = rwqe->wr_id;
	receive->length = rwqe->length;
	receive->sge_count = rwqe->sge_count;
	receive->sges = sges;
	receive->pd = pd;
}

static enum vb_verdict take_from_srq(struct vb_qp *qp, struct vb_srq *srq)
{
	struct vb_receive *receive = &qp->responder.receive;
	const struct vb_rwqe *rwqe = vb_srq_peek(srq);

	if (!rwqe)
		return VB_NOT_READY;
	memcpy(receive->copy, vb_rwqe_sges(rwqe), rwqe->sge_count * sizeof(struct vb_sge));
	set_receive(receive, rwqe, receive->copy, srq->pd->number);
	receive->srq = srq;
	vb_srq_consume(srq);
	return VB_PASS;
}

enum vb_verdict vb_qp_take_receive(struct vb_qp *qp, uint32_t srqn)
{
	struct vb_receive *receive = &qp->responder.receive;
	struct vb_queue *rq = &qp->rq;
	struct vb_srq *srq = qp->srq;
	const struct vb_rwqe *rwqe;

	if (receive->is_used)
		return VB_PASS; /* left over from a broken message (UC) or a train not fetched */
	if (qp->type == VB_QP_XRC_RECV) {
		srq = vb_srq_find(qp->nic, qp->xrcd, srqn);
		if (!srq)
			return VB_INVALID_REQUEST;
	}
	if (srq)
		return take_from_srq(qp, srq);
	if (vb_queue_published(rq) == rq->taken)
		return VB_NOT_READY;
	rwqe = vb_queue_slot(rq, rq->taken);
	set_receive(receive, rwqe, vb_rwqe_sges(rwqe), qp->pd_number);
	receive->slot_end = ++rq->taken;
	return VB_PASS;
}
