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
#define BLOCK_STATISTICS 5u
#define OPTION_COMMENT 1u
#define OPTION_APPLICATION 4u
#define OPTION_NAME 2u
#define OPTION_DESCRIPTION 3u
#define OPTION_PACKET_FLAGS 2u
#define OPTION_PACKETS_DROPPED 4u
#define OPTION_INTERFACE_DROPPED 5u
#define IS_RECEIVED 1u
#define IS_SENT 2u

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

/* --- with options --- */

static uint8_t *put_bytes(uint8_t *p, const void *bytes, uint32_t length)
{
	uint32_t padding = -length & 3;

	memcpy(p, bytes, length);
	memset(p + length, 0, padding);
	return p + length + padding;
}

static uint8_t *put_text(uint8_t *p, uint32_t option, const char *text)
{
	uint32_t length = (uint32_t)strlen(text);

	if (length > VB_CAPTURE_TEXT_MAX)
		length = VB_CAPTURE_TEXT_MAX;
	return length ? put_bytes(put16(put16(p, option), length), text, length) : p;
}

static uint8_t *put_number(uint8_t *p, uint32_t option, uint64_t number)
{
	p = put16(put16(p, option), 8);
	return put32(put32(p, (uint32_t)number), (uint32_t)(number >> 32));
}

/* Ends the options and the block that begins at `block`. */
static uint32_t end_block(uint8_t *block, uint8_t *p)
{
	uint32_t length = (uint32_t)(put32(p, 0) + 4 - block);

	put32(block + 4, length);
	put32(block + length - 4, length);
	return length;
}

uint32_t vb_capture_store_section(uint8_t *p, const char *application)
{
	uint8_t *at = put32(put32(p, BLOCK_SECTION), 0);

	at = put16(put16(put32(at, BYTE_ORDER_MARK), 1), 0); /* version 1.0 */
	at = put32(put32(at, UINT32_MAX), UINT32_MAX); /* the section's length is unknown */
	return end_block(p, put_text(at, OPTION_APPLICATION, application));
}

uint32_t vb_capture_store_interface(uint8_t *p, uint32_t link_type, uint32_t packet_length_max,
				    const char *name, const char *description)
{
	uint8_t *at = put32(put32(p, BLOCK_INTERFACE), 0);

	at = put32(put16(put16(at, link_type), 0), packet_length_max);
	at = put_text(at, OPTION_NAME, name);
	at = put_text(at, OPTION_DESCRIPTION, description);
	at = put32(put16(put16(at, OPTION_TIME_RESOLUTION), 1), NANOSECONDS);
	return end_block(p, at);
}

uint32_t vb_capture_store_commented(uint8_t *p, const struct vb_capture_packet *packet)
{
	uint8_t *at = put32(put32(p, BLOCK_PACKET), 0);

	at = put32(at, packet->interface);
	at = put32(put32(at, (uint32_t)(packet->time_ns >> 32)), (uint32_t)packet->time_ns);
	at = put32(put32(at, packet->captured), packet->length);
	at = put_bytes(at, packet->data, packet->captured);
	at = put_text(at, OPTION_COMMENT, packet->comment);
	at = put16(put16(at, OPTION_PACKET_FLAGS), 4);
	at = put32(at, packet->is_sent ? IS_SENT : IS_RECEIVED);
	if (packet->skipped)
		at = put_number(at, OPTION_PACKETS_DROPPED, packet->skipped);
	return end_block(p, at);
}

uint32_t vb_capture_store_statistics(uint8_t *p, uint32_t interface, uint64_t time_ns,
				     uint64_t skipped)
{
	uint8_t *at = put32(put32(p, BLOCK_STATISTICS), 0);

	at = put32(at, interface);
	at = put32(put32(at, (uint32_t)(time_ns >> 32)), (uint32_t)time_ns);
	return end_block(p, put_number(at, OPTION_INTERFACE_DROPPED, skipped));
}
