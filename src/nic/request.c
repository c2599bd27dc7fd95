/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A send request as packets. What was sent is described (request, first PSN, length) and never
 * stored: any packet of a request can be built again at any time.
 */
#include "nic/unreliable_priv.h"

#include "base/bytes.h"

void vb_request_start(struct vb_qp *qp, struct vb_wqe *wqe)
{
	struct vb_requester *requester = &qp->requester;
	uint64_t end = (uint64_t)wqe->length + qp->attr.path_mtu - 1;

	wqe->packet_count = wqe->length <= qp->attr.path_mtu ? 1 : (uint32_t)(end >> qp->mtu_shift);
	wqe->first_psn = requester->next_psn;
	wqe->ssn = requester->next_ssn;
	wqe->first_byte = requester->end_byte;
	requester->end_byte += vb_wqe_needs_response(wqe) ? 0 : wqe->length;
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

/* Fills in the headers after the BTH, which most packets do not have. */
static void fill_extensions(const struct vb_wqe *wqe, uint32_t traits, uint32_t offset,
			    struct vb_packet *packet)
{
	bool is_compare = wqe->opcode == VB_WR_COMPARE_SWAP;

	packet->imm = wqe->imm;
	packet->invalidate_key = wqe->imm;
	if (traits & VB_HAS_ATOMICETH) {
		packet->atomic.address = wqe->rdma.remote_address;
		packet->atomic.rkey = wqe->rdma.rkey;
		packet->atomic.swap_or_add = is_compare ? wqe->rdma.swap : wqe->rdma.compare_add;
		packet->atomic.compare = is_compare ? wqe->rdma.compare_add : 0;
	} else {
		/*
		 * A READ that is issued again asks only for the rest (IBA 9.4.4). A WRITE has this
		 * header in its first packet only.
		 */
		packet->reth.address = wqe->rdma.remote_address + offset;
		packet->reth.rkey = wqe->rdma.rkey;
		packet->reth.length = wqe->length - offset;
	}
	packet->srqn = wqe->rdma.srqn;
}

/* Fills in the BTH of the packet with the next PSN. */
static void fill_header(const struct vb_qp *qp, const struct vb_wqe *wqe, uint8_t op, bool is_last,
			bool ask_for_ack, struct vb_packet *packet)
{
	packet->bth = (struct vb_bth){
		.opcode = VB_OPCODE(qp->service, op),
		.pkey = vb_nic_pkey(qp->nic, qp->attr.pkey_index),
		.destination = qp->peer,
		.psn = qp->requester.next_psn,
		.solicited = is_last && wqe->flags & VB_SEND_SOLICITED,
		.ack_request = ask_for_ack,
	};
}

/*
 * Fills in the headers of the packet with the next PSN, or of a train of `count` packets. All
 * packets of a message but the last carry a full path MTU (C5-8). A request whose data comes in the
 * response has one packet without data.
 */
static void fill_packet(const struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t index,
			uint32_t count, bool ask_for_ack, struct vb_packet *packet)
{
	const struct vb_operation *operation = vb_wqe_operation(wqe);
	bool has_sink = vb_traits_have_sink(wqe->traits);
	uint32_t offset = index << qp->mtu_shift;
	bool last = index + count == wqe->packet_count || has_sink;
	uint32_t traits;

	fill_header(qp, wqe,
		    operation->packets[(index ? VB_POSITION_MIDDLE : VB_POSITION_FIRST) |
				       (last ? VB_POSITION_LAST : 0)],
		    last, ask_for_ack, packet);
	packet->payload_length = has_sink ? 0 : min32(wqe->length - offset, count << qp->mtu_shift);
	traits = vb_opcode_traits(packet->bth.opcode);
	if (traits & VB_HAS_EXTENSIONS)
		fill_extensions(wqe, traits, offset, packet);
}

bool vb_request_build_short(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_slot *slot)
{
	struct vb_packet packet;

	fill_header(qp, wqe, VB_OP_SEND_ONLY, true, true, &packet);
	packet.payload_length = wqe->length;
	vb_slot_begin(slot, &qp->path, &packet);
	if (wqe->flags & VB_SEND_INLINE) {
		vb_slot_add_bytes(slot, vb_wqe_inline(wqe), wqe->length);
	} else if (wqe->length) {
		const struct vb_sge *sge = vb_wqe_sges(wqe);
		struct vb_memory_request request = {
			.key = sge->lkey,
			.pd = qp->pd_number,
			.address = sge->address,
			.length = wqe->length,
		};
		struct vb_memory memory;

		if (wqe->sge_count != 1 ||
		    vb_memory_resolve(qp->nic, &request, &memory) != VB_PASS ||
		    !vb_slot_add_memory(slot, memory.address, wqe->length, true))
			return false;
	}
	return vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad);
}

enum vb_verdict vb_request_build(struct vb_qp *qp, const struct vb_wqe *wqe, bool ask_for_ack,
				 struct vb_cursor *cursor, struct vb_slot *slot)
{
	uint32_t index = vb_psn_distance(qp->requester.next_psn, wqe->first_psn);
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_packet packet;
	enum vb_verdict verdict;

	fill_packet(qp, wqe, index, 1, ask_for_ack, &packet);
	vb_slot_begin(slot, &qp->path, &packet);
	if (wqe->flags & VB_SEND_INLINE) {
		vb_slot_add_bytes(slot, vb_wqe_inline(wqe) + (index << qp->mtu_shift),
				  packet.payload_length);
	} else {
		verdict = vb_gather(qp->nic, &sgl, cursor, packet.payload_length, slot);
		if (verdict != VB_PASS)
			return verdict;
	}
	return vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad) ? VB_PASS
									  : VB_OPERATION_FAILED;
}

/* All packets but the last have the headers of a packet in the middle. */
static uint32_t count_bytes(const struct vb_qp *qp, const struct vb_wqe *wqe,
			    const struct vb_slot *slot, uint32_t packet_count, uint32_t length)
{
	uint8_t opcode = VB_OPCODE(qp->service, vb_wqe_operation(wqe)->packets[VB_POSITION_MIDDLE]);

	return (packet_count - 1) * (vb_opcode_header_length(opcode) + VB_ICRC_SIZE) +
	       slot->length + length + (-length & 3);
}

bool vb_request_build_train(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t packet_count,
			    struct vb_cursor *cursor, struct vb_slot *slot)
{
	uint32_t index = vb_psn_distance(qp->requester.next_psn, wqe->first_psn);
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_packet packet;
	uint32_t length;

	fill_packet(qp, wqe, index, packet_count, true, &packet);
	length = packet.payload_length;
	packet.payload_length = 0;
	vb_slot_begin(slot, &qp->path, &packet);
	slot->train.reference_count =
		(uint16_t)vb_sgl_refer(qp->nic, &sgl, cursor, length, slot->references);
	if (!slot->train.reference_count ||
	    !vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad))
		return false;
	slot->train.packet_count = (uint16_t)packet_count;
	slot->train.byte_count = count_bytes(qp, wqe, slot, packet_count, length);
	return true;
}
