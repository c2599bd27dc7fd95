/* SPDX-License-Identifier: BSD-2-Clause */
/* When the helper thread waits awake, and when it stops. */
#include "harness.h"

#include "host/policy/spin.h"

#define BEGIN_NS 5000000000ull

static struct vb_spin spin;

static void sleep_shortly(uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		vb_spin_on_sleep(&spin, VB_SPIN_SOON_NS, true);
}

static bool is_earned(void)
{
	return vb_spin_is_earned(&spin, BEGIN_NS);
}

/* Spins without result. */
static void time_out(void)
{
	uint64_t now_ns = BEGIN_NS;

	vb_spin_begin(&spin, now_ns);
	for (; now_ns < BEGIN_NS + VB_SPIN_NS; now_ns += VB_SPIN_LOST_NS)
		EXPECT(vb_spin_on_look(&spin, now_ns, false));
	EXPECT(!vb_spin_on_look(&spin, now_ns, false));
}

TEST(short_sleeps_in_a_row_earn_it)
{
	EXPECT(!is_earned());
	sleep_shortly(VB_SPIN_EARNED - 1);
	EXPECT(!is_earned());
	sleep_shortly(1);
	EXPECT(is_earned());
}

TEST(a_long_sleep_or_one_that_no_packet_ended_ends_the_row)
{
	sleep_shortly(VB_SPIN_EARNED);
	vb_spin_on_sleep(&spin, VB_SPIN_SOON_NS + 1, true);
	EXPECT(!is_earned());
	sleep_shortly(VB_SPIN_EARNED);
	vb_spin_on_sleep(&spin, 1, false);
	EXPECT(!is_earned());
}

TEST(each_time_without_result_doubles_what_must_be_earned_until_a_packet_comes)
{
	uint32_t needed = VB_SPIN_EARNED;

	for (int i = 0; i < 20; i++) {
		sleep_shortly(needed - 1);
		EXPECT(!is_earned());
		sleep_shortly(1);
		EXPECT(is_earned());
		time_out();
		EXPECT(!is_earned());
		needed = needed < VB_SPIN_EARNED_MAX ? 2 * needed : needed;
	}
	EXPECT_EQ(needed, VB_SPIN_EARNED_MAX);
	vb_spin_begin(&spin, BEGIN_NS);
	EXPECT(vb_spin_on_look(&spin, BEGIN_NS, true));
	sleep_shortly(VB_SPIN_EARNED);
	EXPECT(is_earned());
}

TEST(a_packet_prolongs_the_wait)
{
	uint64_t now_ns = BEGIN_NS;

	vb_spin_begin(&spin, now_ns);
	for (; now_ns < BEGIN_NS + 10ull * VB_SPIN_NS; now_ns += VB_SPIN_LOST_NS)
		EXPECT(vb_spin_on_look(&spin, now_ns,
				       (now_ns - BEGIN_NS) % (2 * VB_SPIN_LOST_NS) == 0));
}

TEST(a_spin_with_packets_ends_after_a_while_for_a_look_at_everything)
{
	vb_spin_begin(&spin, BEGIN_NS);
	EXPECT(vb_spin_on_look(&spin, BEGIN_NS + VB_SPIN_ROUND_NS, true));
	EXPECT(!vb_spin_on_look(&spin, BEGIN_NS + VB_SPIN_ROUND_NS + 1, true));
	sleep_shortly(VB_SPIN_EARNED);
	EXPECT(is_earned()); /* it was not without result */
}

TEST(a_cpu_is_needed_that_nobody_else_wants)
{
	sleep_shortly(VB_SPIN_EARNED);
	EXPECT(!vb_spin_on_count(&spin, BEGIN_NS, 3, 2, 2));
	EXPECT(!vb_spin_is_earned(&spin, BEGIN_NS + VB_SPIN_RESTS_NS - 1));
	EXPECT(vb_spin_is_earned(&spin, BEGIN_NS + VB_SPIN_RESTS_NS));
	EXPECT(vb_spin_on_count(&spin, BEGIN_NS + VB_SPIN_RESTS_NS, 2, 2, 2));
}

/* Those that run may run on the CPUs that the process may not use. */
TEST(a_pinned_process_spins_while_the_machine_has_a_cpu_for_each_thread)
{
	EXPECT(vb_spin_on_count(&spin, BEGIN_NS, 2, 1, 2));
	EXPECT(!vb_spin_on_count(&spin, BEGIN_NS, 3, 1, 2));
	EXPECT(!vb_spin_on_count(&spin, BEGIN_NS, 2, 1, 0));
}

TEST(a_helper_that_does_not_know_the_number_of_threads_does_not_spin)
{
	EXPECT(!vb_spin_on_count(&spin, BEGIN_NS, 0, 2, 2));
}

