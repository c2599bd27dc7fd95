/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine of both roles: bytes in and out, the end of streams, time, events. */
#include "mgmt/startup.h"

#include "base/crc.h"
#include "mgmt/startup_priv.h"

#include <string.h>

void vb_startup_init(struct vb_startup *startup, const struct vb_startup_config *config)
{
	VB_CHECK(config->ird_max <= VB_MPA_DEPTH_MAX && config->ord_max <= VB_MPA_DEPTH_MAX);
	*startup = (struct vb_startup){ .config = *config, .deadline_ns = VB_NEVER };
}

void vb_startup_set_private(struct vb_mpa_frame *frame, const void *data, uint32_t length)
{
	VB_CHECK(length <= vb_mpa_private_size(frame->is_enhanced));
	if (length)
		memcpy(frame->private_data, data, length);
	frame->private_length = (uint16_t)length;
}

/* --- changes ---------------------------------------------------------------------------------- */

void vb_startup_note_event(struct vb_startup *startup, enum vb_cm_event_kind kind)
{
	startup->events |= 1u << kind;
}

static void clear_output(struct vb_startup *startup)
{
	startup->output_length = startup->output_sent = 0;
}

void vb_startup_close(struct vb_startup *startup, enum vb_startup_reason reason)
{
	startup->state = VB_STARTUP_CLOSED;
	startup->reason = reason;
	startup->wish = VB_STARTUP_DROP;
	startup->deadline_ns = VB_NEVER;
	clear_output(startup);
}

void vb_startup_finish(struct vb_startup *startup, enum vb_startup_reason reason, uint64_t now_ns)
{
	startup->state = VB_STARTUP_CLOSING;
	startup->reason = reason;
	startup->wish = VB_STARTUP_NOTHING; /* until the output is out */
	startup->deadline_ns = now_ns + VB_STARTUP_LINGER_NS;
}

void vb_startup_enter_up(struct vb_startup *startup)
{
	startup->state = VB_STARTUP_UP;
	startup->wish = VB_STARTUP_NOTHING;
	startup->deadline_ns = VB_NEVER;
}

/* --- bytes that leave ------------------------------------------------------------------------- */

void vb_startup_send_frame(struct vb_startup *startup, const struct vb_mpa_frame *frame)
{
	startup->output_length = vb_mpa_frame_store(startup->output, frame);
	startup->output_sent = 0;
}

void vb_startup_send_terminate(struct vb_startup *startup, struct vb_rdmap_error error)
{
	struct vb_rdmap segment = {
		.ddp = { .opcode = VB_RDMAP_TERMINATE, .is_last = true, .msn = 1 },
		.terminate = { .error = error },
	};
	uint8_t *ulpdu = startup->output + VB_MPA_LENGTH_SIZE;
	uint32_t length = vb_rdmap_store_headers(ulpdu, &segment);

	store16(startup->output, (uint16_t)length);
	vb_mpa_trailer_store(ulpdu + length, length, startup->terms.has_crc,
			     vb_crc32c(0, startup->output, VB_MPA_LENGTH_SIZE + length));
	startup->output_length = vb_mpa_fpdu_size(length);
	startup->output_sent = 0;
}

const uint8_t *vb_startup_output(const struct vb_startup *startup, uint32_t *length)
{
	*length = startup->output_length - startup->output_sent;
	return startup->output + startup->output_sent;
}

void vb_startup_on_sent(struct vb_startup *startup, uint32_t length, uint64_t now_ns)
{
	VB_CHECK(length <= startup->output_length - startup->output_sent);
	startup->output_sent += length;
	if (!length || startup->output_sent < startup->output_length)
		return;
	clear_output(startup);
	if (startup->state == VB_STARTUP_REPLY_SENT)
		vb_startup_on_reply_sent(startup, now_ns);
}

enum vb_startup_wish vb_startup_wants(const struct vb_startup *startup)
{
	if (startup->state == VB_STARTUP_CLOSING && !startup->output_length)
		return VB_STARTUP_FINISH;
	return startup->wish;
}

/* --- bytes that arrive ------------------------------------------------------------------------ */

