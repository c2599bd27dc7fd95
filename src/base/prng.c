/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xoshiro256** by its published recurrence. The bound is applied by multiplication, with a bias
 * below 2^-32 here.
 */
#include "base/prng.h"

static uint64_t rotate_left(uint64_t v, int bits)
{
	return v << bits | v >> (64 - bits);
}

void vb_prng_init(struct vb_prng *prng, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = seed += 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		prng->s[i] = z ^ z >> 31;
	}
}

uint64_t vb_prng_next(struct vb_prng *prng)
{
	uint64_t *s = prng->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t vb_prng_below(struct vb_prng *prng, uint64_t bound)
{
	return (uint64_t)((unsigned __int128)vb_prng_next(prng) * bound >> 64);
}
