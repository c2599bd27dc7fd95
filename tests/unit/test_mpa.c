/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests, replies and FPDUs of MPA as bytes: every field at the place that RFC 5044 and RFC 6581
 * give it, frames that are cut anywhere, and what must be refused. The golden tests have what
 * tshark reads in them.
 */
#include "base/bytes.h"
#include "base/crc.h"
#include "harness.h"
#include "wire/mpa.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS 16
#define REVISION 17
#define LENGTH 18
#define PRIVATE VB_MPA_HEADER_SIZE

static const struct vb_mpa_frame plain = { .kind = VB_MPA_REQUEST, .revision = 1 };
static const struct vb_mpa_frame enhanced = {
	.kind = VB_MPA_REQUEST, .revision = 2, .is_enhanced = true, .ird = 3, .ord = 5
};

static uint32_t stored(uint8_t bytes[VB_MPA_FRAME_MAX], const struct vb_mpa_frame *frame)
{
	memset(bytes, 0xa5, VB_MPA_FRAME_MAX);
	return vb_mpa_frame_store(bytes, frame);
}

static enum vb_mpa_parsing parsed(const uint8_t *bytes, uint32_t length, struct vb_mpa_frame *frame)
{
	uint32_t taken = 0;
	enum vb_mpa_parsing parsing = vb_mpa_frame_parse(
		bytes[9] == 'p' ? VB_MPA_REPLY : VB_MPA_REQUEST, bytes, length, frame, &taken);

	if (parsing == VB_MPA_PARSED)
		EXPECT_EQ(taken, length);
	return parsing;
}

/* --- frames ----------------------------------------------------------------------------------- */

TEST(a_request_and_a_reply_begin_with_their_keys)
{
	static const uint8_t request[16] = { 0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
					     0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65 };
	static const uint8_t reply[16] = { 0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
					   0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65 };
	struct vb_mpa_frame frame = plain;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	EXPECT_EQ(stored(bytes, &frame), 20);
	EXPECT_MEM(bytes, request, 16);
	frame.kind = VB_MPA_REPLY;
	EXPECT_EQ(stored(bytes, &frame), 20);
	EXPECT_MEM(bytes, reply, 16);
}

TEST(each_flag_of_a_frame_has_its_bit)
{
	static const struct {
		uint8_t flags;
		struct vb_mpa_frame frame;
	} cases[] = {
		{ 0x00, { .kind = VB_MPA_REPLY, .revision = 1 } },
		{ 0x80, { .kind = VB_MPA_REPLY, .revision = 1, .wants_markers = true } },
		{ 0x40, { .kind = VB_MPA_REPLY, .revision = 1, .wants_crc = true } },
		{ 0x20, { .kind = VB_MPA_REPLY, .revision = 1, .is_rejected = true } },
		{ 0x10, { .kind = VB_MPA_REPLY, .revision = 2, .is_enhanced = true } },
	};

	for (uint32_t i = 0; i < 5; i++) {
		uint8_t bytes[VB_MPA_FRAME_MAX];
		uint32_t length = stored(bytes, &cases[i].frame);
		struct vb_mpa_frame frame;

		EXPECT_EQ(bytes[FLAGS], cases[i].flags);
		EXPECT_EQ(bytes[REVISION], cases[i].frame.revision);
		EXPECT_EQ(parsed(bytes, length, &frame), VB_MPA_PARSED);
		EXPECT_EQ(frame.wants_markers, cases[i].frame.wants_markers);
		EXPECT_EQ(frame.wants_crc, cases[i].frame.wants_crc);
		EXPECT_EQ(frame.is_rejected, cases[i].frame.is_rejected);
		EXPECT_EQ(frame.is_enhanced, cases[i].frame.is_enhanced);
		EXPECT_EQ(frame.revision, cases[i].frame.revision);
		EXPECT_EQ(frame.kind, VB_MPA_REPLY);
	}
}

