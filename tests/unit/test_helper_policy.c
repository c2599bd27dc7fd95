/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the helper thread does next, beside programs of every kind: one that polls, one that posts,
 * one that arms and sleeps, one whose thread waits on the sockets, and none at all.
 */
#include "harness.h"

#include "host/policy/drive_policy.h"
#include "host/policy/helper_policy.h"

#define MS_NS 1000000ull
#define NEVER UINT64_MAX

static struct vb_drive_policy policy;
static struct vb_helper_policy helper;
static uint64_t now_ns = 5000 * MS_NS;

__attribute__((constructor)) static void init(void)
{
	vb_drive_policy_init(&policy);
	vb_helper_policy_init(&helper);
}

/* The program polls, and looks at everything. */
static void poll_round(void)
{
	vb_drive_policy_on_drive(&policy, now_ns);
	(void)vb_drive_policy_on_poll(&policy, now_ns);
	EXPECT(!vb_drive_policy_on_round(&policy, now_ns, false));
}

static bool has_to_drive(bool is_rung)
{
	return vb_helper_policy_on_look(&helper, &policy, now_ns, is_rung);
}

static enum vb_helper_step next_after_driving(void)
{
	return vb_helper_policy_next(&helper, &policy, now_ns, true, false);
}

/* Short sleeps in a row, until the helper may wait awake. */
static void earn_spin(void)
{
	for (uint32_t i = 0; i < VB_SPIN_EARNED; i++)
		vb_spin_on_sleep(&helper.spin, VB_SPIN_SOON_NS, true);
}

/* --- whether it drives ------------------------------------------------------------------------ */

TEST(the_helper_drives_while_no_program_polls)
{
	EXPECT(has_to_drive(false));
	poll_round();
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS;
	EXPECT(has_to_drive(false));
}

TEST(the_helper_leaves_driving_to_a_program_that_polls)
{
	for (int i = 0; i < 10; i++) {
		poll_round();
		EXPECT(!has_to_drive(false));
		now_ns += VB_HELPER_PAUSE_NS;
	}
}

/* It posts, and finds its completions: it counts as polling, but no one else looks at the rest. */
TEST(the_helper_drives_beside_a_program_that_polls_without_whole_rounds)
{
	poll_round();
	EXPECT(!has_to_drive(false));
	EXPECT(!vb_drive_policy_on_poll_found(&policy));
	EXPECT(has_to_drive(false));
}

TEST(the_helper_drives_if_a_doorbell_waits)
{
	poll_round();
	EXPECT(has_to_drive(true));
}

TEST(the_helper_drives_if_acks_are_deferred)
{
	poll_round();
	EXPECT(vb_drive_policy_try_defer_acks(&policy, true, true));
	EXPECT(has_to_drive(false));
}

TEST(the_helper_waits_for_an_engine_that_it_has_missed_a_few_times)
{
	for (int i = 0; i < 3; i++) {
		for (uint32_t misses = 0; misses < VB_HELPER_MISSES_MAX; misses++)
			EXPECT(!vb_helper_policy_on_miss(&helper));
		EXPECT(vb_helper_policy_on_miss(&helper));
		(void)vb_helper_policy_on_driven(&helper, now_ns, NEVER, 0);
	}
}

/* --- how long it sleeps ----------------------------------------------------------------------- */

TEST(the_helper_sleeps_no_longer_than_until_the_deadline)
{
	EXPECT_EQ(vb_helper_policy_on_driven(&helper, now_ns, now_ns + 1, 0), now_ns + 1);
	EXPECT_EQ(vb_helper_policy_on_driven(&helper, now_ns, now_ns + 1, 1), now_ns + 1);
	EXPECT_EQ(vb_helper_policy_on_driven(&helper, now_ns, 0, 1), 0);
}

TEST(the_helper_sleeps_shorter_after_traffic_than_without)
{
	EXPECT_EQ(vb_helper_policy_on_driven(&helper, now_ns, NEVER, 7),
		  now_ns + VB_HELPER_LINGER_NS);
	EXPECT_EQ(vb_helper_policy_on_driven(&helper, now_ns, NEVER, 7),
		  now_ns + VB_DRIVE_CHECK_NS);
}

/* --- what it does next ------------------------------------------------------------------------ */