/*
 * A request that the program has not seen yet never was. If it has, there is no event, as in the
 * kernel: accepting the request will fail.
 */
static void withdraw(struct vb_startup *startup, enum vb_startup_reason reason)
{
	vb_startup_close(startup, reason);
	startup->events = 0;
}

static enum vb_mpa_kind expected_kind(const struct vb_startup *startup)
{
	return startup->is_initiator ? VB_MPA_REPLY : VB_MPA_REQUEST;
}

static void on_malformed(struct vb_startup *startup, uint64_t now_ns)
{
	if (startup->is_initiator)
		vb_startup_on_bad_reply(startup, now_ns);
	else
		vb_startup_close(startup, VB_STARTUP_MALFORMED);
}

/* Collects the peer's frame, and lets the next state have what follows. */
static uint32_t receive_frame(struct vb_startup *startup, const uint8_t *bytes, uint32_t length,
			      uint64_t now_ns)
{
	uint32_t had = startup->received_length;
	uint32_t part = min32(length, VB_MPA_FRAME_MAX - had), taken = 0;

	memcpy(startup->received + had, bytes, part);
	startup->received_length = had + part;
	switch (vb_mpa_frame_parse(expected_kind(startup), startup->received,
				   startup->received_length, &startup->peer, &taken)) {
	case VB_MPA_INCOMPLETE:
		return length;
	case VB_MPA_BAD_KEY:
	case VB_MPA_BAD_REVISION:
	case VB_MPA_BAD_LENGTH:
		on_malformed(startup, now_ns);
		return length;
	case VB_MPA_PARSED:
		break;
	}
	taken -= had;
	if (startup->is_initiator)
		vb_startup_on_reply(startup, now_ns);
	else
		vb_startup_on_request(startup, now_ns);
	return taken + vb_startup_receive(startup, bytes + taken, length - taken, now_ns);
}

uint32_t vb_startup_receive(struct vb_startup *startup, const uint8_t *bytes, uint32_t length,
			    uint64_t now_ns)
{
	if (!length)
		return 0;
	switch (startup->state) {
	case VB_STARTUP_REQUEST_SENT:
		if (startup->output_length) { /* nobody can reply to a part of a request */
			on_malformed(startup, now_ns);
			return length;
		}
		return receive_frame(startup, bytes, length, now_ns);
	case VB_STARTUP_AWAIT_REQUEST:
		return receive_frame(startup, bytes, length, now_ns);
	case VB_STARTUP_REQUEST_RCVD: /* the peer has no reply yet, and nothing to say */
		withdraw(startup, VB_STARTUP_MALFORMED);
		return length;
	case VB_STARTUP_REPLY_SENT:
		vb_startup_close(startup, VB_STARTUP_MALFORMED);
		vb_startup_note_event(startup, VB_CM_REJECTED);
		return length;
	case VB_STARTUP_UP:
		return 0;
	case VB_STARTUP_IDLE:
	case VB_STARTUP_CONNECTING:
	case VB_STARTUP_CLOSING:
	case VB_STARTUP_CLOSED:
		break;
	}
	return length;
}

void vb_startup_on_ended(struct vb_startup *startup, uint64_t now_ns)
{
	enum vb_startup_state state = startup->state;
	bool is_established = state == VB_STARTUP_UP && !startup->awaits_rtr;

	switch (state) {
	case VB_STARTUP_REQUEST_SENT:
		vb_startup_on_lost_reply(startup, now_ns);
		break;
	case VB_STARTUP_REPLY_SENT:
	case VB_STARTUP_UP:
		vb_startup_close(startup, VB_STARTUP_LOST);
		vb_startup_note_event(startup,
				      is_established ? VB_CM_DISCONNECTED : VB_CM_REJECTED);
		break;
	case VB_STARTUP_AWAIT_REQUEST:
	case VB_STARTUP_REQUEST_RCVD:
		withdraw(startup, VB_STARTUP_LOST);
		break;
	case VB_STARTUP_CLOSING:
		vb_startup_close(startup, startup->reason);
		break;
	case VB_STARTUP_IDLE:
	case VB_STARTUP_CONNECTING:
	case VB_STARTUP_CLOSED:
		break;
	}
}