TEST(the_enhanced_words_have_their_bits)
{
	static const struct {
		uint32_t words;
		bool is_peer_to_peer;
		uint8_t rtr;
		uint16_t ird, ord;
	} cases[] = {
		{ 0x00000000, false, 0, 0, 0 },
		{ 0x00010000, false, 0, 1, 0 },
		{ 0x00000001, false, 0, 0, 1 },
		{ 0x3fff3ffe, false, 0, VB_MPA_DEPTH_UNSAID, VB_MPA_DEPTH_MAX },
		{ 0x80000000, true, 0, 0, 0 },
		{ 0xc0000000, true, VB_MPA_RTR_SEND, 0, 0 },
		{ 0x80008000, true, VB_MPA_RTR_WRITE, 0, 0 },
		{ 0x80004000, true, VB_MPA_RTR_READ, 0, 0 },
		{ 0xc010c020, true, VB_MPA_RTR_SEND | VB_MPA_RTR_WRITE | VB_MPA_RTR_READ, 16, 32 },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_mpa_frame frame = enhanced;
		uint8_t bytes[VB_MPA_FRAME_MAX];

		frame.is_peer_to_peer = cases[i].is_peer_to_peer;
		frame.rtr = cases[i].rtr;
		frame.ird = cases[i].ird;
		frame.ord = cases[i].ord;
		EXPECT_EQ(stored(bytes, &frame), 24);
		EXPECT_EQ(load16(bytes + LENGTH), 4);
		EXPECT_EQ(load32(bytes + PRIVATE), cases[i].words);
		memset(&frame, 0, sizeof(frame));
		EXPECT_EQ(parsed(bytes, 24, &frame), VB_MPA_PARSED);
		EXPECT_EQ(frame.is_peer_to_peer, cases[i].is_peer_to_peer);
		EXPECT_EQ(frame.rtr, cases[i].rtr);
		EXPECT_EQ(frame.ird, cases[i].ird);
		EXPECT_EQ(frame.ord, cases[i].ord);
		EXPECT_EQ(frame.private_length, 0);
	}
}

/* RFC 6581, 9.2. */
TEST(without_peer_to_peer_there_is_no_rtr)
{
	struct vb_mpa_frame frame = enhanced;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	frame.rtr = VB_MPA_RTR_SEND | VB_MPA_RTR_WRITE | VB_MPA_RTR_READ;
	stored(bytes, &frame);
	EXPECT_EQ(load32(bytes + PRIVATE), 0x00030005);
	store32(bytes + PRIVATE, 0x4003c005);
	EXPECT_EQ(parsed(bytes, 24, &frame), VB_MPA_PARSED);
	EXPECT(!frame.is_peer_to_peer);
	EXPECT_EQ(frame.rtr, 0);
	EXPECT_EQ(frame.ird, 3);
	EXPECT_EQ(frame.ord, 5);
}

TEST(private_data_follows_the_header_or_the_enhanced_words)
{
	struct vb_mpa_frame frame = plain;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	frame.private_length = 3;
	memcpy(frame.private_data, "abc", 3);
	EXPECT_EQ(stored(bytes, &frame), 23);
	EXPECT_EQ(load16(bytes + LENGTH), 3);
	EXPECT_MEM(bytes + PRIVATE, "abc", 3);
	frame.revision = 2;
	frame.is_enhanced = true;
	EXPECT_EQ(stored(bytes, &frame), 27);
	EXPECT_EQ(load16(bytes + LENGTH), 7);
	EXPECT_MEM(bytes + PRIVATE + 4, "abc", 3);
	memset(&frame, 0, sizeof(frame));
	EXPECT_EQ(parsed(bytes, 27, &frame), VB_MPA_PARSED);
	EXPECT_EQ(frame.private_length, 3);
	EXPECT_MEM(frame.private_data, "abc", 3);
}

