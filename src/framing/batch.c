/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches, and the IPv4 IDs of their packets. To the kernel a batch is one IP datagram until it is
 * segmented. It counts the IDs of the segments up, from 0 or from the next ID of a connected
 * socket.
 */
#include "framing/framing_priv.h"

#include "base/bytes.h"
#include "base/err.h"

#define BATCH_LENGTH_MAX 65000u
#define BTH_QPN_WORD 4 /* the 32 bits there end with the destination QPN */

void vb_framing_stop_batching(struct vb_framing *framing)
{
	framing->config.batch_segments_max = 1;
}

void vb_framing_number_flow(struct vb_framing *framing, uint32_t index, const struct vb_flow *flow,
			    uint16_t next_ip_id)
{
	VB_CHECK(index < VB_NUMBERED_FLOWS_MAX);
	vb_framing_end_batch(framing); /* it may have begun without an ID */
	framing->numbered[index] =
		(struct vb_numbered_flow){ .is_set = flow, .next_ip_id = next_ip_id };
	if (flow)
		framing->numbered[index].flow = *flow;
	if (index >= framing->numbered_count)
		framing->numbered_count = index + 1;
	while (framing->numbered_count && !framing->numbered[framing->numbered_count - 1].is_set)
		framing->numbered_count--;
}

/* Whether a receiver that steers by destination QPN sends both on the same path. */
static bool has_same_route(const struct vb_framing *framing, const struct vb_slot *a,
			   const struct vb_slot *b)
{
	return !((load32(a->head + BTH_QPN_WORD) ^ load32(b->head + BTH_QPN_WORD)) &
		 framing->config.batch_qpn_mask);
}

static struct vb_numbered_flow *numbered_flow_of(struct vb_framing *framing,
						 const struct vb_flow *flow)
{
	for (uint32_t i = 0; i < framing->numbered_count; i++) {
		struct vb_numbered_flow *numbered = &framing->numbered[i];

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
static void number_first(struct vb_framing *framing, struct vb_slot *slot)
{
	struct vb_numbered_flow *numbered = numbered_flow_of(framing, &slot->path.ip);

	slot->is_numbered = numbered;
	slot->number_index = numbered ? (uint8_t)(numbered - framing->numbered) : 0;
	slot->ip_id = numbered ? numbered->next_ip_id++ : 0;
}

VB_COLD void vb_framing_give_up(struct vb_framing *framing, const struct vb_slot *slot)
{
	if (slot->is_numbered && !slot->continues)
		framing->numbered[slot->number_index].next_ip_id--;
	vb_framing_end_batch(framing);
}

void vb_framing_join_batch(struct vb_framing *framing, struct vb_slot *slot)
{
	const struct vb_framing_config *config = &framing->config;
	struct vb_batch *batch = &framing->batch;

	if (config->batch_segments_max <= 1) {
		number_first(framing, slot);
		return;
	}
	if (batch->last && batch->count < config->batch_segments_max &&
	    batch->last->length == batch->segment_length && slot->length <= batch->segment_length &&
	    batch->total_length + slot->length <= BATCH_LENGTH_MAX &&
	    has_same_route(framing, batch->last, slot) &&
	    vb_path_equal(&batch->last->path, &slot->path)) {
		slot->ip_id = (uint16_t)(batch->last->ip_id + 1);
		slot->is_numbered = batch->last->is_numbered;
		slot->number_index = batch->last->number_index;
		slot->continues = true;
		batch->count++;
		batch->total_length += slot->length;
		batch->last = slot;
		return;
	}
	number_first(framing, slot);
	*batch = (struct vb_batch){ slot, slot->length, slot->length, 1 };
}
