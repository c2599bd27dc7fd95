/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/adapter/alarm.h"

#include "base/err.h"
#include "base/timer.h"
#include "host/sys/clock.h"
#include "link/fd.h"
#include "link/sys.h"

#include <sys/timerfd.h>

void vb_alarm_open(struct vb_alarm *alarm)
{
	int fd = vb_fd_own(
		vb_sys_result(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));

	atomic_store_explicit(&alarm->postpone_ns, VB_NEVER, memory_order_relaxed);
	atomic_store_explicit(&alarm->fd, fd, memory_order_relaxed);
}

void vb_alarm_close(struct vb_alarm *alarm)
{
	vb_fd_close(atomic_load_explicit(&alarm->fd, memory_order_relaxed));
}

void vb_alarm_repair(struct vb_alarm *alarm)
{
	if (!vb_fd_is_ours(atomic_load_explicit(&alarm->fd, memory_order_relaxed)))
		vb_alarm_open(alarm);
}

void vb_alarm_forget(struct vb_alarm *alarm)
{
	atomic_store_explicit(&alarm->fd, -1, memory_order_relaxed);
	atomic_store_explicit(&alarm->postpone_ns, VB_NEVER, memory_order_relaxed);
}

/*
 * If the program has closed the timer meanwhile, the kernel refuses: another descriptor with that
 * number is no timer.
 */
static bool set_timer(const struct vb_alarm *alarm, uint64_t after_ns)
{
	struct itimerspec timer = {
		.it_value = { (time_t)(after_ns / VB_SECOND_NS), (long)(after_ns % VB_SECOND_NS) },
	};

	return !syscall(SYS_timerfd_settime, atomic_load_explicit(&alarm->fd, memory_order_relaxed),
			0, &timer, NULL);
}

int vb_alarm_set(struct vb_alarm *alarm, uint64_t now_ns, uint64_t after_ns)
{
	if (!set_timer(alarm, after_ns))
		return -1;
	atomic_store_explicit(&alarm->postpone_ns, now_ns + after_ns / 2, memory_order_relaxed);
	return atomic_load_explicit(&alarm->fd, memory_order_relaxed);
}

/* The timer may still expire; no thread waits for it. */
void vb_alarm_stop(struct vb_alarm *alarm)
{
	atomic_store_explicit(&alarm->postpone_ns, VB_NEVER, memory_order_relaxed);
}

/* Of several threads only one postpones, and none if the helper has woken meanwhile. */
VB_COLD void vb_alarm_postpone_if_due(struct vb_alarm *alarm, uint64_t now_ns)
{
	uint64_t postpone_ns = atomic_load_explicit(&alarm->postpone_ns, memory_order_relaxed);

	if (now_ns >= postpone_ns &&
	    atomic_compare_exchange_strong_explicit(&alarm->postpone_ns, &postpone_ns,
						    now_ns + VB_ALARM_POSTPONE_AFTER_NS,
						    memory_order_relaxed, memory_order_relaxed))
		(void)set_timer(alarm, VB_ALARM_POSTPONED_NS);
}
