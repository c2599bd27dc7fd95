/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC, sending replies. Replies leave in the order of their PSNs: READ and atomic responses, and the
 * one acknowledgement for everything else that was executed, which nearly always comes after them.
 * A refusal is the last reply: the QP enters ERR with it.
 */
#include "nic/payload_priv.h"
#include "nic/rc_priv.h"

#include "base/bytes.h"
#include "wire/syndrome.h"

static void fill_header(const struct vb_qp *qp, enum vb_packet_op op, vb_psn psn,
			struct vb_packet *packet)
{
	packet->bth = (struct vb_bth){
		.opcode = VB_OPCODE(qp->service, op),
		.pkey = vb_nic_pkey(qp->nic, qp->attr.pkey_index),
		.destination = qp->peer,
		.psn = psn,
	};
}

/*
 * How many more messages we have receives for (IBA 9.7.7.2). A message under way counts: its number
 * is still above the MSN.
 */
static uint32_t count_receives(const struct vb_qp *qp)
{
	return vb_queue_published(&qp->rq) - qp->rq.taken + qp->responder.receive.is_used;
}

/*
 * The same as a syndrome. A peer that learns of no receives waits until some are announced. So a
 * thread that posts a receive must be able to see that.
 */
static uint8_t announce_credits(struct vb_qp *qp)
{
	uint32_t count;

	if (qp->srq || qp->type != VB_QP_RC)
		return VB_SYNDROME_ACK | VB_CREDIT_CODE_INVALID;
	count = count_receives(qp);
	if (!count) {
		atomic_store_explicit(&qp->has_announced_no_credits, 1, memory_order_relaxed);
		/*
		 * Pairs with the fence in vb_qp_post_recv(): either we see its receive, or it sees
		 * that it must ring.
		 */
		atomic_thread_fence(memory_order_seq_cst);
		count = count_receives(qp);
	}
	if (count)
		atomic_store_explicit(&qp->has_announced_no_credits, 0, memory_order_relaxed);
	return VB_SYNDROME_ACK | vb_credit_code(count);
}

static enum vb_packet_op read_response_op(bool first, bool last)
{
	if (first)
		return last ? VB_OP_READ_RESPONSE_ONLY : VB_OP_READ_RESPONSE_FIRST;
	return last ? VB_OP_READ_RESPONSE_LAST : VB_OP_READ_RESPONSE_MIDDLE;
}

/*
 * Adds the part of a READ's data that belongs into the packet. The memory is resolved now because
 * it may be gone, which is an access error (IBA 9.7.5.2.4).
 */
static enum vb_verdict add_read_data(struct vb_qp *qp, const struct vb_resource *resource,
				     uint32_t offset, uint32_t length, struct vb_slot *slot)
{
	struct vb_memory_request request = {
		.key = resource->rkey,
		.pd = resource->pd,
		.qpn = qp->number.v,
		.rights = VB_ACCESS_REMOTE_READ,
		.address = resource->address + offset,
		.length = length,
	};
	struct vb_memory memory;

	if (!length)
		return VB_PASS;
	if (vb_memory_resolve(qp->nic, &request, &memory) != VB_PASS)
		return VB_ACCESS_REFUSED;
	/*
	 * Copied because the program may write to the memory at any time, and the bytes must not
	 * change after their ICRC.
	 */
	return vb_slot_add_memory(slot, memory.address, length, true) ? VB_PASS
								      : VB_OPERATION_FAILED;
}

static enum vb_verdict build_read_response(struct vb_qp *qp, const struct vb_resource *resource,
					   struct vb_slot *slot)
{
	uint32_t index = vb_psn_distance(resource->next_psn, resource->first_psn);
	uint32_t offset = index << qp->mtu_shift;
	bool is_last = vb_psn_equal(vb_psn_add(resource->next_psn, 1), resource->run_end);
	struct vb_packet packet = { 0 };
	enum vb_verdict verdict;

	fill_header(qp,
		    read_response_op(vb_psn_equal(resource->next_psn, resource->run_psn), is_last),
		    resource->next_psn, &packet);
	packet.payload_length = min32(resource->run_length - offset, qp->attr.path_mtu);
	packet.aeth = (struct vb_aeth){ announce_credits(qp), resource->msn };
	vb_slot_begin(slot, &qp->path, &packet);
	verdict = add_read_data(qp, resource, offset, packet.payload_length, slot);
	if (verdict == VB_PASS && !vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad))
		verdict = VB_OPERATION_FAILED;
	return verdict;
}

static void build_result(struct vb_qp *qp, const struct vb_resource *resource, struct vb_slot *slot)
{
	bool is_write = resource->op == VB_OP_ATOMIC_WRITE;
	struct vb_packet packet = { 0 };

	fill_header(qp, is_write ? VB_OP_READ_RESPONSE_ONLY : VB_OP_ATOMIC_ACKNOWLEDGE,
		    resource->first_psn, &packet);
	packet.aeth = (struct vb_aeth){ announce_credits(qp), resource->msn };
	packet.atomic_result = resource->result;
	vb_slot_begin(slot, &qp->path, &packet);
	/* It has no application memory in it. */
	VB_CHECK(vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad));
}

