/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock of the engines, which also measures how long threads wait. */
#ifndef VB_HOST_SYS_CLOCK_H
#define VB_HOST_SYS_CLOCK_H

#include <stdint.h>
#include <time.h>

#define VB_SECOND_NS 1000000000ull

static inline uint64_t vb_clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * VB_SECOND_NS + (uint64_t)now.tv_nsec;
}

/*
 * The time at the kernel's last tick, some milliseconds ago at most. This only reads memory.
 * Reading the CPU's counter keeps it from everything else for 30 ns, which shows where a peer
 * waits for what comes next.
 */
static inline uint64_t vb_clock_tick(void)
{
	struct timespec tick;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
	return (uint64_t)tick.tv_sec * VB_SECOND_NS + (uint64_t)tick.tv_nsec;
}

/* The time that was read last, and the CPU's tick count then. */
struct vb_clock {
	uint64_t ns;
	uint64_t ticks;
};

#define VB_CLOCK_TICKS_A_GLANCE 2000u /* less than a microsecond, on most machines */

/*
 * For a caller that asks again and again: the time, or what it was a moment ago. Asking the system
 * takes longer than the rest of a poll that finds nothing.
 */
static inline uint64_t vb_clock_glance(struct vb_clock *clock)
{
#ifdef __x86_64__
	uint64_t ticks = __builtin_ia32_rdtsc();

	if (ticks - clock->ticks < VB_CLOCK_TICKS_A_GLANCE)
		return clock->ns;
	clock->ticks = ticks;
#endif
	clock->ns = vb_clock_now();
	return clock->ns;
}

#endif
