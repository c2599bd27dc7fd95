/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driving the engine. One mutex is the engine's ownership: control calls wait for it, threads that
 * poll or post only try it. The thread that releases it looks at the doorbells again, since a
 * thread that only tried has gone on. If driving brings an earlier deadline than the one that a
 * sleeping thread keeps, the helper is woken for it.
 */
#include "host/adapter/adapter_priv.h"

#include "host/port/port.h"
#include "host/local/local_peer.h"
#include "host/memory/dma.h"
#include "host/sys/clock.h"
#include "nic/cq.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <sys/syscall.h>
#include <unistd.h>

#define EVENT_BATCH 32u
#define TURN_BATCH 16u
#define SINGLE_POSTS_MAX 8u /* in a row: up to this many are sent one by one */
#define POSTS_TOGETHER 32u
#define IDLE_POLLS_MAX 128u
#define REST_NS 1000000u
/* Polls that find something. A program may look at two CQs before it posts. */
#define POLLS_BEFORE_ANSWER 2u
#define STREAMS_NS 10000000u /* between two polls of a program that posts meanwhile */
#define LAST_POLLS 4u /* polls that a program may do between arming a CQ and sleeping */

VB_COLD static void report_events(struct vb_adapter *adapter)
{
	struct vb_event events[EVENT_BATCH];
	uint32_t count;

	do {
		count = vb_nic_take_events(adapter->nic, events, EVENT_BATCH);
		for (uint32_t i = 0; i < count; i++)
			adapter->init.on_event(adapter->init.owner, &events[i]);
	} while (count == EVENT_BATCH);
}

/* For the owner, before it drives. */
static uint64_t begin_drive(struct vb_adapter *adapter)
{
	uint64_t now_ns = vb_clock_glance(&adapter->clock);

	atomic_store_explicit(&adapter->driven_ns, now_ns, memory_order_relaxed);
	vb_dma_begin(now_ns);
	return now_ns;
}

static uint64_t deadline(const struct vb_adapter *adapter)
{
	return adapter->port ? vb_port_deadline(adapter->port) : vb_nic_deadline(adapter->nic);
}

/* For the owner, when something may have moved. */
static void note_moves(struct vb_adapter *adapter, bool has_moved)
{
	if (has_moved) {
		adapter->moves++;
		atomic_store_explicit(&adapter->idle_polls, 0, memory_order_relaxed);
	}
	if (vb_nic_has_events(adapter->nic))
		report_events(adapter);
}

/*
 * The same, for a thread that posts or polls. Returns when the helper is to look at the latest: a
 * helper that pauses looks soon enough, and after this thread, so that the deadline need not be
 * computed.
 */
static uint64_t finish_turns(struct vb_adapter *adapter, bool has_moved, bool has_more)
{
	note_moves(adapter, has_moved);
	if (atomic_load_explicit(&adapter->helper_wakes_ns, memory_order_relaxed) == HELPER_PAUSES)
		return VB_NEVER;
	return has_more ? 0 : deadline(adapter);
}

/*
 * Takes up to TURN_BATCH turns and returns how many moved something. `leaves_rest`: leaves the
 * rest to a thread that polls, which may be waiting for us.
 */
static uint32_t take_turns(struct vb_adapter *adapter, bool leaves_rest, bool *has_more)
{
	uint32_t turns = 0;

	begin_drive(adapter);
	atomic_store_explicit(&adapter->deferred_ack_polls, 0, memory_order_relaxed);
	do {
		*has_more = adapter->port && vb_port_turn(adapter->port, vb_clock_now());
		turns += *has_more;
	} while (*has_more && turns < TURN_BATCH &&
		 !(leaves_rest && vb_adapter_is_polled(adapter)));
	vb_dma_end();
	return turns;
}

void vb_adapter_move_packets(struct vb_adapter *adapter)
{
	bool has_more;

	(void)take_turns(adapter, false, &has_more);
}

