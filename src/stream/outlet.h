/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outlet of an iWARP stream: messages are cut into segments, and each segment gets the headers
 * and the trailer of an FPDU. The data stays where it is: an FPDU is a head, data of the caller's,
 * and a tail. The caller sends them in this order, and finishes one message before it begins
 * another (RFC 5041, 5.3).
 */
#ifndef VB_STREAM_OUTLET_H
#define VB_STREAM_OUTLET_H

#include "wire/mpa.h"
#include "wire/rdmap.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_OUTLET_HEAD_MAX (VB_MPA_LENGTH_SIZE + VB_RDMAP_HEADERS_MAX)

struct vb_outlet {
	bool has_crc;
	uint32_t mulpdu; /* may change between two segments */
	uint32_t send_msn; /* of the next message, as is read_msn */
	uint32_t read_msn;
};

/* A message and how far it is. */
struct vb_outgoing {
	struct vb_rdmap segment; /* its opcode, STag and address; READ request or Terminate */
	uint32_t length; /* of its data; 0 for a READ request and a Terminate */
	uint32_t offset; /* of the next segment */
	bool is_done; /* all segments were made */
};

struct vb_fpdu {
	uint8_t head[VB_OUTLET_HEAD_MAX];
	uint8_t tail[VB_MPA_TRAILER_MAX];
	uint32_t head_length;
	uint32_t data_offset; /* in the data of the message */
	uint32_t data_length;
	uint32_t tail_length;
	uint32_t crc; /* of the head, then of the data */
};

void vb_outlet_init(struct vb_outlet *outlet, uint32_t segment_size, bool has_crc);

/* Gives the message its number, if its queue counts. Only opcode, STag, address, length count. */
void vb_outlet_begin(struct vb_outlet *outlet, struct vb_outgoing *message);

/*
 * Makes the head of the next FPDU, and says which data belongs into it. With CRC, the caller
 * continues fpdu->crc over the data (vb_crc32c(), vb_dma_crc32c()); then vb_outlet_finish().
 */
void vb_outlet_cut(const struct vb_outlet *outlet, struct vb_outgoing *message,
		   struct vb_fpdu *fpdu);
void vb_outlet_finish(const struct vb_outlet *outlet, struct vb_fpdu *fpdu);

static inline uint32_t vb_fpdu_length(const struct vb_fpdu *fpdu)
{
	return fpdu->head_length + fpdu->data_length + fpdu->tail_length;
}

#endif
