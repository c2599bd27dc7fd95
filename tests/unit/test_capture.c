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

/* The option of that number behind `p`; NULL: there is none. */
static const uint8_t *find_option(const uint8_t *p, uint32_t number)
{
	while (load_little32(p)) {
		uint32_t length = load_little32(p) >> 16;

		if ((load_little32(p) & 0xffff) == number)
			return p;
		p += 4 + ((length + 3) & ~3u);
	}
	return NULL;
}

TEST(a_commented_packet_has_its_direction_and_what_was_lost_before_it)
{
	static const uint8_t data[5] = { 1, 2, 3, 4, 5 };
	struct vb_capture_packet packet = { .interface = 3,
					    .time_ns = 1,
					    .data = data,
					    .captured = 5,
					    .length = 90,
					    .is_sent = true,
					    .skipped = 7,
					    .comment = "QP 0x11" };
	uint8_t block[sizeof(data) + VB_CAPTURE_BLOCK_MAX];
	uint32_t size = vb_capture_store_commented(block, &packet);
	const uint8_t *options = block + 28 + 8;

	EXPECT_EQ(load_little32(block + 4), size);
	EXPECT_EQ(load_little32(block + size - 4), size);
	EXPECT_EQ(load_little32(block + 8), 3);
	EXPECT_EQ(load_little32(block + 20), 5);
	EXPECT_EQ(load_little32(block + 24), 90);
	EXPECT_MEM(find_option(options, 1) + 4, "QP 0x11", 8);
	EXPECT_EQ(load_little32(find_option(options, 2) + 4), 2);
	EXPECT_EQ(load_little32(find_option(options, 4) + 4), 7);
	packet.skipped = 0;
	packet.comment = "";
	(void)vb_capture_store_commented(block, &packet);
	EXPECT(!find_option(options, 1) && !find_option(options, 4));
}

TEST(texts_of_a_capture_are_cut)
{
	char text[2 * VB_CAPTURE_TEXT_MAX + 1];
	uint8_t block[VB_CAPTURE_BLOCK_MAX];
	uint32_t size;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	size = vb_capture_store_interface(block, VB_CAPTURE_ETHERNET, 0, text, text);
	EXPECT(size <= sizeof(block));
	EXPECT_EQ(load_little32(block + size - 4), size);
	EXPECT_EQ(load_little32(find_option(block + 16, 2)) >> 16, VB_CAPTURE_TEXT_MAX);
	EXPECT_EQ(find_option(block + 16, 9)[4], 9); /* nanoseconds */
}
