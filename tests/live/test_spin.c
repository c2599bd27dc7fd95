/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the helper thread waits awake. The time is an argument, and what the kernel reports of
 * running threads is simulated.
 */
#include "harness.h"

#include "host/adapter/spin.h"
#include "host/sys/file.h"

#include <sched.h>
#include <stdio.h>

#define BEGIN_NS 5000000000ull

static struct vb_spin spin;
static const char *loadavg; /* NULL: the file cannot be read */
static unsigned reads;

bool __wrap_vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out);
bool __wrap_vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out)
{
	(void)is_cut_out;
	EXPECT_STR(path, "/proc/loadavg");
	reads++;
	if (loadavg)
		snprintf(text, size, "0.20 0.18 0.12 %s/80 11206\n", loadavg);
	return loadavg;
}

/* Gives this process one CPU from now on. */
static void pin(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void sleep_shortly(uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		vb_spin_on_sleep(&spin, VB_SPIN_SOON_NS, true);
}

static bool is_earned(void)
{
	return vb_spin_is_earned(&spin, BEGIN_NS);
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

TEST(each_time_in_vain_doubles_what_must_be_earned_until_a_packet_comes)
{
	uint32_t needed = VB_SPIN_EARNED;

	for (int i = 0; i < 20; i++) {
		sleep_shortly(needed - 1);
		EXPECT(!is_earned());
		sleep_shortly(1);
		EXPECT(is_earned());
		vb_spin_on_timeout(&spin);
		EXPECT(!is_earned());
		needed = needed < VB_SPIN_EARNED_MAX ? 2 * needed : needed;
	}
	EXPECT_EQ(needed, VB_SPIN_EARNED_MAX);
	vb_spin_on_packet(&spin);
	sleep_shortly(VB_SPIN_EARNED);
	EXPECT(is_earned());
}

TEST(a_cpu_is_needed_that_nobody_else_wants)
{
	pin();
	sleep_shortly(VB_SPIN_EARNED);
	loadavg = "2";
	EXPECT(!vb_spin_look_for_cpu(&spin, BEGIN_NS));
	EXPECT(!vb_spin_is_earned(&spin, BEGIN_NS + VB_SPIN_RESTS_NS - 1));
	EXPECT(vb_spin_is_earned(&spin, BEGIN_NS + VB_SPIN_RESTS_NS));
	loadavg = "1";
	EXPECT(vb_spin_look_for_cpu(&spin, BEGIN_NS + VB_SPIN_RESTS_NS));
}

TEST(a_helper_that_cannot_read_the_load_does_not_spin)
{
	EXPECT(!vb_spin_look_for_cpu(&spin, BEGIN_NS));
	loadavg = "none";
	EXPECT(!vb_spin_look_for_cpu(&spin, BEGIN_NS + VB_SPIN_RESTS_NS));
}

TEST(threads_are_counted_now_and_then_only)
{
	pin();
	loadavg = "1";
	EXPECT(vb_spin_look_for_cpu(&spin, BEGIN_NS));
	loadavg = "2";
	EXPECT(vb_spin_look_for_cpu(&spin, BEGIN_NS + VB_SPIN_COUNTED_NS - 1));
	EXPECT_EQ(reads, 1);
	EXPECT(!vb_spin_look_for_cpu(&spin, BEGIN_NS + VB_SPIN_COUNTED_NS));
	EXPECT_EQ(reads, 2);
}

TEST(a_helper_that_lost_its_cpu_rests_and_counts_again)
{
	pin();
	loadavg = "1";
	sleep_shortly(VB_SPIN_EARNED);
	EXPECT(vb_spin_look_for_cpu(&spin, BEGIN_NS));
	vb_spin_on_loss(&spin, BEGIN_NS);
	EXPECT(!vb_spin_is_earned(&spin, BEGIN_NS + VB_SPIN_LOSES_NS - 1));
	EXPECT(vb_spin_is_earned(&spin, BEGIN_NS + VB_SPIN_LOSES_NS));
	EXPECT(vb_spin_look_for_cpu(&spin, BEGIN_NS + VB_SPIN_LOSES_NS));
	EXPECT_EQ(reads, 2);
}