uint64_t vb_adapter_drive(struct vb_adapter *adapter)
{
	bool has_more;

	note_moves(adapter, take_turns(adapter, true, &has_more));
	return has_more ? 0 : deadline(adapter);
}

bool vb_adapter_glance(struct vb_adapter *adapter)
{
	uint64_t now_ns = begin_drive(adapter);
	bool has_moved = false;

	atomic_store_explicit(&adapter->deferred_ack_polls, 0, memory_order_relaxed);
	if (adapter->port) {
		has_moved = vb_port_glance(adapter->port, now_ns);
		has_moved |= vb_port_send(adapter->port, now_ns);
	}
	vb_dma_end();
	note_moves(adapter, has_moved);
	return has_moved;
}

/*
 * The program looks for completions, which ends its row of posts. But a program that streamed is
 * expected to go on streaming while packets are on their way.
 */
static void end_run_of_posts(struct vb_adapter *adapter)
{
	uint32_t count = atomic_load_explicit(&adapter->posts_in_a_row, memory_order_relaxed);
	bool is_streaming = count >= SINGLE_POSTS_MAX && vb_nic_deadline(adapter->nic) != VB_NEVER;

	if (count)
		atomic_store_explicit(&adapter->posts_in_a_row, is_streaming ? SINGLE_POSTS_MAX : 0,
				      memory_order_relaxed);
}

/*
 * Whether what is to be sent can wait for what the program does next: it has found what it polls
 * for and usually posts then, and both go out together. Only ACKs wait. Never twice in a row: a
 * program that only receives must also answer.
 */
static bool try_defer_acks(struct vb_adapter *adapter, const struct vb_cq *cq)
{
	bool has_deferred =
		atomic_load_explicit(&adapter->deferred_ack_polls, memory_order_relaxed);
	bool defers = !has_deferred && cq && vb_cq_waiting(cq) &&
		      vb_nic_owes_only_acks(adapter->nic);

	atomic_store_explicit(&adapter->deferred_ack_polls, defers ? POLLS_BEFORE_ANSWER : 0,
			      memory_order_relaxed);
	return defers;
}

/*
 * A program that has armed a CQ looks once more and then sleeps: the helper must not rely on such
 * polling.
 */
static void note_poll(struct vb_adapter *adapter, uint64_t now_ns)
{
	if (!atomic_load_explicit(&adapter->polls_before_sleep, memory_order_relaxed))
		atomic_store_explicit(&adapter->polled_ns, now_ns, memory_order_relaxed);
}

/*
 * For a poller that finds something, or finds another thread driving: asking for the time would
 * cost as much as the whole look.
 */
static void note_driven_poll(struct vb_adapter *adapter)
{
	note_poll(adapter, atomic_load_explicit(&adapter->driven_ns, memory_order_relaxed));
}

/*
 * A round is complete: everything was looked at. The helper may sleep on if the program was also
 * polling a moment ago; one poll does not mean that another follows soon.
 */
static void note_round(struct vb_adapter *adapter, uint64_t now_ns, bool polls_on)
{
	uint32_t rounds = atomic_load_explicit(&adapter->rounds, memory_order_relaxed);

	atomic_store_explicit(&adapter->rounds, rounds + 1, memory_order_relaxed);
	if (polls_on)
		vb_alarm_postpone(&adapter->alarm, now_ns);
}

/* Whether the last poll that counts was recent, before this one is noted. */
static bool is_polling_on(const struct vb_adapter *adapter, uint64_t now_ns)
{
	return now_ns - atomic_load_explicit(&adapter->polled_ns, memory_order_relaxed) <
	       POLLED_RECENTLY_NS;
}

