/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of RC: executes requests. A packet is a duplicate, comes after a gap, or is the
 * expected one. The expected one passes a sequence of checks and is then executed or refused. The
 * reply to the peer is only noted here; rc_reply.c sends it.
 */
#include "nic/ack_policy_priv.h"
#include "nic/payload_priv.h"
#include "nic/unreliable_priv.h"

/*
 * The PSNs that a request takes: one, except for a READ, which takes one for each packet of its
 * response, and for a train.
 */
static uint32_t psn_count(const struct vb_qp *qp, const struct vb_packet *packet)
{
	uint32_t length = 0;

	if (packet->traits & VB_IS_READ)
		length = packet->reth.length;
	else if (packet->traits & VB_IS_SEND)
		length = packet->payload_length;
	if (length <= qp->attr.path_mtu)
		return 1;
	return (uint32_t)(((uint64_t)length + qp->attr.path_mtu - 1) >> qp->mtu_shift);
}

VB_COLD void vb_rc_refuse(struct vb_qp *qp, enum vb_verdict verdict, vb_psn psn)
{
	struct vb_responder *responder = &qp->responder;

	responder->refusal = (uint8_t)verdict;
	responder->refusal_psn = psn;
	responder->reply = VB_REPLY_REFUSAL;
	vb_qp_schedule(qp);
}

/* Counts the request as a message, and keeps it for its response. */
static struct vb_resource *accept_request(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	struct vb_resource *resource = vb_rc_claim_resource(responder);

	responder->msn = (responder->msn + 1) & 0xffffff; /* before the response: C9-148 */
	resource->op = (uint8_t)vb_opcode_op(packet->bth.opcode);
	resource->first_psn = packet->bth.psn;
	resource->next_psn = packet->bth.psn;
	resource->run_psn = packet->bth.psn;
	resource->packet_count = psn_count(qp, packet);
	resource->run_end = vb_psn_add(packet->bth.psn, resource->packet_count);
	resource->msn = responder->msn;
	resource->pd = responder->pd;
	vb_qp_schedule(qp);
	return resource;
}

static struct vb_memory_request remote_request(const struct vb_qp *qp, uint32_t rkey,
					       uint32_t rights, uint64_t address, uint64_t length)
{
	return (struct vb_memory_request){
		.key = rkey,
		.pd = qp->responder.pd,
		.qpn = qp->number.v,
		.rights = rights,
		.address = address,
		.length = length,
	};
}

static enum vb_verdict execute_read(struct vb_qp *qp, const struct vb_packet *packet)
{
	const struct vb_reth *reth = &packet->reth;
	struct vb_memory_request request =
		remote_request(qp, reth->rkey, VB_ACCESS_REMOTE_READ, reth->address, reth->length);
	struct vb_resource *resource;
	struct vb_memory memory;

	if (reth->length > VB_MESSAGE_LENGTH_MAX || !vb_rc_has_room(&qp->responder))
		return VB_INVALID_REQUEST;
	if (reth->length && vb_memory_resolve(qp->nic, &request, &memory) != VB_PASS)
		return VB_ACCESS_REFUSED;
	resource = accept_request(qp, packet);
	resource->rkey = reth->rkey;
	resource->address = reth->address;
	resource->length = reth->length;
	resource->run_length = reth->length;
	vb_nic_count(qp->nic, VB_COUNTER_RX_READ_REQUESTS);
	return VB_PASS;
}

static enum vb_verdict execute_atomic(struct vb_qp *qp, const struct vb_packet *packet)
{
	const struct vb_atomiceth *atomic = &packet->atomic;
	struct vb_memory_request request =
		remote_request(qp, atomic->rkey, VB_ACCESS_REMOTE_ATOMIC, atomic->address, 8);
	struct vb_resource *resource;
	struct vb_memory memory;
	uint64_t old;
	bool done;

