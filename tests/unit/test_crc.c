/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32c against the examples of iSCSI and against one that is computed bit by bit, by both
 * methods. The CRC of Ethernet has its tests in test_icrc.c.
 */
#include "base/crc.h"
#include "base/prng.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static const enum vb_crc_method methods[] = { VB_CRC_INSTRUCTIONS, VB_CRC_TABLES };

#define FOR_EACH_METHOD(i) for (uint32_t i = 0; i < 2 && (vb_crc_choose(methods[i]), true); i++)

static uint32_t bit_by_bit(uint32_t crc, const uint8_t *bytes, size_t length)
{
	crc = ~crc;
	for (size_t i = 0; i < length * 8; i++) {
		uint32_t bit = (crc ^ bytes[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/*
 * RFC 3720, B.4, which gives the bytes of each CRC in the order of the wire: the least significant
 * one first.
 */
TEST(crc32c_has_the_values_of_the_examples_of_iscsi)
{
	static const uint8_t read_command[48] = {
		0x01,	     0xc0,	  [16] = 0x14, [22] = 0x04,
		[27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02,
	};
	uint8_t bytes[32];

	FOR_EACH_METHOD(method)
	{
		memset(bytes, 0, sizeof(bytes));
		EXPECT_EQ(vb_crc32c(0, bytes, 32), 0x8a9136aa);
		memset(bytes, 0xff, sizeof(bytes));
		EXPECT_EQ(vb_crc32c(0, bytes, 32), 0x62a8ab43);
		for (uint32_t i = 0; i < 32; i++)
			bytes[i] = (uint8_t)i;
		EXPECT_EQ(vb_crc32c(0, bytes, 32), 0x46dd794e);
		for (uint32_t i = 0; i < 32; i++)
			bytes[i] = (uint8_t)(31 - i);
		EXPECT_EQ(vb_crc32c(0, bytes, 32), 0x113fdb5c);
		EXPECT_EQ(vb_crc32c(0, read_command, 48), 0xd9963a56);
		EXPECT_EQ(vb_crc32c(0, "123456789", 9), 0xe3069283);
	}
}

TEST(crc32c_of_nothing_changes_nothing)
{
	FOR_EACH_METHOD(method)
	{
		EXPECT_EQ(vb_crc32c(0, "", 0), 0);
		EXPECT_EQ(vb_crc32c(0x12345678, "", 0), 0x12345678);
	}
}

TEST(crc32c_of_any_length_and_place_is_that_of_its_bits)
{
	enum { SIZE = 400 };
	uint8_t *bytes = malloc(SIZE);
	struct vb_prng prng;

	vb_prng_init(&prng, 1);
	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)vb_prng_next(&prng);
	FOR_EACH_METHOD(method)
	for (uint32_t offset = 0; offset < 17; offset++)
		for (uint32_t length = 0; length <= SIZE - offset; length++)
			EXPECT_EQ(vb_crc32c(length, bytes + offset, length),
				  bit_by_bit(length, bytes + offset, length));
	free(bytes);
}

TEST(crc32c_of_parts_is_that_of_the_whole)
{
	enum { SIZE = 70000 };
	uint8_t *bytes = malloc(SIZE);
	struct vb_prng prng;

	vb_prng_init(&prng, 2);
	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)vb_prng_next(&prng);
	for (uint32_t try = 0; try < 200; try++) {
		uint32_t cut = (uint32_t)vb_prng_below(&prng, SIZE + 1), whole;

		vb_crc_choose(methods[try % 2]);
		whole = vb_crc32c(0, bytes, SIZE);
		vb_crc_choose(methods[try / 2 % 2]);
		EXPECT_EQ(vb_crc32c(vb_crc32c(0, bytes, cut), bytes + cut, SIZE - cut), whole);
	}
	free(bytes);
}
