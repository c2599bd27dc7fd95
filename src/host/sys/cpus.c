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

/* The kernel's list is of numbers and ranges: 0-3,8,10-11. */
uint32_t vb_cpus_count_all(void)
{
	char text[1024];
	const char *next = text;
	uint32_t count = 0;
	uint32_t first;
	uint32_t last;
	int length;

	if (!vb_file_read("/sys/devices/system/cpu/online", text, sizeof(text), NULL))
		return 0;
	while (sscanf(next, "%u%n", &first, &length) == 1) {
		next += length;
		last = first;
		if (sscanf(next, "-%u%n", &last, &length) == 1)
			next += length;
		if (last < first || last >= CPUS_MAX)
			return 0;
		count += last - first + 1;
		next += *next == ',';
	}
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
