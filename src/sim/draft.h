/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing a request for one end of a channel: finds and fills its buffers on both sides, adds a
 * flaw if one is wanted, posts the request, and notifies the model of the expected result.
 */
#ifndef VB_SIM_DRAFT_H
#define VB_SIM_DRAFT_H

#include "sim/channel.h"
#include "sim/coverage.h"
#include "sim/world.h"

struct vb_draft {
	uint32_t channel;
	uint32_t side;
	enum vb_wr_opcode opcode;
	uint32_t length;
	uint32_t flags; /* enum vb_send_flag */
	uint32_t sge_count;
	enum vb_flaw flaw;
	uint32_t local_region; /* enum vb_node_region_kind */
	uint32_t remote_region;
	uint32_t srq; /* XRC: index of the SRQ, 0 or 1 */
	bool is_to_group; /* UD */
	bool uses_window; /* WRITE through the other end's window */
	bool is_in_series; /* WRITE of the range that this end writes repeatedly */
	/* VB_FLAW_FOREIGN_WINDOW: the key of a window that is not for this QP */
	uint32_t foreign_key;
	bool is_relay; /* takes its data from the buffer of an earlier READ */
	uint32_t relays; /* index of that READ in the model */
	bool is_held_back; /* the doorbell is not rung yet */
};

enum vb_draft_result {
	VB_DRAFT_POSTED,
	VB_DRAFT_NO_MEMORY, /* the arena is full at the moment */
	VB_DRAFT_QUEUE_FULL, /* refused, as it must be */
	VB_DRAFT_WRONG, /* the engine's answer was wrong; the model has recorded it */
};

/* Requires an end that can send. */
enum vb_draft_result vb_draft_send(struct vb_world *world, const struct vb_draft *draft);

/*
 * Posts a receive for an end (or for one of its SRQs) with room for `capacity` bytes, and for a GRH
 * where one comes.
 */
enum vb_draft_result vb_draft_receive(struct vb_world *world, uint32_t channel, uint32_t side,
				      uint32_t srq, uint32_t capacity, uint32_t sge_count,
				      uint32_t region, enum vb_flaw flaw);

/* The access right that the other end's QP and region must have; 0 for none. */
uint32_t vb_draft_right(enum vb_wr_opcode opcode);
bool vb_draft_is_message(enum vb_wr_opcode opcode);

#endif
