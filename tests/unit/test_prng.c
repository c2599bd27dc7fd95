/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The random numbers are those of the published generators, and bounded ones are evenly
 * distributed.
 */
#include "base/prng.h"
#include "harness.h"

TEST(the_seed_is_spread_by_splitmix64)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 0); /* the values that splitmix64 is known to begin with */
	EXPECT_EQ(prng.s[0], 0xe220a8397b1dcdaf);
	EXPECT_EQ(prng.s[1], 0x6e789e6aa1b965f4);
	EXPECT_EQ(prng.s[2], 0x06c45d188009454f);
	EXPECT_EQ(prng.s[3], 0xf88bb8a8724c81ec);
}

TEST(the_sequence_is_that_of_xoshiro256_star_star)
{
	struct vb_prng prng = { { 1, 2, 3, 4 } };

	EXPECT_EQ(vb_prng_next(&prng), 11520);
	EXPECT_EQ(vb_prng_next(&prng), 0);
	EXPECT_EQ(vb_prng_next(&prng), 1509978240);
	EXPECT_EQ(vb_prng_next(&prng), 1215971899390074240);
}

TEST(the_same_seed_gives_the_same_sequence_and_another_seed_another)
{
	struct vb_prng a;
	struct vb_prng b;
	struct vb_prng c;
	int same = 0;

	vb_prng_init(&a, 7);
	vb_prng_init(&b, 7);
	vb_prng_init(&c, 8);
	for (int i = 0; i < 1000; i++) {
		uint64_t value = vb_prng_next(&a);

		EXPECT_EQ(value, vb_prng_next(&b));
		same += value == vb_prng_next(&c);
	}
	EXPECT_EQ(same, 0);
}

TEST(bounded_numbers_are_below_the_bound)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t bound = (vb_prng_next(&prng) >> vb_prng_below(&prng, 64)) | 1;

		EXPECT(vb_prng_below(&prng, bound) < bound);
	}
	EXPECT_EQ(vb_prng_below(&prng, 1), 0);
}

TEST(bounded_numbers_are_spread_evenly)
{
	enum { BOUND = 7, ROUNDS = 70000 };
	uint32_t counts[BOUND] = { 0 };
	struct vb_prng prng;
	double chi_squared = 0;

	vb_prng_init(&prng, 2);
	for (int i = 0; i < ROUNDS; i++)
		counts[vb_prng_below(&prng, BOUND)]++;
	for (int i = 0; i < BOUND; i++) {
		double off = counts[i] - (double)ROUNDS / BOUND;

		chi_squared += off * off / ((double)ROUNDS / BOUND);
	}
	EXPECT(chi_squared < 22.5); /* six degrees of freedom: one run in a thousand is above */
}
