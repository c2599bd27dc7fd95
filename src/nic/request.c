/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A send request as packets. What was sent is described (request, first PSN, length) and never stored: any packet of a
 * request can be made again at any time.
 */
#include "nic/unreliable_priv.h"

#include "base/bytes.h"

static enum vb_service service_of(const struct vb_qp *qp)
{
	switch ((enum vb_qp_type)qp->type) {
	case VB_QP_UC:
		return VB_SERVICE_UC;
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		return VB_SERVICE_XRC;
	case VB_QP_UD:
		return VB_SERVICE_UD;
	case VB_QP_RC:
		break;
	}
	return VB_SERVICE_RC;
}

static enum vb_packet_op send_op(bool first, bool last, enum vb_packet_op last_op,
				 enum vb_packet_op only_op)
{
	if (first)
		return last ? only_op : VB_OP_SEND_FIRST;
	return last ? last_op : VB_OP_SEND_MIDDLE;
}

static enum vb_packet_op write_op(bool first, bool last, enum vb_packet_op last_op,
				  enum vb_packet_op only_op)
{
	if (first)
		return last ? only_op : VB_OP_WRITE_FIRST;
	return last ? last_op : VB_OP_WRITE_MIDDLE;
}

static enum vb_packet_op packet_op(enum vb_wr_opcode opcode, bool first, bool last)
{
	switch (opcode) {
	case VB_WR_SEND:
		return send_op(first, last, VB_OP_SEND_LAST, VB_OP_SEND_ONLY);
	case VB_WR_SEND_IMM:
		return send_op(first, last, VB_OP_SEND_LAST_IMM, VB_OP_SEND_ONLY_IMM);
	case VB_WR_SEND_INV:
		return send_op(first, last, VB_OP_SEND_LAST_INV, VB_OP_SEND_ONLY_INV);
	case VB_WR_WRITE:
		return write_op(first, last, VB_OP_WRITE_LAST, VB_OP_WRITE_ONLY);
	case VB_WR_WRITE_IMM:
		return write_op(first, last, VB_OP_WRITE_LAST_IMM, VB_OP_WRITE_ONLY_IMM);
	case VB_WR_READ:
		return VB_OP_READ_REQUEST;
	case VB_WR_COMPARE_SWAP:
		return VB_OP_COMPARE_SWAP;
	case VB_WR_FETCH_ADD:
		return VB_OP_FETCH_ADD;
	case VB_WR_ATOMIC_WRITE:
		return VB_OP_ATOMIC_WRITE;
	case VB_WR_LOCAL_INV:
	case VB_WR_BIND_MW:
		break;
	}
	abort(); /* local operations have no packets */
}

void vb_request_start(struct vb_qp *qp, struct vb_wqe *wqe)
{
	struct vb_requester *requester = &qp->requester;
	uint32_t count =
		(uint32_t)(((uint64_t)wqe->length + qp->attr.path_mtu - 1) >> qp->mtu_shift);

	wqe->packet_count = count ? count : 1;
	wqe->first_psn = requester->next_psn;
	wqe->ssn = requester->next_ssn;
	wqe->progress = VB_WQE_STARTED;
	requester->next_ssn = (requester->next_ssn + 1) & 0xffffff;
	requester->cursor = (struct vb_cursor){ 0, 0 };
}

enum vb_status vb_request_execute_local(struct vb_qp *qp, struct vb_wqe *wqe)
{
	if (wqe->opcode == VB_WR_BIND_MW)
		return vb_mw_bind(qp, wqe);
	if (!vb_mw_can_invalidate(qp, wqe->imm))
		return VB_STATUS_MW_BIND_ERR;
	vb_mw_invalidate(qp, wqe->imm);
	return VB_STATUS_SUCCESS;
}

/* The headers of the packet with the PSN that is next. */
static void fill_packet(const struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t index,
			struct vb_packet *packet)
{
	enum vb_wr_opcode opcode = (enum vb_wr_opcode)wqe->opcode;
	bool is_read = opcode == VB_WR_READ;
	uint32_t offset = index << qp->mtu_shift;
	bool last = index + 1 == wqe->packet_count || is_read;

	packet->bth.opcode = VB_OPCODE(service_of(qp), packet_op(opcode, index == 0, last));
	packet->bth.pkey = vb_nic_pkey(qp->nic, qp->attr.pkey_index);
	packet->bth.destination = qp->peer;
	packet->bth.psn = qp->requester.next_psn;
	packet->bth.solicited = last && wqe->flags & VB_SEND_SOLICITED;
	packet->imm = wqe->imm;
	packet->invalidate_key = wqe->imm;
	packet->payload_length = is_read ? 0 : min32(wqe->length - offset, qp->attr.path_mtu);
	if (opcode == VB_WR_COMPARE_SWAP || opcode == VB_WR_FETCH_ADD) {
		packet->payload_length = 0;
		packet->atomic.address = wqe->rdma.remote_address;
		packet->atomic.rkey = wqe->rdma.rkey;
		packet->atomic.swap_or_add = opcode == VB_WR_COMPARE_SWAP ? wqe->rdma.swap
									  : wqe->rdma.compare_add;
		packet->atomic.compare = opcode == VB_WR_COMPARE_SWAP ? wqe->rdma.compare_add : 0;
	} else {
		/* A READ that is issued again asks only for the rest. */
		packet->reth.address = wqe->rdma.remote_address + (is_read ? offset : 0);
		packet->reth.rkey = wqe->rdma.rkey;
		packet->reth.length = wqe->length - (is_read ? offset : 0);
	}
	packet->srqn = wqe->rdma.srqn;
}

enum vb_verdict vb_request_build(struct vb_qp *qp, const struct vb_wqe *wqe, bool ask_for_ack,
				 struct vb_cursor *cursor, struct vb_slot *slot)
{
	uint32_t index = vb_psn_distance(qp->requester.next_psn, wqe->first_psn);
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_packet packet = { 0 };
	enum vb_verdict verdict;

	fill_packet(qp, wqe, index, &packet);
	packet.bth.ack_request = ask_for_ack;
	vb_slot_begin(slot, &qp->flow, &packet);
	if (wqe->flags & VB_SEND_INLINE) {
		vb_slot_add_bytes(slot, vb_wqe_inline(wqe) + (index << qp->mtu_shift),
				  packet.payload_length);
	} else {
		verdict = vb_gather(qp->nic, &sgl, cursor, packet.payload_length, slot);
		if (verdict != VB_PASS)
			return verdict;
	}
	return vb_slot_finish(qp->nic, slot, &packet) ? VB_PASS : VB_OPERATION_FAILED;
}
