/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disturbances: what programs do with a channel besides posting. They move QPs between states, lose
 * memory, arm and resize.
 */
#ifndef VB_SIM_DISTURBANCE_H
#define VB_SIM_DISTURBANCE_H

#include "sim/world.h"

/* May cause one disturbance. */
void vb_disturbance_on_tick(struct vb_world *world, struct vb_channel *channel);

void vb_disturbance_move_to_err(struct vb_world *world, struct vb_channel_end *end);
/* Moves both ends to RESET, and back after old packets have died out. */
void vb_disturbance_reconnect(struct vb_world *world, struct vb_channel *channel);
/* Resumes a send queue that was drained. */
void vb_disturbance_resume(struct vb_world *world, struct vb_channel_end *end);

#endif
