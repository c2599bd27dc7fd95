/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a QP's requests end when it fails: everything that was posted completes, in order, exactly
 * once.
 */
#include "nic/qp_priv.h"
#include "nic/rc_priv.h"
#include "nic/rendezvous_priv.h"
#include "nic/unreliable_priv.h"

void vb_qp_flush_send(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;
	uint32_t end;

	if (qp->rendezvous)
		vb_rendezvous_take_posted(qp);
	end = vb_queue_published(&qp->sq);
	if (!vb_qp_is_reliable(qp))
		vb_unreliable_complete_sent(qp); /* their packets are sent */
	vb_list_remove(&qp->sent);
	while (requester->done_index != end)
		vb_qp_complete_send(qp, requester->done_index++, VB_STATUS_WR_FLUSH_ERR);
	if (qp->rendezvous)
		vb_rendezvous_flush(qp);
	requester->send_index = end;
	requester->cursor = (struct vb_cursor){ 0, 0 };
	requester->direct_offset = 0;
	requester->has_failed = false;
	requester->waits_for_receiver = false;
	requester->reads_out = 0;
	requester->read_psns_out = 0;
}

void vb_qp_flush_recv(struct vb_qp *qp)
{
	struct vb_responder *responder = &qp->responder;

	if (responder->receive.is_used)
		vb_qp_complete_receive(qp, VB_STATUS_WR_FLUSH_ERR, NULL, 0);
	responder->message = VB_MESSAGE_NONE;
	if (qp->srq || qp->type == VB_QP_XRC_RECV)
		return; /* the rest of the SRQ belongs to other QPs as well */
	while (vb_qp_take_receive(qp, NULL, NULL) == VB_PASS)
		vb_qp_complete_receive(qp, VB_STATUS_WR_FLUSH_ERR, NULL, 0);
}

VB_COLD void vb_qp_enter_error(struct vb_qp *qp)
{
	if (vb_qp_state_now(qp) == VB_STATE_ERR)
		return;
	vb_qp_set_state(qp, VB_STATE_ERR);
	vb_timer_stop(&qp->timer);
	vb_flight_leave(qp);
	vb_rc_drop_pending(&qp->responder);
	qp->responder.reply = VB_REPLY_NONE;
	vb_qp_flush_send(qp);
	vb_qp_flush_recv(qp);
	if (qp->srq || qp->type == VB_QP_XRC_RECV)
		vb_event_raise(qp->nic, &qp->source, VB_EVENT_QP_LAST_WQE_REACHED);
}

void vb_qp_enter_sqe(struct vb_qp *qp)
{
	vb_qp_set_state(qp, VB_STATE_SQE);
	vb_qp_flush_send(qp);
}
