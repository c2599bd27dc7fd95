/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of CPUs and of threads that want them. What the kernel reports of threads is
 * simulated.
 */
#include "harness.h"

#include "host/sys/cpus.h"
#include "host/sys/file.h"

#include <sched.h>
#include <stdio.h>

static const char *loadavg; /* NULL: the file cannot be read */

bool __wrap_vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out);
bool __wrap_vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out)
{
	(void)is_cut_out;
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
