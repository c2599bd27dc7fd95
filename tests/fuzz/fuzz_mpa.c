/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of an iWARP connection, both roles, whose programs and whose network follow the
 * input: calls in any order; bytes that are cut, changed, made up, or never come; ends at any
 * moment. Whatever happens, a program gets events in their order and each at most once; refused
 * calls change nothing; a deadline passes; how the bytes are cut makes no difference. As long as
 * nobody meddles with the bytes, two ends that are up have agreed on the same.
 */
#include "fuzz.h"
#include "support_input.h"

#include "base/bytes.h"
#include "base/timer.h"
#include "mgmt/startup.h"

#include <string.h>

enum { INITIATOR, RESPONDER, ENDS, PIPE_SIZE = 4096, STEPS_MAX = 400 };

struct pipe {
	uint8_t bytes[PIPE_SIZE];
	uint32_t length;
};

struct fuzz {
	struct input input;
	uint64_t now_ns;
	struct vb_startup ends[ENDS];
	uint32_t seen[ENDS]; /* a bit for each kind of event */
	struct pipe pipes[ENDS]; /* to that end */
	bool is_meddled_with;
};

static struct vb_startup_config config_of(struct fuzz *fuzz)
{
	static const uint16_t depths[4] = { 0, 1, 128, VB_MPA_DEPTH_MAX };
	uint8_t choice = input_8(&fuzz->input);

	return (struct vb_startup_config){ .ird_max = depths[choice & 3],
					   .ord_max = depths[choice >> 2 & 3],
					   .wants_crc = choice >> 4 & 1 };
}

/* --- events ----------------------------------------------------------------------------------- */

static bool is_last(enum vb_cm_event_kind kind)
{
	return kind == VB_CM_REJECTED || kind == VB_CM_UNREACHABLE || kind == VB_CM_DISCONNECTED;
}

static void check_event(struct fuzz *fuzz, uint32_t end, const struct vb_startup_event *event)
{
	uint32_t seen = fuzz->seen[end], bit = 1u << event->kind;

	REQUIRE(!(seen & bit));
	REQUIRE(!(seen &
		  (1u << VB_CM_REJECTED | 1u << VB_CM_UNREACHABLE | 1u << VB_CM_DISCONNECTED)));
	switch (event->kind) {
	case VB_CM_REQUEST:
		REQUIRE(end == RESPONDER && !seen);
		break;
	case VB_CM_ESTABLISHED:
		REQUIRE(end == INITIATOR ? !seen : seen == 1u << VB_CM_REQUEST);
		break;
	case VB_CM_DISCONNECTED:
		REQUIRE(seen & 1u << VB_CM_ESTABLISHED);
		break;
	default:
		REQUIRE(event->kind == VB_CM_REJECTED || event->kind == VB_CM_UNREACHABLE);
		REQUIRE(event->reason != VB_STARTUP_NO_REASON);
		REQUIRE(!(seen & 1u << VB_CM_ESTABLISHED));
		break;
	}
	REQUIRE(is_last(event->kind) || event->ird <= fuzz->ends[end].config.ird_max);
	REQUIRE(is_last(event->kind) || event->ord <= fuzz->ends[end].config.ord_max);
	REQUIRE(event->private_length <= VB_MPA_PRIVATE_MAX);
	fuzz->seen[end] |= bit;
}

static void take_events(struct fuzz *fuzz)
{
	struct vb_startup_event event;

	for (uint32_t end = 0; end < ENDS; end++)
		while (vb_startup_take_event(&fuzz->ends[end], &event))
			check_event(fuzz, end, &event);
}

/* --- what must hold at any time --------------------------------------------------------------- */

static void check_end(const struct vb_startup *end, uint64_t now_ns)
{
	bool is_over = end->state == VB_STARTUP_CLOSED;
	uint32_t length;

	vb_startup_output(end, &length);
	REQUIRE(length <= VB_MPA_FRAME_MAX);
	REQUIRE(!is_over || (!length && vb_startup_wants(end) == VB_STARTUP_DROP));
	REQUIRE(is_over == (vb_startup_wants(end) == VB_STARTUP_DROP));
	REQUIRE((end->state == VB_STARTUP_CONNECTING) ==
		(vb_startup_wants(end) == VB_STARTUP_CONNECT));
	REQUIRE(!vb_startup_may_send(end) || end->state == VB_STARTUP_UP);
	REQUIRE(!length || end->state != VB_STARTUP_UP);
	REQUIRE(vb_startup_deadline(end) > now_ns || vb_startup_deadline(end) == VB_NEVER);
	if (is_over || end->state == VB_STARTUP_IDLE || end->state == VB_STARTUP_REQUEST_RCVD)
		REQUIRE(vb_startup_deadline(end) == VB_NEVER);
	else if (end->state != VB_STARTUP_UP)
		REQUIRE(vb_startup_deadline(end) != VB_NEVER);
}

