/* SPDX-License-Identifier: BSD-2-Clause */
/* Random choices of a simulated world. All come from the world's seed. */
#ifndef VB_SIM_DICE_H
#define VB_SIM_DICE_H

#include "base/prng.h"

#include <stdbool.h>

/* True in `count` of `of` cases. */
static inline bool vb_dice_chance(struct vb_prng *prng, uint32_t count, uint32_t of)
{
	return vb_prng_below(prng, of) < count;
}

/* From low to high, both included. */
static inline uint64_t vb_dice_between(struct vb_prng *prng, uint64_t low, uint64_t high)
{
	return low + vb_prng_below(prng, high - low + 1);
}

#endif
