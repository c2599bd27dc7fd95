/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of a message's receive: the QP's own queue, its SRQ, or the XRC SRQ that the packet
 * names. An SRQ for tag matching may have a tag for the message. One receive is in use at a time.
 */
#include "nic/tag_list_priv.h"

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

/* The buffer of a tag that has matched stays where it is while it is in use. */
static void take_from_tag(struct vb_qp *qp, const struct vb_packet *packet, enum vb_tagged tagged)
{
	struct vb_receive *receive = &qp->responder.receive;
	const struct vb_tag *tag = receive->tag;
	const struct vb_rwqe buffer = {
		.wr_id = tag->wr_id,
		.length = tag->length,
		.sge_count = tag->sge_count,
	};

	set_receive(receive, &buffer, tag->sges, qp->srq->pd->number);
	receive->srq = qp->srq;
	receive->tagged = (uint8_t)tagged;
	if (tagged == VB_TAGGED_EAGER)
		receive->skip = VB_TMH_SIZE;
	if (tagged == VB_TAGGED_RENDEZVOUS)
		receive->skip = packet->payload_length;
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

VB_NOINLINE static enum vb_verdict take_tagged(struct vb_qp *qp, const struct vb_frame *frame,
					       const struct vb_packet *packet)
{
	struct vb_receive *receive = &qp->responder.receive;
	enum vb_tagged tagged = VB_TAGGED_NOT;
	enum vb_verdict verdict = VB_PASS;

	if (packet->traits & VB_IS_SEND)
		verdict = vb_tag_list_match(qp, frame, packet, &tagged);
	if (verdict != VB_PASS)
		return verdict;
	if (receive->tag) {
		take_from_tag(qp, packet, tagged);
		return VB_PASS;
	}
	verdict = take_from_srq(qp, qp->srq);
	if (verdict != VB_PASS)
		return verdict;
	receive->tagged = (uint8_t)tagged;
	if (tagged == VB_TAGGED_UNEXPECTED)
		vb_tag_list_on_unexpected(qp->srq->tags);
	return VB_PASS;
}

enum vb_verdict vb_qp_take_receive(struct vb_qp *qp, const struct vb_frame *frame,
				   const struct vb_packet *packet)
{
	struct vb_receive *receive = &qp->responder.receive;
	struct vb_queue *rq = &qp->rq;
	struct vb_srq *srq = qp->srq;
	const struct vb_rwqe *rwqe;

	if (receive->is_used)
		return VB_PASS; /* left over from a broken message (UC) or a train not fetched */
	if (qp->type == VB_QP_XRC_RECV) {
		srq = vb_srq_find(qp->nic, qp->xrcd, packet->srqn);
		if (!srq)
			return VB_INVALID_REQUEST;
	}
	if (srq)
		return srq->tags ? take_tagged(qp, frame, packet) : take_from_srq(qp, srq);
	if (vb_queue_published(rq) == rq->taken)
		return VB_NOT_READY;
	rwqe = vb_queue_slot(rq, rq->taken);
	set_receive(receive, rwqe, vb_rwqe_sges(rwqe), qp->pd_number);
	receive->slot_end = ++rq->taken;
	return VB_PASS;
}
