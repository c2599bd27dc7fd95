/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: a request, what the program says about it, and the reply, which has the form of
 * the request (RFC 6581, 10). Peer-to-peer is granted: the program learns that the connection is
 * up when the initiator's first message has come.
 */
#include "mgmt/startup_priv.h"

void vb_startup_await(struct vb_startup *startup, uint64_t now_ns)
{
	VB_CHECK(startup->state == VB_STARTUP_IDLE);
	startup->state = VB_STARTUP_AWAIT_REQUEST;
	startup->deadline_ns = now_ns + VB_STARTUP_REQUEST_NS;
}

/*
 * RFC 6581, 9.2. An empty SEND would take a receive of the program. An initiator that can do
 * nothing else learns what we can do, and gives up.
 */
static uint8_t rtr_of(const struct vb_startup *startup)
{
	const struct vb_mpa_frame *request = &startup->peer;
	uint32_t known = VB_MPA_RTR_WRITE | (startup->config.ird_max ? VB_MPA_RTR_READ : 0);
	uint8_t common = (uint8_t)(request->rtr & known);

	if (!request->is_peer_to_peer)
		return 0;
	return common ? common : VB_MPA_RTR_WRITE;
}

/*
 * RFC 6581, 9.1. Our IRD is raised to what the initiator wants, if the adapter has room; our ORD
 * is lowered to what it takes. What it leaves open stays as the program wants it.
 */
static void agree_on_depths(struct vb_startup *startup, uint32_t ird, uint32_t ord)
{
	const struct vb_mpa_frame *request = &startup->peer;
	const struct vb_startup_config *config = &startup->config;

	if (request->is_enhanced) {
		if (request->ord != VB_MPA_DEPTH_UNSAID)
			ird = max32(ird, request->ord);
		if (rtr_of(startup) & VB_MPA_RTR_READ)
			ird = max32(ird, 1);
		if (request->ird != VB_MPA_DEPTH_UNSAID)
			ord = min32(ord, request->ird);
	}
	startup->terms.ird = (uint16_t)min32(ird, config->ird_max);
	startup->terms.ord = (uint16_t)min32(ord, config->ord_max);
}

/* The peer's C counts for both ends, and an initiator may look at the reply only. */
static struct vb_mpa_frame reply_of(const struct vb_startup *startup)
{
	const struct vb_mpa_frame *request = &startup->peer;

	return (struct vb_mpa_frame){
		.kind = VB_MPA_REPLY,
		.wants_crc = request->wants_crc || startup->config.wants_crc,
		.revision = request->revision,
		.is_enhanced = request->is_enhanced,
		.is_peer_to_peer = request->is_peer_to_peer,
		.rtr = rtr_of(startup),
		.ird = request->ord == VB_MPA_DEPTH_UNSAID ? VB_MPA_DEPTH_UNSAID
							   : startup->terms.ird,
		.ord = request->ird == VB_MPA_DEPTH_UNSAID ? VB_MPA_DEPTH_UNSAID
							   : startup->terms.ord,
	};
}

/* With the depths that it could have had. */
static void send_rejection(struct vb_startup *startup, const void *private_data,
			   uint32_t private_length, enum vb_startup_reason reason, uint64_t now_ns)
{
	struct vb_mpa_frame reply;

	agree_on_depths(startup, startup->config.ird_max, startup->config.ord_max);
	reply = reply_of(startup);
	reply.is_rejected = true;
	vb_startup_set_private(&reply, private_data, private_length);
	vb_startup_finish(startup, reason, now_ns);
	vb_startup_send_frame(startup, &reply);
}

void vb_startup_on_request(struct vb_startup *startup, uint64_t now_ns)
{
	if (startup->peer.wants_markers) {
		send_rejection(startup, NULL, 0, VB_STARTUP_MARKERS, now_ns);
		return;
	}
	startup->state = VB_STARTUP_REQUEST_RCVD;
	startup->deadline_ns = VB_NEVER;
	vb_startup_note_event(startup, VB_CM_REQUEST);
}

static bool may_reply(const struct vb_startup *startup, uint32_t private_length)
{
	return startup->state == VB_STARTUP_REQUEST_RCVD &&
	       private_length <= vb_mpa_private_size(startup->peer.is_enhanced);
}

vb_err vb_startup_reject(struct vb_startup *startup, const void *private_data,
			 uint32_t private_length, uint64_t now_ns)
{
	if (!may_reply(startup, private_length))
		return VB_EINVAL;
	send_rejection(startup, private_data, private_length, VB_STARTUP_GONE, now_ns);
	return VB_OK;
}

vb_err vb_startup_accept(struct vb_startup *startup, const struct vb_startup_offer *offer,
			 uint64_t now_ns)
{
	struct vb_mpa_frame reply;

	if (!may_reply(startup, offer->private_length))
		return VB_EINVAL;
	agree_on_depths(startup, offer->ird, offer->ord);
	reply = reply_of(startup);
	vb_startup_set_private(&reply, offer->private_data, offer->private_length);
	startup->terms.has_crc = reply.wants_crc;
	startup->terms.takes_long_fpdus = startup->peer.takes_long_fpdus;
	startup->terms.rtr = reply.rtr;
	startup->state = VB_STARTUP_REPLY_SENT;
	startup->deadline_ns = now_ns + VB_STARTUP_REPLY_NS;
	vb_startup_send_frame(startup, &reply);
	return VB_OK;
}

void vb_startup_on_reply_sent(struct vb_startup *startup, uint64_t now_ns)
{
	vb_startup_enter_up(startup);
	startup->holds = true;
	startup->awaits_rtr = startup->peer.is_peer_to_peer;
	startup->deadline_ns = now_ns +
			       (startup->awaits_rtr ? VB_STARTUP_REPLY_NS : VB_STARTUP_HOLD_NS);
	if (!startup->awaits_rtr)
		vb_startup_note_event(startup, VB_CM_ESTABLISHED);
}