/* For a thread that polls: one round, because the thread comes again itself. */
static uint64_t drive_polled(struct vb_adapter *adapter, const struct vb_cq *cq)
{
	uint64_t now = begin_drive(adapter);
	bool polls_on = is_polling_on(adapter, now);
	bool has_moved = false;

	note_poll(adapter, now);
	if (adapter->port) {
		has_moved = vb_port_glance(adapter->port, now);
		if (!try_defer_acks(adapter, cq)) {
			has_moved |= vb_port_send(adapter->port, now);
			note_round(adapter, now, polls_on);
		}
	}
	vb_dma_end();
	end_run_of_posts(adapter);
	return finish_turns(adapter, has_moved, has_moved);
}

/*
 * A program that polls now and then also counts as polling while it posts one request after the
 * other, however long that takes.
 */
static void note_post(struct vb_adapter *adapter, uint64_t now_ns)
{
	uint64_t polled_ns = atomic_load_explicit(&adapter->polled_ns, memory_order_relaxed);

	if (now_ns - polled_ns < STREAMS_NS)
		note_poll(adapter, now_ns);
}

static void note_run_of_posts(struct vb_adapter *adapter)
{
	if (atomic_load_explicit(&adapter->posts_in_a_row, memory_order_relaxed) >=
	    SINGLE_POSTS_MAX)
		atomic_store_explicit(&adapter->is_all_done,
				      vb_nic_deadline(adapter->nic) == VB_NEVER,
				      memory_order_relaxed);
}