TEST(a_doorbell_that_rang_while_the_helper_drove_makes_it_look_again)
{
	EXPECT_EQ(vb_helper_policy_next(&helper, &policy, now_ns, true, true), VB_HELPER_LOOK);
}

/* The thread that has the engine looks at the doorbells when it releases it. */
TEST(a_doorbell_is_left_to_the_thread_that_drives)
{
	EXPECT_EQ(vb_helper_policy_next(&helper, &policy, now_ns, false, true), VB_HELPER_PAUSE);
}

TEST(the_helper_pauses_while_a_program_polls_or_another_thread_drives)
{
	EXPECT_EQ(vb_helper_policy_next(&helper, &policy, now_ns, false, false), VB_HELPER_PAUSE);
	EXPECT_EQ(next_after_driving(), VB_HELPER_SLEEP);
	poll_round();
	EXPECT_EQ(next_after_driving(), VB_HELPER_PAUSE);
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS;
	EXPECT_EQ(next_after_driving(), VB_HELPER_SLEEP);
}

TEST(the_helper_watches_the_sockets_for_a_program_that_has_armed_a_cq)
{
	poll_round();
	EXPECT(vb_drive_policy_on_arm(&policy));
	poll_round();
	EXPECT_EQ(next_after_driving(), VB_HELPER_SLEEP);
}

TEST(the_helper_keeps_only_deadlines_while_a_thread_waits_on_the_sockets)
{
	earn_spin();
	vb_drive_policy_on_wait(&policy);
	EXPECT_EQ(next_after_driving(), VB_HELPER_KEEP_DEADLINES);
	poll_round(); /* by another thread */
	EXPECT_EQ(next_after_driving(), VB_HELPER_PAUSE);
}

TEST(the_helper_spins_for_a_program_that_only_receives)
{
	EXPECT_EQ(next_after_driving(), VB_HELPER_SLEEP);
	earn_spin();
	EXPECT_EQ(next_after_driving(), VB_HELPER_SPIN);
}

TEST(the_helper_spins_only_while_no_thread_polls_or_waits)
{
	EXPECT(vb_helper_policy_may_spin_on(&policy, now_ns));
	poll_round();
	EXPECT(!vb_helper_policy_may_spin_on(&policy, now_ns));
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS;
	EXPECT(vb_helper_policy_may_spin_on(&policy, now_ns));
	vb_drive_policy_on_wait(&policy);
	EXPECT(!vb_helper_policy_may_spin_on(&policy, now_ns));
}

/* --- its pauses ------------------------------------------------------------------------------- */

TEST(each_pause_is_twice_as_long_as_the_one_before_up_to_a_millisecond)
{
	uint64_t expected_ns = VB_HELPER_FIRST_PAUSE_NS;

	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(vb_helper_policy_take_pause(&helper), expected_ns);
		expected_ns = expected_ns < VB_HELPER_PAUSE_NS / 2 ? 2 * expected_ns
								   : VB_HELPER_PAUSE_NS;
	}
	EXPECT_EQ(expected_ns, VB_HELPER_PAUSE_NS);
}

/* Programs that poll for a moment and then wait in memory need the helper soon. */
TEST(pauses_are_short_again_after_the_program_has_stopped_polling)
{
	for (int i = 0; i < 10; i++)
		(void)vb_helper_policy_take_pause(&helper);
	poll_round();
	EXPECT_EQ(next_after_driving(), VB_HELPER_PAUSE);
	EXPECT_EQ(vb_helper_policy_take_pause(&helper), VB_HELPER_PAUSE_NS);
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS;
	EXPECT_EQ(next_after_driving(), VB_HELPER_SLEEP);
	EXPECT_EQ(vb_helper_policy_take_pause(&helper), VB_HELPER_FIRST_PAUSE_NS);
}

/* It armed after the helper had asked, and before the helper announced the pause. */
TEST(the_helper_does_not_pause_for_a_program_that_has_just_armed_a_cq)
{
	poll_round();
	EXPECT(vb_helper_policy_may_pause(&policy, now_ns, false));
	EXPECT(vb_drive_policy_on_arm(&policy));
	EXPECT(!vb_helper_policy_may_pause(&policy, now_ns, false));
	EXPECT(vb_helper_policy_may_pause(&policy, now_ns, true));
}
