/* SPDX-License-Identifier: BSD-2-Clause */
/* The random workload of a world: its channels and what the programs do with them. */
#ifndef VB_SIM_WORKLOAD_H
#define VB_SIM_WORKLOAD_H

#include "sim/world.h"

/* Draws the options of a world from its seed. */
struct vb_world_options vb_workload_draw(uint64_t seed);

/* Sets faults, channels and the first ticks. */
void vb_workload_begin(struct vb_world *world);

/* Adds some new channels. */
void vb_workload_on_epoch(struct vb_world *world, uint32_t epochs_left);

/* Lets the program that uses the channel act. */
void vb_workload_on_tick(struct vb_world *world, uint32_t channel);

#endif
