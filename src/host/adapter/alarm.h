/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread's alarm clock, which other threads postpone. A program that polls drives
 * everything itself; the helper only has to notice when that ends. Waking every millisecond to
 * check would take the CPU from the program each time. So the helper sets the alarm and sleeps, and
 * the thread that polls postpones the alarm before it rings. host/policy/drive_policy.h says when.
 */
#ifndef VB_HOST_ADAPTER_ALARM_H
#define VB_HOST_ADAPTER_ALARM_H

#include <stdatomic.h>
#include <stdint.h>

struct vb_alarm {
	_Atomic int fd; /* readable when it rings; negative: there is none */
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
 * For any thread: the alarm rings after this time, and not before. Returns its descriptor, or a
 * negative number if it will not ring.
 */
int vb_alarm_set(struct vb_alarm *alarm, uint64_t after_ns);

#endif
