/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of an iWARP stream, from messages to FPDUs to bytes and back. The input chooses
 * the messages, changes bytes, makes up others, and cuts the stream. Whatever comes, each message
 * begins once and ends once, its data comes in order, and no more READs are taken than were agreed
 * upon. Bytes that come one by one have the same result. As long as nobody meddles with the
 * stream, only a READ too many is refused.
 */
#include "fuzz.h"
#include "support_input.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "stream/arrivals.h"
#include "stream/inlet.h"
#include "stream/outlet.h"

#include <string.h>

enum { STREAM_SIZE = 1 << 14, STEPS_MAX = 100, ORD_MAX = 4, DATA_SIZE = 4096 };

/* What becomes of the bytes. There are two, which get them in different pieces. */
struct receiver {
	struct vb_inlet inlet;
	struct vb_arrivals arrivals;
	struct vb_awaited_read awaited[ORD_MAX];
	uint8_t *buffer;
	uint32_t trace; /* a CRC of all that came out */
	uint32_t send_offset;
	bool is_in_send;
	bool has_refused;
	bool has_too_many_reads;
};

struct fuzz {
	struct input input;
	struct vb_outlet outlet;
	struct receiver whole, by_one;
	uint8_t *stream;
	uint32_t length;
	uint32_t delivered;
	bool is_meddled_with;
};

static uint8_t data[DATA_SIZE];

/* --- receiving -------------------------------------------------------------------------------- */

static void check_send(struct receiver *receiver, const struct vb_arrival *arrival)
{
	REQUIRE(arrival->is_first == !receiver->is_in_send);
	if (arrival->is_first)
		receiver->send_offset = 0;
	REQUIRE(arrival->segment.ddp.offset == receiver->send_offset);
	receiver->send_offset += arrival->segment.payload_length;
	receiver->is_in_send = !arrival->is_last;
}

static void on_ulpdu(struct receiver *receiver, const uint8_t *ulpdu, uint32_t length)
{
	struct vb_arrival arrival;
	uint8_t kind;

	vb_arrivals_take(&receiver->arrivals, ulpdu, length, &arrival);
	kind = (uint8_t)arrival.kind;
	receiver->trace = vb_crc32c(receiver->trace, &kind, 1);
	REQUIRE(receiver->arrivals.reads_in <= receiver->arrivals.ird);
	REQUIRE(arrival.kind == VB_ARRIVAL_NOTHING || !receiver->has_refused);
	switch (arrival.kind) {
	case VB_ARRIVAL_SEND:
		check_send(receiver, &arrival);
		break;
	case VB_ARRIVAL_REFUSED:
		REQUIRE(strcmp(vb_rdmap_error_describe(arrival.error), "unknown error"));
		receiver->has_refused = true;
		receiver->has_too_many_reads = arrival.error.layer == 1 &&
					       arrival.error.type == 2 && arrival.error.code == 2;
		receiver->trace = vb_crc32c(receiver->trace, &arrival.error, 3);
		break;
	case VB_ARRIVAL_TERMINATE:
		receiver->has_refused = true;
		break;
	case VB_ARRIVAL_NOTHING:
	case VB_ARRIVAL_WRITE:
	case VB_ARRIVAL_READ_REQUEST:
	case VB_ARRIVAL_READ_RESPONSE:
		break;
	}
	if (arrival.kind == VB_ARRIVAL_SEND || arrival.kind == VB_ARRIVAL_WRITE)
		receiver->trace = vb_crc32c(receiver->trace, ulpdu, length);
}

static void receive(struct receiver *receiver, const uint8_t *bytes, uint32_t length)
{
	const uint8_t *ulpdu;
	uint32_t ulpdu_length;
	enum vb_inlet_result result;

	do {
		result = vb_inlet_take(&receiver->inlet, &bytes, &length, &ulpdu, &ulpdu_length);
		if (result == VB_INLET_ULPDU)
			on_ulpdu(receiver, ulpdu, ulpdu_length);
		if (result == VB_INLET_BAD_CRC) {
			receiver->has_refused = true;
			vb_arrivals_end(&receiver->arrivals);
		}
	} while (result != VB_INLET_EMPTY);
	REQUIRE(!length);
}

static void check_same(const struct fuzz *fuzz)
{
	const struct receiver *a = &fuzz->whole, *b = &fuzz->by_one;

	REQUIRE(a->trace == b->trace && a->has_refused == b->has_refused);
	REQUIRE(a->inlet.held == b->inlet.held);
	REQUIRE(a->arrivals.reads_in == b->arrivals.reads_in);
	REQUIRE(a->arrivals.awaited_first == b->arrivals.awaited_first);
	REQUIRE(fuzz->is_meddled_with || !a->has_refused || a->has_too_many_reads);
}

