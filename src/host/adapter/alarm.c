/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/adapter/alarm.h"

#include "host/sys/clock.h"
#include "link/fd.h"
#include "link/sys.h"

#include <sys/timerfd.h>

void vb_alarm_open(struct vb_alarm *alarm)
{
	int fd = vb_fd_own(
		vb_sys_result(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));

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
}

/*
 * If the program has closed the timer meanwhile, the kernel refuses: another descriptor with that
 * number is no timer.
 */
int vb_alarm_set(struct vb_alarm *alarm, uint64_t after_ns)
{
	int fd = atomic_load_explicit(&alarm->fd, memory_order_relaxed);
	struct itimerspec timer = {
		.it_value = { (time_t)(after_ns / VB_SECOND_NS), (long)(after_ns % VB_SECOND_NS) },
	};

	return syscall(SYS_timerfd_settime, fd, 0, &timer, NULL) ? -1 : fd;
}
