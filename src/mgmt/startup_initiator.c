/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator: a request of revision 2, and what its reply means. A responder that knows only
 * revision 1 closes the connection, or replies as if our words were the program's (RFC 6581, 10).
 * It gets a second connection with a request of revision 1.
 */
#include "mgmt/startup_priv.h"

static void connect_with(struct vb_startup *startup, uint8_t revision, uint64_t now_ns)
{
	startup->mine.revision = revision;
	startup->mine.is_enhanced = revision >= 2;
	startup->state = VB_STARTUP_CONNECTING;
	startup->wish = VB_STARTUP_CONNECT;
	startup->received_length = 0;
	startup->output_length = startup->output_sent = 0;
	startup->deadline_ns = now_ns + VB_STARTUP_REPLY_NS;
}

vb_err vb_startup_connect(struct vb_startup *startup, const struct vb_startup_offer *offer,
			  uint64_t now_ns)
{
	struct vb_mpa_frame request = {
		.kind = VB_MPA_REQUEST,
		.wants_crc = startup->config.wants_crc,
		.is_enhanced = true,
		.ird = (uint16_t)min32(offer->ird, startup->config.ird_max),
		.ord = (uint16_t)min32(offer->ord, startup->config.ord_max),
	};

	if (startup->state != VB_STARTUP_IDLE || offer->private_length > vb_mpa_private_size(true))
		return VB_EINVAL;
	vb_startup_set_private(&request, offer->private_data, offer->private_length);
	startup->mine = request;
	startup->is_initiator = true;
	startup->terms.has_crc = request.wants_crc;
	startup->terms.ird = request.ird;
	startup->terms.ord = request.ord;
	connect_with(startup, 2, now_ns);
	return VB_OK;
}

void vb_startup_on_connected(struct vb_startup *startup, uint64_t now_ns)
{
	if (startup->state != VB_STARTUP_CONNECTING)
		return;
	startup->state = VB_STARTUP_REQUEST_SENT;
	startup->wish = VB_STARTUP_NOTHING;
	startup->deadline_ns = now_ns + VB_STARTUP_REPLY_NS;
	vb_startup_send_frame(startup, &startup->mine);
}

static void fail(struct vb_startup *startup, enum vb_startup_reason reason)
{
	vb_startup_close(startup, reason);
	vb_startup_note_event(startup, VB_CM_REJECTED);
}

/* A second try that fails in this way tells nothing new: the first reason counts. */
void vb_startup_on_unconnected(struct vb_startup *startup, bool is_refused)
{
	if (startup->state != VB_STARTUP_CONNECTING)
		return;
	if (startup->was_lost) {
		fail(startup, VB_STARTUP_LOST);
	} else if (is_refused) {
		fail(startup, VB_STARTUP_REFUSED);
	} else {
		vb_startup_close(startup, VB_STARTUP_TIMEOUT);
		vb_startup_note_event(startup, VB_CM_UNREACHABLE);
	}
}

void vb_startup_on_lost_reply(struct vb_startup *startup, uint64_t now_ns)
{
	if (startup->mine.revision == 1 || startup->received_length) {
		fail(startup, VB_STARTUP_LOST);
		return;
	}
	startup->was_lost = true;
	connect_with(startup, 1, now_ns);
}

/* The peer learns what is wrong, in the form of a first FPDU. */
static void refuse(struct vb_startup *startup, enum vb_startup_reason reason, uint8_t code,
		   uint64_t now_ns)
{
	vb_startup_finish(startup, reason, now_ns);
	vb_startup_send_terminate(startup,
				  (struct vb_rdmap_error){ .layer = VB_LAYER_MPA, .code = code });
	vb_startup_note_event(startup, VB_CM_REJECTED);
}

/* A Terminate cannot follow a part of a request. */
void vb_startup_on_bad_reply(struct vb_startup *startup, uint64_t now_ns)
{
	if (startup->output_length)
		fail(startup, VB_STARTUP_MALFORMED);
	else
		refuse(startup, VB_STARTUP_MALFORMED, 4, now_ns);
}

/* RFC 6581, 9.1. Our IRD is raised if the adapter has room; our ORD is lowered. */
static bool agree_on_depths(struct vb_startup *startup)
{
	const struct vb_mpa_frame *reply = &startup->peer;
	struct vb_startup_terms *terms = &startup->terms;

	if (!reply->is_enhanced)
		return true;
	if (reply->ird != VB_MPA_DEPTH_UNSAID && reply->ird < terms->ord)
		terms->ord = reply->ird;
	if (reply->ord == VB_MPA_DEPTH_UNSAID || reply->ord <= terms->ird)
		return true;
	if (reply->ord > startup->config.ird_max)
		return false;
	terms->ird = reply->ord;
	return true;
}

/*
 * We do not ask for peer-to-peer. A responder that wants it nevertheless gets an RTR, if it takes
 * one: an empty WRITE costs neither end anything.
 */
static bool agree_on_rtr(struct vb_startup *startup)
{
	uint8_t rtr = startup->peer.rtr;

	if (!startup->peer.is_peer_to_peer)
		return true;
	if (rtr & VB_MPA_RTR_WRITE)
		startup->terms.rtr = VB_MPA_RTR_WRITE;
	else if (rtr & VB_MPA_RTR_READ && startup->terms.ord)
		startup->terms.rtr = VB_MPA_RTR_READ;
	return startup->terms.rtr;
}

void vb_startup_on_reply(struct vb_startup *startup, uint64_t now_ns)
{
	const struct vb_mpa_frame *reply = &startup->peer;
	bool is_other_revision = reply->is_enhanced != startup->mine.is_enhanced;

	startup->terms.has_crc = startup->mine.wants_crc || reply->wants_crc;
	startup->terms.takes_long_fpdus = reply->takes_long_fpdus;
	if (startup->mine.revision == 2 &&
	    (reply->revision == 1 || (is_other_revision && !reply->is_rejected)))
		connect_with(startup, 1, now_ns);
	else if (reply->is_rejected)
		fail(startup, VB_STARTUP_REJECTED);
	else if (is_other_revision)
		vb_startup_on_bad_reply(startup, now_ns);
	else if (reply->wants_markers)
		fail(startup, VB_STARTUP_MARKERS);
	else if (!agree_on_depths(startup))
		refuse(startup, VB_STARTUP_DEPTH, 6, now_ns);
	else if (!agree_on_rtr(startup))
		refuse(startup, VB_STARTUP_RTR, 7, now_ns);
	else {
		vb_startup_enter_up(startup);
		vb_startup_note_event(startup, VB_CM_ESTABLISHED);
	}
}
