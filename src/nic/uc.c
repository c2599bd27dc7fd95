/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC: messages without acknowledgement. The sender is done when the last packet is out. A receiver
 * that misses a packet drops the message, keeps its receive for the next one, and continues.
 */
#include "nic/direct_priv.h"
#include "nic/unreliable_priv.h"

static bool can_send(const struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;
	enum vb_qp_state state = vb_qp_state_now(qp);

	if (requester->send_index == vb_queue_published(&qp->sq))
		return false;
	/* SQD finishes what was begun. */
	return state == VB_STATE_RTS ||
	       (state == VB_STATE_SQD &&
		vb_qp_has_begun(qp, vb_queue_wqe(&qp->sq, requester->send_index)));
}

/* False if the operation failed. */
static bool execute_local(struct vb_qp *qp, struct vb_wqe *wqe)
{
	enum vb_status status = vb_request_execute_local(qp, wqe);

	if (status != VB_STATUS_SUCCESS)
		vb_unreliable_fail(qp, status);
	else if (qp->requester.done_index == qp->requester.send_index)
		vb_qp_complete_current(qp);
	else
		vb_unreliable_on_sent(qp);
	return status == VB_STATUS_SUCCESS;
}

static bool emit_packet(struct vb_qp *qp, struct vb_wqe *wqe, struct vb_slot *slot)
{
	struct vb_requester *requester = &qp->requester;
	struct vb_cursor cursor;

	if (wqe->progress == VB_WQE_NOT_STARTED)
		vb_request_start(qp, wqe);
	cursor = requester->cursor;
	if (vb_request_build(qp, wqe, false, &cursor, slot) != VB_PASS) {
		vb_unreliable_fail(qp, VB_STATUS_LOC_PROT_ERR);
		return false;
	}
	requester->cursor = cursor;
	requester->next_psn = vb_psn_add(requester->next_psn, 1);
	requester->new_psn = requester->unacked = requester->next_psn;
	if (vb_psn_distance(requester->next_psn, wqe->first_psn) == wqe->packet_count)
		vb_unreliable_on_sent(qp);
	return true;
}

bool vb_uc_emit(struct vb_qp *qp, struct vb_slot *slot)
{
	while (can_send(qp)) {
		struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, qp->requester.send_index);
		enum vb_direct direct = VB_DIRECT_REFUSED;

		if (vb_wqe_is_local(wqe)) {
			if (!execute_local(qp, wqe))
				return false;
			continue;
		}
		if (wqe->progress == VB_WQE_NOT_STARTED && qp->peer_memory)
			direct = vb_qp_execute_directly(qp, wqe);
		if (direct == VB_DIRECT_REFUSED)
			return emit_packet(qp, wqe, slot);
		if (direct != VB_DIRECT_DONE)
			return false;
	}
	return false;
}

static enum vb_drop drop_reason(enum vb_verdict verdict)
{
	switch (verdict) {
	case VB_NOT_READY:
		return VB_DROP_NO_RECEIVE;
	case VB_RECEIVE_TOO_SHORT:
		return VB_DROP_TOO_LONG;
	case VB_ACCESS_REFUSED:
	case VB_OPERATION_FAILED:
	case VB_RECEIVE_REFUSED:
		return VB_DROP_REFUSED;
	case VB_INVALID_REQUEST:
	case VB_NOT_FETCHED: /* UC has no trains */
	case VB_PASS:
		break;
	}
	return VB_DROP_INVALID;
}

/* Drops the rest of the message. Only a receive with invalid buffers ends the QP. */
static void give_up_message(struct vb_qp *qp, enum vb_verdict verdict)
{
	vb_nic_drop(qp->nic, drop_reason(verdict));
	if (verdict == VB_NOT_READY)
		vb_nic_count(qp->nic, VB_COUNTER_OUT_OF_BUFFER);
	qp->responder.message = VB_MESSAGE_NONE;
	qp->responder.is_broken = true;
	if (verdict == VB_RECEIVE_REFUSED) {
		vb_qp_complete_receive(qp, VB_STATUS_LOC_PROT_ERR, NULL, 0);
		vb_qp_enter_error(qp);
	}
}

void vb_uc_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	bool in_sequence = vb_psn_equal(packet->bth.psn, responder->expected);
	enum vb_verdict verdict;

	if (!responder->is_established)
		vb_qp_on_established(qp);
	responder->expected = vb_psn_add(packet->bth.psn, 1);
	if (!in_sequence)
		vb_nic_count(qp->nic, VB_COUNTER_OUT_OF_SEQUENCE);
	if (packet->traits & VB_IS_FIRST) {
		responder->message = VB_MESSAGE_NONE; /* an unfinished message is given up */
		responder->is_broken = false;
	} else if (!in_sequence || responder->is_broken) {
		responder->message = VB_MESSAGE_NONE;
		responder->is_broken = true;
		vb_nic_drop(qp->nic, VB_DROP_BROKEN_MESSAGE);
		return;
	}
	verdict = vb_message_admit(qp, frame, packet);
	if (verdict == VB_PASS)
		verdict = packet->traits & VB_IS_SEND ? vb_message_send(qp, frame, packet)
						      : vb_message_write(qp, frame, packet);
	if (verdict != VB_PASS)
		give_up_message(qp, verdict);
}
