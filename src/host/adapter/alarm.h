/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread's alarm clock, which other threads postpone. A program that polls drives
 * everything itself; the helper only has to notice when that ends. Waking every millisecond to
 * check would take the CPU from the program each time. So the helper sets the alarm and sleeps, and
 * the thread that polls postpones the alarm before it rings.
 */
#ifndef VB_HOST_ADAPTER_ALARM_H
#define VB_HOST_ADAPTER_ALARM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_ALARM_POSTPONED_NS 2000000u /* from now: when a postponed alarm rings */
#define VB_ALARM_POSTPONE_AFTER_NS 1000000u /* since it was last postponed */

struct vb_alarm {
	_Atomic int fd; /* readable when it rings; negative: there is none */
	_Atomic uint64_t postpone_ns; /* when to postpone it; VB_NEVER: no thread relies on it */
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
 * Sets the alarm to ring after this time, unless it is postponed. Returns its descriptor, or a
 * negative number if it will not ring.
 */
int vb_alarm_set(struct vb_alarm *alarm, uint64_t now_ns, uint64_t after_ns);
void vb_alarm_stop(struct vb_alarm *alarm);

void vb_alarm_postpone_if_due(struct vb_alarm *alarm, uint64_t now_ns);

/* For any thread, as often as it likes. */
static inline void vb_alarm_postpone(struct vb_alarm *alarm, uint64_t now_ns)
{
	if (now_ns >= atomic_load_explicit(&alarm->postpone_ns, memory_order_relaxed))
		vb_alarm_postpone_if_due(alarm, now_ns);
}

#endif