/* A program that polls after each request and always finds its completion does not stream. */
static void end_streaming_if_answered(struct vb_adapter *adapter)
{
	uint32_t count = atomic_load_explicit(&adapter->posts_in_a_row, memory_order_relaxed);
	uint32_t before = atomic_load_explicit(&adapter->posts_at_poll, memory_order_relaxed);

	if (count >= SINGLE_POSTS_MAX && count - before <= 1 &&
	    atomic_load_explicit(&adapter->is_all_done, memory_order_relaxed)) {
		count = 0;
		atomic_store_explicit(&adapter->posts_in_a_row, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&adapter->posts_at_poll, count, memory_order_relaxed);
}

/* The short paths do not ask for the memory of local peers. */
static bool needs_whole_turn(const struct vb_adapter *adapter)
{
	return adapter->peers && vb_local_peers_has_wanted_segments(adapter->peers);
}

/* The usual case of a post between processes of one host. False: the engine has more to do. */
static bool drive_now(struct vb_adapter *adapter, struct vb_qp *qp, uint64_t now_ns)
{
	if (needs_whole_turn(adapter))
		return false;
	if (vb_qp_execute_now(qp, now_ns)) {
		if (adapter->port)
			vb_port_report_executed(adapter->port);
		return true;
	}
	if (!adapter->port || !vb_port_send_now(adapter->port, qp, now_ns))
		return false;
	atomic_store_explicit(&adapter->deferred_ack_polls, 0, memory_order_relaxed);
	return !vb_nic_has_work(adapter->nic);
}

/*
 * For a thread that has posted: to this QP, or, if NULL, to QPs whose doorbells were rung. What has
 * arrived does not concern that thread, unless it cannot send before that is processed.
 */
static uint64_t drive_posted(struct vb_adapter *adapter, struct vb_qp *qp)
{
	uint64_t now = begin_drive(adapter);
	uint32_t turns = 0;
	bool has_enough = false;

	note_post(adapter, now);
	if (qp && drive_now(adapter, qp, now)) {
		vb_dma_end();
		note_run_of_posts(adapter);
		return finish_turns(adapter, true, false);
	}
	if (qp)
		vb_qp_on_doorbell(qp);
	atomic_store_explicit(&adapter->deferred_ack_polls, 0, memory_order_relaxed);
	while (turns < TURN_BATCH && adapter->port && vb_port_send(adapter->port, now)) {
		turns++;
		has_enough = vb_nic_has_moved_enough(adapter->nic);
		/* With enough moved, the helper or the next poll does the rest. */
		if (has_enough || !vb_nic_has_work(adapter->nic))
			break;
	}
	vb_dma_end();
	note_run_of_posts(adapter);
	return turns ? finish_turns(adapter, true, has_enough || turns == TURN_BATCH)
		     : vb_adapter_drive(adapter);
}

/* Drives unless another thread does. What is posted while this thread drives is not left behind. */
static void try_drive(struct vb_adapter *adapter, bool is_polling, const struct vb_cq *cq)
{
	do {
		uint64_t deadline_ns;

		if (!vb_lock_try(&adapter->owner)) {
			if (is_polling)
				note_driven_poll(adapter);
			/* The owner looks at the doorbells after it has released the lock. */
			return;
		}
		deadline_ns = is_polling ? drive_polled(adapter, cq) : drive_posted(adapter, NULL);
		vb_lock_give(&adapter->owner);
		vb_adapter_wake_helper_before(adapter, deadline_ns);
	} while (vb_nic_is_rung(adapter->nic));
}

void vb_adapter_send_deferred_acks(struct vb_adapter *adapter)
{
	uint64_t now;

	if (!atomic_load_explicit(&adapter->deferred_ack_polls, memory_order_relaxed))
		return;
	now = begin_drive(adapter);
	atomic_store_explicit(&adapter->deferred_ack_polls, 0, memory_order_relaxed);
	if (adapter->port)
		(void)vb_port_send(adapter->port, now);
	vb_dma_end();
}

/*
 * Sends deferred answers first: what the caller is about to do may end a QP that owes its peer an
 * answer.
 */
void vb_adapter_enter(struct vb_adapter *adapter)
{
	vb_lock_take(&adapter->owner);
	vb_adapter_send_deferred_acks(adapter);
}

/* Releases the engine. A thread that could not get it meanwhile has rung. */
static void release_engine(struct vb_adapter *adapter, uint64_t deadline_ns)
{
	vb_lock_give(&adapter->owner);
	vb_adapter_wake_helper_before(adapter, deadline_ns);
	if (vb_nic_is_rung(adapter->nic))
		try_drive(adapter, false, NULL);
}

void vb_adapter_leave(struct vb_adapter *adapter)
{
	release_engine(adapter, vb_adapter_drive(adapter));
}

/*
 * A program that finds one completion after the other without posting leaves its peers without
 * answers.
 */
void vb_adapter_on_poll(struct vb_adapter *adapter)
{
	uint32_t left = atomic_load_explicit(&adapter->deferred_ack_polls, memory_order_relaxed);

	note_driven_poll(adapter);
	end_streaming_if_answered(adapter);
	if (!left)
		return;
	if (left > 1)
		atomic_store_explicit(&adapter->deferred_ack_polls, left - 1, memory_order_relaxed);
	else
		try_drive(adapter, false, NULL);
}

static void count_empty_poll(struct vb_adapter *adapter)
{
	uint32_t left = atomic_load_explicit(&adapter->polls_before_sleep, memory_order_relaxed);

	if (left)
		atomic_store_explicit(&adapter->polls_before_sleep, left - 1, memory_order_relaxed);
}

/*
 * For a poller that finds nothing: perhaps the thread or peer that it waits for needs this CPU.
 * Between threads of equal priority, yielding gives that thread half of the CPU at most, so a
 * poller that waits for the helper sleeps.
 */
static void yield_cpu(struct vb_adapter *adapter)
{
	if (!atomic_load_explicit(&adapter->is_helped, memory_order_relaxed))
		syscall(SYS_sched_yield);
	else if (vb_lock_take_within(&adapter->owner, REST_NS))
		vb_lock_give(&adapter->owner);
}

/*
 * Returns how many there were before. If two threads poll at the same time, one poll may not be
 * counted.
 */
static uint32_t count_idle_poll(struct vb_adapter *adapter)
{
	uint32_t before = atomic_load_explicit(&adapter->idle_polls, memory_order_relaxed);

	atomic_store_explicit(&adapter->idle_polls, before + 1, memory_order_relaxed);
	return before;
}

void vb_adapter_poll(struct vb_adapter *adapter, const struct vb_cq *cq)
{
	try_drive(adapter, true, cq);
	count_empty_poll(adapter);
	if (count_idle_poll(adapter) < IDLE_POLLS_MAX)
		return;
	note_poll(adapter, vb_clock_now()); /* also if another thread drives, and for long */
	yield_cpu(adapter);
}

/*
 * A program that keeps posting without looking for completions streams: its packets wait for more,
 * until there are enough of them or the program polls. If it does neither, the helper finds them;
 * so they wait only while the helper pauses, which is not for long.
 */
static bool may_wait(uint32_t posts_in_a_row)
{
	return posts_in_a_row > SINGLE_POSTS_MAX && posts_in_a_row % POSTS_TOGETHER;
}

/* Counts a post. True if what is posted may wait. */
static bool count_post(struct vb_adapter *adapter)
{
	/* If two threads post at the same time, one post may not be counted. */
	uint32_t count = atomic_load_explicit(&adapter->posts_in_a_row, memory_order_relaxed) + 1;

	atomic_store_explicit(&adapter->posts_in_a_row, count, memory_order_relaxed);
	return may_wait(count);
}

/* For use after the doorbell has been rung. */
static void kick(struct vb_adapter *adapter, bool can_wait)
{
	/* Pairs with the helper's look at the doorbells, after it has announced when it wakes. */
	if (can_wait &&
	    atomic_load_explicit(&adapter->helper_wakes_ns, memory_order_seq_cst) == HELPER_PAUSES)
		return;
	try_drive(adapter, false, NULL);
}

void vb_adapter_kick(struct vb_adapter *adapter)
{
	kick(adapter, count_post(adapter));
}

/* A thread that can drive needs no doorbell. */
void vb_adapter_kick_qp(struct vb_adapter *adapter, struct vb_qp *qp)
{
	bool can_wait = count_post(adapter);

	if (can_wait || !vb_lock_try(&adapter->owner)) {
		vb_qp_ring_doorbell(qp);
		kick(adapter, can_wait);
		return;
	}
	release_engine(adapter, drive_posted(adapter, qp));
}

bool vb_adapter_write_now(struct vb_adapter *adapter, struct vb_qp *qp,
			  const struct vb_send_request *request)
{
	uint32_t count = atomic_load_explicit(&adapter->posts_in_a_row, memory_order_relaxed) + 1;
	uint64_t deadline_ns = VB_NEVER;
	uint64_t now_ns;
	bool is_done;

	if (!vb_qp_may_write_now(qp, request) || may_wait(count) || !vb_lock_try(&adapter->owner))
		return false;
	now_ns = begin_drive(adapter);
	is_done = !needs_whole_turn(adapter) && vb_qp_write_now(qp, now_ns, request);
	vb_dma_end();
	if (is_done) {
		if (adapter->port)
			vb_port_report_executed(adapter->port);
		atomic_store_explicit(&adapter->posts_in_a_row, count, memory_order_relaxed);
		note_post(adapter, now_ns);
		note_run_of_posts(adapter);
		deadline_ns = finish_turns(adapter, true, false);
	}
	release_engine(adapter, deadline_ns);
	return is_done;
}

void vb_adapter_kick_now(struct vb_adapter *adapter)
{
	try_drive(adapter, false, NULL);
}

void vb_adapter_expect_sleep(struct vb_adapter *adapter)
{
	atomic_store_explicit(&adapter->polls_before_sleep, LAST_POLLS, memory_order_relaxed);
	/*
	 * Pairs with the helper's second look at polled_ns, after it has announced that it pauses.
	 */
	atomic_store_explicit(&adapter->polled_ns, 0, memory_order_seq_cst);
	vb_adapter_end_pause(adapter);
}
