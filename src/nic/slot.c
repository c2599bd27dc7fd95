/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building a packet in a transmit slot. The ICRC covers the IPv4 ID, and a segmented send numbers
 * its segments from 0 or from the batch's own ID. So the slots of a batch are chosen here, before
 * the ICRC is computed.
 */
#include "nic/payload_priv.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/icrc.h"

#define BTH_QPN_WORD 4 /* the 32 bits there end with the destination QPN */

/* To the kernel a batch is one IP datagram until it is segmented. */
#define BATCH_LENGTH_MAX 65000u
#define PAGE_LENGTH 4096u /* smallest unit in which memory can be absent */

/* The most that may come before pad and ICRC. */
#define HEAD_MAX (VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX)

void vb_slot_begin(struct vb_slot *slot, const struct vb_flow *flow, struct vb_packet *packet)
{
	packet->bth.pad = (uint8_t)(-packet->payload_length & 3);
	packet->bth.migrated = true;
	slot->flow = *flow;
	slot->span_count = 0;
	slot->continues = false;
	slot->is_numbered = false;
	slot->piggyback_ack.is_there = false;
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

/* Whether a receiver that steers by destination QPN sends both on the same path. */
static bool has_same_route(const struct vb_nic *nic, const struct vb_slot *a,
			   const struct vb_slot *b)
{
	return !((load32(a->head + BTH_QPN_WORD) ^ load32(b->head + BTH_QPN_WORD)) &
		 nic->config.batch_qpn_mask);
}

void vb_nic_number_flow(struct vb_nic *nic, uint32_t index, const struct vb_flow *flow,
			uint16_t next_ip_id)
{
	VB_CHECK(index < VB_NUMBERED_FLOWS_MAX);
	nic->batch.last = NULL; /* the batch may have begun without an ID */
	nic->numbered[index] =
		(struct vb_numbered_flow){ .is_set = flow, .next_ip_id = next_ip_id };
	if (flow)
		nic->numbered[index].flow = *flow;
	if (index >= nic->numbered_count)
		nic->numbered_count = index + 1;
	while (nic->numbered_count && !nic->numbered[nic->numbered_count - 1].is_set)
		nic->numbered_count--;
}

static struct vb_numbered_flow *numbered_flow_of(struct vb_nic *nic, const struct vb_flow *flow)
{
	for (uint32_t i = 0; i < nic->numbered_count; i++) {
		struct vb_numbered_flow *numbered = &nic->numbered[i];

		if (numbered->is_set && numbered->flow.source_port == flow->source_port &&
		    numbered->flow.traffic_class == flow->traffic_class &&
		    numbered->flow.hop_limit == flow->hop_limit &&
		    vb_gid_equal(&numbered->flow.destination, &flow->destination) &&
		    vb_gid_equal(&numbered->flow.source, &flow->source))
			return numbered;
	}
	return NULL;
}

/* Sets the ID of a slot that does not continue another. */
static void number_first(struct vb_nic *nic, struct vb_slot *slot)
{
	struct vb_numbered_flow *numbered = numbered_flow_of(nic, &slot->flow);

	slot->is_numbered = numbered;
	slot->number_index = numbered ? (uint8_t)(numbered - nic->numbered) : 0;
	slot->ip_id = numbered ? numbered->next_ip_id++ : 0;
}

/* Takes back the ID of a slot that will not be sent. */
VB_COLD static void give_up(struct vb_nic *nic, const struct vb_slot *slot)
{
	if (slot->is_numbered && !slot->continues)
		nic->numbered[slot->number_index].next_ip_id--;
	nic->batch.last = NULL;
}

/* Puts the slot into the open batch or opens a new one with it. */
static void join_batch(struct vb_nic *nic, struct vb_slot *slot)
{
	struct vb_batch *batch = &nic->batch;

	if (nic->config.batch_segments_max <= 1) {
		number_first(nic, slot);
		return;
	}
	if (batch->last && batch->count < nic->config.batch_segments_max &&
	    batch->last->length == batch->segment_length && slot->length <= batch->segment_length &&
	    batch->total_length + slot->length <= BATCH_LENGTH_MAX &&
	    has_same_route(nic, batch->last, slot) &&
	    !memcmp(&batch->last->flow, &slot->flow, sizeof(slot->flow))) {
		slot->ip_id = (uint16_t)(batch->last->ip_id + 1);
		slot->is_numbered = batch->last->is_numbered;
		slot->number_index = batch->last->number_index;
		slot->continues = true;
		batch->count++;
		batch->total_length += slot->length;
		batch->last = slot;
		return;
	}
	number_first(nic, slot);
	*batch = (struct vb_batch){ slot, slot->length, slot->length, 1 };
}

static uint32_t begin_icrc(struct vb_nic *nic, const struct vb_slot *slot)
{
	uint32_t crc = vb_icrc_memo_begin(&nic->icrc_sent, &slot->flow, slot->length, slot->ip_id,
					  slot->head);

	if (slot->head_length > VB_BTH_SIZE)
		crc = vb_icrc_memo_add(&nic->icrc_sent, crc, slot->head + VB_BTH_SIZE,
				       slot->head_length - VB_BTH_SIZE);
	return crc;
}

/*
 * Finishes a packet without spans: pad and ICRC follow in the head, and one CRC covers all of it.
 */
static void finish_whole(struct vb_nic *nic, struct vb_slot *slot, uint32_t pad)
{
	memset(slot->head + slot->head_length, 0, VB_SLOT_TAIL_MAX);
	slot->head_length = (uint16_t)(slot->head_length + pad);
	if (nic->config.icrc_mode != VB_ICRC_OFF && !slot->shm_link)
		vb_icrc_store(slot->head + slot->head_length, begin_icrc(nic, slot));
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
static bool add_icrc(struct vb_nic *nic, struct vb_slot *slot, uint32_t pad)
{
	uint32_t crc = begin_icrc(nic, slot);

	for (uint32_t i = 0; i < slot->span_count; i++)
		if (!vb_dma_crc32(&crc, slot->spans[i].address, slot->spans[i].length))
			return false;
	if (pad)
		crc = vb_crc32(crc, slot->tail, pad);
	vb_icrc_store(slot->tail + pad, crc);
	return true;
}

bool vb_slot_finish_any(struct vb_nic *nic, struct vb_slot *slot, uint32_t pad)
{
	bool is_there;

	if (slot->shm_link) {
		slot->ip_id = 0;
		nic->batch.last = NULL; /* the next slot does not follow this one on the wire */
	} else {
		join_batch(nic, slot);
	}
	if (!slot->span_count) {
		finish_whole(nic, slot, pad);
		return true;
	}
	memset(slot->tail, 0, sizeof(slot->tail));
	slot->tail_length = (uint8_t)(pad + VB_ICRC_SIZE);
	is_there = nic->config.icrc_mode == VB_ICRC_OFF || slot->shm_link
			   ? is_readable(slot)
			   : add_icrc(nic, slot, pad);
	if (!is_there)
		give_up(nic, slot);
	return is_there;
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
