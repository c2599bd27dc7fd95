/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program posts next: drawn from everything that the channel's type can do. */
#ifndef VB_SIM_CHOICE_H
#define VB_SIM_CHOICE_H

#include "sim/draft.h"

/*
 * Programs of one host that write word after word into each other's memory: mostly short WRITEs, each posted when the one before has had its chance.
 */
bool vb_choice_is_terse(const struct vb_world *world, const struct vb_channel *channel);

struct vb_draft vb_choice_request(struct vb_world *world, struct vb_channel *channel,
				  uint32_t side);

#endif
