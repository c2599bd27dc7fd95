/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driving the engine. host/policy/drive_policy.h says which thread drives, and when; this file does
 * it. One mutex is the engine's ownership: control calls wait for it, threads that poll or post
 * only try it. The thread that releases it looks at the doorbells again, since a thread that only
 * tried has gone on. If driving brings an earlier deadline than the one that a sleeping thread
 * keeps, the helper is woken for it.
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

static void log_event(struct vb_adapter *adapter, const struct vb_event *event)
{
	if (event->kind != VB_EVENT_COMPLETION)
		vb_async_log_add(&adapter->events, vb_event_describe(event->kind),
				 event->qp ? vb_qp_number(event->qp).v : 0);
}

VB_COLD static void report_events(struct vb_adapter *adapter)
{
	struct vb_event events[EVENT_BATCH];
	uint32_t count;

	do {
		count = vb_nic_take_events(adapter->nic, events, EVENT_BATCH);
		for (uint32_t i = 0; i < count; i++) {
			log_event(adapter, &events[i]);
			adapter->init.on_event(adapter->init.owner, &events[i]);
		}
	} while (count == EVENT_BATCH);
}

/* For the owner, before it drives. */
static uint64_t begin_drive(struct vb_adapter *adapter)
{
	uint64_t now_ns = vb_clock_glance(&adapter->clock);

	vb_drive_policy_on_drive(&adapter->policy, now_ns);
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
		vb_drive_policy_on_moved(&adapter->policy);
	}
	if (vb_nic_has_events(adapter->nic))
		report_events(adapter);
}

/*
 * The same, for a thread that posts or polls. Returns when the helper is to look at the latest, if
 * that must be computed.
 */
static uint64_t finish_turns(struct vb_adapter *adapter, bool has_moved, bool has_more)
{
	note_moves(adapter, has_moved);
	if (!vb_drive_policy_needs_deadline(&adapter->policy))
		return VB_NEVER;
	return has_more ? 0 : deadline(adapter);
}

/*
 * Takes up to VB_DRIVE_TURNS_MAX turns and returns how many moved something. `leaves_rest`: leaves
 * the rest to a thread that polls, which may be waiting for us.
 */
static uint32_t take_turns(struct vb_adapter *adapter, bool leaves_rest, bool *has_more)
{
	uint32_t turns = 0;

	begin_drive(adapter);
	vb_drive_policy_on_sent(&adapter->policy);
	do {
		*has_more = adapter->port && vb_port_turn(adapter->port, vb_clock_now());
		turns += *has_more;
	} while (*has_more && turns < VB_DRIVE_TURNS_MAX &&
		 !(leaves_rest && vb_drive_policy_is_polled(&adapter->policy, vb_clock_now())));
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

	vb_drive_policy_on_sent(&adapter->policy);
	if (adapter->port) {
		has_moved = vb_port_glance(adapter->port, now_ns);
		has_moved |= vb_port_send(adapter->port, now_ns);
	}
	vb_dma_end();
	note_moves(adapter, has_moved);
	return has_moved;
}

static void end_run_of_posts(struct vb_adapter *adapter)
{
	bool is_any_out = vb_drive_policy_is_streaming(&adapter->policy) &&
			  vb_nic_deadline(adapter->nic) != VB_NEVER;

	vb_drive_policy_on_poll_driven(&adapter->policy, is_any_out);
}

static bool try_defer_acks(struct vb_adapter *adapter, const struct vb_cq *cq)
{
	bool has_completions = cq && vb_cq_waiting(cq);

	return vb_drive_policy_try_defer_acks(&adapter->policy, has_completions,
					      has_completions &&
						      vb_nic_can_defer_acks(adapter->nic));
}

/* For a thread that polls: one round, because the thread comes again itself. */
static uint64_t drive_polled(struct vb_adapter *adapter, const struct vb_cq *cq)
{
	uint64_t now = begin_drive(adapter);
	bool polls_on = vb_drive_policy_on_poll(&adapter->policy, now);
	bool has_moved = false;

	if (adapter->port) {
		has_moved = vb_port_glance(adapter->port, now);
		if (!try_defer_acks(adapter, cq)) {
			has_moved |= vb_port_send(adapter->port, now);
			if (vb_drive_policy_on_round(&adapter->policy, now, polls_on))
				(void)vb_alarm_set(&adapter->alarm, VB_DRIVE_POSTPONED_NS);
		}
	}
	vb_dma_end();
	end_run_of_posts(adapter);
	return finish_turns(adapter, has_moved, has_moved);
}

static void note_run_of_posts(struct vb_adapter *adapter)
{
	if (vb_drive_policy_is_streaming(&adapter->policy))
		vb_drive_policy_on_stream_driven(&adapter->policy,
						 vb_nic_deadline(adapter->nic) == VB_NEVER);
}

/* The short paths do not ask for the memory of local peers. */
static bool needs_whole_turn(const struct vb_adapter *adapter)
{
	return adapter->peers && vb_local_peers_has_wanted_segments(adapter->peers);
}

