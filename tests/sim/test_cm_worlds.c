/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random worlds of connection managers; support_cm_world.h describes what they do and what must
 * hold.
 */
#include "harness.h"
#include "support_cm_world.h"

#include <stdio.h>

#define WORLDS 3000
#define WORLDS_THOROUGH 40000

static struct cm_world world;
static struct cm_coverage coverage;

static uint64_t hash_of(uint64_t seed)
{
	if (!cm_world_run(&world, seed, &coverage, NULL)) {
		cm_world_run(&world, seed, &coverage, stderr);
		FAIL("seed %llu: %s", (unsigned long long)seed, world.violation);
	}
	return world.hash;
}

TEST(both_ends_are_connected_with_the_same_qps_or_both_know_that_they_are_not)
{
	uint64_t count = test_is_thorough() ? WORLDS_THOROUGH : WORLDS;

	for (uint64_t seed = 1; seed <= count; seed++)
		hash_of(seed);
	/* Every kind of message and event has occurred. */
	for (int i = 0; i < VB_MAD_SIDR_REP - VB_MAD_REQ + 1; i++)
		if (!coverage.sent[i])
			FAIL("no %s was sent",
			     vb_mad_kind_describe((enum vb_mad_kind)(VB_MAD_REQ + i)));
	for (int i = 0; i < VB_CM_EVENT_COUNT; i++)
		if (!coverage.events[i])
			FAIL("no %s came", vb_cm_event_describe((enum vb_cm_event_kind)i));
	EXPECT(coverage.lost > 1000);
	EXPECT(coverage.doubled > 1000);
	EXPECT(coverage.delayed > 1000);
	EXPECT(coverage.nobodys > 100);
	EXPECT(coverage.farewells > 10);
	EXPECT(coverage.pairs > 1000);
	EXPECT(coverage.stale > 10);
}

TEST(the_same_seed_is_the_same_world)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		EXPECT_EQ(hash_of(seed), hash_of(seed));
	EXPECT(hash_of(1) != hash_of(2));
}
