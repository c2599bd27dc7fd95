/* SPDX-License-Identifier: BSD-2-Clause */
/* A request under construction: draft.c builds a correct one, flaw.c adds the flaw. */
#ifndef VB_SIM_DRAFT_PRIV_H
#define VB_SIM_DRAFT_PRIV_H

#include "sim/draft.h"

struct vb_draft_build {
	struct vb_world *world;
	const struct vb_draft *draft;
	struct vb_channel *channel;
	struct vb_channel_end *end;
	struct vb_channel_end *peer;
	struct vb_node *node;
	struct vb_node *far; /* the peer's machine */
	struct vb_send_request request;
	struct vb_sge sges[VB_MODEL_PIECES_MAX];
	struct vb_model_request model;
	bool is_executed; /* during the post */
};

/*
 * What an opcode means is stated here, in draft.c and in the model once more. Taken from the
 * engine's table of operations, it would be wrong wherever the table is, and find no mistake in it.
 */

static inline bool vb_draft_is_atomic(enum vb_wr_opcode opcode)
{
	return opcode == VB_WR_COMPARE_SWAP || opcode == VB_WR_FETCH_ADD;
}

/* True for operations on eight aligned bytes. */
static inline bool vb_draft_is_word(enum vb_wr_opcode opcode)
{
	return vb_draft_is_atomic(opcode) || opcode == VB_WR_ATOMIC_WRITE;
}

/* Whether the peer's answer goes into the request's own buffers. */
static inline bool vb_draft_has_sink(enum vb_wr_opcode opcode)
{
	return vb_draft_is_atomic(opcode) || opcode == VB_WR_READ;
}

static inline bool vb_draft_is_reliable(const struct vb_channel *channel)
{
	return channel->options.type == VB_QP_RC || channel->options.type == VB_QP_XRC_SEND;
}

/* Adds the flaw that the draft asks for, and notifies the model. */
void vb_draft_spoil(struct vb_draft_build *b);

#endif
