/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths, headers and trailers of the segments of a message. */
#include "stream/outlet.h"

#include "base/crc.h"
#include "base/err.h"

void vb_outlet_init(struct vb_outlet *outlet, uint32_t segment_size, bool has_crc)
{
	*outlet = (struct vb_outlet){
		.has_crc = has_crc,
		.mulpdu = vb_mpa_mulpdu(segment_size),
		.send_msn = 1,
		.read_msn = 1,
	};
}

static uint32_t traits_of(const struct vb_outgoing *message)
{
	return vb_rdmap_traits((enum vb_rdmap_opcode)message->segment.ddp.opcode);
}

void vb_outlet_begin(struct vb_outlet *outlet, struct vb_outgoing *message)
{
	struct vb_ddp *ddp = &message->segment.ddp;

	VB_CHECK(traits_of(message) & VB_RDMAP_HAS_PAYLOAD || !message->length);
	message->offset = 0;
	message->is_done = false;
	if (traits_of(message) & VB_RDMAP_IS_SEND)
		ddp->msn = outlet->send_msn++;
	else if (ddp->opcode == VB_RDMAP_READ_REQUEST)
		ddp->msn = outlet->read_msn++;
	else if (ddp->opcode == VB_RDMAP_TERMINATE)
		ddp->msn = 1;
}

void vb_outlet_cut(const struct vb_outlet *outlet, struct vb_outgoing *message,
		   struct vb_fpdu *fpdu)
{
	bool is_tagged = traits_of(message) & VB_RDMAP_IS_TAGGED;
	uint32_t room = outlet->mulpdu - (is_tagged ? VB_DDP_TAGGED_SIZE : VB_DDP_UNTAGGED_SIZE);
	uint32_t left = message->length - message->offset;
	struct vb_rdmap segment = message->segment;
	uint32_t headers;

	VB_CHECK(!message->is_done);
	fpdu->data_offset = message->offset;
	fpdu->data_length = min32(left, room);
	segment.ddp.is_last = fpdu->data_length == left;
	segment.ddp.offset = message->offset + (is_tagged ? message->segment.ddp.offset : 0);
	headers = vb_rdmap_store_headers(fpdu->head + VB_MPA_LENGTH_SIZE, &segment);
	store16(fpdu->head, (uint16_t)(headers + fpdu->data_length));
	fpdu->head_length = VB_MPA_LENGTH_SIZE + headers;
	fpdu->crc = outlet->has_crc ? vb_crc32c(0, fpdu->head, fpdu->head_length) : 0;
	message->offset += fpdu->data_length;
	message->is_done = segment.ddp.is_last;
}

void vb_outlet_finish(const struct vb_outlet *outlet, struct vb_fpdu *fpdu)
{
	fpdu->tail_length =
		vb_mpa_trailer_store(fpdu->tail, load16(fpdu->head), outlet->has_crc, fpdu->crc);
}