TEST(private_data_has_at_most_512_bytes_with_the_enhanced_words)
{
	struct vb_mpa_frame frame = plain;
	uint8_t bytes[VB_MPA_FRAME_MAX + 1];

	EXPECT_EQ(vb_mpa_private_size(false), 512);
	EXPECT_EQ(vb_mpa_private_size(true), 508);
	frame.private_length = 512;
	frame.private_data[511] = 7;
	EXPECT_EQ(stored(bytes, &frame), VB_MPA_FRAME_MAX);
	EXPECT_EQ(bytes[VB_MPA_FRAME_MAX - 1], 7);
	EXPECT_EQ(parsed(bytes, VB_MPA_FRAME_MAX, &frame), VB_MPA_PARSED);
	EXPECT_EQ(frame.private_length, 512);
	frame = enhanced;
	frame.private_length = 508;
	EXPECT_EQ(stored(bytes, &frame), VB_MPA_FRAME_MAX);
	store16(bytes + LENGTH, 513);
	EXPECT_EQ(parsed(bytes, VB_MPA_FRAME_MAX + 1, &frame), VB_MPA_BAD_LENGTH);
	EXPECT_EQ(parsed(bytes, VB_MPA_HEADER_SIZE, &frame), VB_MPA_BAD_LENGTH);
	store16(bytes + LENGTH, 0xffff);
	EXPECT_EQ(parsed(bytes, VB_MPA_HEADER_SIZE, &frame), VB_MPA_BAD_LENGTH);
}

TEST(enhanced_words_that_are_cut_are_refused)
{
	struct vb_mpa_frame frame;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	stored(bytes, &enhanced);
	for (uint16_t length = 0; length < 4; length++) {
		store16(bytes + LENGTH, length);
		EXPECT_EQ(parsed(bytes, VB_MPA_HEADER_SIZE + length, &frame), VB_MPA_BAD_LENGTH);
	}
}

/* A frame of revision 1 does not check reserved bits, and this one was reserved then. */
TEST(revision_1_has_no_enhanced_words)
{
	struct vb_mpa_frame frame = enhanced;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	stored(bytes, &frame);
	bytes[REVISION] = 1;
	EXPECT_EQ(parsed(bytes, 24, &frame), VB_MPA_PARSED);
	EXPECT(!frame.is_enhanced);
	EXPECT_EQ(frame.private_length, 4);
	EXPECT_EQ(load32(frame.private_data), 0x00030005);
}

TEST(revision_2_without_enhanced_words_is_right)
{
	struct vb_mpa_frame frame = plain;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	frame.revision = 2;
	EXPECT_EQ(parsed(bytes, stored(bytes, &frame), &frame), VB_MPA_PARSED);
	EXPECT_EQ(frame.revision, 2);
	EXPECT(!frame.is_enhanced);
}

TEST(other_revisions_are_refused)
{
	struct vb_mpa_frame frame;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	stored(bytes, &plain);
	for (uint32_t revision = 0; revision < 256; revision++) {
		bytes[REVISION] = (uint8_t)revision;
		EXPECT_EQ(parsed(bytes, 20, &frame),
			  revision == 1 || revision == 2 ? VB_MPA_PARSED : VB_MPA_BAD_REVISION);
	}
}

TEST(reserved_bits_are_ignored)
{
	struct vb_mpa_frame frame;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	stored(bytes, &plain);
	bytes[FLAGS] = 0x07;
	EXPECT_EQ(parsed(bytes, 20, &frame), VB_MPA_PARSED);
	EXPECT(!frame.wants_markers && !frame.wants_crc && !frame.is_rejected);
	EXPECT(!frame.takes_long_fpdus);
	bytes[FLAGS] = 0x08;
	EXPECT_EQ(parsed(bytes, 20, &frame), VB_MPA_PARSED);
	EXPECT(frame.takes_long_fpdus);
	stored(bytes, &frame);
	EXPECT_EQ(bytes[FLAGS], 0);
}

