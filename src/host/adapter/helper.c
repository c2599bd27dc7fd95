/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread. host/policy/helper_policy.h says what it does next; this file does it. The
 * helper announces when it will look by itself. A thread that needs it earlier, or finds that it no
 * longer waits for the right thing, wakes it. The helper also repairs what the program has closed,
 * and follows the interface.
 */
#include "host/adapter/adapter_priv.h"

#include "host/local/conversion.h"
#include "host/local/local_peer.h"
#include "host/policy/helper_policy.h"
#include "host/registry/port_member.h"
#include "host/sys/clock.h"
#include "host/sys/cpus.h"
#include "host/sys/thread.h"
#include "link/fd.h"
#include "nic/rings.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define START_PAUSE_NS 20000
#define REPAIR_NS 10000000u /* between two checks of our descriptors */
#define TAIL_CHECK_NS 1000000000u

VB_COLD void vb_adapter_wake_helper(const struct vb_adapter *adapter)
{
	uint64_t one = 1;
	int fd = atomic_load_explicit(&adapter->wake_fd, memory_order_relaxed);

	if (vb_fd_is_ours(fd))
		syscall(SYS_write, fd, &one, sizeof(one));
}

void vb_adapter_wake_helper_before(struct vb_adapter *adapter, uint64_t deadline_ns)
{
	if (vb_drive_policy_claim_wake(&adapter->policy, deadline_ns))
		vb_adapter_wake_helper(adapter);
}

enum { WAKE, WATCH, ALARM, SOCKETS };

/* The helper's state from one look to the next. */
struct helper_state {
	struct pollfd fds[SOCKETS + VB_PORT_FDS_MAX];
	uint32_t count;
	uint64_t until_ns;
	struct vb_helper_policy policy;
	uint64_t checked_ns; /* when we last checked that our descriptors are still open */
	/* When we last released what other processes left behind. */
	uint64_t tail_checked_ns;
};

static bool is_woken_by_sockets(const struct helper_state *look)
{
	for (uint32_t i = SOCKETS; i < look->count; i++)
		if (look->fds[i].revents)
			return true;
	return false;
}

/* As the owner: drives, and announces until when no other thread needs to wake us. */
static void drive(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t deadline_ns;

	if (is_woken_by_sockets(look))
		vb_adapter_on_wake(adapter, look->fds + SOCKETS);
	deadline_ns = vb_adapter_drive(adapter);
	look->until_ns = vb_helper_policy_on_driven(&look->policy, vb_clock_now(), deadline_ns,
						    adapter->moves);
	look->count = SOCKETS + vb_adapter_fds(adapter, look->fds + SOCKETS);
	vb_drive_policy_announce(&adapter->policy, look->until_ns);
}

/* False if another thread is driving. */
static bool try_helping(struct vb_adapter *adapter, struct helper_state *look)
{
	if (!vb_lock_try(&adapter->owner)) {
		if (!vb_helper_policy_on_miss(&look->policy))
			return false;
		vb_lock_take(&adapter->owner);
	}
	vb_drive_policy_on_help(&adapter->policy, true);
	drive(adapter, look);
	vb_drive_policy_on_help(&adapter->policy, false);
	vb_lock_give(&adapter->owner);
	return true;
}

/* Drives if no other thread does. True if it did. */
static bool look_once(struct vb_adapter *adapter, struct helper_state *look)
{
	return vb_helper_policy_on_look(&look->policy, &adapter->policy, vb_clock_now(),
					vb_nic_is_rung(adapter->nic)) &&
	       try_helping(adapter, look);
}

/* Sleeps until that time, or until the alarm rings, if there is one (negative: none). */
static void sleep_until(struct vb_adapter *adapter, struct helper_state *look, uint64_t until_ns,
			int alarm_fd)
{
	uint64_t count;
	int wake_fd = atomic_load_explicit(&adapter->wake_fd, memory_order_relaxed);

	look->fds[WAKE] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	look->fds[WATCH] = (struct pollfd){ .fd = adapter->watch_fd, .events = POLLIN };
	look->fds[ALARM] = (struct pollfd){ .fd = alarm_fd, .events = POLLIN };
	(void)vb_adapter_sleep(look->fds, look->count, until_ns);
	if (look->fds[WAKE].revents && vb_fd_is_ours(wake_fd))
		syscall(SYS_read, wake_fd, &count, sizeof(count));
	if (look->fds[WATCH].revents || vb_adapter_is_asked(adapter))
		vb_adapter_follow(adapter);
}

static void pause_while_driven(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t now_ns = vb_clock_now();
	uint64_t pause_ns = vb_helper_policy_take_pause(&look->policy);
	uint64_t until_ns = now_ns + pause_ns;
	int alarm_fd = -1;

	vb_drive_policy_announce(&adapter->policy, VB_DRIVE_HELPER_PAUSES);
	look->count = SOCKETS;
	if (pause_ns == VB_HELPER_PAUSE_NS)
		alarm_fd = vb_alarm_set(&adapter->alarm, pause_ns);
	if (alarm_fd >= 0) {
		vb_drive_policy_on_alarm_set(&adapter->policy, now_ns, pause_ns);
		until_ns = now_ns + VB_DRIVE_CHECK_NS;
	}
	if (vb_helper_policy_may_pause(&adapter->policy, vb_clock_now(),
				       vb_lock_is_held(&adapter->owner)))
		sleep_until(adapter, look, until_ns, alarm_fd);
	vb_drive_policy_on_alarm_over(&adapter->policy);
}

