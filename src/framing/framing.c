/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of an outgoing packet: pad and ICRC, behind the head or behind the spans. */
#include "framing/framing_priv.h"

#include "base/crc.h"
#include "wire/icrc.h"

#define PAGE_LENGTH 4096u /* smallest unit in which memory can be absent */

void vb_framing_init(struct vb_framing *framing, const struct vb_framing_config *config)
{
	*framing = (struct vb_framing){ .config = *config };
	vb_icrc_memo_init(&framing->icrc_sent);
	vb_icrc_memo_init(&framing->icrc_received);
}

static uint32_t begin_icrc(struct vb_framing *framing, const struct vb_slot *slot)
{
	uint32_t crc = vb_icrc_memo_begin(&framing->icrc_sent, &slot->path.ip, slot->length,
					  slot->ip_id, slot->head);

	if (slot->head_length > VB_BTH_SIZE)
		crc = vb_icrc_memo_add(&framing->icrc_sent, crc, slot->head + VB_BTH_SIZE,
				       slot->head_length - VB_BTH_SIZE);
	return crc;
}

/*
 * Finishes a packet without spans: pad and ICRC follow in the head, and one CRC covers all of it.
 */
static void finish_whole(struct vb_framing *framing, struct vb_slot *slot, uint32_t pad)
{
	memset(slot->head + slot->head_length, 0, VB_SLOT_TAIL_MAX);
	slot->head_length = (uint16_t)(slot->head_length + pad);
	if (framing->config.icrc_mode != VB_ICRC_OFF && !slot->path.link)
		vb_icrc_store(slot->head + slot->head_length, begin_icrc(framing, slot));
	slot->head_length = (uint16_t)(slot->head_length + VB_ICRC_SIZE);
	slot->tail_length = 0;
}

/*
 * Whether the memory of the spans exists. Without an ICRC no code reads the bytes before the link
 * does, and the link could only lose the packet. Reading one byte of each page is enough.
 */
static bool is_readable(const struct vb_slot *slot)
{
	for (uint32_t i = 0; i < slot->span_count; i++) {
		vb_dma_addr end = slot->spans[i].address + slot->spans[i].length;
		uint8_t byte;

		for (vb_dma_addr at = slot->spans[i].address; at < end;
		     at = (at | (PAGE_LENGTH - 1)) + 1)
			if (!vb_dma_read(&byte, at, 1))
				return false;
	}
	return true;
}

/* False if memory of a span is gone. */
static bool add_icrc(struct vb_framing *framing, struct vb_slot *slot, uint32_t pad)
{
	uint32_t crc = begin_icrc(framing, slot);

	for (uint32_t i = 0; i < slot->span_count; i++)
		if (!vb_dma_crc32(&crc, slot->spans[i].address, slot->spans[i].length))
			return false;
	if (pad)
		crc = vb_crc32(crc, slot->tail, pad);
	vb_icrc_store(slot->tail + pad, crc);
	return true;
}

bool vb_framing_finish_any(struct vb_framing *framing, struct vb_slot *slot, uint32_t pad)
{
	bool is_there;

	if (slot->path.link) {
		slot->ip_id = 0;
		/* The next slot does not follow this one on the wire. */
		vb_framing_end_batch(framing);
	} else {
		vb_framing_join_batch(framing, slot);
	}
	if (!slot->span_count) {
		finish_whole(framing, slot, pad);
		return true;
	}
	memset(slot->tail, 0, sizeof(slot->tail));
	slot->tail_length = (uint8_t)(pad + VB_ICRC_SIZE);
	is_there = framing->config.icrc_mode == VB_ICRC_OFF || slot->path.link
			   ? is_readable(slot)
			   : add_icrc(framing, slot, pad);
	if (!is_there)
		vb_framing_give_up(framing, slot);
	return is_there;
}
