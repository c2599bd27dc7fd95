/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of CPUs and of threads that want them. What the kernel reports of threads and of the
 * machine's CPUs is simulated.
 */
#include "harness.h"

#include "host/sys/cpus.h"
#include "host/sys/file.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* What the kernel's files say; NULL: the file cannot be read. */
static const char *loadavg;
static const char *online;

bool __wrap_vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out);
bool __wrap_vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out)
{
	(void)is_cut_out;
	if (!strcmp(path, "/sys/devices/system/cpu/online")) {
		if (online)
			snprintf(text, size, "%s\n", online);
		return online;
	}
	EXPECT_STR(path, "/proc/loadavg");
	if (loadavg)
		snprintf(text, size, "0.20 0.18 0.12 %s/80 11206\n", loadavg);
	return loadavg;
}

TEST(the_threads_that_run_are_those_of_the_whole_machine)
{
	loadavg = "17";
	EXPECT_EQ(vb_cpus_count_running_threads(), 17);
}

TEST(threads_that_the_kernel_does_not_report_are_none)
{
	EXPECT_EQ(vb_cpus_count_running_threads(), 0);
	loadavg = "none";
	EXPECT_EQ(vb_cpus_count_running_threads(), 0);
}

TEST(a_thread_that_is_pinned_has_one_cpu)
{
	cpu_set_t one;

	EXPECT(vb_cpus_count_own() > 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	EXPECT_EQ(vb_cpus_count_own(), 1);
}

static uint32_t count_online(const char *list)
{
	online = list;
	return vb_cpus_count_all();
}

TEST(the_cpus_of_the_machine_are_a_list_of_numbers_and_ranges)
{
	EXPECT_EQ(count_online("0"), 1);
	EXPECT_EQ(count_online("0-3"), 4);
	EXPECT_EQ(count_online("0-3,8,10-11"), 7);
	EXPECT_EQ(count_online("0,2,4"), 3);
}

TEST(cpus_that_the_kernel_does_not_report_are_none)
{
	EXPECT_EQ(count_online(NULL), 0);
	EXPECT_EQ(count_online(""), 0);
	EXPECT_EQ(count_online("all"), 0);
	EXPECT_EQ(count_online("3-1"), 0);
	EXPECT_EQ(count_online("0-4294967295"), 0);
}
