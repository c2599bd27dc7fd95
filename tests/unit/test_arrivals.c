/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of what arrives on an iWARP stream: what each right segment is for, and the words for
 * each rule that can be broken without memory.
 */
#include "base/bytes.h"
#include "harness.h"
#include "stream/arrivals.h"

#include <string.h>

#define IRD 2
#define ORD 3

static struct vb_arrivals arrivals;
static struct vb_awaited_read awaited[ORD];
static struct vb_arrival arrival;

static void begin(void)
{
	vb_arrivals_init(&arrivals, IRD, ORD, awaited);
}

static void take(const struct vb_rdmap *segment)
{
	uint8_t ulpdu[VB_RDMAP_HEADERS_MAX];

	memset(ulpdu, 0, sizeof(ulpdu));
	/* The data is not looked at. */
	vb_arrivals_take(&arrivals, ulpdu,
			 vb_rdmap_store_headers(ulpdu, segment) + segment->payload_length,
			 &arrival);
}

static void expect_refused(uint32_t words)
{
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_REFUSED);
	EXPECT_EQ(arrival.error.layer << 16 | arrival.error.type << 8 | arrival.error.code, words);
	EXPECT(arrivals.is_over);
}

static struct vb_rdmap send_of(uint32_t msn, uint32_t offset, uint32_t length, bool is_last)
{
	return (struct vb_rdmap){ .ddp = { .opcode = VB_RDMAP_SEND,
					   .msn = msn,
					   .offset = offset,
					   .is_last = is_last },
				  .payload_length = length };
}

static void take_send(uint32_t msn, uint32_t offset, uint32_t length, bool is_last)
{
	struct vb_rdmap segment = send_of(msn, offset, length, is_last);

	take(&segment);
}

static void take_read(uint32_t msn, uint32_t offset)
{
	struct vb_rdmap segment = { .ddp = { .opcode = VB_RDMAP_READ_REQUEST,
					     .msn = msn,
					     .offset = offset,
					     .is_last = true },
				    .read.length = 5 };

	take(&segment);
}

static void take_tagged(enum vb_rdmap_opcode opcode, uint32_t stag, uint64_t offset,
			uint32_t length, bool is_last)
{
	struct vb_rdmap segment = { .ddp = { .opcode = (uint8_t)opcode,
					     .stag = stag,
					     .offset = offset,
					     .is_last = is_last },
				    .payload_length = length };

	take(&segment);
}

static void take_response(uint32_t stag, uint64_t offset, uint32_t length, bool is_last)
{
	take_tagged(VB_RDMAP_READ_RESPONSE, stag, offset, length, is_last);
}

static void await(uint32_t stag, uint64_t offset, uint32_t length)
{
	struct vb_rdmap_read read = { .sink_stag = stag, .sink_offset = offset, .length = length };

	EXPECT(vb_arrivals_can_await(&arrivals));
	vb_arrivals_await(&arrivals, &read);
}

static void expect_arrival(enum vb_arrival_kind kind, bool is_first, bool is_last)
{
	EXPECT_EQ(arrival.kind, kind);
	EXPECT_EQ(arrival.is_first, is_first);
	EXPECT_EQ(arrival.is_last, is_last);
	EXPECT(!arrivals.is_over);
}

/* --- SENDs ------------------------------------------------------------------------------------ */

TEST(a_send_takes_a_receive_with_its_first_segment_and_ends_with_its_last)
{
	begin();
	take_send(1, 0, 40, false);
	expect_arrival(VB_ARRIVAL_SEND, true, false);
	take_send(1, 40, 40, false);
	expect_arrival(VB_ARRIVAL_SEND, false, false);
	EXPECT_EQ(arrival.segment.ddp.offset, 40);
	EXPECT_EQ(arrival.segment.payload_length, 40);
	take_send(1, 80, 1, true);
	expect_arrival(VB_ARRIVAL_SEND, false, true);
	take_send(2, 0, 0, true);
	expect_arrival(VB_ARRIVAL_SEND, true, true);
	take_send(3, 0, 0, false); /* empty, but not the last */
	expect_arrival(VB_ARRIVAL_SEND, true, false);
	take_send(3, 0, 0, true);
	expect_arrival(VB_ARRIVAL_SEND, false, true);
}

