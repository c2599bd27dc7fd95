/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of a packet in a transmit slot: headers and payload. */
#include "framing/slot.h"

#include "base/bytes.h"
#include "base/err.h"
#include "wire/icrc.h"

/* The most that may come before pad and ICRC. */
#define HEAD_MAX (VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX)

void vb_slot_begin(struct vb_slot *slot, const struct vb_path *path, struct vb_packet *packet)
{
	packet->bth.pad = (uint8_t)(-packet->payload_length & 3);
	packet->bth.migrated = true;
	slot->path = *path;
	slot->span_count = 0;
	slot->continues = false;
	slot->is_numbered = false;
	slot->piggyback_ack.is_there = false;
	slot->train.packet_count = 0;
	slot->head_length = (uint16_t)vb_packet_store_headers(slot->head, packet);
	slot->length = slot->head_length + packet->payload_length + packet->bth.pad + VB_ICRC_SIZE;
}

void vb_slot_add_bytes(struct vb_slot *slot, const uint8_t *bytes, uint32_t length)
{
	VB_CHECK(slot->head_length + length <= HEAD_MAX && !slot->span_count);
	memcpy(slot->head + slot->head_length, bytes, length);
	slot->head_length = (uint16_t)(slot->head_length + length);
}

bool vb_slot_add_memory(struct vb_slot *slot, vb_dma_addr address, uint32_t length, bool copy)
{
	if (copy) {
		VB_CHECK(slot->head_length + length <= HEAD_MAX && !slot->span_count);
		if (!vb_dma_read(slot->head + slot->head_length, address, length))
			return false;
		slot->head_length = (uint16_t)(slot->head_length + length);
		return true;
	}
	VB_CHECK(slot->span_count < VB_SGE_MAX);
	slot->spans[slot->span_count++] = (struct vb_span){ address, length };
	return true;
}

bool vb_slot_gather(const struct vb_slot *slot, uint8_t *to)
{
	copy_short(to, slot->head, slot->head_length);
	to += slot->head_length;
	for (uint32_t i = 0; i < slot->span_count; i++) {
		if (!vb_dma_read(to, slot->spans[i].address, slot->spans[i].length))
			return false;
		to += slot->spans[i].length;
	}
	memcpy(to, slot->tail, slot->tail_length);
	return true;
}

bool vb_slot_settle(struct vb_slot *slot)
{
	uint32_t length = slot->head_length;

	for (uint32_t i = 0; i < slot->span_count; i++) {
		if (!vb_dma_read(slot->head + length, slot->spans[i].address,
				 slot->spans[i].length))
			return false;
		length += slot->spans[i].length;
	}
	memcpy(slot->head + length, slot->tail, slot->tail_length);
	slot->head_length = (uint16_t)(length + slot->tail_length);
	slot->span_count = 0;
	slot->tail_length = 0;
	return true;
}
