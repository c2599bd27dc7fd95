/* SPDX-License-Identifier: BSD-2-Clause */
/* How requests end: the completion of a send request or a receive, and its content. */
#include "nic/qp_priv.h"

#include "base/probe.h"
#include "nic/rc_priv.h"
#include "nic/rendezvous_priv.h"
#include "nic/tag_list_priv.h"

/* Fills in what all sends have in common. */
static inline void fill_send(struct vb_completion *entry, struct vb_qp *qp, uint32_t index,
			     uint64_t wr_id, uint32_t length)
{
	*entry = (struct vb_completion){
		.wr_id = wr_id,
		.byte_length = length,
		.qpn = qp->number.v,
		.qp = qp,
		.slot_end = index + 1 - qp->requester.own_done,
		.frees_slot = true,
		.timestamp_ns = qp->nic->now_ns,
	};
}

void vb_qp_complete_write(struct vb_qp *qp, uint32_t index, uint64_t wr_id, uint32_t length)
{
	struct vb_completion *entry = vb_cq_claim(qp->send_cq, qp);

	if (!entry)
		return;
	fill_send(entry, qp, index, wr_id, length);
	entry->status = VB_STATUS_SUCCESS;
	entry->opcode = VB_COMPLETION_WRITE;
	VB_PROBE4(complete, qp->number.v, wr_id, VB_STATUS_SUCCESS, length);
	vb_cq_publish(qp->send_cq, false);
}

void vb_qp_complete_send(struct vb_qp *qp, uint32_t index, enum vb_status status)
{
	const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, index);
	bool failed = status != VB_STATUS_SUCCESS;
	struct vb_completion *entry;

	if (failed)
		vb_nic_count(qp->nic, status == VB_STATUS_WR_FLUSH_ERR
					      ? VB_COUNTER_REQ_CQE_FLUSH_ERROR
					      : VB_COUNTER_REQ_CQE_ERROR);
	if (!(wqe->flags & VB_SEND_SIGNALED)) {
		if (wqe->traits & VB_OPERATION_IS_OWN) {
			vb_rendezvous_on_done(qp, wqe, status);
			return;
		}
		if (!failed)
			return; /* IBA 10.7.3.1; the next completion of this queue frees its slot */
	}
	entry = vb_cq_claim(qp->send_cq, qp);
	if (!entry)
		return;
	fill_send(entry, qp, index, wqe->wr_id, wqe->length);
	entry->status = (uint8_t)status;
	entry->opcode = vb_wqe_operation(wqe)->completion;
	VB_PROBE4(complete, qp->number.v, wqe->wr_id, status, wqe->length);
	vb_cq_publish(qp->send_cq, failed);
}

void vb_qp_complete_current(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	requester->send_index++;
	requester->cursor = (struct vb_cursor){ 0, 0 };
	vb_qp_complete_send(qp, requester->done_index++, VB_STATUS_SUCCESS);
	vb_rc_report_drained(qp);
}

uint8_t vb_headers_of(const struct vb_flow *flow)
{
	return VB_HEADERS_UDP | (vb_flow_is_ipv4(flow) ? VB_HEADERS_IPV4 : VB_HEADERS_IPV6);
}

/* Adds what the last packet of the message contributes to a receive's completion. */
static void describe_message(struct vb_completion *completion, const struct vb_packet *packet)
{
	if (packet->traits & VB_HAS_IMM) {
		completion->flags |= VB_COMPLETION_HAS_IMM;
		completion->imm = packet->imm;
	}
	if (packet->traits & VB_HAS_IETH) {
		completion->flags |= VB_COMPLETION_HAS_INV;
		completion->imm = packet->invalidate_key;
	}
	if (packet->traits & VB_HAS_DETH) {
		completion->flags |= VB_COMPLETION_HAS_GRH;
		completion->source_qpn = packet->deth.source.v;
	}
	if (packet->traits & VB_IS_WRITE)
		completion->opcode = VB_COMPLETION_RECV_WRITE_IMM;
}

/* Fills in everything except what describe_message() adds. */
static inline void fill_receive(struct vb_completion *entry, struct vb_qp *qp,
				const struct vb_receive *receive, enum vb_status status,
				uint32_t byte_length)
{
	*entry = (struct vb_completion){
		.wr_id = receive->wr_id,
		.status = (uint8_t)status,
		.opcode = VB_COMPLETION_RECV,
		.byte_length = byte_length,
		.qpn = qp->number.v,
		.pkey_index = qp->attr.pkey_index,
		.service_level = qp->responder.headers,
		.is_receive = true,
		.qp = qp,
		.slot_end = receive->slot_end,
		.frees_slot = !receive->srq,
		.timestamp_ns = qp->nic->now_ns,
	};
}

void vb_qp_complete_taken(struct vb_qp *qp, uint64_t wr_id, uint32_t byte_length, bool is_solicited)
{
	const struct vb_receive receive = { .wr_id = wr_id, .slot_end = qp->rq.taken };
	struct vb_completion *entry = vb_cq_claim(qp->recv_cq, qp);

	if (!entry)
		return;
	fill_receive(entry, qp, &receive, VB_STATUS_SUCCESS, byte_length);
	VB_PROBE4(complete, qp->number.v, wr_id, VB_STATUS_SUCCESS, byte_length);
	vb_cq_publish(qp->recv_cq, is_solicited);
}

static void count_failed_receive(struct vb_qp *qp, enum vb_status status)
{
	vb_nic_count(qp->nic, status == VB_STATUS_WR_FLUSH_ERR ? VB_COUNTER_RESP_CQE_FLUSH_ERROR
							       : VB_COUNTER_RESP_CQE_ERROR);
}

/* The same for a receive of an SRQ for tag matching. */
VB_NOINLINE static void complete_tagged(struct vb_qp *qp, enum vb_status status,
					const struct vb_packet *packet, uint32_t byte_length)
{
	struct vb_receive *receive = &qp->responder.receive;
	struct vb_completion completion;

	fill_receive(&completion, qp, receive, status, byte_length);
	if (packet)
		describe_message(&completion, packet);
	vb_tag_list_on_received(qp, &completion, packet && packet->bth.solicited);
	receive->is_used = false;
	receive->srq = NULL;
	receive->tagged = VB_TAGGED_NOT;
	receive->skip = 0;
	receive->tag = NULL;
}

void vb_qp_complete_receive(struct vb_qp *qp, enum vb_status status, const struct vb_packet *packet,
			    uint32_t byte_length)
{
	struct vb_receive *receive = &qp->responder.receive;
	struct vb_cq *cq = receive->srq && receive->srq->cq ? receive->srq->cq : qp->recv_cq;
	bool failed = status != VB_STATUS_SUCCESS;
	struct vb_completion *entry;

	if (failed)
		count_failed_receive(qp, status);
	if (receive->srq && receive->srq->tags) {
		complete_tagged(qp, status, packet, byte_length);
		return;
	}
	entry = vb_cq_claim(cq, qp);
	receive->is_used = false;
	if (!entry) {
		receive->srq = NULL;
		return;
	}
	fill_receive(entry, qp, receive, status, byte_length);
	VB_PROBE4(complete, qp->number.v, receive->wr_id, status, byte_length);
	receive->srq = NULL;
	if (packet)
		describe_message(entry, packet);
	vb_cq_publish(cq, failed || (packet && packet->bth.solicited));
}
