/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcapng blocks, always little-endian: readers see this from the byte-order mark in the section
 * header. A block begins and ends with its own length and is padded to a multiple of 4.
 */
#include "wire/capture.h"

#include <string.h>

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 6u /* the "enhanced" packet block */
#define BYTE_ORDER_MARK 0x1a2b3c4du
#define LINK_TYPE_RAW_IP 101u
#define OPTION_TIME_RESOLUTION 9u
#define NANOSECONDS 9u /* 10^-9 s */

#define SECTION_SIZE 28u
#define INTERFACE_SIZE 32u
#define PACKET_FIXED_SIZE 32u /* size of a packet block without its data */

_Static_assert(SECTION_SIZE + INTERFACE_SIZE <= VB_CAPTURE_HEADER_SIZE, "the header fits");
_Static_assert(PACKET_FIXED_SIZE + 3 <= VB_CAPTURE_BLOCK_OVERHEAD, "a padded packet fits");

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v), v >> 16);
}

uint32_t vb_capture_store_header(uint8_t p[VB_CAPTURE_HEADER_SIZE])
{
	p = put32(p, BLOCK_SECTION);
	p = put32(p, SECTION_SIZE);
	p = put32(p, BYTE_ORDER_MARK);
	p = put16(p, 1); /* version 1.0 */
	p = put16(p, 0);
	p = put32(p, UINT32_MAX); /* the section's length is unknown */
	p = put32(p, UINT32_MAX);
	p = put32(p, SECTION_SIZE);

	p = put32(p, BLOCK_INTERFACE);
	p = put32(p, INTERFACE_SIZE);
	p = put16(p, LINK_TYPE_RAW_IP);
	p = put16(p, 0);
	p = put32(p, 0); /* packets are never truncated */
	p = put16(p, OPTION_TIME_RESOLUTION);
	p = put16(p, 1);
	p = put32(p, NANOSECONDS); /* one byte and three of padding */
	p = put32(p, 0); /* end of options */
	put32(p, INTERFACE_SIZE);
	return SECTION_SIZE + INTERFACE_SIZE;
}

uint32_t vb_capture_store_packet(uint8_t *p, uint64_t time_ns, const uint8_t *data, uint32_t length)
{
	uint32_t padding = -length & 3;
	uint32_t block_length = PACKET_FIXED_SIZE + length + padding;

	p = put32(p, BLOCK_PACKET);
	p = put32(p, block_length);
	p = put32(p, 0); /* the interface */
	p = put32(p, (uint32_t)(time_ns >> 32));
	p = put32(p, (uint32_t)time_ns);
	p = put32(p, length);
	p = put32(p, length);
	memcpy(p, data, length);
	memset(p + length, 0, padding);
	put32(p + length + padding, block_length);
	return block_length;
}