/* --- the QP ----------------------------------------------------------------------------------- */

static void release(struct vb_startup *startup)
{
	startup->holds = false;
	startup->deadline_ns = VB_NEVER;
}

void vb_startup_on_fpdu(struct vb_startup *startup)
{
	if (startup->state != VB_STARTUP_UP || startup->is_initiator)
		return;
	release(startup);
	if (startup->awaits_rtr)
		vb_startup_note_event(startup, VB_CM_ESTABLISHED);
	startup->awaits_rtr = false;
}

bool vb_startup_may_send(const struct vb_startup *startup)
{
	return startup->state == VB_STARTUP_UP && !startup->holds;
}

/* --- time and events -------------------------------------------------------------------------- */

uint64_t vb_startup_deadline(const struct vb_startup *startup)
{
	return startup->deadline_ns;
}

static void give_up(struct vb_startup *startup)
{
	vb_startup_close(startup, VB_STARTUP_TIMEOUT);
	vb_startup_note_event(startup, VB_CM_UNREACHABLE);
}

void vb_startup_fire_timers(struct vb_startup *startup, uint64_t now_ns)
{
	if (now_ns < startup->deadline_ns)
		return;
	switch (startup->state) {
	case VB_STARTUP_CONNECTING:
	case VB_STARTUP_REQUEST_SENT:
	case VB_STARTUP_REPLY_SENT:
		give_up(startup);
		break;
	case VB_STARTUP_UP:
		if (startup->awaits_rtr)
			give_up(startup);
		else
			release(startup);
		break;
	case VB_STARTUP_AWAIT_REQUEST:
		vb_startup_close(startup, VB_STARTUP_TIMEOUT);
		break;
	case VB_STARTUP_CLOSING:
		vb_startup_close(startup, startup->reason);
		break;
	case VB_STARTUP_IDLE:
	case VB_STARTUP_REQUEST_RCVD:
	case VB_STARTUP_CLOSED:
		startup->deadline_ns = VB_NEVER;
		break;
	}
}

/* What a peer left open is what the adapter has, so that a program may copy it into its accept. */
static uint16_t asked_depth(const struct vb_mpa_frame *peer, uint16_t depth, uint16_t depth_max)
{
	if (!peer->is_enhanced || depth > depth_max)
		return depth_max;
	return depth;
}

static bool has_message(const struct vb_startup *startup, enum vb_cm_event_kind kind)
{
	return kind == VB_CM_REQUEST || (kind == VB_CM_ESTABLISHED && startup->is_initiator) ||
	       (kind == VB_CM_REJECTED && startup->reason == VB_STARTUP_REJECTED);
}

bool vb_startup_take_event(struct vb_startup *startup, struct vb_startup_event *event)
{
	enum vb_cm_event_kind kind;

	if (!startup->events)
		return false;
	kind = (enum vb_cm_event_kind)__builtin_ctz(startup->events);
	startup->events &= ~(1u << kind);
	*event = (struct vb_startup_event){ .kind = kind };
	if (kind == VB_CM_REJECTED || kind == VB_CM_UNREACHABLE)
		event->reason = startup->reason;
	if (kind == VB_CM_REQUEST) {
		event->ird =
			asked_depth(&startup->peer, startup->peer.ord, startup->config.ird_max);
		event->ord =
			asked_depth(&startup->peer, startup->peer.ird, startup->config.ord_max);
	} else {
		event->ird = startup->terms.ird;
		event->ord = startup->terms.ord;
	}
	if (has_message(startup, kind)) {
		event->private_data = startup->peer.private_data;
		event->private_length = startup->peer.private_length;
	}
	return true;
}

void vb_startup_abandon(struct vb_startup *startup, uint64_t now_ns)
{
	vb_err err = VB_EINVAL;

	startup->events = 0;
	if (startup->state == VB_STARTUP_CLOSING || startup->state == VB_STARTUP_CLOSED)
		return;
	if (startup->state == VB_STARTUP_REQUEST_RCVD)
		err = vb_startup_reject(startup, NULL, 0, now_ns);
	if (err != VB_OK)
		vb_startup_close(startup, VB_STARTUP_GONE);
}