	if (atomic->address & 7 || !vb_rc_has_room(&qp->responder))
		return VB_INVALID_REQUEST;
	if (vb_memory_resolve(qp->nic, &request, &memory) != VB_PASS)
		return VB_ACCESS_REFUSED;
	if (memory.address & 7)
		return VB_INVALID_REQUEST; /* iova and memory are aligned differently */
	if (vb_opcode_op(packet->bth.opcode) == VB_OP_COMPARE_SWAP)
		done = vb_dma_compare_swap(memory.address, atomic->compare, atomic->swap_or_add,
					   &old);
	else
		done = vb_dma_fetch_add(memory.address, atomic->swap_or_add, &old);
	if (!done)
		return VB_OPERATION_FAILED;
	resource = accept_request(qp, packet);
	resource->result = old;
	vb_nic_count(qp->nic, VB_COUNTER_RX_ATOMIC_REQUESTS);
	return VB_PASS;
}

/*
 * The target must be aligned (IBA A19.4.2), and in a region that allows remote writes (oA19-28).
 */
static enum vb_verdict execute_atomic_write(struct vb_qp *qp, const struct vb_frame *frame,
					    const struct vb_packet *packet)
{
	const struct vb_reth *reth = &packet->reth;
	struct vb_memory_request request =
		remote_request(qp, reth->rkey, VB_ACCESS_REMOTE_WRITE, reth->address, 8);
	struct vb_payload payload = vb_payload_of(frame, packet);
	struct vb_memory memory;
	uint8_t bytes[8];

	if (reth->address & 7 || reth->length != 8 || packet->payload_length != 8 ||
	    !vb_rc_has_room(&qp->responder))
		return VB_INVALID_REQUEST;
	if (vb_memory_resolve(qp->nic, &request, &memory) != VB_PASS)
		return VB_ACCESS_REFUSED;
	if (memory.address & 7)
		return VB_INVALID_REQUEST;
	vb_payload_read(&payload, bytes, sizeof(bytes));
	if (!vb_dma_atomic_store(memory.address, bytes))
		return VB_OPERATION_FAILED;
	accept_request(qp, packet);
	vb_nic_count(qp->nic, VB_COUNTER_RX_ATOMIC_REQUESTS);
	return VB_PASS;
}

static enum vb_verdict execute(struct vb_qp *qp, const struct vb_frame *frame,
			       const struct vb_packet *packet)
{
	enum vb_verdict verdict = vb_message_admit(qp, frame, packet);

	if (verdict != VB_PASS)
		return verdict;
	if (packet->traits & VB_IS_SEND)
		return vb_message_send(qp, frame, packet);
	if (packet->traits & VB_IS_WRITE)
		return vb_message_write(qp, frame, packet);
	if (packet->traits & VB_IS_READ)
		return execute_read(qp, packet);
	if (packet->traits & VB_IS_ATOMIC)
		return execute_atomic(qp, packet);
	return execute_atomic_write(qp, frame, packet);
}

static bool has_response(const struct vb_packet *packet)
{
	return packet->traits & (VB_IS_READ | VB_IS_ATOMIC | VB_IS_ATOMIC_WRITE);
}

/*
 * A NAK was due for a packet that has now arrived. If packets after it were dropped meanwhile, the
 * peer must still be told to send them again. Otherwise the peer is owed the ACK that the NAK may
 * have replaced.
 */
VB_COLD static void replace_nak(struct vb_qp *qp)
{
	struct vb_responder *responder = &qp->responder;

	if (responder->has_dropped &&
	    vb_psn_diff(responder->dropped_end, responder->expected) > 0) {
		responder->reply = VB_REPLY_NAK_SEQUENCE;
		responder->has_noted_nak = true;
		vb_qp_schedule(qp);
	} else {
		responder->has_dropped = false;
		vb_ack_owe(qp);
	}
}

static bool is_nak_due(const struct vb_responder *responder)
{
	return responder->reply == VB_REPLY_NAK_SEQUENCE || responder->reply == VB_REPLY_RNR;
}