static void check_agreement(const struct fuzz *fuzz)
{
	const struct vb_startup *a = &fuzz->ends[INITIATOR], *b = &fuzz->ends[RESPONDER];

	if (fuzz->is_meddled_with || a->state != VB_STARTUP_UP || b->state != VB_STARTUP_UP)
		return;
	REQUIRE(a->terms.has_crc == b->terms.has_crc);
	if (b->peer.is_enhanced)
		REQUIRE(a->terms.ord <= b->terms.ird && b->terms.ord <= a->terms.ird);
}

static bool is_same(const struct vb_startup *a, const struct vb_startup *b)
{
	return a->state == b->state && a->reason == b->reason && a->events == b->events &&
	       a->deadline_ns == b->deadline_ns && a->output_length == b->output_length &&
	       !memcmp(a->output, b->output, a->output_length) &&
	       a->terms.has_crc == b->terms.has_crc && a->terms.ird == b->terms.ird &&
	       a->terms.ord == b->terms.ord && a->terms.rtr == b->terms.rtr;
}

/* --- the network ------------------------------------------------------------------------------ */

static void put(struct fuzz *fuzz, uint32_t to, const uint8_t *bytes, uint32_t length)
{
	struct pipe *pipe = &fuzz->pipes[to];

	length = min32(length, PIPE_SIZE - pipe->length);
	memcpy(pipe->bytes + pipe->length, bytes, length);
	pipe->length += length;
}

static void send_bytes(struct fuzz *fuzz)
{
	uint32_t from = input_8(&fuzz->input) & 1, length;
	const uint8_t *output = vb_startup_output(&fuzz->ends[from], &length);
	uint32_t part = min32(length, input_8(&fuzz->input) * 3u);

	put(fuzz, !from, output, part);
	vb_startup_on_sent(&fuzz->ends[from], part, fuzz->now_ns);
}

/* The same bytes one by one must have the same result. */
static void deliver(struct fuzz *fuzz)
{
	uint32_t to = input_8(&fuzz->input) & 1, taken, by_one = 0;
	struct pipe *pipe = &fuzz->pipes[to];
	uint32_t length = min32(pipe->length, input_8(&fuzz->input) * 5u);
	struct vb_startup *end = &fuzz->ends[to], twin = *end;
	uint8_t *bytes = malloc(length + 1); /* so that a sanitizer sees what is read */

	memcpy(bytes, pipe->bytes, length);
	taken = vb_startup_receive(end, bytes, length, fuzz->now_ns);
	REQUIRE(taken <= length && (taken == length || end->state == VB_STARTUP_UP));
	for (uint32_t i = 0; i < length; i++)
		by_one += vb_startup_receive(&twin, bytes + i, 1, fuzz->now_ns);
	REQUIRE(by_one == taken && is_same(end, &twin));
	if (taken < length)
		vb_startup_on_fpdu(end);
	memmove(pipe->bytes, pipe->bytes + length, pipe->length - length);
	pipe->length -= length;
	free(bytes);
}

static void meddle(struct fuzz *fuzz)
{
	struct pipe *pipe = &fuzz->pipes[input_8(&fuzz->input) & 1];
	uint32_t place = input_16(&fuzz->input);

	fuzz->is_meddled_with = true;
	if (pipe->length)
		pipe->bytes[place % pipe->length] ^= (uint8_t)(1 << (place >> 13));
}

static void make_up_frame(struct fuzz *fuzz)
{
	uint32_t to = input_8(&fuzz->input) & 1;
	uint16_t flags = input_16(&fuzz->input);
	struct vb_mpa_frame frame = {
		.kind = to == RESPONDER ? VB_MPA_REQUEST : VB_MPA_REPLY,
		.wants_markers = !(flags & 15),
		.wants_crc = flags >> 4 & 1,
		.is_rejected = to == INITIATOR && flags >> 5 & 1,
		.revision = flags >> 6 & 1 ? 2 : 1,
		.is_peer_to_peer = flags >> 8 & 1,
		.rtr = flags >> 9 & 7,
	};
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t words = input_32(&fuzz->input);

	frame.is_enhanced = frame.revision == 2 && flags >> 7 & 1;
	frame.ird = (uint16_t)(words & 0x3fff);
	frame.ord = (uint16_t)(words >> 16 & 0x3fff);
	frame.private_length = (uint16_t)(input_8(&fuzz->input) * 2);
	if (frame.private_length > vb_mpa_private_size(frame.is_enhanced))
		frame.private_length = (uint16_t)vb_mpa_private_size(frame.is_enhanced);
	fuzz->is_meddled_with = true;
	put(fuzz, to, bytes, vb_mpa_frame_store(bytes, &frame));
}

