/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread. While the program polls, the helper sleeps until that ends. While a thread
 * waits on the sockets, the helper handles only deadlines. Otherwise the helper waits on the
 * sockets itself. It announces when it will look next. A thread that needs the helper earlier, or
 * finds that it no longer waits for the right thing, wakes it. An idle adapter's helper hardly ever
 * wakes; one whose packets follow each other closely waits for the next packet awake (spin.h).
 */
#include "host/adapter/adapter_priv.h"

#include "host/adapter/spin.h"
#include "host/local/conversion.h"
#include "host/local/local_peer.h"
#include "host/registry/port_member.h"
#include "host/sys/clock.h"
#include "host/sys/thread.h"
#include "link/fd.h"
#include "nic/rings.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The first pause is short: some programs poll for a moment only and then wait for data in memory,
 * which only the helper brings in. Each pause is twice as long as the one before, for as long as
 * the program continues to poll; and in the end it lasts until the program no longer postpones the
 * alarm.
 */
#define FIRST_PAUSE_NS 50000u
#define PAUSE_NS 1000000u
/*
 * After traffic the helper sleeps no longer than this: a deadline that the next request brings is
 * then usually a later one, and no thread needs to wake the helper for each request.
 */
#define LINGER_NS 10000000u
#define MISSES_MAX 2u
#define START_PAUSE_NS 20000
#define TAIL_CHECK_NS 1000000000u
#define SPIN_ROUND_NS 1000000u /* between two looks at everything */

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

bool vb_adapter_is_polled(const struct vb_adapter *adapter)
{
	return vb_drive_policy_is_polled(&adapter->policy, vb_clock_now());
}

enum { WAKE, WATCH, ALARM, SOCKETS };

/* The helper's state from one look to the next. */
struct helper_state {
	struct pollfd fds[SOCKETS + VB_PORT_FDS_MAX];
	uint32_t count;
	uint64_t moves;
	uint64_t until_ns;
	uint64_t pause_ns; /* how long the next pause is */
	uint32_t rounds; /* the adapter's rounds at our last look */
	uint32_t misses; /* looks in a row at which another thread was driving */
	uint64_t checked_ns; /* when we last checked that our descriptors are still open */
	/* When we last released what other processes left behind. */
	uint64_t tail_checked_ns;
	struct vb_spin spin;
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
	uint64_t longest_ns;

	if (is_woken_by_sockets(look))
		vb_adapter_on_wake(adapter, look->fds + SOCKETS);
	look->until_ns = vb_adapter_drive(adapter);
	longest_ns = vb_clock_now() + (look->moves == adapter->moves ? CHECK_NS : LINGER_NS);
	if (look->until_ns > longest_ns)
		look->until_ns = longest_ns;
	look->moves = adapter->moves;
	look->count = SOCKETS + vb_adapter_fds(adapter, look->fds + SOCKETS);
	vb_drive_policy_announce(&adapter->policy, look->until_ns);
}

/*
 * False if another thread is driving: to wait for it would mean to take its place when it is done,
 * though it may well go on. But a program that posts without end may never leave a gap, so after a
 * few misses the helper does wait.
 */
static bool try_helping(struct vb_adapter *adapter, struct helper_state *look)
{
	if (!vb_lock_try(&adapter->owner)) {
		if (look->misses++ < MISSES_MAX)
			return false;
		vb_lock_take(&adapter->owner);
	}
	look->misses = 0;
	vb_drive_policy_on_help(&adapter->policy, true);
	drive(adapter, look);
	vb_drive_policy_on_help(&adapter->policy, false);
	vb_lock_give(&adapter->owner);
	return true;
}

/*
 * Whether the program drives everything itself: it polls, has done a whole round since we last
 * asked, and has deferred nothing. If the helper also drove, the program would only have to wait. A
 * program that merely posts, and always finds its completions, does not look at everything.
 */
