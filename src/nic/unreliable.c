/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How UC and UD requests end. They are done when their last packet is out. But the link reads the
 * packet's spans only after vb_nic_transmit() has returned, and a program that sees the completion
 * may write to the buffer. So the completion comes with the next call into the engine, when the
 * spans are no longer valid.
 */
#include "nic/rc_priv.h"
#include "nic/unreliable_priv.h"

void vb_unreliable_complete_sent(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	while (requester->done_index != requester->send_index)
		vb_qp_complete_send(qp, requester->done_index++, VB_STATUS_SUCCESS);
	if (qp->peer_memory)
		requester->shm_link_end = vb_dma_peer_shm_link_end(qp->peer_memory);
	vb_rc_report_drained(qp);
	vb_qp_schedule(qp); /* a request that fails waits for those before it */
}

/* Notes that the QP's packets are with the link now. */
static void note_sent(struct vb_qp *qp)
{
	if (!vb_list_is_linked(&qp->sent))
		vb_list_append(&qp->nic->sent, &qp->sent);
}

void vb_unreliable_on_sent(struct vb_qp *qp)
{
	qp->requester.send_index++;
	qp->requester.cursor = (struct vb_cursor){ 0, 0 };
	note_sent(qp);
}

bool vb_unreliable_fail(struct vb_qp *qp, enum vb_status status)
{
	struct vb_requester *requester = &qp->requester;

	if (requester->done_index != requester->send_index)
		return false;
	requester->send_index++;
	vb_qp_complete_send(qp, requester->done_index++, status);
	vb_qp_enter_sqe(qp);
	note_sent(qp); /* part of a message that cannot be finished may be sent */
	return true;
}
