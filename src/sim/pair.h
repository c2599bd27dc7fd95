/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two machines and a channel between them that act only on command, for tests and demonstrations.
 */
#ifndef VB_SIM_PAIR_H
#define VB_SIM_PAIR_H

#include "sim/draft.h"
#include "sim/world.h"

/* Makes nodes 0 and 1 without random timing: they transmit and poll immediately. */
struct vb_world *vb_pair_create(uint64_t seed);

/* Makes a channel of that type from node 0 to node 1, with long timeouts and every right. */
struct vb_channel *vb_pair_connect(struct vb_world *world, enum vb_qp_type type, uint32_t mtu);

/* Posts receives for messages of up to 4096 bytes at the other end of `side`. */
void vb_pair_post_receives(struct vb_world *world, const struct vb_channel *channel, uint32_t side,
			   uint32_t count);

/* Posts a signaled request. Returns its number in the model, VB_MODEL_NONE if it was not taken. */
uint32_t vb_pair_post(struct vb_world *world, const struct vb_channel *channel, uint32_t side,
		      enum vb_wr_opcode opcode, uint32_t length);

/* True if the request has completed with success. */
bool vb_pair_is_done(const struct vb_world *world, uint32_t request);

#endif
