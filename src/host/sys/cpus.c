/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/sys/cpus.h"

#include "host/sys/file.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 8192

uint32_t vb_cpus_count_own(void)
{
	unsigned long sets[CPUS_MAX / (8 * sizeof(unsigned long))] = { 0 };
	uint32_t count = 0;

	if (syscall(SYS_sched_getaffinity, 0, sizeof(sets), sets) < 0)
		return 0;
	for (uint32_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		count += (uint32_t)__builtin_popcountl(sets[i]);
	return count;
}

uint32_t vb_cpus_count_running_threads(void)
{
	char text[128];
	uint32_t count;

	if (!vb_file_read("/proc/loadavg", text, sizeof(text), NULL) ||
	    sscanf(text, "%*s %*s %*s %u/", &count) != 1)
		return 0;
	return count;
}