static void make_up_bytes(struct fuzz *fuzz)
{
	uint32_t to = input_8(&fuzz->input) & 1;
	size_t taken;
	const uint8_t *bytes = input_bytes(&fuzz->input, input_8(&fuzz->input), &taken);

	fuzz->is_meddled_with = true;
	if (taken)
		put(fuzz, to, bytes, (uint32_t)taken);
}

/* --- the programs ----------------------------------------------------------------------------- */

static struct vb_startup_offer input_offer(struct fuzz *fuzz)
{
	static const uint8_t data[1024];

	return (struct vb_startup_offer){ .ird = input_16(&fuzz->input),
					  .ord = input_16(&fuzz->input),
					  .private_data = data,
					  .private_length = input_8(&fuzz->input) * 3u };
}

static void call(struct fuzz *fuzz, uint32_t which)
{
	struct vb_startup *a = &fuzz->ends[INITIATOR], *b = &fuzz->ends[RESPONDER];
	struct vb_startup_offer offer = input_offer(fuzz);
	struct vb_startup *end = which ? b : a, before = *end;
	vb_err err;

	if (which == 0)
		err = vb_startup_connect(a, &offer, fuzz->now_ns);
	else if (which == 1)
		err = vb_startup_accept(b, &offer, fuzz->now_ns);
	else
		err = vb_startup_reject(b, offer.private_data, offer.private_length, fuzz->now_ns);
	REQUIRE(err == VB_OK || is_same(&before, end));
}

/* A connection of TCP: the responder gets a new one, too. */
static void connected(struct fuzz *fuzz)
{
	struct vb_startup *a = &fuzz->ends[INITIATOR], *b = &fuzz->ends[RESPONDER];
	struct vb_startup_config config = b->config;

	if (vb_startup_wants(a) != VB_STARTUP_CONNECT)
		return;
	vb_startup_on_connected(a, fuzz->now_ns);
	vb_startup_init(b, &config);
	vb_startup_await(b, fuzz->now_ns);
	fuzz->seen[RESPONDER] = 0;
	fuzz->pipes[INITIATOR].length = fuzz->pipes[RESPONDER].length = 0;
}

static void wait_a_while(struct fuzz *fuzz)
{
	uint8_t choice = input_8(&fuzz->input);
	uint64_t deadline_ns = vb_startup_deadline(&fuzz->ends[choice & 1]);

	if (choice & 2 && deadline_ns != VB_NEVER)
		fuzz->now_ns = deadline_ns > fuzz->now_ns ? deadline_ns : fuzz->now_ns;
	else
		fuzz->now_ns += (uint64_t)choice * 10000000;
}

static void step(struct fuzz *fuzz)
{
	switch (input_below(&fuzz->input, 16)) {
	case 0:
		call(fuzz, 0);
		break;
	case 1:
		call(fuzz, 1);
		break;
	case 2:
		call(fuzz, 2);
		break;
	case 3:
		connected(fuzz);
		break;
	case 4:
		vb_startup_on_unconnected(&fuzz->ends[INITIATOR], input_bool(&fuzz->input));
		break;
	case 5:
		vb_startup_abandon(&fuzz->ends[input_8(&fuzz->input) & 1], fuzz->now_ns);
		break;
	case 6:
		vb_startup_on_ended(&fuzz->ends[input_8(&fuzz->input) & 1], fuzz->now_ns);
		break;
	case 7:
		meddle(fuzz);
		break;
	case 8:
		make_up_frame(fuzz);
		break;
	case 9:
		make_up_bytes(fuzz);
		break;
	case 10:
		wait_a_while(fuzz);
		break;
	case 11:
		vb_startup_on_fpdu(&fuzz->ends[input_8(&fuzz->input) & 1]);
		break;
	case 12:
	case 13:
		send_bytes(fuzz);
		break;
	default:
		deliver(fuzz);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	struct vb_startup_config config;

	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.input = (struct input){ data, size };
	fuzz.now_ns = 1;
	for (uint32_t end = 0; end < ENDS; end++) {
		config = config_of(&fuzz);
		vb_startup_init(&fuzz.ends[end], &config);
	}
	for (uint32_t i = 0; i < STEPS_MAX && input_has_more(&fuzz.input); i++) {
		step(&fuzz);
		for (uint32_t end = 0; end < ENDS; end++) {
			vb_startup_fire_timers(&fuzz.ends[end], fuzz.now_ns);
			check_end(&fuzz.ends[end], fuzz.now_ns);
		}
		take_events(&fuzz);
		check_agreement(&fuzz);
	}
	return 0;
}
