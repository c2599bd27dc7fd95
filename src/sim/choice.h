/* SPDX-License-Identifier: BSD-2-Clause */
/* The next request that a program posts: drawn from all operations of the channel's type. */
#ifndef VB_SIM_CHOICE_H
#define VB_SIM_CHOICE_H

#include "sim/draft.h"

/*
 * True for programs of one host that write word after word into each other's memory: mostly short
 * WRITEs, each posted after the previous one had its chance.
 */
bool vb_choice_is_terse(const struct vb_world *world, const struct vb_channel *channel);

struct vb_draft vb_choice_request(struct vb_world *world, struct vb_channel *channel,
				  uint32_t side);

#endif
