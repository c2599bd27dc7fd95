/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDUs out of bytes that are cut anywhere, and streams that are damaged or end. */
#include "base/bytes.h"
#include "base/crc.h"
#include "harness.h"
#include "stream/inlet.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 9

static const uint32_t lengths[COUNT] = { 18, 0, 1, 46, 1442, 17, 14, 65535, 2 };
static uint8_t buffer[VB_INLET_BUFFER_SIZE];
static uint8_t *stream;
static uint32_t stream_length;

static uint8_t byte_of(uint32_t index, uint32_t at)
{
	return (uint8_t)(index * 31 + at * 7 + (at >> 8));
}

static void make_stream(bool has_crc)
{
	stream = malloc(COUNT * VB_INLET_BUFFER_SIZE);
	stream_length = 0;
	for (uint32_t i = 0; i < COUNT; i++) {
		uint8_t *fpdu = stream + stream_length;

		store16(fpdu, (uint16_t)lengths[i]);
		for (uint32_t at = 0; at < lengths[i]; at++)
			fpdu[2 + at] = byte_of(i, at);
		vb_mpa_trailer_store(fpdu + 2 + lengths[i], lengths[i], has_crc,
				     vb_crc32c(0, fpdu, 2 + lengths[i]));
		stream_length += vb_mpa_fpdu_size(lengths[i]);
	}
}

static void expect_ulpdu(const uint8_t *ulpdu, uint32_t length, uint32_t index)
{
	EXPECT(index < COUNT);
	EXPECT_EQ(length, lengths[index]);
	for (uint32_t at = 0; at < length; at++)
		if (ulpdu[at] != byte_of(index, at))
			FAIL("byte %u of ULPDU %u is wrong", at, index);
}

/* Gives a piece of the stream; returns how many ULPDUs there are by now. */
static uint32_t give(struct vb_inlet *inlet, const uint8_t *bytes, uint32_t length, uint32_t seen)
{
	uint8_t *copy = malloc(length + 1); /* so that a sanitizer sees what is read */
	const uint8_t *next = copy, *ulpdu;
	uint32_t ulpdu_length;

	memcpy(copy, bytes, length);
	while (vb_inlet_take(inlet, &next, &length, &ulpdu, &ulpdu_length) == VB_INLET_ULPDU)
		expect_ulpdu(ulpdu, ulpdu_length, seen++);
	EXPECT_EQ(length, 0);
	free(copy);
	return seen;
}

TEST(ulpdus_come_out_however_the_bytes_are_cut)
{
	static const uint32_t pieces[] = { 1, 2, 3, 5, 7, 26, 1448, 4096, 65544, 200000 };

	for (uint32_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct vb_inlet inlet;
		uint32_t seen = 0;

		make_stream(i % 2);
		vb_inlet_init(&inlet, buffer, i % 2);
		for (uint32_t at = 0; at < stream_length; at += pieces[i])
			seen = give(&inlet, stream + at, min32(pieces[i], stream_length - at),
				    seen);
		EXPECT_EQ(seen, COUNT);
		EXPECT(vb_inlet_is_between_fpdus(&inlet));
		free(stream);
	}
}

TEST(each_cut_in_two_has_the_same_result)
{
	uint32_t end = vb_mpa_fpdu_size(18) + vb_mpa_fpdu_size(0) + vb_mpa_fpdu_size(1);
	struct vb_inlet inlet;

	make_stream(true);
	for (uint32_t cut = 0; cut <= end; cut++) {
		bool is_between = cut == 0 || cut == 24 || cut == 32 || cut == 40;

		vb_inlet_init(&inlet, buffer, true);
		give(&inlet, stream, cut, 0);
		EXPECT_EQ(vb_inlet_is_between_fpdus(&inlet), is_between);
		vb_inlet_init(&inlet, buffer, true);
		EXPECT_EQ(give(&inlet, stream + cut, end - cut, give(&inlet, stream, cut, 0)), 3);
	}
	free(stream);
}

TEST(an_fpdu_that_is_whole_is_not_copied)
{
	struct vb_inlet inlet;
	const uint8_t *next, *ulpdu;
	uint32_t length, ulpdu_length;

	make_stream(true);
	vb_inlet_init(&inlet, NULL, true); /* it would have no place to copy to */
	next = stream;
	length = stream_length;
	EXPECT_EQ(vb_inlet_take(&inlet, &next, &length, &ulpdu, &ulpdu_length), VB_INLET_ULPDU);
	EXPECT(ulpdu == stream + 2);
	EXPECT(next == stream + 24);
	EXPECT_EQ(length, stream_length - 24);
	free(stream);
}

TEST(a_wrong_crc_ends_the_stream)
{
	for (uint32_t cut = 1; cut < 40; cut++) {
		struct vb_inlet inlet;
		uint32_t result = VB_INLET_EMPTY, seen = 0, bad = 0, at = 0;

		make_stream(true);
		vb_inlet_init(&inlet, buffer, true);
		stream[26] ^= 1; /* of the second */
		while (at < stream_length) {
			uint32_t length = min32(cut, stream_length - at), ulpdu_length;
			const uint8_t *next = stream + at, *ulpdu;

			at += length;
			do {
				result = vb_inlet_take(&inlet, &next, &length, &ulpdu,
						       &ulpdu_length);
				seen += result == VB_INLET_ULPDU;
				bad += result == VB_INLET_BAD_CRC;
			} while (result != VB_INLET_EMPTY);
			EXPECT_EQ(length, 0);
		}
		EXPECT_EQ(seen, 1);
		EXPECT_EQ(bad, 1);
		free(stream);
	}
}

TEST(without_crc_the_field_may_have_any_value)
{
	struct vb_inlet inlet;

	make_stream(false);
	memset(stream + 20, 0xa5, 4);
	vb_inlet_init(&inlet, buffer, false);
	EXPECT_EQ(give(&inlet, stream, stream_length, 0), COUNT);
	free(stream);
}
