/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ACK policy of the reliable services. The files that build and take packets ask here.
 *
 * When the requester asks for an ACK:
 *   - with the last packet of each message;
 *   - within a message after a quarter of the window, and with the packet that fills the window or
 *     the flight, so that the next packets need not wait;
 *   - with the first packet of a message for which it knows of no receive;
 *   - never with a READ or an atomic, whose response acknowledges it.
 *
 * When the responder owes one:
 *   - for a packet that asks, executed now or long ago (a duplicate);
 *   - for a packet that makes a NAK needless before the NAK was sent;
 *   - for a receive that is posted after it has announced that there is none.
 * A NAK that is due takes the place of an ACK, and so does the response to a READ or atomic: both
 * acknowledge everything before them.
 *
 * How it leaves. One ACK answers for everything up to its PSN. Requests of its QP that are ready
 * go first: on a shared-memory link the first of them carries the ACK (piggybacked), on the wire it
 * is the last segment of their batch. It waits for them no longer than the QP's turn. Without
 * requests it leaves alone, in the order of PSNs with the responses to READs and atomics
 * (nic/rc_reply.c). A NAK does not wait.
 *
 * How long it may wait. If an engine has nothing to do but to send a few ACKs, it may be left
 * alone until the program's next call, which usually posts a request that the ACK can travel with.
 * vb_nic_can_defer_acks() says when, and the caller ends the wait (host/adapter/drive.c).
 */
#ifndef VB_NIC_ACK_POLICY_PRIV_H
#define VB_NIC_ACK_POLICY_PRIV_H

#include "nic/rc_priv.h"

/* --- the requester --- */

/* Whether the packet with the next PSN, which is one of this request, asks for an ACK. */
static inline bool vb_ack_is_wanted(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	const struct vb_requester *requester = &qp->requester;
	uint32_t index = vb_psn_distance(requester->next_psn, wqe->first_psn);
	uint32_t window;

	if (vb_wqe_needs_response(wqe))
		return false;
	if (index + 1 == wqe->packet_count)
		return true;
	window = vb_rc_window(qp);
	return (requester->packets_since_ack_request + 1) * 4 >= window ||
	       vb_rc_packets_in_flight(requester) + 1 >= window || vb_flight_is_nearly_full(qp) ||
	       (index == 0 && vb_rc_is_beyond_credits(requester, wqe));
}

/* --- the responder --- */

/* An ACK is due, unless a NAK is, which acknowledges everything before it. */
static inline void vb_ack_owe(struct vb_qp *qp)
{
	if (qp->responder.reply == VB_REPLY_NONE)
		qp->responder.reply = VB_REPLY_ACK;
	vb_qp_schedule(qp);
}

/* A packet of a SEND or WRITE is executed. */
static inline void vb_ack_on_executed(struct vb_qp *qp, vb_psn psn, bool is_wanted)
{
	qp->responder.ack_psn = psn;
	if (is_wanted)
		vb_ack_owe(qp);
}

/*
 * A READ or atomic is executed. Its response acknowledges it, and everything before it. An ACK
 * never names its PSN: some requesters, the Linux kernel's among them, take the ACK for the
 * response if the response was lost.
 */
static inline void vb_ack_on_response_due(struct vb_qp *qp)
{
	if (qp->responder.reply == VB_REPLY_ACK)
		qp->responder.reply = VB_REPLY_NONE;
}

/* A packet of a SEND or WRITE came again. It may be that our ACK was lost (C9-105). */
static inline void vb_ack_on_duplicate(struct vb_qp *qp, bool is_wanted)
{
	if (is_wanted)
		vb_ack_owe(qp);
}

/* Receives were posted: notifies the peer if the last ACK announced none. */
void vb_ack_on_receives_posted(struct vb_qp *qp);

/* --- how it leaves --- */

/* Whether only an ACK is owed, which may follow requests, and nothing that goes before them. */
static inline bool vb_ack_is_all_owed(const struct vb_qp *qp)
{
	return qp->responder.reply == VB_REPLY_ACK && !qp->responder.resources_pending;
}

/*
 * A request is in the slot. Sends the ACK that is owed with it, if the slot's path can carry both
 * in one packet.
 */
static inline void vb_ack_join_request(struct vb_qp *qp, struct vb_slot *slot)
{
	if (slot->path.link && vb_ack_is_all_owed(qp))
		vb_rc_piggyback_ack(qp, slot);
}

#endif