static void on_expected(struct vb_qp *qp, const struct vb_frame *frame,
			const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	bool nak_was_due = is_nak_due(responder);
	enum vb_verdict verdict;

	if (nak_was_due)
		responder->reply = VB_REPLY_NONE;
	responder->has_noted_nak = false;
	verdict = execute(qp, frame, packet);
	switch (verdict) {
	case VB_PASS:
		responder->expected = vb_psn_add(responder->expected, psn_count(qp, packet));
		if (nak_was_due)
			replace_nak(qp);
		if (has_response(packet))
			vb_ack_on_response_due(qp);
		else
			vb_ack_on_executed(qp, vb_psn_add(responder->expected, VB_PSN_MASK),
					   packet->bth.ack_request); /* the PSN before it */
		break;
	case VB_NOT_READY:
		vb_nic_count(qp->nic, VB_COUNTER_OUT_OF_BUFFER);
		responder->reply = VB_REPLY_RNR;
		/* Everything is dropped until this packet comes again. */
		responder->has_noted_nak = true;
		vb_qp_schedule(qp);
		break;
	case VB_NOT_FETCHED:
		responder->reply = VB_REPLY_NAK_SEQUENCE;
		responder->has_noted_nak = true;
		vb_qp_schedule(qp);
		break;
	case VB_INVALID_REQUEST:
	case VB_ACCESS_REFUSED:
	case VB_OPERATION_FAILED:
	case VB_RECEIVE_TOO_SHORT:
	case VB_RECEIVE_REFUSED:
		vb_rc_refuse(qp, verdict, packet->bth.psn);
		break;
	}
}

static void note_dropped(struct vb_responder *responder, vb_psn end)
{
	if (!responder->has_dropped || vb_psn_diff(end, responder->dropped_end) > 0)
		responder->dropped_end = end;
	responder->has_dropped = true;
}

VB_COLD static void on_gap(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	vb_psn end = vb_psn_add(packet->bth.psn, 1);

	vb_nic_count(qp->nic, VB_COUNTER_OUT_OF_SEQUENCE);
	/* Once the NAK has left, the peer goes back in any case. */
	if (!responder->has_noted_nak || is_nak_due(responder))
		note_dropped(responder, end);
	if (responder->has_noted_nak) {
		vb_nic_drop(qp->nic, VB_DROP_OUT_OF_SEQUENCE);
		return;
	}
	responder->has_noted_nak = true;
	responder->reply = VB_REPLY_NAK_SEQUENCE;
	vb_qp_schedule(qp);
}

static uint32_t data_offset(const struct vb_qp *qp, const struct vb_resource *resource, vb_psn psn)
{
	return vb_psn_distance(psn, resource->first_psn) << qp->mtu_shift;
}

/*
 * Whether the packet repeats this READ, or a part of it with the PSN that the part had (IBA 9.4.4).
 */
static bool is_part_of(const struct vb_qp *qp, const struct vb_resource *resource,
		       const struct vb_packet *packet)
{
	uint32_t offset = data_offset(qp, resource, packet->bth.psn);

	return resource->op == VB_OP_READ_REQUEST && packet->reth.rkey == resource->rkey &&
	       packet->reth.address == resource->address + offset &&
	       packet->reth.length <= resource->length - offset &&
	       !packet->reth.length == !resource->length;
}

/*
 * A response that is under way can start again, but only with the same end. A duplicate with
 * another end is dropped, and the requester repeats it later.
 */
static void repeat(struct vb_qp *qp, struct vb_resource *resource, const struct vb_packet *packet)
{
	vb_psn end = vb_psn_add(packet->bth.psn, psn_count(qp, packet));

	if (resource->is_pending && !vb_psn_equal(end, resource->run_end)) {
		vb_nic_drop(qp->nic, VB_DROP_OLD_DUPLICATE);
		return;
	}
	if (!resource->is_pending) {
		resource->is_pending = true;
		resource->is_repeat = true;
		qp->responder.resources_pending++;
	}
	resource->next_psn = packet->bth.psn;
	resource->run_psn = packet->bth.psn;
	resource->run_end = end;
	if (packet->traits & VB_IS_READ)
		resource->run_length = data_offset(qp, resource, packet->bth.psn) +
				       packet->reth.length;
	vb_qp_schedule(qp);
}

