/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of DDP and RDMAP as bytes: every field at the place that RFC 5040 and RFC 5041 give it,
 * and what must be refused, with the words of the Terminate for it. The golden tests have what
 * tshark reads in them.
 */
#include "base/bytes.h"
#include "harness.h"
#include "wire/rdmap.h"

#include <stdlib.h>
#include <string.h>

static uint32_t stored(uint8_t bytes[VB_RDMAP_HEADERS_MAX], const struct vb_rdmap *segment)
{
	memset(bytes, 0xa5, VB_RDMAP_HEADERS_MAX);
	return vb_rdmap_store_headers(bytes, segment);
}

static struct vb_rdmap segment_of(enum vb_rdmap_opcode opcode)
{
	return (struct vb_rdmap){ .ddp = { .opcode = (uint8_t)opcode, .is_last = true } };
}

/* --- the header of DDP ------------------------------------------------------------------------ */

TEST(tagged_segments_have_a_key_and_an_address)
{
	static const uint8_t expected[14] = { 0xc1, 0x40, 0x12, 0x34, 0x56, 0x78, 0x01,
					      0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08 };
	struct vb_rdmap segment = segment_of(VB_RDMAP_WRITE);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.ddp.stag = 0x12345678;
	segment.ddp.offset = 0x0102030405060708;
	EXPECT_EQ(stored(bytes, &segment), 14);
	EXPECT_MEM(bytes, expected, 14);
	segment.ddp.is_last = false;
	segment.ddp.opcode = VB_RDMAP_READ_RESPONSE;
	EXPECT_EQ(stored(bytes, &segment), 14);
	EXPECT_EQ(bytes[0], 0x81);
	EXPECT_EQ(bytes[1], 0x42);
	memset(&segment, 0, sizeof(segment));
	EXPECT_EQ(vb_rdmap_parse(bytes, 34, &segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment.ddp.opcode, VB_RDMAP_READ_RESPONSE);
	EXPECT(segment.ddp.is_tagged && !segment.ddp.is_last);
	EXPECT_EQ(segment.ddp.stag, 0x12345678);
	EXPECT_EQ(segment.ddp.offset, 0x0102030405060708);
	EXPECT_EQ(segment.ddp.ddp_version, 1);
	EXPECT_EQ(segment.ddp.rdmap_version, 1);
	EXPECT_EQ(segment.header_length, 14);
	EXPECT_EQ(segment.payload_length, 20);
}

TEST(untagged_segments_have_a_queue_a_number_and_an_offset)
{
	static const uint8_t expected[18] = { 0x41, 0x46, 0x12, 0x34, 0x56, 0x78, [10] = 0x11,
					      0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88 };
	struct vb_rdmap segment = segment_of(VB_RDMAP_SEND_SE_INV);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.ddp.stag = 0x12345678;
	segment.ddp.msn = 0x11223344;
	segment.ddp.offset = 0x55667788;
	EXPECT_EQ(stored(bytes, &segment), 18);
	EXPECT_MEM(bytes, expected, 18);
	memset(&segment, 0, sizeof(segment));
	EXPECT_EQ(vb_rdmap_parse(bytes, 18, &segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment.ddp.opcode, VB_RDMAP_SEND_SE_INV);
	EXPECT(!segment.ddp.is_tagged && segment.ddp.is_last);
	EXPECT_EQ(segment.ddp.stag, 0x12345678);
	EXPECT_EQ(segment.ddp.queue, 0);
	EXPECT_EQ(segment.ddp.msn, 0x11223344);
	EXPECT_EQ(segment.ddp.offset, 0x55667788);
	EXPECT_EQ(segment.header_length, 18);
	EXPECT_EQ(segment.payload_length, 0);
}

/* RFC 5040, figure 4. */
TEST(each_opcode_has_its_model_and_queue)
{
	static const struct {
		uint8_t opcode, first, queue;
		bool is_send, is_solicited, has_invalidate;
	} cases[VB_RDMAP_OPCODE_COUNT] = {
		{ 0, 0xc1, 0, false, false, false }, { 1, 0x41, 1, false, false, false },
		{ 2, 0xc1, 0, false, false, false }, { 3, 0x41, 0, true, false, false },
		{ 4, 0x41, 0, true, false, true },   { 5, 0x41, 0, true, true, false },
		{ 6, 0x41, 0, true, true, true },    { 7, 0x41, 2, false, false, false },
	};

	for (uint32_t i = 0; i < VB_RDMAP_OPCODE_COUNT; i++) {
		enum vb_rdmap_opcode opcode = (enum vb_rdmap_opcode)i;
		struct vb_rdmap segment = segment_of(opcode);
		uint8_t bytes[VB_RDMAP_HEADERS_MAX];
		uint32_t length, traits = vb_rdmap_traits(opcode);

		segment.ddp.stag = 0xffffffff;
		length = stored(bytes, &segment);
		EXPECT_EQ(bytes[0], cases[i].first);
		EXPECT_EQ(bytes[1], 0x40 | cases[i].opcode);
		if (cases[i].first == 0x41) {
			EXPECT_EQ(load32(bytes + 2), cases[i].has_invalidate ? 0xffffffff : 0);
			EXPECT_EQ(load32(bytes + 6), cases[i].queue);
			EXPECT_EQ(vb_rdmap_queue(opcode), cases[i].queue);
		}
		EXPECT_EQ((bool)(traits & VB_RDMAP_IS_TAGGED), cases[i].first == 0xc1);
		EXPECT_EQ((bool)(traits & VB_RDMAP_IS_SEND), cases[i].is_send);
		EXPECT_EQ((bool)(traits & VB_RDMAP_IS_SOLICITED), cases[i].is_solicited);
		EXPECT_EQ((bool)(traits & VB_RDMAP_HAS_INVALIDATE), cases[i].has_invalidate);
		EXPECT_EQ((bool)(traits & VB_RDMAP_HAS_PAYLOAD), i != 1 && i != 7);
		EXPECT_EQ(vb_rdmap_parse(bytes, length, &segment), VB_RDMAP_PARSED);
		EXPECT_EQ(segment.ddp.opcode, i);
	}
}

TEST(reserved_bits_are_ignored)
{
	struct vb_rdmap segment = segment_of(VB_RDMAP_SEND);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	stored(bytes, &segment);
	bytes[0] |= 0x3c;
	bytes[1] |= 0x30;
	store32(bytes + 2, 0xffffffff);
	EXPECT_EQ(vb_rdmap_parse(bytes, 18, &segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment.ddp.opcode, VB_RDMAP_SEND);
}

/* --- READ requests ---------------------------------------------------------------------------- */

static const struct vb_rdmap_read some_read = {
	.sink_stag = 0x01020304,
	.sink_offset = 0x1112131415161718,
	.length = 0x21222324,
	.source_stag = 0x31323334,
	.source_offset = 0x4142434445464748,
};

static const uint8_t some_read_bytes[28] = {
	0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22,
	0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
};

TEST(a_read_request_names_sink_length_and_source)
{
	struct vb_rdmap segment = segment_of(VB_RDMAP_READ_REQUEST);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.ddp.msn = 9;
	segment.read = some_read;
	EXPECT_EQ(stored(bytes, &segment), 46);
	EXPECT_MEM(bytes + 18, some_read_bytes, 28);
	memset(&segment, 0, sizeof(segment));
	EXPECT_EQ(vb_rdmap_parse(bytes, 46, &segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment.header_length, 46);
	EXPECT_EQ(segment.payload_length, 0);
	EXPECT_EQ(segment.ddp.msn, 9);
	EXPECT_EQ(segment.read.sink_stag, some_read.sink_stag);
	EXPECT_EQ(segment.read.sink_offset, some_read.sink_offset);
	EXPECT_EQ(segment.read.length, some_read.length);
	EXPECT_EQ(segment.read.source_stag, some_read.source_stag);
	EXPECT_EQ(segment.read.source_offset, some_read.source_offset);
}

TEST(a_read_request_of_another_length_is_refused)
{
	struct vb_rdmap segment = segment_of(VB_RDMAP_READ_REQUEST);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	stored(bytes, &segment);
	for (uint32_t length = 18; length < 46; length++)
		EXPECT_EQ(vb_rdmap_parse(bytes, length, &segment), VB_RDMAP_PARTIAL);
	EXPECT_EQ(vb_rdmap_parse(bytes, 47, &segment), VB_RDMAP_TOO_LONG);
	bytes[0] &= 0xbf; /* not the last */
	EXPECT_EQ(vb_rdmap_parse(bytes, 46, &segment), VB_RDMAP_PARTIAL);
}

/* --- refused ---------------------------------------------------------------------------------- */

/* What is refused writes nothing, and gets these words. */
static void expect_refused(const uint8_t *bytes, uint32_t length, enum vb_rdmap_parsing expected,
			   uint32_t words)
{
	struct vb_rdmap segment;
	struct vb_rdmap_error error;
	uint8_t before[sizeof(segment)];
	uint8_t *copy = malloc(length + 1); /* so that a sanitizer sees what is read */

	memcpy(copy, bytes, length);
	memset(&segment, 0x5a, sizeof(segment));
	memcpy(before, &segment, sizeof(segment));
	EXPECT_EQ(vb_rdmap_parse(copy, length, &segment), expected);
	EXPECT_MEM(&segment, before, sizeof(segment));
	error = vb_rdmap_parsing_error(expected, bytes[0]);
	EXPECT_EQ(error.layer << 16 | error.type << 8 | error.code, words);
	EXPECT(strcmp(vb_rdmap_error_describe(error), "unknown error") != 0);
	free(copy);
}

TEST(segments_without_a_whole_header_are_refused)
{
	struct vb_rdmap send = segment_of(VB_RDMAP_SEND), write = segment_of(VB_RDMAP_WRITE);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	stored(bytes, &send);
	for (uint32_t length = 0; length < 18; length++)
		expect_refused(bytes, length, VB_RDMAP_TOO_SHORT, 0x10000);
	stored(bytes, &write);
	for (uint32_t length = 0; length < 14; length++)
		expect_refused(bytes, length, VB_RDMAP_TOO_SHORT, 0x10000);
}

TEST(versions_other_than_1_are_refused)
{
	struct vb_rdmap send = segment_of(VB_RDMAP_SEND), write = segment_of(VB_RDMAP_WRITE);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	for (uint8_t version = 0; version < 4; version++) {
		if (version == 1)
			continue;
		stored(bytes, &write);
		bytes[0] = (uint8_t)(0xc0 | version);
		expect_refused(bytes, 14, VB_RDMAP_BAD_DDP_VERSION, 0x10104);
		stored(bytes, &send);
		bytes[0] = (uint8_t)(0x40 | version);
		expect_refused(bytes, 18, VB_RDMAP_BAD_DDP_VERSION, 0x10206);
		stored(bytes, &send);
		bytes[1] = (uint8_t)(version << 6 | VB_RDMAP_SEND);
		expect_refused(bytes, 18, VB_RDMAP_BAD_VERSION, 0x00205);
	}
}

TEST(queues_that_do_not_exist_are_refused)
{
	static const uint32_t queues[5] = { 3, 4, 0x100, 0x01000000, UINT32_MAX };
	struct vb_rdmap send = segment_of(VB_RDMAP_SEND);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	stored(bytes, &send);
	for (uint32_t i = 0; i < 5; i++) {
		store32(bytes + 6, queues[i]);
		expect_refused(bytes, 18, VB_RDMAP_BAD_QUEUE, 0x10201);
	}
}

TEST(opcodes_that_do_not_exist_are_refused)
{
	struct vb_rdmap send = segment_of(VB_RDMAP_SEND), write = segment_of(VB_RDMAP_WRITE);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	for (uint8_t opcode = VB_RDMAP_OPCODE_COUNT; opcode < 16; opcode++) {
		stored(bytes, &send);
		bytes[1] = (uint8_t)(0x40 | opcode);
		expect_refused(bytes, 18, VB_RDMAP_BAD_OPCODE, 0x00206);
		stored(bytes, &write);
		bytes[1] = (uint8_t)(0x40 | opcode);
		expect_refused(bytes, 14, VB_RDMAP_BAD_OPCODE, 0x00206);
	}
}

TEST(opcodes_of_another_model_or_queue_are_refused)
{
	for (uint32_t i = 0; i < VB_RDMAP_OPCODE_COUNT; i++) {
		struct vb_rdmap segment = segment_of((enum vb_rdmap_opcode)i);
		bool is_tagged = vb_rdmap_traits((enum vb_rdmap_opcode)i) & VB_RDMAP_IS_TAGGED;
		uint8_t bytes[VB_RDMAP_HEADERS_MAX];

		stored(bytes, &segment);
		memset(bytes + 14, 0, 32);
		bytes[0] ^= 0x80;
		store64(bytes + 6, 0); /* queue 0, if it is untagged now */
		expect_refused(bytes, 46, VB_RDMAP_BAD_OPCODE, 0x00206);
		for (uint32_t queue = 0; queue < 3 && !is_tagged; queue++) {
			if (queue == vb_rdmap_queue((enum vb_rdmap_opcode)i))
				continue;
			stored(bytes, &segment);
			store32(bytes + 6, queue);
			expect_refused(bytes, 46, VB_RDMAP_BAD_OPCODE, 0x00206);
		}
	}
}

TEST(the_words_for_read_requests_of_a_wrong_length_are_those_of_their_layer)
{
	struct vb_rdmap_error error = vb_rdmap_parsing_error(VB_RDMAP_TOO_LONG, 0x41);

	EXPECT_EQ(error.layer << 16 | error.type << 8 | error.code, 0x10205);
	error = vb_rdmap_parsing_error(VB_RDMAP_PARTIAL, 0x41);
	EXPECT_EQ(error.layer << 16 | error.type << 8 | error.code, 0x002ff);
}

/* --- Terminate -------------------------------------------------------------------------------- */

static const uint8_t refused_send[18] = { 0x41, 0x43, [13] = 7 };
static const uint8_t refused_write[14] = { 0xc1, 0x40, 1, 2, 3, 4, [13] = 9 };

static struct vb_rdmap terminate_of(uint8_t layer, uint8_t type, uint8_t code)
{
	struct vb_rdmap segment = segment_of(VB_RDMAP_TERMINATE);

	segment.ddp.msn = 1;
	segment.terminate.error = (struct vb_rdmap_error){ layer, type, code };
	return segment;
}

TEST(a_terminate_has_layer_type_and_code)
{
	struct vb_rdmap segment = terminate_of(2, 0, 6);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	EXPECT_EQ(stored(bytes, &segment), 22);
	EXPECT_EQ(bytes[1], 0x47);
	EXPECT_EQ(load32(bytes + 6), 2);
	EXPECT_EQ(load32(bytes + 10), 1);
	EXPECT_EQ(load32(bytes + 18), 0x20060000);
	segment = terminate_of(1, 2, 0xff);
	stored(bytes, &segment);
	EXPECT_EQ(load32(bytes + 18), 0x12ff0000);
	EXPECT_EQ(vb_rdmap_parse(bytes, 22, &segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment.terminate.error.layer, 1);
	EXPECT_EQ(segment.terminate.error.type, 2);
	EXPECT_EQ(segment.terminate.error.code, 0xff);
	EXPECT(!segment.terminate.has_length && !segment.terminate.has_ddp);
	EXPECT(!segment.terminate.has_read && !segment.terminate.is_swapped);
	EXPECT_EQ(segment.header_length, 22);
}

TEST(a_terminate_shows_the_refused_header)
{
	struct vb_rdmap segment = terminate_of(1, 2, 2);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.terminate.has_length = segment.terminate.has_ddp = true;
	segment.terminate.segment_length = 0x1234;
	memcpy(segment.terminate.ddp, refused_send, 18);
	EXPECT_EQ(stored(bytes, &segment), 18 + 4 + 2 + 18);
	EXPECT_EQ(load32(bytes + 18), 0x1202c000);
	EXPECT_EQ(load16(bytes + 22), 0x1234);
	EXPECT_MEM(bytes + 24, refused_send, 18);
	memset(&segment, 0, sizeof(segment));
	EXPECT_EQ(vb_rdmap_parse(bytes, 42, &segment), VB_RDMAP_PARSED);
	EXPECT(segment.terminate.has_length && segment.terminate.has_ddp);
	EXPECT(!segment.terminate.has_read);
	EXPECT_EQ(segment.terminate.segment_length, 0x1234);
	EXPECT_MEM(segment.terminate.ddp, refused_send, 18);

	memcpy(segment.terminate.ddp, refused_write, 14);
	EXPECT_EQ(stored(bytes, &segment), 18 + 4 + 2 + 14);
	EXPECT_MEM(bytes + 24, refused_write, 14);
	EXPECT_EQ(vb_rdmap_parse(bytes, 38, &segment), VB_RDMAP_PARSED);
	EXPECT(segment.terminate.has_ddp);
}

TEST(a_terminate_shows_the_refused_read)
{
	struct vb_rdmap segment = terminate_of(0, 1, 1);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.terminate.has_length = segment.terminate.has_ddp = segment.terminate.has_read =
		true;
	segment.terminate.segment_length = 46;
	memcpy(segment.terminate.ddp, refused_send, 18);
	segment.terminate.read = some_read;
	EXPECT_EQ(stored(bytes, &segment), VB_RDMAP_HEADERS_MAX);
	EXPECT_EQ(load32(bytes + 18), 0x0101e000);
	EXPECT_MEM(bytes + 42, some_read_bytes, 28);
	memset(&segment, 0, sizeof(segment));
	EXPECT_EQ(vb_rdmap_parse(bytes, 70, &segment), VB_RDMAP_PARSED);
	EXPECT(segment.terminate.has_read);
	EXPECT_EQ(segment.terminate.read.sink_stag, some_read.sink_stag);
	EXPECT_EQ(segment.terminate.read.source_offset, some_read.source_offset);
	EXPECT_EQ(segment.header_length, 70);
}

/* "21 02 03 00" is its "no receive", with the length and the header. */
TEST(a_terminate_of_siw_is_understood)
{
	struct vb_rdmap segment = terminate_of(1, 2, 2);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.terminate.has_length = segment.terminate.has_ddp = segment.terminate.has_read =
		true;
	segment.terminate.segment_length = 77;
	memcpy(segment.terminate.ddp, refused_send, 18);
	segment.terminate.read = some_read;
	stored(bytes, &segment);
	for (uint8_t flags = 1; flags < 8; flags++) {
		store32(bytes + 18, 0x21020000 | flags << 8);
		EXPECT_EQ(vb_rdmap_parse(bytes, 70, &segment), VB_RDMAP_PARSED);
		EXPECT(segment.terminate.is_swapped);
		EXPECT_EQ(segment.terminate.error.layer, 1);
		EXPECT_EQ(segment.terminate.error.type, 2);
		EXPECT_EQ(segment.terminate.error.code, 2);
		EXPECT_EQ(segment.terminate.has_length, flags & 1);
		EXPECT_EQ(segment.terminate.has_ddp, flags >> 1 & 1);
		EXPECT_EQ(segment.terminate.has_read, flags >> 2);
	}
	EXPECT_EQ(segment.terminate.segment_length, 77);
	EXPECT_EQ(segment.terminate.read.length, some_read.length);
	store32(bytes + 18, 0x2102e700); /* the RFC's, with reserved bits */
	EXPECT_EQ(vb_rdmap_parse(bytes, 70, &segment), VB_RDMAP_PARSED);
	EXPECT(!segment.terminate.is_swapped);
	EXPECT_EQ(segment.terminate.error.layer, 2);
	store32(bytes + 18, 0x21020301);
	EXPECT_EQ(vb_rdmap_parse(bytes, 70, &segment), VB_RDMAP_PARSED);
	EXPECT(!segment.terminate.is_swapped);
}

TEST(a_terminate_that_is_cut_has_what_fits)
{
	struct vb_rdmap segment = terminate_of(1, 2, 2);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.terminate.has_length = segment.terminate.has_ddp = segment.terminate.has_read =
		true;
	memcpy(segment.terminate.ddp, refused_send, 18);
	stored(bytes, &segment);
	for (uint32_t length = 18; length < 70; length++) {
		uint8_t *cut = malloc(length);
		enum vb_rdmap_parsing parsing;

		memcpy(cut, bytes, length);
		parsing = vb_rdmap_parse(cut, length, &segment);
		free(cut);
		EXPECT_EQ(parsing, length < 22 ? VB_RDMAP_PARTIAL : VB_RDMAP_PARSED);
		if (length < 22)
			continue;
		EXPECT_EQ(segment.terminate.error.code, 2);
		EXPECT_EQ(segment.terminate.has_length, length >= 24);
		EXPECT_EQ(segment.terminate.has_ddp, length >= 42);
		EXPECT(!segment.terminate.has_read);
		EXPECT(segment.header_length <= length);
	}
}

/* The field is there with either bit, but means something with M only. */
TEST(a_terminate_with_a_header_has_room_for_the_length)
{
	struct vb_rdmap segment = terminate_of(1, 2, 2);
	uint8_t bytes[VB_RDMAP_HEADERS_MAX];

	segment.terminate.has_ddp = true;
	segment.terminate.segment_length = 5;
	memcpy(segment.terminate.ddp, refused_send, 18);
	EXPECT_EQ(stored(bytes, &segment), 42);
	EXPECT_EQ(load32(bytes + 18), 0x12024000);
	EXPECT_EQ(vb_rdmap_parse(bytes, 42, &segment), VB_RDMAP_PARSED);
	EXPECT(segment.terminate.has_ddp && !segment.terminate.has_length);
	EXPECT_EQ(segment.terminate.segment_length, 0);
	EXPECT_MEM(segment.terminate.ddp, refused_send, 18);
	EXPECT_EQ(segment.header_length, 42);
	EXPECT_EQ(vb_rdmap_parse(bytes, 41, &segment), VB_RDMAP_PARSED);
	EXPECT(!segment.terminate.has_ddp && !segment.terminate.has_length);
	EXPECT_EQ(segment.header_length, 22);
}

/* --- text ------------------------------------------------------------------------------------- */

static void expect_text(const struct vb_rdmap *segment, const char *expected)
{
	char text[400];

	EXPECT_EQ(vb_rdmap_describe(segment, text, sizeof(text)), strlen(expected));
	EXPECT_STR(text, expected);
	EXPECT_EQ(vb_rdmap_describe(segment, text, 5), strlen(expected));
	EXPECT_EQ(strlen(text), 4);
}

TEST(segments_are_described_in_a_line)
{
	struct vb_rdmap segment = segment_of(VB_RDMAP_SEND_INV);

	segment.ddp.msn = 3;
	segment.ddp.offset = 1460;
	segment.ddp.stag = 0x12;
	segment.payload_length = 100;
	expect_text(&segment, "SEND_INV msn=3 mo=1460 inv=0x12 len=100 last");
	segment = segment_of(VB_RDMAP_WRITE);
	segment.ddp.is_tagged = true;
	segment.ddp.is_last = false;
	segment.ddp.stag = 0x34;
	segment.ddp.offset = 0x1000;
	expect_text(&segment, "WRITE stag=0x34 to=0x1000 len=0");
	segment = segment_of(VB_RDMAP_READ_REQUEST);
	segment.read = (struct vb_rdmap_read){ 1, 2, 3, 4, 5 };
	expect_text(&segment, "READ_REQUEST msn=0 mo=0 sink=0x1:0x2 source=0x4:0x5 dma=3 last");
	segment = terminate_of(1, 2, 2);
	segment.terminate.has_ddp = segment.terminate.has_read = true;
	memcpy(segment.terminate.ddp, refused_send, 18);
	segment.terminate.read = (struct vb_rdmap_read){ 1, 2, 3, 4, 5 };
	expect_text(&segment, "TERMINATE 1/2/02 DDP: no receive, of SEND msn=7 mo=0 "
			      "sink=0x1:0x2 source=0x4:0x5 dma=3");
	EXPECT_STR(vb_rdmap_opcode_describe(8), "?");
}

TEST(each_error_of_the_registry_has_a_text)
{
	static const uint32_t known[] = {
		0x00000, 0x00042, 0x00100, 0x00101, 0x00102, 0x00103, 0x00104, 0x00109, 0x001ff,
		0x00205, 0x00206, 0x00207, 0x00208, 0x00209, 0x002ff, 0x10000, 0x10100, 0x10101,
		0x10102, 0x10103, 0x10104, 0x10201, 0x10202, 0x10203, 0x10204, 0x10205, 0x10206,
		0x20001, 0x20002, 0x20003, 0x20004, 0x20005, 0x20006, 0x20007,
	};

	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct vb_rdmap_error error = { (uint8_t)(known[i] >> 16), known[i] >> 8 & 0xf,
						(uint8_t)known[i] };

		EXPECT(strcmp(vb_rdmap_error_describe(error), "unknown error") != 0);
	}
	EXPECT_STR(vb_rdmap_error_describe((struct vb_rdmap_error){ 2, 0, 0 }), "unknown error");
	EXPECT_STR(vb_rdmap_error_describe((struct vb_rdmap_error){ 1, 2, 7 }), "unknown error");
	EXPECT_STR(vb_rdmap_error_describe((struct vb_rdmap_error){ 3, 0, 0 }), "unknown error");
	for (enum vb_rdmap_parsing i = VB_RDMAP_PARSED; i <= VB_RDMAP_PARTIAL; i++)
		EXPECT(strlen(vb_rdmap_parsing_describe(i)) > 1);
}
