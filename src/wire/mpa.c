/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, replies and FPDUs as bytes. */
#include "wire/mpa.h"

#include "base/crc.h"
#include "base/err.h"

#define KEY_SIZE 16

#define FLAG_MARKERS 0x80
#define FLAG_CRC 0x40
#define FLAG_REJECTED 0x20
#define FLAG_ENHANCED 0x10
#define FLAG_LONG_FPDUS 0x08

/* Of the enhanced words: A and B are in the first, C and D in the second (RFC 6581, 9). */
#define WORD_PEER_TO_PEER 0x8000
#define WORD_RTR_SEND 0x4000
#define WORD_RTR_WRITE 0x8000
#define WORD_RTR_READ 0x4000
#define WORD_DEPTH 0x3fff

static const uint8_t *key_of(enum vb_mpa_kind kind)
{
	return (const uint8_t *)(kind == VB_MPA_REQUEST ? "MPA ID Req Frame" : "MPA ID Rep Frame");
}

static void load_enhanced(const uint8_t *p, struct vb_mpa_frame *frame)
{
	uint16_t first = load16(p), second = load16(p + 2);

	frame->ird = first & WORD_DEPTH;
	frame->ord = second & WORD_DEPTH;
	frame->is_peer_to_peer = first & WORD_PEER_TO_PEER;
	if (!frame->is_peer_to_peer)
		return;
	frame->rtr = (uint8_t)((first & WORD_RTR_SEND ? VB_MPA_RTR_SEND : 0) |
			       (second & WORD_RTR_WRITE ? VB_MPA_RTR_WRITE : 0) |
			       (second & WORD_RTR_READ ? VB_MPA_RTR_READ : 0));
}

static void store_enhanced(uint8_t *p, const struct vb_mpa_frame *frame)
{
	uint8_t rtr = frame->is_peer_to_peer ? frame->rtr : 0;

	store16(p, (uint16_t)((frame->ird & WORD_DEPTH) |
			      (frame->is_peer_to_peer ? WORD_PEER_TO_PEER : 0) |
			      (rtr & VB_MPA_RTR_SEND ? WORD_RTR_SEND : 0)));
	store16(p + 2, (uint16_t)((frame->ord & WORD_DEPTH) |
				  (rtr & VB_MPA_RTR_WRITE ? WORD_RTR_WRITE : 0) |
				  (rtr & VB_MPA_RTR_READ ? WORD_RTR_READ : 0)));
}

/* The fields of the header. A frame of revision 1 ignores the bit for enhanced words. */
static void load_header(enum vb_mpa_kind kind, const uint8_t *p, struct vb_mpa_frame *frame)
{
	uint8_t flags = p[KEY_SIZE];

	*frame = (struct vb_mpa_frame){
		.kind = kind,
		.wants_markers = flags & FLAG_MARKERS,
		.wants_crc = flags & FLAG_CRC,
		.is_rejected = kind == VB_MPA_REPLY && flags & FLAG_REJECTED,
		.takes_long_fpdus = flags & FLAG_LONG_FPDUS,
		.revision = p[KEY_SIZE + 1],
		.is_enhanced = flags & FLAG_ENHANCED && p[KEY_SIZE + 1] >= 2,
		.private_length = load16(p + KEY_SIZE + 2),
	};
}

static enum vb_mpa_parsing check_header(const struct vb_mpa_frame *header)
{
	if (header->revision < 1 || header->revision > 2)
		return VB_MPA_BAD_REVISION;
	if (header->private_length > VB_MPA_PRIVATE_MAX ||
	    (header->is_enhanced && header->private_length < VB_MPA_ENHANCED_SIZE))
		return VB_MPA_BAD_LENGTH;
	return VB_MPA_PARSED;
}