/* RFC 5044, 7.1.1: R is not checked in a request. */
TEST(a_request_cannot_be_rejected)
{
	struct vb_mpa_frame frame;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	stored(bytes, &plain);
	bytes[FLAGS] = 0x20;
	EXPECT_EQ(parsed(bytes, 20, &frame), VB_MPA_PARSED);
	EXPECT(!frame.is_rejected);
}

TEST(a_frame_that_is_cut_anywhere_is_incomplete)
{
	struct vb_mpa_frame frame = enhanced, untouched = plain;
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t length, taken = 77;

	frame.private_length = 30;
	length = stored(bytes, &frame);
	for (uint32_t cut = 0; cut < length; cut++) {
		uint8_t *part = malloc(cut + 1); /* so that a sanitizer sees what is read */

		memcpy(part, bytes, cut);
		EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REQUEST, part, cut, &untouched, &taken),
			  VB_MPA_INCOMPLETE);
		free(part);
	}
	EXPECT_EQ(taken, 77);
	EXPECT_EQ(untouched.revision, 1);
	EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REQUEST, bytes, sizeof(bytes), &untouched, &taken),
		  VB_MPA_PARSED);
	EXPECT_EQ(taken, length);
}

/* RFC 5044, 7.1.2: two initiators, or two responders, must notice it. */
TEST(a_wrong_key_is_refused_at_its_first_wrong_byte)
{
	struct vb_mpa_frame frame = plain;
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t taken;

	stored(bytes, &plain);
	EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REPLY, bytes, 9, &frame, &taken), VB_MPA_INCOMPLETE);
	EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REPLY, bytes, 10, &frame, &taken), VB_MPA_BAD_KEY);
	EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REPLY, bytes, 20, &frame, &taken), VB_MPA_BAD_KEY);
	for (uint32_t i = 0; i < 16; i++) {
		stored(bytes, &plain);
		bytes[i] ^= 0x20;
		EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REQUEST, bytes, i, &frame, &taken),
			  VB_MPA_INCOMPLETE);
		EXPECT_EQ(vb_mpa_frame_parse(VB_MPA_REQUEST, bytes, i + 1, &frame, &taken),
			  VB_MPA_BAD_KEY);
	}
}

TEST(frames_are_described_in_a_line)
{
	struct vb_mpa_frame frame = plain;
	char text[100];

	vb_mpa_frame_describe(&frame, text, sizeof(text));
	EXPECT_STR(text, "MPA request rev=1 private=0");
	frame = enhanced;
	frame.kind = VB_MPA_REPLY;
	frame.wants_markers = frame.wants_crc = frame.is_rejected = frame.is_peer_to_peer = true;
	frame.rtr = VB_MPA_RTR_SEND | VB_MPA_RTR_READ;
	frame.private_length = 9;
	vb_mpa_frame_describe(&frame, text, sizeof(text));
	EXPECT_STR(text,
		   "MPA reply rev=2 rejected markers crc ird=3 ord=5 p2p=send,read private=9");
	EXPECT_EQ(vb_mpa_frame_describe(&frame, text, 10), 72);
	EXPECT_STR(text, "MPA reply");
	for (enum vb_mpa_parsing parsing = VB_MPA_PARSED; parsing <= VB_MPA_BAD_LENGTH; parsing++)
		EXPECT(strlen(vb_mpa_parsing_describe(parsing)) > 1);
}

/* --- FPDUs ------------------------------------------------------------------------------------ */

TEST(an_fpdu_is_a_multiple_of_four_bytes)
{
	for (uint32_t length = 0; length <= VB_MPA_ULPDU_MAX; length++) {
		EXPECT(vb_mpa_pad(length) < 4);
		EXPECT_EQ(vb_mpa_fpdu_size(length) % 4, 0);
		EXPECT_EQ(vb_mpa_fpdu_size(length), 2 + length + vb_mpa_pad(length) + 4);
	}
	EXPECT_EQ(vb_mpa_pad(18), 0);
	EXPECT_EQ(vb_mpa_pad(15), 3);
}

