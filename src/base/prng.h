/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reproducible randomness: xoshiro256** seeded by splitmix64. The seed is an argument, never a
 * clock. In a live process the host seeds it from the kernel, so that keys cannot be guessed from
 * outside.
 */
#ifndef VB_BASE_PRNG_H
#define VB_BASE_PRNG_H

#include <stdint.h>

struct vb_prng {
	uint64_t s[4];
};

void vb_prng_init(struct vb_prng *prng, uint64_t seed);
uint64_t vb_prng_next(struct vb_prng *prng);

/* Uniform from 0 to bound - 1; bound is not 0. */
uint64_t vb_prng_below(struct vb_prng *prng, uint64_t bound);

#endif