static bool emit_response(struct vb_qp *qp, struct vb_resource *resource, struct vb_slot *slot)
{
	struct vb_responder *responder = &qp->responder;
	enum vb_verdict verdict = VB_PASS;

	if (resource->op == VB_OP_READ_REQUEST)
		verdict = build_read_response(qp, resource, slot);
	else
		build_result(qp, resource, slot);
	if (verdict != VB_PASS && resource->is_repeat) {
		/*
		 * Perhaps only a late copy of a request that was already answered: no reason to end
		 * the QP.
		 */
		vb_nic_drop(qp->nic, VB_DROP_OLD_DUPLICATE);
		resource->is_pending = false;
		responder->resources_pending--;
		return false;
	}
	if (verdict != VB_PASS) {
		vb_rc_drop_pending(responder); /* nothing after this is answered */
		responder->msn = (resource->msn - 1) & 0xffffff; /* this one does not count */
		vb_rc_refuse(qp, verdict, resource->next_psn);
		return false;
	}
	resource->next_psn = vb_psn_add(resource->next_psn, 1);
	if (vb_psn_equal(resource->next_psn, resource->run_end)) {
		resource->is_pending = false;
		responder->resources_pending--;
	}
	return true;
}

static void build_acknowledge(struct vb_qp *qp, uint8_t syndrome, vb_psn psn, struct vb_slot *slot)
{
	struct vb_packet packet;

	fill_header(qp, VB_OP_ACKNOWLEDGE, psn, &packet);
	packet.payload_length = 0;
	packet.aeth = (struct vb_aeth){ syndrome, qp->responder.msn };
	vb_slot_begin(slot, &qp->path, &packet);
	VB_CHECK(vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad));
}

void vb_rc_emit_ack(struct vb_qp *qp, struct vb_slot *slot)
{
	qp->responder.reply = VB_REPLY_NONE;
	build_acknowledge(qp, announce_credits(qp), qp->responder.ack_psn, slot);
}

void vb_rc_piggyback_ack(struct vb_qp *qp, struct vb_slot *slot)
{
	struct vb_responder *responder = &qp->responder;

	slot->piggyback_ack = (struct vb_piggyback_ack){
		.is_there = true,
		.psn = responder->ack_psn,
		.aeth = { announce_credits(qp), responder->msn },
	};
	responder->reply = VB_REPLY_NONE;
}

/* The NAK is in the slot; now the QP ends. */
static void conclude_refusal(struct vb_qp *qp)
{
	const struct vb_refusal *refusal = vb_refusal_of((enum vb_verdict)qp->responder.refusal);

	vb_nic_count(qp->nic, (enum vb_counter)refusal->counter);
	if (qp->responder.receive.is_used)
		vb_qp_complete_receive(qp, (enum vb_status)refusal->receive_status, NULL, 0);
	if (refusal->event != VB_NO_EVENT)
		vb_event_raise(qp->nic, &qp->source, (enum vb_event_kind)refusal->event);
	vb_qp_enter_error(qp);
}

/*
 * The response to send before an acknowledgement. The acknowledgement of an earlier request that
 * was repeated goes first: IBA C9-110.
 */
static struct vb_resource *next_response(struct vb_responder *responder)
{
	struct vb_resource *resource = vb_rc_next_pending(responder);

	if (resource && responder->reply == VB_REPLY_ACK &&
	    vb_psn_diff(responder->ack_psn, resource->next_psn) < 0)
		return NULL;
	return resource;
}

bool vb_rc_emit_reply(struct vb_qp *qp, struct vb_slot *slot)
{
	struct vb_responder *responder = &qp->responder;
	struct vb_resource *resource = next_response(responder);
	enum vb_reply reply;

	for (; resource; resource = next_response(responder))
		if (emit_response(qp, resource, slot))
			return true;
	reply = (enum vb_reply)responder->reply;
	responder->reply = VB_REPLY_NONE;
	switch (reply) {
	case VB_REPLY_NONE:
		return false;
	case VB_REPLY_ACK:
		vb_rc_emit_ack(qp, slot);
		break;
	case VB_REPLY_NAK_SEQUENCE:
		responder->has_dropped = false; /* the peer goes back for all of them */
		build_acknowledge(qp, VB_SYNDROME_NAK | VB_NAK_SEQUENCE, responder->expected, slot);
		break;
	case VB_REPLY_RNR:
		vb_nic_count(qp->nic, VB_COUNTER_RNR_NAK_SENT);
		responder->has_dropped = false;
		build_acknowledge(qp, VB_SYNDROME_RNR_NAK | qp->attr.min_rnr_timer,
				  responder->expected, slot);
		break;
	case VB_REPLY_REFUSAL:
		build_acknowledge(
			qp,
			(uint8_t)(VB_SYNDROME_NAK |
				  vb_refusal_of((enum vb_verdict)responder->refusal)->nak),
			responder->refusal_psn, slot);
		conclude_refusal(qp);
		break;
	}
	return true;
}