TEST(threads_are_counted_now_and_then_only)
{
	EXPECT(!vb_spin_has_cpu(&spin, BEGIN_NS));
	EXPECT(vb_spin_on_count(&spin, BEGIN_NS, 1, 1, 1));
	EXPECT(vb_spin_has_cpu(&spin, BEGIN_NS + VB_SPIN_COUNTED_NS - 1));
	EXPECT(!vb_spin_has_cpu(&spin, BEGIN_NS + VB_SPIN_COUNTED_NS));
}

/* Another thread ran on it: the time between two looks was long, and the kernel says so. */
static void lose_cpu(uint64_t now_ns, bool has_moved, uint64_t rests_ns)
{
	uint64_t lost_ns = now_ns + VB_SPIN_LOST_NS + 1;

	vb_spin_begin(&spin, now_ns);
	EXPECT_EQ(vb_spin_on_look(&spin, lost_ns, has_moved), has_moved);
	vb_spin_on_end(&spin, lost_ns, true);
	EXPECT(!vb_spin_is_earned(&spin, lost_ns + rests_ns - 1));
	EXPECT(vb_spin_is_earned(&spin, lost_ns + rests_ns));
}

/* A round of looks, each in time. */
static void be_left_alone(bool was_switched)
{
	uint64_t now_ns = BEGIN_NS;

	vb_spin_begin(&spin, now_ns);
	do
		now_ns += VB_SPIN_LOST_NS;
	while (vb_spin_on_look(&spin, now_ns, true));
	vb_spin_on_end(&spin, now_ns, was_switched);
}

TEST(a_helper_that_lost_its_cpu_rests_and_counts_again)
{
	sleep_shortly(VB_SPIN_EARNED);
	EXPECT(vb_spin_on_count(&spin, BEGIN_NS, 1, 1, 1));
	lose_cpu(BEGIN_NS, false, VB_SPIN_LOSES_NS);
	EXPECT(!vb_spin_has_cpu(&spin, BEGIN_NS + VB_SPIN_LOST_NS + 1));
}

/* The peer sends while the helper is away, so each late look brings something. */
TEST(packets_do_not_hide_the_loss_of_the_cpu)
{
	sleep_shortly(VB_SPIN_EARNED);
	lose_cpu(BEGIN_NS, true, VB_SPIN_LOSES_NS);
}

TEST(a_thread_that_takes_the_offered_cpu_counts_as_well)
{
	sleep_shortly(VB_SPIN_EARNED);
	vb_spin_begin(&spin, BEGIN_NS);
	EXPECT(vb_spin_on_look(&spin, BEGIN_NS + 1, true));
	vb_spin_on_end(&spin, BEGIN_NS + VB_SPIN_LOST_NS + 2, true);
	EXPECT(!is_earned());
}

TEST(each_loss_doubles_the_rest_until_a_spin_is_left_alone)
{
	sleep_shortly(VB_SPIN_EARNED);
	for (uint32_t i = 0; i < 10; i++)
		lose_cpu(BEGIN_NS, i & 1, (uint64_t)VB_SPIN_LOSES_NS << (i < 6 ? i : 6));
	be_left_alone(false);
	lose_cpu(BEGIN_NS, false, VB_SPIN_LOSES_NS);
}

TEST(losses_are_forgotten_when_one_of_our_cpus_is_free_for_certain)
{
	sleep_shortly(VB_SPIN_EARNED);
	lose_cpu(BEGIN_NS, false, VB_SPIN_LOSES_NS);
	EXPECT(vb_spin_on_count(&spin, BEGIN_NS, 2, 1, 2));
	lose_cpu(BEGIN_NS, false, 2 * VB_SPIN_LOSES_NS);
	EXPECT(vb_spin_on_count(&spin, BEGIN_NS, 1, 1, 2));
	lose_cpu(BEGIN_NS, false, VB_SPIN_LOSES_NS);
}

TEST(a_look_that_brought_a_packet_may_take_long)
{
	uint64_t late_ns = BEGIN_NS + VB_SPIN_LOST_NS + 1;

	sleep_shortly(VB_SPIN_EARNED);
	vb_spin_begin(&spin, BEGIN_NS);
	EXPECT(vb_spin_on_look(&spin, late_ns, true));
	vb_spin_on_end(&spin, late_ns, false);
	EXPECT(is_earned());
}

/* The kernel's own threads are done in a few microseconds. */
TEST(a_switch_between_two_looks_in_time_is_no_loss)
{
	sleep_shortly(VB_SPIN_EARNED);
	be_left_alone(true);
	EXPECT(is_earned());
}