/* RFC 5044, 4.5. */
TEST(the_longest_ulpdu_fills_a_segment)
{
	EXPECT_EQ(vb_mpa_mulpdu(1460), 1454);
	EXPECT_EQ(vb_mpa_mulpdu(1448), 1442);
	EXPECT_EQ(vb_mpa_mulpdu(1447), 1438);
	EXPECT_EQ(vb_mpa_mulpdu(65483), 65474);
	EXPECT_EQ(vb_mpa_mulpdu(0), 128);
	EXPECT_EQ(vb_mpa_mulpdu(134), 128);
	EXPECT_EQ(vb_mpa_mulpdu(140), 134);
	EXPECT_EQ(vb_mpa_mulpdu(1000000), 65535);
	EXPECT_EQ(vb_mpa_mulpdu(UINT32_MAX), 65535);
	for (uint32_t size = 140; size < 65000; size++)
		EXPECT(vb_mpa_fpdu_size(vb_mpa_mulpdu(size)) <= size &&
		       vb_mpa_fpdu_size(vb_mpa_mulpdu(size)) + 4 > size);
}

/* RFC 5044, figures 5 and 6. Both have a marker, which the CRC covers, too. */
TEST(the_crc_is_that_of_the_examples_in_the_rfc)
{
	static const uint8_t first[48] = { [5] = 0x2a, [6] = 0x41, [7] = 0x43, [0x13] = 1 };
	static const uint8_t second[48] = {
		[1] = 0x2a, [2] = 0x41, [3] = 0x43, [0xf] = 2, [0x17] = 0x14
	};
	uint8_t trailer[VB_MPA_TRAILER_MAX];

	EXPECT_EQ(vb_mpa_trailer_store(trailer, 42, true, vb_crc32c(0, first, 48)), 4);
	EXPECT_MEM(trailer, "\x52\x23\x99\x83", 4);
	EXPECT_EQ(vb_mpa_trailer_store(trailer, 42, true, vb_crc32c(0, second, 48)), 4);
	EXPECT_MEM(trailer, "\x84\x92\x58\x98", 4);
}

static uint32_t make_fpdu(uint8_t *fpdu, uint32_t length, bool has_crc)
{
	store16(fpdu, (uint16_t)length);
	for (uint32_t i = 0; i < length; i++)
		fpdu[2 + i] = (uint8_t)(i * 7 + 1);
	return 2 + length +
	       vb_mpa_trailer_store(fpdu + 2 + length, length, has_crc,
				    vb_crc32c(0, fpdu, 2 + length));
}

TEST(the_crc_covers_length_ulpdu_and_pad)
{
	uint8_t fpdu[64];

	for (uint32_t length = 0; length < 40; length++) {
		uint32_t size = make_fpdu(fpdu, length, true);

		EXPECT_EQ(size, vb_mpa_fpdu_size(length));
		EXPECT(vb_mpa_fpdu_check_crc(fpdu));
		for (uint32_t bit = 16; bit < size * 8; bit++) { /* the length decides the rest */
			fpdu[bit / 8] ^= (uint8_t)(1 << bit % 8);
			EXPECT(!vb_mpa_fpdu_check_crc(fpdu));
			fpdu[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	make_fpdu(fpdu, 20, true);
	fpdu[1] = 21; /* the same bytes: one of them is the pad in one, and data in the other */
	EXPECT(!vb_mpa_fpdu_check_crc(fpdu));
}

TEST(without_crc_the_field_is_there_and_0)
{
	uint8_t fpdu[64];
	uint32_t size;

	memset(fpdu, 0xa5, sizeof(fpdu));
	size = make_fpdu(fpdu, 15, false);
	EXPECT_EQ(size, 24);
	EXPECT_MEM(fpdu + 17, "\0\0\0\0\0\0\0", 7);
	EXPECT_EQ(fpdu[24], 0xa5);
}