TEST(sends_come_in_the_order_of_their_numbers)
{
	static const uint32_t wrong[] = { 0, 2, 3, UINT32_MAX };

	for (uint32_t i = 0; i < 4; i++) {
		begin();
		take_send(wrong[i], 0, 4, true);
		expect_refused(0x10203);
	}
	begin();
	take_send(1, 0, 4, true);
	take_send(1, 0, 4, true);
	expect_refused(0x10203);
	begin();
	take_send(1, 0, 4, false);
	take_send(2, 0, 4, true);
	expect_refused(0x10203);
	begin();
	arrivals.send_msn = UINT32_MAX;
	take_send(UINT32_MAX, 0, 4, true);
	take_send(0, 0, 4, true);
	expect_arrival(VB_ARRIVAL_SEND, true, true);
}

TEST(segments_of_a_send_come_in_the_order_of_their_offsets)
{
	begin();
	take_send(1, 4, 4, true);
	expect_refused(0x10204);
	begin();
	take_send(1, 0, 4, false);
	take_send(1, 0, 4, false);
	expect_refused(0x10204);
	begin();
	take_send(1, 0, 4, false);
	take_send(1, 8, 4, false);
	expect_refused(0x10204);
}

TEST(a_send_has_one_opcode)
{
	struct vb_rdmap segment = send_of(1, 4, 4, true);

	begin();
	take_send(1, 0, 4, false);
	segment.ddp.opcode = VB_RDMAP_SEND_SE;
	take(&segment);
	expect_refused(0x00206);
}

TEST(a_send_has_less_than_2_to_the_32_bytes)
{
	begin();
	take_send(1, 0, 4, false);
	arrivals.send_offset = UINT32_MAX - 3;
	take_send(1, UINT32_MAX - 3, 3, false);
	expect_arrival(VB_ARRIVAL_SEND, false, false);
	take_send(1, UINT32_MAX, 1, true);
	expect_refused(0x10205);
}

/* --- WRITEs ----------------------------------------------------------------------------------- */

TEST(writes_are_segments_of_their_own)
{
	begin();
	take_send(1, 0, 4, false);
	take_tagged(VB_RDMAP_WRITE, 5, 100, 8, false);
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_WRITE);
	EXPECT_EQ(arrival.segment.ddp.stag, 5);
	EXPECT_EQ(arrival.segment.ddp.offset, 100);
	take_send(1, 4, 4, true);
	expect_arrival(VB_ARRIVAL_SEND, false, true);
}

/* RFC 5041, 5.2: no key is checked, so there is nothing to do. */
TEST(a_write_without_data_is_nothing)
{
	begin();
	take_tagged(VB_RDMAP_WRITE, 5, 100, 0, true);
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_NOTHING);
	EXPECT(!arrivals.is_over);
}

/* --- READs of the peer ------------------------------------------------------------------------ */

TEST(the_peer_may_have_as_many_reads_as_the_ird)
{
	begin();
	take_read(1, 0);
	expect_arrival(VB_ARRIVAL_READ_REQUEST, false, false);
	EXPECT_EQ(arrival.segment.read.length, 5);
	take_read(2, 0);
	expect_arrival(VB_ARRIVAL_READ_REQUEST, false, false);
	vb_arrivals_on_answered(&arrivals);
	take_read(3, 0);
	expect_arrival(VB_ARRIVAL_READ_REQUEST, false, false);
	take_read(4, 0);
	expect_refused(0x10202);
	vb_arrivals_init(&arrivals, 0, 0, NULL);
	take_read(1, 0);
	expect_refused(0x10202);
}

TEST(reads_come_in_the_order_of_their_numbers)
{
	begin();
	take_read(2, 0);
	expect_refused(0x10203);
	begin();
	take_read(1, 0);
	take_read(1, 0);
	expect_refused(0x10203);
	begin();
	take_read(1, 4);
	expect_refused(0x10204);
}