enum vb_mpa_parsing vb_mpa_frame_parse(enum vb_mpa_kind kind, const uint8_t *p, uint32_t length,
				       struct vb_mpa_frame *frame, uint32_t *taken)
{
	struct vb_mpa_frame header;
	enum vb_mpa_parsing parsing;
	uint32_t whole;

	if (memcmp(p, key_of(kind), min32(length, KEY_SIZE)) != 0)
		return VB_MPA_BAD_KEY;
	if (length < VB_MPA_HEADER_SIZE)
		return VB_MPA_INCOMPLETE;
	load_header(kind, p, &header);
	parsing = check_header(&header);
	if (parsing != VB_MPA_PARSED)
		return parsing;
	whole = VB_MPA_HEADER_SIZE + header.private_length;
	if (length < whole)
		return VB_MPA_INCOMPLETE;
	p += VB_MPA_HEADER_SIZE;
	if (header.is_enhanced) {
		load_enhanced(p, &header);
		p += VB_MPA_ENHANCED_SIZE;
		header.private_length -= VB_MPA_ENHANCED_SIZE;
	}
	memcpy(header.private_data, p, header.private_length);
	*frame = header;
	*taken = whole;
	return VB_MPA_PARSED;
}

uint32_t vb_mpa_frame_store(uint8_t p[VB_MPA_FRAME_MAX], const struct vb_mpa_frame *frame)
{
	uint32_t enhanced_size = frame->is_enhanced ? VB_MPA_ENHANCED_SIZE : 0;

	VB_CHECK(frame->private_length <= vb_mpa_private_size(frame->is_enhanced));
	memcpy(p, key_of(frame->kind), KEY_SIZE);
	p[KEY_SIZE] = (uint8_t)((frame->wants_markers ? FLAG_MARKERS : 0) |
				(frame->wants_crc ? FLAG_CRC : 0) |
				(frame->is_rejected ? FLAG_REJECTED : 0) |
				(frame->is_enhanced ? FLAG_ENHANCED : 0));
	p[KEY_SIZE + 1] = frame->revision;
	store16(p + KEY_SIZE + 2, (uint16_t)(enhanced_size + frame->private_length));
	p += VB_MPA_HEADER_SIZE;
	if (frame->is_enhanced)
		store_enhanced(p, frame);
	memcpy(p + enhanced_size, frame->private_data, frame->private_length);
	return VB_MPA_HEADER_SIZE + enhanced_size + frame->private_length;
}

/* --- FPDUs ------------------------------------------------------------------------------------ */

uint32_t vb_mpa_mulpdu(uint32_t segment_size)
{
	uint32_t overhead = VB_MPA_LENGTH_SIZE + VB_MPA_CRC_SIZE + segment_size % 4;

	if (segment_size < overhead + VB_MPA_MULPDU_MIN)
		return VB_MPA_MULPDU_MIN;
	return min32(segment_size - overhead, VB_MPA_ULPDU_MAX);
}

/* As iSCSI does it (RFC 5044, 4.4): the least significant byte comes first. */
static void store_crc(uint8_t *p, uint32_t crc)
{
	store32(p, __builtin_bswap32(crc));
}

static uint32_t load_crc(const uint8_t *p)
{
	return __builtin_bswap32(load32(p));
}

uint32_t vb_mpa_trailer_store(uint8_t p[VB_MPA_TRAILER_MAX], uint32_t ulpdu_length, bool has_crc,
			      uint32_t crc)
{
	uint32_t pad = vb_mpa_pad(ulpdu_length);

	memset(p, 0, pad);
	store_crc(p + pad, has_crc ? vb_crc32c(crc, p, pad) : 0);
	return pad + VB_MPA_CRC_SIZE;
}

bool vb_mpa_fpdu_check_crc(const uint8_t *fpdu)
{
	uint32_t covered = vb_mpa_fpdu_size(load16(fpdu)) - VB_MPA_CRC_SIZE;

	return load_crc(fpdu + covered) == vb_crc32c(0, fpdu, covered);
}
