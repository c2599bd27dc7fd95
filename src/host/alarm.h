/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread's alarm clock, which other threads push ahead. A program that polls drives
 * everything itself; the helper only has to notice when that ends. Waking every millisecond to
 * check would take the CPU from the program each time. So the helper sets the alarm and sleeps, and
 * the thread that polls pushes the alarm ahead before it rings.
 */
#ifndef VB_HOST_ALARM_H
#define VB_HOST_ALARM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_ALARM_PUSHED_NS 2000000u /* how far ahead */
#define VB_ALARM_PUSH_AFTER_NS 1000000u /* since the last time */

struct vb_alarm {
	_Atomic int fd; /* readable when it rings; negative: there is none */
	_Atomic uint64_t push_ns; /* when to push it; VB_NEVER: no one relies on it */
};

/* If the open fails, vb_alarm_set() fails. */
void vb_alarm_open(struct vb_alarm *alarm);
void vb_alarm_close(struct vb_alarm *alarm);
/* Opens the alarm again if the program has closed it. */
void vb_alarm_repair(struct vb_alarm *alarm);
/*
 * Declares that there is no alarm: at the start, and in a forked child, where the alarm does not
 * exist.
 */
void vb_alarm_forget(struct vb_alarm *alarm);

/*
 * Sets the alarm to ring after this time, unless it is pushed. Returns its descriptor, or a
 * negative number if it will not ring.
 */
int vb_alarm_set(struct vb_alarm *alarm, uint64_t now_ns, uint64_t after_ns);
void vb_alarm_stop(struct vb_alarm *alarm);

void vb_alarm_push_now(struct vb_alarm *alarm, uint64_t now_ns);

/* For any thread, as often as it likes. */
static inline void vb_alarm_push(struct vb_alarm *alarm, uint64_t now_ns)
{
	if (now_ns >= atomic_load_explicit(&alarm->push_ns, memory_order_relaxed))
		vb_alarm_push_now(alarm, now_ns);
}

#endif
