/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Movement of payload between packets and application memory. Every SGE is resolved again for every
 * packet: a region may be deregistered while a message is under way.
 */
#include "nic/payload_priv.h"

#include "base/bytes.h"

struct vb_payload vb_payload_of(const struct vb_frame *frame, const struct vb_packet *packet)
{
	return (struct vb_payload){
		.piece = { frame->head.data + packet->header_length,
			   frame->head.length - packet->header_length },
		.rest = frame->rest,
		.rest_count = frame->rest_count,
	};
}

/* The next contiguous bytes, `want` at most. */
static struct vb_bytes next_piece(struct vb_payload *payload, uint32_t want)
{
	struct vb_bytes piece;

	while (!payload->piece.length) {
		VB_CHECK(payload->rest_count);
		payload->piece = *payload->rest++;
		payload->rest_count--;
	}
	piece = (struct vb_bytes){ payload->piece.data, min32(want, payload->piece.length) };
	payload->piece.data += piece.length;
	payload->piece.length -= piece.length;
	return piece;
}

bool vb_payload_place(struct vb_payload *payload, const struct vb_memory *memory, uint32_t length)
{
	vb_dma_addr to = memory->address;

	while (length) {
		struct vb_bytes piece = next_piece(payload, length);

		if (!memory->is_null && !vb_dma_write(to, piece.data, piece.length))
			return false;
		to += piece.length;
		length -= piece.length;
	}
	return true;
}

void vb_payload_skip(struct vb_payload *payload, uint32_t length)
{
	while (length)
		length -= next_piece(payload, length).length;
}

void vb_payload_read(struct vb_payload *payload, uint8_t *to, uint32_t length)
{
	while (length) {
		struct vb_bytes piece = next_piece(payload, length);

		memcpy(to, piece.data, piece.length);
		to += piece.length;
		length -= piece.length;
	}
}

struct vb_cursor vb_cursor_at(const struct vb_sgl *sgl, uint64_t offset)
{
	struct vb_cursor cursor = { 0, 0 };

	while (cursor.sge_index < sgl->count && offset >= sgl->sges[cursor.sge_index].length)
		offset -= sgl->sges[cursor.sge_index++].length;
	cursor.sge_offset = (uint32_t)offset;
	return cursor;
}

/* A contiguous part of one buffer. */
struct part {
	struct vb_memory memory;
	uint32_t length;
};

/* The memory of the SGE at the cursor, up to `length` bytes of it. Advances the cursor. */
static enum vb_verdict next_part(const struct vb_nic *nic, const struct vb_sgl *sgl,
				 struct vb_cursor *cursor, uint32_t length, uint32_t rights,
				 struct part *part)
{
	const struct vb_sge *sge;
	struct vb_memory_request request;

	while (cursor->sge_index < sgl->count &&
	       cursor->sge_offset == sgl->sges[cursor->sge_index].length) {
		cursor->sge_index++;
		cursor->sge_offset = 0;
	}
	VB_CHECK(cursor->sge_index < sgl->count);
	sge = &sgl->sges[cursor->sge_index];
	part->length = min32(length, sge->length - cursor->sge_offset);
	request = (struct vb_memory_request){
		.key = sge->lkey,
		.pd = sgl->pd,
		.rights = rights,
		.address = sge->address + cursor->sge_offset,
		.length = part->length,
	};
	cursor->sge_offset += part->length;
	return vb_memory_resolve(nic, &request, &part->memory);
}

enum vb_verdict vb_scatter(const struct vb_nic *nic, const struct vb_sgl *sgl,
			   struct vb_cursor *cursor, struct vb_payload *payload, uint32_t length)
{
	while (length) {
		enum vb_verdict verdict;
		struct part part;

		verdict = next_part(nic, sgl, cursor, length, VB_ACCESS_LOCAL_WRITE, &part);
		if (verdict != VB_PASS)
			return verdict;
		if (!vb_payload_place(payload, &part.memory, part.length))
			return VB_OPERATION_FAILED;
		length -= part.length;
	}
	return VB_PASS;
}

uint32_t vb_sgl_resolve(const struct vb_nic *nic, const struct vb_sgl *sgl,
			struct vb_cursor *cursor, uint32_t length, uint32_t rights,
			struct vb_span spans[VB_SGE_MAX])
{
	uint32_t count = 0;

	while (length) {
		struct part part;

		if (next_part(nic, sgl, cursor, length, rights, &part) != VB_PASS ||
		    part.memory.is_null)
			return 0;
		spans[count++] = (struct vb_span){ part.memory.address, part.length };
		length -= part.length;
	}
	return count;
}

uint32_t vb_sgl_refer(const struct vb_nic *nic, const struct vb_sgl *sgl, struct vb_cursor *cursor,
		      uint32_t length, struct vb_reference references[VB_SGE_MAX])
{
	uint32_t count = 0;

	while (length) {
		const struct vb_sge *sge;
		struct part part;

		if (next_part(nic, sgl, cursor, length, 0, &part) != VB_PASS || part.memory.is_null)
			return 0;
		sge = &sgl->sges[cursor->sge_index];
		references[count++] =
			(struct vb_reference){ sge->address + (cursor->sge_offset - part.length),
					       part.length, sge->lkey };
		length -= part.length;
	}
	return count;
}

enum vb_verdict vb_gather(const struct vb_nic *nic, const struct vb_sgl *sgl,
			  struct vb_cursor *cursor, uint32_t length, struct vb_slot *slot)
{
	bool copy = length <= VB_COPY_MAX;

	while (length) {
		enum vb_verdict verdict;
		struct part part;

		verdict = next_part(nic, sgl, cursor, length, 0, &part);
		if (verdict != VB_PASS)
			return verdict;
		if (!vb_slot_add_memory(slot, part.memory.address, part.length, copy))
			return VB_OPERATION_FAILED;
		length -= part.length;
	}
	return VB_PASS;
}