/*
 * Our reply may have been lost. SENDs and WRITEs are not executed again, only acknowledged if they
 * ask for it (C9-105). READs are safe to repeat; atomics are answered from what was saved.
 */
VB_COLD static void on_duplicate(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_resource *resource;

	vb_nic_count(qp->nic, VB_COUNTER_DUPLICATE_REQUEST);
	if (!has_response(packet)) {
		vb_ack_on_duplicate(qp, packet->bth.ack_request);
		return;
	}
	resource = vb_rc_find_resource(&qp->responder, packet->bth.psn);
	if (!resource) {
		vb_nic_drop(qp->nic, VB_DROP_OLD_DUPLICATE);
		return;
	}
	if (packet->traits & VB_IS_READ ? is_part_of(qp, resource, packet)
					: resource->op == vb_opcode_op(packet->bth.opcode))
		repeat(qp, resource, packet);
	else
		vb_nic_drop(qp->nic, VB_DROP_INVALID);
}

void vb_rc_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	int32_t ahead = vb_psn_diff(packet->bth.psn, responder->expected);

	if (responder->refusal) {
		vb_nic_drop(qp->nic, VB_DROP_DYING);
		return;
	}
	if (!responder->is_established)
		vb_qp_on_established(qp);
	if (ahead == 0)
		on_expected(qp, frame, packet);
	else if (ahead > 0)
		on_gap(qp, packet);
	else
		on_duplicate(qp, packet);
}

/* --- the short path: the expected SEND, if it is one packet --- */

/* Whether the responder has nothing to do except, perhaps, to send an ACK that it owes. */
static bool is_idle_but_for_ack(const struct vb_responder *responder)
{
	return VB_USUALLY(responder->reply <= VB_REPLY_ACK && !responder->refusal &&
			  !responder->has_noted_nak && responder->message == VB_MESSAGE_NONE &&
			  !responder->receive.is_used && responder->is_established);
}

static bool place_in_receive(const struct vb_qp *qp, const struct vb_rwqe *rwqe,
			     const struct vb_frame *frame, uint32_t length)
{
	const struct vb_sge *sge = vb_rwqe_sges(rwqe);
	struct vb_memory memory;
	struct vb_memory_request request = {
		.key = sge->lkey,
		.pd = qp->pd_number,
		.rights = VB_ACCESS_LOCAL_WRITE,
		.address = sge->address,
		.length = length,
	};

	return VB_USUALLY(vb_memory_resolve(qp->nic, &request, &memory) == VB_PASS &&
			  !memory.is_null &&
			  vb_framing_is_undamaged(&qp->nic->framing, frame, frame->head.length) &&
			  vb_dma_write(memory.address, frame->head.data + VB_BTH_SIZE, length));
}

bool vb_rc_try_expected_send(struct vb_qp *qp, const struct vb_frame *frame,
			     const struct vb_bth *bth)
{
	struct vb_responder *responder = &qp->responder;
	uint32_t padded = frame->head.length - VB_BTH_SIZE - VB_ICRC_SIZE;
	uint32_t length = padded - bth->pad;
	const struct vb_rwqe *rwqe;

	if (!VB_USUALLY(vb_psn_equal(bth->psn, responder->expected) &&
			is_idle_but_for_ack(responder) && !qp->srq))
		return false;
	if (!VB_USUALLY(!(padded & 3) && padded > bth->pad && length <= qp->attr.path_mtu &&
			vb_queue_published(&qp->rq) != qp->rq.taken))
		return false;
	rwqe = vb_queue_slot(&qp->rq, qp->rq.taken);
	if (!VB_USUALLY(rwqe->sge_count == 1 && length <= rwqe->length &&
			place_in_receive(qp, rwqe, frame, length)))
		return false;
	qp->rq.taken++;
	responder->expected = vb_psn_add(responder->expected, 1);
	responder->msn = (responder->msn + 1) & 0xffffff;
	vb_ack_on_executed(qp, bth->psn, bth->ack_request);
	vb_qp_complete_taken(qp, rwqe->wr_id, length, bth->solicited);
	return true;
}
