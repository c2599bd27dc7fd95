/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs do with a channel besides posting: moving QPs about, losing memory, arming, resizing. */
#ifndef VB_SIM_SUDDEN_H
#define VB_SIM_SUDDEN_H

#include "sim/world.h"

/* Perhaps does one of them. */
void vb_sudden_on_tick(struct vb_world *world, struct vb_channel *channel);

void vb_sudden_move_to_err(struct vb_world *world, struct vb_channel_end *end);
/* Both ends to RESET, and back after old packets have died out. */
void vb_sudden_reconnect(struct vb_world *world, struct vb_channel *channel);
/* A send queue that was drained goes on. */
void vb_sudden_resume(struct vb_world *world, struct vb_channel_end *end);

#endif