static void deliver(struct fuzz *fuzz, uint32_t length)
{
	uint8_t *copy; /* so that a sanitizer sees what is read */

	length = min32(length, fuzz->length - fuzz->delivered);
	copy = malloc(length + 1);
	memcpy(copy, fuzz->stream + fuzz->delivered, length);
	fuzz->delivered += length;
	receive(&fuzz->whole, copy, length);
	for (uint32_t i = 0; i < length; i++)
		receive(&fuzz->by_one, copy + i, 1);
	free(copy);
	check_same(fuzz);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void put(struct fuzz *fuzz, const void *bytes, uint32_t length)
{
	if (length > STREAM_SIZE - fuzz->length) {
		fuzz->is_meddled_with = true;
		return;
	}
	memcpy(fuzz->stream + fuzz->length, bytes, length);
	fuzz->length += length;
}

static void send_message(struct fuzz *fuzz, struct vb_outgoing *message)
{
	struct vb_fpdu fpdu;

	vb_outlet_begin(&fuzz->outlet, message);
	do {
		vb_outlet_cut(&fuzz->outlet, message, &fpdu);
		REQUIRE(fpdu.head_length + fpdu.data_length <= 2 + fuzz->outlet.mulpdu);
		fpdu.crc = vb_crc32c(fpdu.crc, data + fpdu.data_offset, fpdu.data_length);
		vb_outlet_finish(&fuzz->outlet, &fpdu);
		put(fuzz, fpdu.head, fpdu.head_length);
		put(fuzz, data + fpdu.data_offset, fpdu.data_length);
		put(fuzz, fpdu.tail, fpdu.tail_length);
	} while (!message->is_done);
}

static void send_data(struct fuzz *fuzz, uint32_t opcode)
{
	struct vb_outgoing message = { .segment.ddp = { .opcode = (uint8_t)opcode,
							.stag = input_8(&fuzz->input),
							.offset = input_8(&fuzz->input) },
				       .length = input_16(&fuzz->input) % DATA_SIZE };

	send_message(fuzz, &message);
}

static void send_read(struct fuzz *fuzz)
{
	struct vb_outgoing message = { .segment.ddp.opcode = VB_RDMAP_READ_REQUEST };

	message.segment.read.length = input_16(&fuzz->input);
	send_message(fuzz, &message);
}

/* The receivers have asked for it before. */
static void send_response(struct fuzz *fuzz)
{
	struct vb_rdmap_read read = { .sink_stag = input_8(&fuzz->input),
				      .sink_offset = input_64(&fuzz->input),
				      .length = input_16(&fuzz->input) % DATA_SIZE };
	struct vb_outgoing message = { .segment.ddp = { .opcode = VB_RDMAP_READ_RESPONSE,
							.stag = read.sink_stag,
							.offset = read.sink_offset },
				       .length = read.length };

	if (!vb_arrivals_can_await(&fuzz->whole.arrivals))
		return;
	vb_arrivals_await(&fuzz->whole.arrivals, &read);
	vb_arrivals_await(&fuzz->by_one.arrivals, &read);
	send_message(fuzz, &message);
}

static void make_up(struct fuzz *fuzz, bool is_framed)
{
	size_t taken;
	const uint8_t *bytes = input_bytes(&fuzz->input, input_8(&fuzz->input), &taken);
	uint32_t length = (uint32_t)taken;
	uint8_t fpdu[2 + 255 + VB_MPA_TRAILER_MAX];

	fuzz->is_meddled_with = true;
	if (!length && !is_framed)
		return;
	store16(fpdu, (uint16_t)length);
	if (length)
		memcpy(fpdu + 2, bytes, length);
	vb_mpa_trailer_store(fpdu + 2 + length, length, fuzz->outlet.has_crc,
			     vb_crc32c(0, fpdu, 2 + length));
	if (is_framed)
		put(fuzz, fpdu, vb_mpa_fpdu_size(length));
	else
		put(fuzz, fpdu + 2, length);
}

static void damage(struct fuzz *fuzz)
{
	uint32_t place = input_32(&fuzz->input);

	if (fuzz->length == fuzz->delivered)
		return;
	fuzz->is_meddled_with = true;
	fuzz->stream[fuzz->delivered + place % (fuzz->length - fuzz->delivered)] ^=
		(uint8_t)(1 << (place >> 29));
}

static void answer(struct fuzz *fuzz)
{
	if (!fuzz->whole.arrivals.reads_in)
		return;
	vb_arrivals_on_answered(&fuzz->whole.arrivals);
	vb_arrivals_on_answered(&fuzz->by_one.arrivals);
}

/* --- the run ---------------------------------------------------------------------------------- */

static void step(struct fuzz *fuzz)
{
	uint8_t choice = input_8(&fuzz->input);

	switch (choice % 12) {
	case 0:
		send_data(fuzz, VB_RDMAP_SEND + (choice >> 4) % 4);
		break;
	case 1:
		send_data(fuzz, VB_RDMAP_WRITE);
		break;
	case 2:
		send_read(fuzz);
		break;
	case 3:
		send_response(fuzz);
		break;
	case 4:
		make_up(fuzz, true);
		break;
	case 5:
		make_up(fuzz, false);
		break;
	case 6:
		damage(fuzz);
		break;
	case 7:
		answer(fuzz);
		break;
	case 8:
		fuzz->outlet.mulpdu = vb_mpa_mulpdu(input_16(&fuzz->input));
		break;
	default:
		deliver(fuzz, input_16(&fuzz->input) & (choice & 0x80 ? 0x1f : 0xffff));
		break;
	}
}

static void init_receiver(struct receiver *receiver, uint8_t style)
{
	receiver->buffer = malloc(VB_INLET_BUFFER_SIZE);
	vb_inlet_init(&receiver->inlet, receiver->buffer, style & 1);
	vb_arrivals_init(&receiver->arrivals, style >> 1 & 3, style >> 3 & 3, receiver->awaited);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct fuzz fuzz;
	uint8_t style;

	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.input = (struct input){ bytes, size };
	fuzz.stream = malloc(STREAM_SIZE);
	style = input_8(&fuzz.input);
	vb_outlet_init(&fuzz.outlet, style & 0x80 ? 1448 : 0, style & 1);
	init_receiver(&fuzz.whole, style);
	init_receiver(&fuzz.by_one, style);
	for (uint32_t i = 0; i < DATA_SIZE; i++)
		data[i] = (uint8_t)(i * 13);
	for (uint32_t i = 0; i < STEPS_MAX && input_has_more(&fuzz.input); i++)
		step(&fuzz);
	deliver(&fuzz, STREAM_SIZE);
	free(fuzz.whole.buffer);
	free(fuzz.by_one.buffer);
	free(fuzz.stream);
	return 0;
}