static bool note_other_drivers(const struct vb_adapter *adapter, struct helper_state *look)
{
	uint32_t rounds = atomic_load_explicit(&adapter->policy.rounds, memory_order_relaxed);
	bool has_gone_round = rounds != look->rounds;

	look->rounds = rounds;
	return has_gone_round && vb_adapter_is_polled(adapter) && !vb_nic_is_rung(adapter->nic) &&
	       !vb_drive_policy_has_deferred_acks(&adapter->policy);
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
	uint64_t until_ns = now_ns + look->pause_ns;
	int alarm_fd = -1;

	vb_drive_policy_announce(&adapter->policy, VB_DRIVE_HELPER_PAUSES);
	look->count = SOCKETS;
	if (look->pause_ns == PAUSE_NS)
		alarm_fd = vb_alarm_set(&adapter->alarm, now_ns, PAUSE_NS);
	if (alarm_fd >= 0)
		until_ns = now_ns + CHECK_NS;
	/* A thread that arms a CQ may have looked before we announced the pause. */
	if (vb_adapter_is_polled(adapter) || vb_lock_is_held(&adapter->owner))
		sleep_until(adapter, look, until_ns, alarm_fd);
	vb_alarm_stop(&adapter->alarm);
	look->pause_ns = look->pause_ns < PAUSE_NS / 2 ? 2 * look->pause_ns : PAUSE_NS;
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
	vb_spin_on_sleep(&look->spin, vb_clock_now() - begin_ns,
			 !can_sleep || is_woken_by_sockets(look));
	vb_lock_take(&adapter->owner);
	vb_adapter_end_sleep(adapter);
	vb_lock_give(&adapter->owner);
}

static bool decide_to_spin(struct helper_state *look)
{
	uint64_t now_ns = vb_clock_now();

	return vb_spin_is_earned(&look->spin, now_ns) && vb_spin_look_for_cpu(&look->spin, now_ns);
}

/* Whether no other thread drives the engine or asks for the helper. */
static bool is_left_alone(const struct vb_adapter *adapter)
{
	return !vb_adapter_is_polled(adapter) && !vb_drive_policy_has_waiters(&adapter->policy) &&
	       !vb_adapter_is_asked(adapter) &&
	       !atomic_load_explicit(&adapter->is_closing, memory_order_relaxed);
}

/* Spins as long as packets come soon enough. Everything else gets its look in between. */
static void spin(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t begin_ns = vb_clock_now();
	uint64_t packet_ns = begin_ns;
	uint64_t now_ns = begin_ns;

	vb_drive_policy_announce(&adapter->policy, begin_ns); /* no one needs to wake us before */
	while (is_left_alone(adapter) && vb_lock_try(&adapter->owner)) {
		bool has_moved = vb_adapter_glance(adapter);
		uint64_t before_ns = now_ns;

		vb_lock_give(&adapter->owner);
		now_ns = vb_clock_now();
		if (has_moved) {
			packet_ns = now_ns;
			vb_spin_on_packet(&look->spin);
		} else if (now_ns - before_ns > VB_SPIN_LOST_NS) {
			vb_spin_on_loss(&look->spin, now_ns);
			break;
		} else if (now_ns - packet_ns > VB_SPIN_NS) {
			vb_spin_on_timeout(&look->spin);
			break;
		}
		if (now_ns - begin_ns > SPIN_ROUND_NS)
			break;
	}
	sleep_until(adapter, look, 0, -1);
}

static void maintain(struct vb_adapter *adapter, struct helper_state *look)
{
	uint64_t now = vb_clock_now();

	if (now - look->checked_ns < LINGER_NS)
		return;
	look->checked_ns = now;
	vb_adapter_repair(adapter);
	if (!adapter->member || now - look->tail_checked_ns < TAIL_CHECK_NS)
		return;
	look->tail_checked_ns = now;
	vb_port_member_drop_tail(adapter->member);
}

static void hold_mark(struct vb_adapter *adapter)
{
	if (adapter->peers)
		vb_local_peers_hold_mark(adapter->peers);
	atomic_store_explicit(&adapter->is_marked, true, memory_order_release);
}

static void *run_helper(void *argument)
{
	struct vb_adapter *adapter = argument;
	struct helper_state look = { .pause_ns = FIRST_PAUSE_NS };

	vb_conversion_on_helper(true);
	prctl(PR_SET_TIMERSLACK, 1); /* for this thread: short pauses must be short */
	hold_mark(adapter);
	while (!atomic_load_explicit(&adapter->is_closing, memory_order_acquire)) {
		bool has_looked;

		maintain(adapter, &look);
		hold_mark(adapter); /* of what the check may have made again */
		has_looked = !note_other_drivers(adapter, &look) && try_helping(adapter, &look);

		if (has_looked && vb_nic_is_rung(adapter->nic))
			continue;
		if (!has_looked || vb_adapter_is_polled(adapter)) {
			pause_while_driven(adapter, &look);
			continue;
		}
		look.pause_ns = FIRST_PAUSE_NS;
		if (vb_drive_policy_has_waiters(&adapter->policy)) {
			look.count = SOCKETS;
			sleep_until(adapter, &look, look.until_ns, -1);
		} else if (decide_to_spin(&look)) {
			spin(adapter, &look);
		} else {
			sleep_on_sockets(adapter, &look);
		}
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
