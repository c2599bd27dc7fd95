/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on the sockets, and a thread of the program that does so until its event comes. The
 * thread drives the engine before each sleep, and promises to look again at the engine's deadline;
 * if an earlier deadline comes up later, the helper is woken for it. Programs cancel such threads.
 */
#include "host/adapter/adapter_priv.h"

#include "host/local/local_peer.h"
#include "host/port/port.h"
#include "host/sys/clock.h"
#include "nic/rings.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

int vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns)
{
	uint64_t now = vb_clock_now();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };

	return (int)syscall(SYS_ppoll, fds, count, until_ns == VB_NEVER ? NULL : &timeout, NULL, 0);
}

void vb_adapter_on_wake(struct vb_adapter *adapter, const struct pollfd fds[VB_PORT_FDS_MAX])
{
	if (adapter->port)
		vb_port_on_wake(adapter->port, fds, vb_clock_now());
}

uint32_t vb_adapter_fds(const struct vb_adapter *adapter, struct pollfd fds[VB_PORT_FDS_MAX])
{
	return adapter->port ? vb_port_fds(adapter->port, fds) : 0;
}

bool vb_adapter_begin_sleep(struct vb_adapter *adapter)
{
	return !adapter->peers || vb_local_peers_begin_sleep(adapter->peers);
}

void vb_adapter_end_sleep(struct vb_adapter *adapter)
{
	if (adapter->peers)
		vb_local_peers_end_sleep(adapter->peers);
}

/* The state of a waiting thread between one sleep and the next. */
struct wait {
	struct vb_adapter *adapter;
	struct pollfd fds[VB_PORT_FDS_MAX + 1]; /* the descriptor it waits for, then sockets */
	uint32_t count;
	bool is_asleep; /* it has announced that to the local peers */
};

/* As the owner. */
static void wake_up(struct vb_adapter *adapter, struct wait *wait)
{
	if (wait->is_asleep)
		vb_adapter_end_sleep(adapter);
	wait->is_asleep = false;
	for (uint32_t i = 1; i < wait->count; i++) {
		if (wait->fds[i].revents) {
			vb_adapter_on_wake(adapter, wait->fds + 1);
			break;
		}
	}
}

/* Drives once. Returns until when to sleep. */
static uint64_t take_turn(struct vb_adapter *adapter, struct wait *wait)
{
	uint64_t deadline_ns;

	vb_lock_take(&adapter->owner);
	wake_up(adapter, wait);
	deadline_ns = vb_adapter_drive(adapter);
	wait->count = 1 + vb_adapter_fds(adapter, wait->fds + 1);
	wait->is_asleep = true;
	if (!vb_adapter_begin_sleep(adapter))
		deadline_ns = 0;
	vb_lock_give(&adapter->owner);
	return vb_nic_is_rung(adapter->nic) ? 0 : deadline_ns;
}

/*
 * The only place where a waiting thread may be cancelled, as programs do with their threads. The
 * sleep is a raw system call, which the C library does not recognise as a cancellation point.
 */
static int sleep_cancellable(struct pollfd *fds, uint32_t count, uint64_t until_ns)
{
	int type, result;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	result = vb_adapter_sleep(fds, count, until_ns);
	pthread_setcanceltype(type, NULL);
	return result;
}

static int wait_driving(struct vb_adapter *adapter, struct wait *wait)
{
	for (;;) {
		uint64_t until_ns = take_turn(adapter, wait);
		uint64_t check_ns = vb_clock_now() + VB_DRIVE_CHECK_NS;

		if (until_ns > check_ns)
			until_ns = check_ns;
		if (sleep_cancellable(wait->fds, wait->count, until_ns) < 0 && errno == EINTR)
			return EINTR;
		if (wait->fds[0].revents)
			return wait->fds[0].revents & POLLNVAL ? EBADF : 0;
	}
}

/* Runs also when the thread is cancelled. */
static void end_wait(void *argument)
{
	struct wait *wait = argument;
	struct vb_adapter *adapter = wait->adapter;

	vb_lock_take(&adapter->owner);
	wake_up(adapter, wait);
	vb_lock_give(&adapter->owner);
	vb_adapter_wake_helper_before(adapter, vb_drive_policy_on_wait_end(&adapter->policy,
									   vb_clock_now()));
}

int vb_adapter_wait(struct vb_adapter *adapter, int fd)
{
	struct wait wait = {
		.adapter = adapter,
		.fds = { { .fd = fd, .events = POLLIN } },
		.count = 1,
	};
	int error;

	vb_drive_policy_on_wait(&adapter->policy);
	pthread_cleanup_push(end_wait, &wait);
	error = wait_driving(adapter, &wait);
	pthread_cleanup_pop(true);
	return error;
}