/* --- READs of ours ---------------------------------------------------------------------------- */

TEST(responses_come_in_the_order_of_the_reads)
{
	begin();
	await(7, 1000, 10);
	await(8, 2000, 0);
	await(9, UINT64_MAX - 1, 4); /* an address that wraps is not our problem here */
	EXPECT(!vb_arrivals_can_await(&arrivals));
	take_response(7, 1000, 6, false);
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, false);
	take_response(7, 1006, 4, true);
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, true);
	EXPECT(vb_arrivals_can_await(&arrivals));
	await(10, 0, 1);
	take_response(0, 0, 0, true); /* without data neither key nor address count */
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, true);
	take_response(9, UINT64_MAX - 1, 2, false);
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, false);
	take_response(9, 0, 2, true);
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, true);
	take_response(10, 0, 1, false);
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, false);
	take_response(10, 1, 0, true); /* the end may come by itself */
	expect_arrival(VB_ARRIVAL_READ_RESPONSE, false, true);
}

TEST(a_response_that_nobody_asked_for_is_refused)
{
	begin();
	take_response(7, 1000, 4, true);
	expect_refused(0x10100);
	begin();
	take_response(0, 0, 0, true);
	expect_refused(0x10100);
	begin();
	await(7, 1000, 4);
	take_response(7, 1000, 4, true);
	take_response(7, 1000, 4, true);
	expect_refused(0x10100);
	vb_arrivals_init(&arrivals, 0, 0, NULL);
	EXPECT(!vb_arrivals_can_await(&arrivals));
	take_response(0, 0, 0, true);
	expect_refused(0x10100);
}

TEST(a_response_goes_where_the_read_said)
{
	begin();
	await(7, 1000, 10);
	take_response(8, 1000, 4, false);
	expect_refused(0x10100);
	begin();
	await(7, 1000, 10);
	take_response(7, 1001, 4, false);
	expect_refused(0x10101);
	begin();
	await(7, 1000, 10);
	take_response(7, 1000, 11, true);
	expect_refused(0x10101);
	begin();
	await(7, 1000, 10);
	take_response(7, 1000, 6, false);
	take_response(7, 1006, 5, false);
	expect_refused(0x10101);
}

TEST(a_response_that_ends_too_early_is_refused)
{
	begin();
	await(7, 1000, 10);
	take_response(7, 1000, 9, true);
	expect_refused(0x002ff);
	begin();
	await(7, 1000, 10);
	take_response(7, 1000, 0, true);
	expect_refused(0x002ff);
}

/* --- the end ---------------------------------------------------------------------------------- */

TEST(nothing_comes_after_an_error_or_a_terminate)
{
	struct vb_rdmap terminate = { .ddp = { .opcode = VB_RDMAP_TERMINATE, .is_last = true } };

	begin();
	take_send(9, 0, 4, true);
	expect_refused(0x10203);
	take_send(1, 0, 4, true);
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_NOTHING);
	begin();
	terminate.terminate.error = (struct vb_rdmap_error){ 1, 2, 2 };
	take(&terminate);
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_TERMINATE);
	EXPECT_EQ(arrival.segment.terminate.error.code, 2);
	take(&terminate);
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_NOTHING);
	begin();
	vb_arrivals_end(&arrivals);
	take_send(1, 0, 4, true);
	EXPECT_EQ(arrival.kind, VB_ARRIVAL_NOTHING);
}

TEST(what_cannot_be_parsed_is_refused_with_its_words)
{
	uint8_t ulpdu[18] = { 0x42, 0x43 }; /* DDP version 2 */

	begin();
	vb_arrivals_take(&arrivals, ulpdu, 18, &arrival);
	expect_refused(0x10206);
	begin();
	ulpdu[0] = 0x41;
	ulpdu[1] = 0x48;
	vb_arrivals_take(&arrivals, ulpdu, 18, &arrival);
	expect_refused(0x00206);
	begin();
	vb_arrivals_take(&arrivals, ulpdu, 0, &arrival);
	expect_refused(0x10000);
}