/* The usual case of a post. False: the engine has more to do. */
static bool drive_now(struct vb_adapter *adapter, struct vb_qp *qp, uint64_t now_ns)
{
	if (!adapter->port || needs_whole_turn(adapter) ||
	    !vb_port_start_now(adapter->port, qp, now_ns))
		return false;
	vb_drive_policy_on_sent(&adapter->policy);
	return true;
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

	vb_drive_policy_on_post_driven(&adapter->policy, now);
	if (qp && drive_now(adapter, qp, now)) {
		vb_dma_end();
		note_run_of_posts(adapter);
		return finish_turns(adapter, true, false);
	}
	if (qp)
		vb_qp_on_doorbell(qp);
	vb_drive_policy_on_sent(&adapter->policy);
	while (turns < VB_DRIVE_TURNS_MAX && adapter->port && vb_port_send(adapter->port, now)) {
		turns++;
		has_enough = vb_nic_has_moved_enough(adapter->nic);
		/* With enough moved, the helper or the next poll does the rest. */
		if (has_enough || !vb_nic_has_work(adapter->nic))
			break;
	}
	vb_dma_end();
	note_run_of_posts(adapter);
	return turns ? finish_turns(adapter, true, has_enough || turns == VB_DRIVE_TURNS_MAX)
		     : vb_adapter_drive(adapter);
}

/* Drives unless another thread does. What is posted while this thread drives is not left behind. */
static void try_drive(struct vb_adapter *adapter, bool is_polling, const struct vb_cq *cq)
{
	do {
		uint64_t deadline_ns;

		if (!vb_lock_try(&adapter->owner)) {
			if (is_polling)
				vb_drive_policy_on_poll_beside(&adapter->policy);
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

	if (!vb_drive_policy_has_deferred_acks(&adapter->policy))
		return;
	now = begin_drive(adapter);
	vb_drive_policy_on_sent(&adapter->policy);
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

/*
 * Packets that wait in a socket have reached the adapter. Hardware would have answered them
 * already, so their sender must not repeat them to a QP that is gone.
 */
void vb_adapter_enter_to_end(struct vb_adapter *adapter)
{
	bool has_more;

	vb_lock_take(&adapter->owner);
	note_moves(adapter, take_turns(adapter, false, &has_more));
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

void vb_adapter_on_poll(struct vb_adapter *adapter)
{
	if (vb_drive_policy_on_poll_found(&adapter->policy))
		try_drive(adapter, false, NULL);
}

/* For a poller that has found nothing for a while. */
static void give_way(struct vb_adapter *adapter)
{
	switch (vb_drive_policy_on_idle(&adapter->policy, vb_clock_now())) {
	case VB_DRIVE_YIELD:
		syscall(SYS_sched_yield);
		break;
	case VB_DRIVE_SLEEP:
		if (vb_lock_take_within(&adapter->owner, VB_DRIVE_REST_NS))
			vb_lock_give(&adapter->owner);
		break;
	}
}

void vb_adapter_poll(struct vb_adapter *adapter, const struct vb_cq *cq)
{
	try_drive(adapter, true, cq);
	if (vb_drive_policy_on_empty_poll(&adapter->policy))
		give_way(adapter);
}

/* Counts a post. True if what is posted may wait. */
static bool count_post(struct vb_adapter *adapter)
{
	bool can_wait = vb_drive_policy_may_post_wait(&adapter->policy);

	vb_drive_policy_on_post(&adapter->policy);
	return can_wait;
}

/* For use after the doorbell has been rung. */
static void kick(struct vb_adapter *adapter, bool can_wait)
{
	if (can_wait && vb_drive_policy_is_helper_pausing(&adapter->policy))
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

	if (vb_recorder_is_on(&adapter->recorder))
		vb_recorder_on_doorbell(&adapter->recorder, vb_qp_number(qp));
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
	uint64_t deadline_ns = VB_NEVER;
	bool is_done;

	if (!vb_qp_may_write_now(qp, request) || vb_drive_policy_may_post_wait(&adapter->policy) ||
	    !vb_lock_try(&adapter->owner))
		return false;
	vb_qp_expect_write(qp, request);
	vb_dma_begin(vb_dma_needs_exact_time() ? vb_clock_glance(&adapter->clock)
					       : vb_clock_tick());
	is_done = !needs_whole_turn(adapter) && vb_qp_write_now(qp, request);
	vb_dma_end();
	if (is_done) {
		uint64_t now_ns = vb_clock_glance(&adapter->clock);

		vb_qp_conclude_write(qp, request, now_ns);
		vb_drive_policy_on_drive(&adapter->policy, now_ns);
		vb_drive_policy_on_post(&adapter->policy);
		vb_drive_policy_on_post_driven(&adapter->policy, now_ns);
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
	if (vb_drive_policy_on_arm(&adapter->policy))
		vb_adapter_wake_helper(adapter);
}
