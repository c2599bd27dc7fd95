/* SPDX-License-Identifier: BSD-2-Clause */
/* The same seed gives the same world, byte for byte; another seed gives another world. */
#include "harness.h"

#include "sim/world.h"

static uint64_t hash_of(uint64_t seed)
{
	struct vb_world *world = vb_world_create(seed);
	uint64_t hash;

	vb_world_run(world);
	vb_world_finish(world);
	if (*vb_world_violation(world))
		FAIL("seed %llu: %s", (unsigned long long)seed, vb_world_violation(world));
	hash = world->trace.hash;
	vb_world_destroy(world);
	return hash;
}

TEST(the_same_seed_gives_the_same_trace)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		EXPECT_EQ(hash_of(seed), hash_of(seed));
}

TEST(memory_of_the_process_has_no_influence_on_the_trace)
{
	uint64_t first = hash_of(33);
	void *volatile hole = malloc(12345);
	uint64_t second = hash_of(33);

	free(hole);
	EXPECT_EQ(first, second);
}

TEST(different_seeds_give_different_traces)
{
	uint64_t hashes[12];

	for (uint64_t seed = 0; seed < 12; seed++) {
		hashes[seed] = hash_of(seed + 100);
		for (uint64_t other = 0; other < seed; other++)
			EXPECT(hashes[seed] != hashes[other]);
	}
}
