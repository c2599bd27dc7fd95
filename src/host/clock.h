/* SPDX-License-Identifier: BSD-2-Clause */
/* The time that engines are told, and that waiting is measured in. */
#ifndef VB_HOST_CLOCK_H
#define VB_HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

#define VB_SECOND_NS 1000000000ull

static inline uint64_t vb_clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * VB_SECOND_NS + (uint64_t)now.tv_nsec;
}

/* What was told last, and what the CPU counted then. */
struct vb_clock {
	uint64_t ns;
	uint64_t ticks;
};

#define VB_CLOCK_TICKS_A_GLANCE 2000u /* less than a microsecond, on most machines */

/* For who asks again and again: the time, or what it was a moment ago. To ask the system takes longer than all the rest of a vain poll. */
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
