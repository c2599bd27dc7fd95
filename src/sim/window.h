/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of a channel: bound, used by the other end, invalidated by one of the two, and
 * then used without success.
 */
#ifndef VB_SIM_WINDOW_H
#define VB_SIM_WINDOW_H

#include "sim/world.h"

/*
 * Makes a type 2 window of that end and posts the request that binds it. False if there is no room.
 */
bool vb_window_bind(struct vb_world *world, struct vb_channel *channel, uint32_t side);

/* Advances one of the two ends by one step. */
void vb_window_on_tick(struct vb_world *world, struct vb_channel *channel);

#endif
