/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copy function: every alignment and every short length, and not a byte beside them. The order
 * in which the bytes appear is the subject of tests/threads/test_copy_order.c.
 */
#include "base/copy.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX 300
#define ALIGNMENTS 16
#define AREA (LENGTH_MAX + 3 * ALIGNMENTS)

static void expect_copied(uint32_t to_offset, uint32_t from_offset, uint32_t length)
{
	_Alignas(64) uint8_t to[AREA];
	_Alignas(64) uint8_t from[AREA];
	uint8_t expected[AREA];

	for (uint32_t i = 0; i < AREA; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	memset(to, 0xa5, AREA);
	memset(expected, 0xa5, AREA);
	for (uint32_t i = 0; i < length; i++)
		expected[to_offset + i] = from[from_offset + i];
	vb_copy_last_byte_last(to + to_offset, from + from_offset, length);
	EXPECT_MEM(to, expected, AREA);
}

TEST(every_alignment_and_short_length_is_copied_exactly)
{
	for (uint32_t to_offset = 0; to_offset < ALIGNMENTS; to_offset++)
		for (uint32_t from_offset = 0; from_offset < 8; from_offset++)
			for (uint32_t length = 0; length <= LENGTH_MAX; length++)
				expect_copied(to_offset, from_offset, length);
}

TEST(no_byte_outside_the_two_areas_is_touched)
{
	for (uint32_t length = 1; length <= LENGTH_MAX; length++) {
		uint8_t *to = malloc(length);
		uint8_t *from = malloc(length);

		memset(from, 0x5a, length);
		vb_copy_last_byte_last(to, from, length);
		EXPECT_MEM(to, from, length);
		free(from);
		free(to);
	}
}

TEST(large_copies_arrive_whole)
{
	size_t length = (8 << 20) + 13;
	uint8_t *to = malloc(length);
	uint8_t *from = malloc(length);

	for (size_t i = 0; i < length; i++)
		from[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
	vb_copy_last_byte_last(to, from, length);
	EXPECT_MEM(to, from, length);
	free(from);
	free(to);
}
