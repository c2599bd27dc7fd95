/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Framing: what happens to a packet between the engine, which knows its content, and the link,
 * which moves it. An ICRC covers the IPv4 ID, and a segmented send numbers its segments from 0 or
 * from the batch's own ID. So packets are put into batches here, before their ICRC is computed. An
 * engine has one framing (vb_nic_framing()). The engine finishes and checks packets with it, and
 * the engine's owner says what the link does.
 */
#ifndef VB_FRAMING_FRAMING_H
#define VB_FRAMING_FRAMING_H

#include "framing/frame.h"
#include "wire/icrc_memo.h"

enum vb_icrc_mode {
	/* The ICRC covers the IPv4 ID. A received ICRC must be right for the frame's ip_id … */
	VB_ICRC_STRICT,
	/* … or for any: a socket does not report the ID. */
	VB_ICRC_SOLVED,
	VB_ICRC_OFF, /* not computed on transmit, not checked on receive */
};

struct vb_framing_config {
	enum vb_icrc_mode icrc_mode;
	/* Most slots that may form a batch (see vb_slot.continues); 0 or 1: no batches. */
	uint32_t batch_segments_max;
	/*
	 * The packets of a batch agree in these bits of the destination QPN, because the receiving
	 * host may choose a socket by them.
	 */
	uint32_t batch_qpn_mask;
};

/* The run of slots that may become one segmented send (see vb_slot.continues). */
struct vb_batch {
	const struct vb_slot *last; /* NULL when none is open */
	uint32_t segment_length;
	uint32_t total_length;
	uint32_t count;
};

/* A flow whose next IPv4 ID is known. */
struct vb_numbered_flow {
	bool is_set;
	uint16_t next_ip_id;
	struct vb_flow flow;
};

#define VB_NUMBERED_FLOWS_MAX 16
#define VB_NUMBERS_SEEN_COUNT 64 /* a power of two */

/* Only the files of this folder look inside. */
struct vb_framing {
	struct vb_framing_config config;
	struct vb_batch batch;
	struct vb_numbered_flow numbered[VB_NUMBERED_FLOWS_MAX];
	uint32_t numbered_count; /* entries from here on are not set */
	struct vb_icrc_memo icrc_sent;
	struct vb_icrc_memo icrc_received;
	uint16_t numbers_seen[VB_NUMBERS_SEEN_COUNT]; /* see received.c */
};

void vb_framing_init(struct vb_framing *framing, const struct vb_framing_config *config);

/* --- for the owner of the engine --- */

/*
 * For a link that can no longer send batches. From now on each slot is a datagram of its own, with
 * an ICRC to match.
 */
void vb_framing_stop_batching(struct vb_framing *framing);

/*
 * Says which IPv4 IDs the link will use, because the ICRC covers them. From now on the slots of
 * `flow` that begin a datagram or a batch get `next_ip_id`, `next_ip_id` + 1 and so on. There is
 * room for VB_NUMBERED_FLOWS_MAX flows, and `index` names the place; NULL empties it. Flow labels
 * are not compared.
 */
void vb_framing_number_flow(struct vb_framing *framing, uint32_t index, const struct vb_flow *flow,
			    uint16_t next_ip_id);

/* --- for the engine --- */

/*
 * The next slot begins a datagram or a batch. The last slot of an open batch must stay valid until
 * this call.
 */
static inline void vb_framing_end_batch(struct vb_framing *framing)
{
	framing->batch.last = NULL;
}

/* The same as vb_framing_finish(), for any slot. */
bool vb_framing_finish_any(struct vb_framing *framing, struct vb_slot *slot, uint32_t pad);

/*
 * Finishes a slot whose content is complete: puts it into a batch, and adds pad and ICRC. False if
 * memory of a span is gone; the slot is then not sent, and no ID is used up. A short packet that
 * does not take the wire is finished immediately: it has no batch and no ICRC.
 */
static inline bool vb_framing_finish(struct vb_framing *framing, struct vb_slot *slot, uint32_t pad)
{
	if (!slot->path.link || slot->span_count)
		return vb_framing_finish_any(framing, slot, pad);
	slot->ip_id = 0;
	vb_framing_end_batch(framing); /* the next slot does not follow this one on the wire */
	memset(slot->head + slot->head_length, 0, VB_SLOT_TAIL_MAX);
	slot->head_length = (uint16_t)(slot->head_length + pad + VB_ICRC_SIZE);
	slot->tail_length = 0;
	return true;
}

/* Whether the ICRC of a well-formed frame of `length` bytes from the wire is right. */
bool vb_framing_is_icrc_right(struct vb_framing *framing, const struct vb_frame *frame,
			      uint32_t length);

/* Whether a well-formed frame of `length` bytes arrived as it was sent: its ICRC, if it has one. */
static inline bool vb_framing_is_undamaged(struct vb_framing *framing, const struct vb_frame *frame,
					   uint32_t length)
{
	return frame->path.link || framing->config.icrc_mode == VB_ICRC_OFF ||
	       vb_framing_is_icrc_right(framing, frame, length);
}

#endif
