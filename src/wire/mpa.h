/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA, the framing of iWARP (RFC 5044, RFC 6581). A TCP stream begins with a request from its
 * initiator and a reply. From then on it carries frames (FPDUs) in both directions: the length of a
 * ULPDU, the ULPDU, a pad, and a CRC. Markers are recognised here so that they can be refused;
 * nothing makes them. All fields are big-endian, except the CRC.
 */
#ifndef VB_WIRE_MPA_H
#define VB_WIRE_MPA_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/* --- request and reply (RFC 5044, 7.1.1) ------------------------------------------------------ */

#define VB_MPA_HEADER_SIZE 20
#define VB_MPA_PRIVATE_MAX 512 /* with the enhanced words, if the frame has them */
#define VB_MPA_ENHANCED_SIZE 4
#define VB_MPA_FRAME_MAX (VB_MPA_HEADER_SIZE + VB_MPA_PRIVATE_MAX)

/* Depths have 14 bits. All ones: the programs agree on it by themselves (RFC 6581, 9.1). */
#define VB_MPA_DEPTH_UNSAID 0x3fff
#define VB_MPA_DEPTH_MAX 0x3ffe

enum vb_mpa_kind { VB_MPA_REQUEST, VB_MPA_REPLY };

/* How an initiator shows that it is ready to receive (RTR), or'ed (RFC 6581, 9.2). */
#define VB_MPA_RTR_SEND 1u
#define VB_MPA_RTR_WRITE 2u
#define VB_MPA_RTR_READ 4u

struct vb_mpa_frame {
	enum vb_mpa_kind kind;
	bool wants_markers;
	bool wants_crc;
	bool is_rejected; /* a reply only */
	/*
	 * A bit that the RFC reserves: the kernel's siw can be built to take FPDUs that are longer
	 * than a TCP segment, and says so here. It is read, and sent as 0.
	 */
	bool takes_long_fpdus;
	uint8_t revision; /* 1 or 2 */
	bool is_enhanced; /* the next four count; revision 2 only */
	bool is_peer_to_peer;
	uint8_t rtr; /* VB_MPA_RTR_…; counts if is_peer_to_peer */
	uint16_t ird; /* READs that the sender takes at the same time */
	uint16_t ord; /* READs that the sender has under way at the same time */
	uint16_t private_length; /* of the program's data, without the enhanced words */
	uint8_t private_data[VB_MPA_PRIVATE_MAX];
};

enum vb_mpa_parsing {
	VB_MPA_PARSED,
	VB_MPA_INCOMPLETE, /* right so far; more bytes must come */
	VB_MPA_BAD_KEY, /* not a frame of this kind */
	VB_MPA_BAD_REVISION, /* neither 1 nor 2 */
	VB_MPA_BAD_LENGTH, /* too much private data, or too little for the enhanced words */
};

/*
 * Reads a frame of this kind from the beginning of a stream. Bytes that cannot become one are
 * refused as soon as they are there. After VB_MPA_PARSED, *taken is the length of the frame, behind
 * which FPDUs may follow; *frame and *taken are written only then. Reserved bits are ignored.
 */
enum vb_mpa_parsing vb_mpa_frame_parse(enum vb_mpa_kind kind, const uint8_t *p, uint32_t length,
				       struct vb_mpa_frame *frame, uint32_t *taken);

/* How much data a program may have in a frame of this form. */
static inline uint32_t vb_mpa_private_size(bool is_enhanced)
{
	return VB_MPA_PRIVATE_MAX - (is_enhanced ? VB_MPA_ENHANCED_SIZE : 0);
}

/*
 * Returns the length of the frame. The private data must fit, and the depths their 14 bits. Without
 * peer-to-peer no RTR is stored.
 */
uint32_t vb_mpa_frame_store(uint8_t p[VB_MPA_FRAME_MAX], const struct vb_mpa_frame *frame);

/*
 * One line: "MPA request rev=2 crc ird=16 ord=4 p2p=send,read private=56". Returns the length of
 * the whole line, even if it was truncated.
 */
int vb_mpa_frame_describe(const struct vb_mpa_frame *frame, char *text, uint32_t size);
const char *vb_mpa_parsing_describe(enum vb_mpa_parsing parsing);

/* --- FPDUs (RFC 5044, 4.1 and 4.4) ------------------------------------------------------------ */

#define VB_MPA_LENGTH_SIZE 2
#define VB_MPA_CRC_SIZE 4
#define VB_MPA_TRAILER_MAX (3 + VB_MPA_CRC_SIZE)
#define VB_MPA_ULPDU_MAX 0xffffu
#define VB_MPA_MULPDU_MIN 128u

static inline uint32_t vb_mpa_pad(uint32_t ulpdu_length)
{
	return -(VB_MPA_LENGTH_SIZE + ulpdu_length) & 3;
}

static inline uint32_t vb_mpa_fpdu_size(uint32_t ulpdu_length)
{
	return VB_MPA_LENGTH_SIZE + ulpdu_length + vb_mpa_pad(ulpdu_length) + VB_MPA_CRC_SIZE;
}

/*
 * The longest ULPDU whose FPDU fits a TCP segment of that size, without markers (RFC 5044, 4.5): at
 * least 128, and at most what the length field holds.
 */
uint32_t vb_mpa_mulpdu(uint32_t segment_size);

/*
 * Stores the pad and the CRC of an FPDU whose length field and ULPDU have this CRC (base/crc.h).
 * Without CRC the field is 0. Returns the length of both.
 */
uint32_t vb_mpa_trailer_store(uint8_t p[VB_MPA_TRAILER_MAX], uint32_t ulpdu_length, bool has_crc,
			      uint32_t crc);

/* Whether the CRC of a whole FPDU is right: vb_mpa_fpdu_size() bytes from its length field on. */
bool vb_mpa_fpdu_check_crc(const uint8_t *fpdu);

#endif
