/* SPDX-License-Identifier: BSD-2-Clause */
/* pcapng blocks, walked as a reader would walk them. In tests/golden a real reader reads them. */
#include "harness.h"
#include "wire/capture.h"

#include <stdlib.h>
#include <string.h>

static uint32_t load_little32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

TEST(the_header_is_a_section_and_an_interface_with_nanosecond_timestamps)
{
	uint8_t bytes[VB_CAPTURE_HEADER_SIZE];
	uint32_t length = vb_capture_store_header(bytes);
	const uint8_t *interface;

	EXPECT_EQ(load_little32(bytes), 0x0a0d0d0a); /* section header block */
	EXPECT_EQ(load_little32(bytes + 8), 0x1a2b3c4d); /* byte order */
	interface = bytes + load_little32(bytes + 4);
	EXPECT_EQ(load_little32(interface - 4), load_little32(bytes + 4));
	EXPECT_EQ(load_little32(interface), 1); /* interface description block */
	EXPECT_EQ(load_little32(interface + 8), 101); /* LINKTYPE_RAW */
	EXPECT_EQ(load_little32(interface + 16), 9 | 1 << 16); /* if_tsresol, one byte */
	EXPECT_EQ(interface[20], 9);
	EXPECT_EQ(interface + load_little32(interface + 4) - bytes, length);
	EXPECT_EQ(load_little32(bytes + length - 4), load_little32(interface + 4));
}

TEST(a_packet_block_is_padded_and_says_its_length_twice)
{
	static const uint8_t data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	for (uint32_t length = 0; length <= sizeof(data); length++) {
		uint8_t *block = malloc(length + VB_CAPTURE_BLOCK_OVERHEAD);
		uint32_t size = vb_capture_store_packet(block, 0x123456789abcdef0, data, length);

		EXPECT_EQ(size % 4, 0);
		EXPECT(size <= length + VB_CAPTURE_BLOCK_OVERHEAD);
		EXPECT_EQ(load_little32(block), 6); /* enhanced packet block */
		EXPECT_EQ(load_little32(block + 4), size);
		EXPECT_EQ(load_little32(block + size - 4), size);
		EXPECT_EQ(load_little32(block + 12), 0x12345678);
		EXPECT_EQ(load_little32(block + 16), 0x9abcdef0);
		EXPECT_EQ(load_little32(block + 20), length);
		EXPECT_EQ(load_little32(block + 24), length);
		EXPECT_MEM(block + 28, data, length);
		free(block);
	}
}
