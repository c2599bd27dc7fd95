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

#endif