/* While a thread of the program waits on the sockets. */
static void keep_deadlines(struct vb_adapter *adapter, struct helper_state *look)
{
	look->count = SOCKETS;
	sleep_until(adapter, look, look->until_ns, -1);
}

/* Local peers know that we sleep, and wake us. */
static void sleep_on_sockets(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t begin_ns = vb_clock_now();
	bool can_sleep;

	vb_lock_take(&adapter->owner);
	can_sleep = vb_adapter_begin_sleep(adapter);
	vb_lock_give(&adapter->owner);
	if (can_sleep)
		sleep_until(adapter, look, look->until_ns, -1);
	vb_spin_on_sleep(&look->policy.spin, vb_clock_now() - begin_ns,
			 !can_sleep || is_woken_by_sockets(look));
	vb_lock_take(&adapter->owner);
	vb_adapter_end_sleep(adapter);
	vb_lock_give(&adapter->owner);
}

static bool has_cpu_to_spin(struct helper_state *look)
{
	struct vb_spin *policy = &look->policy.spin;
	uint64_t now_ns = vb_clock_now();

	return vb_spin_has_cpu(policy, now_ns) ||
	       vb_spin_on_count(policy, now_ns, vb_cpus_count_running_threads(),
				vb_cpus_count_own(), vb_cpus_count_all());
}

/* Whether no other thread drives the engine or asks for the helper. */
static bool is_left_alone(const struct vb_adapter *adapter)
{
	return vb_helper_policy_may_spin_on(&adapter->policy, vb_clock_now()) &&
	       !vb_adapter_is_asked(adapter) &&
	       !atomic_load_explicit(&adapter->is_closing, memory_order_relaxed);
}

/* Spins as long as packets come soon enough. Everything else gets its look in between. */
static void spin(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t switch_count = vb_thread_yield();
	uint64_t begin_ns = vb_clock_now();
	bool goes_on = true;

	vb_drive_policy_announce(&adapter->policy, begin_ns); /* no one needs to wake us before */
	vb_spin_begin(&look->policy.spin, begin_ns);
	while (goes_on && is_left_alone(adapter) && vb_lock_try(&adapter->owner)) {
		bool has_moved = vb_adapter_glance(adapter);

		vb_lock_give(&adapter->owner);
		goes_on = vb_spin_on_look(&look->policy.spin, vb_clock_now(), has_moved);
	}
	switch_count = vb_thread_yield() - switch_count;
	vb_spin_on_end(&look->policy.spin, vb_clock_now(), switch_count);
	sleep_until(adapter, look, 0, -1);
}

static void maintain(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t now = vb_clock_now();

	if (now - look->checked_ns < REPAIR_NS)
		return;
	look->checked_ns = now;
	vb_adapter_repair(adapter);
	if (now - look->tail_checked_ns < TAIL_CHECK_NS)
		return;
	look->tail_checked_ns = now;
	vb_lock_take(&adapter->owner); /* the owner of the engine may unplug the adapter */
	if (adapter->member)
		vb_port_member_drop_tail(adapter->member);
	if (adapter->member && adapter->udp)
		vb_port_member_read_all(adapter->member, adapter->udp);
	vb_lock_give(&adapter->owner);
}

static void hold_mark(struct vb_adapter *adapter)
{
	if (adapter->peers)
		vb_local_peers_hold_mark(adapter->peers);
	atomic_store_explicit(&adapter->is_marked, true, memory_order_release);
}

static void wait_for_work(struct vb_adapter *adapter, struct helper_state *look, bool has_driven)
{
	bool is_rung = vb_nic_is_rung(adapter->nic);

	switch (vb_helper_policy_next(&look->policy, &adapter->policy, vb_clock_now(), has_driven,
				      is_rung)) {
	case VB_HELPER_LOOK:
		break;
	case VB_HELPER_PAUSE:
		pause_while_driven(adapter, look);
		break;
	case VB_HELPER_KEEP_DEADLINES:
		keep_deadlines(adapter, look);
		break;
	case VB_HELPER_SPIN:
		if (has_cpu_to_spin(look))
			spin(adapter, look);
		else
			sleep_on_sockets(adapter, look);
		break;
	case VB_HELPER_SLEEP:
		sleep_on_sockets(adapter, look);
		break;
	}
}

static void *run_helper(void *argument)
{
	struct vb_adapter *adapter = argument;
	struct helper_state look = { 0 };

	vb_helper_policy_init(&look.policy);
	vb_conversion_on_helper(true);
	prctl(PR_SET_TIMERSLACK, 1); /* for this thread: short pauses must be short */
	hold_mark(adapter);
	while (!atomic_load_explicit(&adapter->is_closing, memory_order_acquire)) {
		maintain(adapter, &look);
		hold_mark(adapter); /* of what the check may have made again */
		wait_for_work(adapter, &look, look_once(adapter, &look));
	}
	vb_conversion_on_helper(false);
	return NULL;
}

/* No local peer meets us before the helper is marked as alive. */
vb_err vb_adapter_start_helper(struct vb_adapter *adapter)
{
	int err = vb_thread_start(&adapter->helper, run_helper, adapter);

	while (!err && !atomic_load_explicit(&adapter->is_marked, memory_order_acquire))
		syscall(SYS_nanosleep, &(struct timespec){ 0, START_PAUSE_NS }, NULL);
	return err ? VB_EAGAIN : VB_OK;
}

void vb_adapter_stop_helper(struct vb_adapter *adapter)
{
	atomic_store_explicit(&adapter->is_closing, true, memory_order_release);
	vb_adapter_wake_helper(adapter);
	vb_thread_join(&adapter->helper);
}
