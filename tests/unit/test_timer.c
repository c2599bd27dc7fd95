/* SPDX-License-Identifier: BSD-2-Clause */
/* The timers against a model: an array of deadlines, searched from end to end. */
#include "base/prng.h"
#include "base/timer.h"
#include "harness.h"

#include <string.h>

#define TIMER_COUNT 50

struct world {
	struct vb_timers timers;
	struct vb_timer timer[TIMER_COUNT];
	uint64_t deadline[TIMER_COUNT]; /* the model */
	uint64_t now;
	uint32_t fired_count;
};

static void world_init(struct world *world)
{
	*world = (struct world){ .now = 1000 };
	vb_timers_init(&world->timers);
	EXPECT_EQ(vb_timers_reserve(&world->timers, TIMER_COUNT), VB_OK);
	for (uint32_t i = 0; i < TIMER_COUNT; i++) {
		vb_timer_init(&world->timer[i], i);
		world->deadline[i] = VB_NEVER;
	}
}

static uint64_t earliest(const struct world *world)
{
	uint64_t deadline = VB_NEVER;

	for (uint32_t i = 0; i < TIMER_COUNT; i++)
		if (world->deadline[i] < deadline)
			deadline = world->deadline[i];
	return deadline;
}

static void fire_what_is_due(struct world *world)
{
	struct vb_timer *timer;

	while ((timer = vb_timers_take_due(&world->timers, world->now))) {
		EXPECT(timer == &world->timer[timer->kind]);
		EXPECT(world->deadline[timer->kind] <= world->now);
		EXPECT_EQ(timer->deadline_ns, VB_NEVER);
		world->deadline[timer->kind] = VB_NEVER;
		world->fired_count++;
	}
	/* All timers that were due have fired, and the next deadline is not in the past. */
	EXPECT(earliest(world) > world->now);
	EXPECT(vb_timers_deadline(&world->timers) > world->now);
}

static void act(struct world *world, struct vb_prng *prng)
{
	uint32_t i = (uint32_t)vb_prng_below(prng, TIMER_COUNT);

	switch (vb_prng_below(prng, 8)) {
	case 0:
		vb_timer_stop(&world->timer[i]);
		world->deadline[i] = VB_NEVER;
		break;
	case 1:
		vb_timer_remove(&world->timers, &world->timer[i]);
		world->deadline[i] = VB_NEVER;
		break;
	case 2:
		world->now += vb_prng_below(prng, 300);
		fire_what_is_due(world);
		break;
	default: /* sometimes in the past */
		world->deadline[i] = world->now - 50 + vb_prng_below(prng, 1000);
		vb_timer_start(&world->timers, &world->timer[i], world->deadline[i]);
		break;
	}
}

TEST(timers_fire_exactly_when_the_model_says)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct world world;
		struct vb_prng prng;

		vb_prng_init(&prng, seed);
		world_init(&world);
		for (int round = 0; round < 5000; round++) {
			act(&world, &prng);
			EXPECT(vb_timers_deadline(&world.timers) <= earliest(&world));
		}
		EXPECT(world.fired_count > 500);
		vb_timers_fini(&world.timers);
	}
}

TEST(following_the_deadline_leads_to_every_timer_in_bounded_steps)
{
	struct world world;
	struct vb_prng prng;
	uint32_t steps = 0;

	vb_prng_init(&prng, 99);
	world_init(&world);
	for (uint32_t i = 0; i < TIMER_COUNT; i++) {
		/* Twice, so that the heap holds an earlier time than the deadline. */
		vb_timer_start(&world.timers, &world.timer[i], 1001 + i);
		world.deadline[i] = 5000 + vb_prng_below(&prng, 1000);
		vb_timer_start(&world.timers, &world.timer[i], world.deadline[i]);
	}
	while (vb_timers_deadline(&world.timers) != VB_NEVER) {
		world.now = vb_timers_deadline(&world.timers);
		fire_what_is_due(&world);
		EXPECT(++steps <= 2 * TIMER_COUNT);
	}
	EXPECT_EQ(world.fired_count, TIMER_COUNT);
	vb_timers_fini(&world.timers);
}

TEST(a_timer_restarted_later_does_not_fire_at_its_first_time)
{
	struct world world;

	world_init(&world);
	vb_timer_start(&world.timers, &world.timer[3], 2000);
	vb_timer_start(&world.timers, &world.timer[3], 3000);
	EXPECT(!vb_timers_take_due(&world.timers, 2999));
	EXPECT(vb_timers_take_due(&world.timers, 3000) == &world.timer[3]);
	EXPECT(!vb_timers_take_due(&world.timers, 3000));
	vb_timers_fini(&world.timers);
}

TEST(a_timer_restarted_earlier_fires_earlier)
{
	struct world world;

	world_init(&world);
	vb_timer_start(&world.timers, &world.timer[0], 2000);
	vb_timer_start(&world.timers, &world.timer[3], 3000);
	vb_timer_start(&world.timers, &world.timer[3], 1500);
	EXPECT_EQ(vb_timers_deadline(&world.timers), 1500);
	EXPECT(vb_timers_take_due(&world.timers, 1500) == &world.timer[3]);
	vb_timers_fini(&world.timers);
}

TEST(making_room_keeps_the_timers_that_run)
{
	struct vb_timers timers;
	struct vb_timer timer[1000];

	vb_timers_init(&timers);
	for (uint32_t i = 0; i < 1000; i++) {
		EXPECT_EQ(vb_timers_reserve(&timers, i + 1), VB_OK);
		vb_timer_init(&timer[i], i);
		vb_timer_start(&timers, &timer[i], 5000 - i);
	}
	for (uint32_t i = 1000; i-- > 0;)
		EXPECT(vb_timers_take_due(&timers, 6000) == &timer[i]);
	EXPECT_EQ(vb_timers_deadline(&timers), VB_NEVER);
	vb_timers_fini(&timers);
}
