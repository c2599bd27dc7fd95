/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/policy/drive_policy.h"

#include "base/timer.h"

/* Also if another thread has reported meanwhile, so that it lies behind the caller's time. */
static bool is_within(uint64_t since_ns, uint64_t longest_ns, uint64_t now_ns)
{
	return now_ns < since_ns + longest_ns;
}

void vb_drive_policy_init(struct vb_drive_policy *policy)
{
	*policy = (struct vb_drive_policy){ .postpone_ns = VB_NEVER };
}

/* --- driving --- */

void vb_drive_policy_on_drive(struct vb_drive_policy *policy, uint64_t now_ns)
{
	atomic_store_explicit(&policy->driven_ns, now_ns, memory_order_relaxed);
}

void vb_drive_policy_on_moved(struct vb_drive_policy *policy)
{
	atomic_store_explicit(&policy->idle_polls, 0, memory_order_relaxed);
}

/*
 * Polls right after arming do not count: the program sleeps next, and no thread may rely on its
 * polling.
 */
static void note_poll(struct vb_drive_policy *policy, uint64_t now_ns)
{
	if (!atomic_load_explicit(&policy->polls_before_sleep, memory_order_relaxed))
		atomic_store_explicit(&policy->polled_ns, now_ns, memory_order_relaxed);
}

/* --- posts --- */

bool vb_drive_policy_may_post_wait(const struct vb_drive_policy *policy)
{
	uint32_t count = atomic_load_explicit(&policy->posts_in_a_row, memory_order_relaxed) + 1;

	return count > VB_DRIVE_SINGLE_POSTS_MAX && count % VB_DRIVE_POSTS_TOGETHER;
}

void vb_drive_policy_on_post(struct vb_drive_policy *policy)
{
	uint32_t count = atomic_load_explicit(&policy->posts_in_a_row, memory_order_relaxed);

	atomic_store_explicit(&policy->posts_in_a_row, count + 1, memory_order_relaxed);
}

/*
 * A program that polls now and then also counts as polling while it posts one request after the
 * other, however long that takes.
 */
void vb_drive_policy_on_post_driven(struct vb_drive_policy *policy, uint64_t now_ns)
{
	uint64_t polled_ns = atomic_load_explicit(&policy->polled_ns, memory_order_relaxed);

	if (is_within(polled_ns, VB_DRIVE_STREAMS_NS, now_ns))
		note_poll(policy, now_ns);
}

bool vb_drive_policy_is_streaming(const struct vb_drive_policy *policy)
{
	return atomic_load_explicit(&policy->posts_in_a_row, memory_order_relaxed) >=
	       VB_DRIVE_SINGLE_POSTS_MAX;
}

void vb_drive_policy_on_stream_driven(struct vb_drive_policy *policy, bool is_all_done)
{
	atomic_store_explicit(&policy->is_all_done, is_all_done, memory_order_relaxed);
}

/* --- polls --- */

/*
 * For a poller that finds something, or finds another thread driving: asking for the time would
 * cost as much as the whole look.
 */
static void note_driven_poll(struct vb_drive_policy *policy)
{
	note_poll(policy, atomic_load_explicit(&policy->driven_ns, memory_order_relaxed));
}

/* A program that polls after each request and always finds its completion does not stream. */
static void end_streaming_if_answered(struct vb_drive_policy *policy)
{
	uint32_t count = atomic_load_explicit(&policy->posts_in_a_row, memory_order_relaxed);
	uint32_t before = atomic_load_explicit(&policy->posts_at_poll, memory_order_relaxed);

	if (count >= VB_DRIVE_SINGLE_POSTS_MAX && count - before <= 1 &&
	    atomic_load_explicit(&policy->is_all_done, memory_order_relaxed)) {
		count = 0;
		atomic_store_explicit(&policy->posts_in_a_row, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&policy->posts_at_poll, count, memory_order_relaxed);
}

/*
 * A program that finds one completion after the other without posting leaves its peers without
 * answers.
 */
bool vb_drive_policy_on_poll_found(struct vb_drive_policy *policy)
{
	uint32_t left = atomic_load_explicit(&policy->deferred_ack_polls, memory_order_relaxed);

	note_driven_poll(policy);
	end_streaming_if_answered(policy);
	if (left > 1)
		atomic_store_explicit(&policy->deferred_ack_polls, left - 1, memory_order_relaxed);
	return left == 1;
}

bool vb_drive_policy_on_poll(struct vb_drive_policy *policy, uint64_t now_ns)
{
	uint64_t polled_ns = atomic_load_explicit(&policy->polled_ns, memory_order_relaxed);

	note_poll(policy, now_ns);
	return is_within(polled_ns, VB_DRIVE_POLLED_RECENTLY_NS, now_ns);
}

/* Of several threads only one gets it, and none if the helper has woken meanwhile. */
VB_COLD static bool claim_postponement(struct vb_drive_policy *policy, uint64_t now_ns)
{
	uint64_t postpone_ns = atomic_load_explicit(&policy->postpone_ns, memory_order_relaxed);

	return now_ns >= postpone_ns &&
	       atomic_compare_exchange_strong_explicit(&policy->postpone_ns, &postpone_ns,
						       now_ns + VB_DRIVE_POSTPONE_AFTER_NS,
						       memory_order_relaxed, memory_order_relaxed);
}

bool vb_drive_policy_on_round(struct vb_drive_policy *policy, uint64_t now_ns, bool polls_on)
{
	uint32_t rounds = atomic_load_explicit(&policy->rounds, memory_order_relaxed);

	atomic_store_explicit(&policy->rounds, rounds + 1, memory_order_relaxed);
	return polls_on &&
	       now_ns >= atomic_load_explicit(&policy->postpone_ns, memory_order_relaxed) &&
	       claim_postponement(policy, now_ns);
}

/*
 * The program looks for completions, which ends its row of posts. But a program that streamed is
 * expected to go on streaming while packets are on their way.
 */
void vb_drive_policy_on_poll_driven(struct vb_drive_policy *policy, bool is_any_out)
{
	uint32_t count = atomic_load_explicit(&policy->posts_in_a_row, memory_order_relaxed);
	bool is_streaming = count >= VB_DRIVE_SINGLE_POSTS_MAX && is_any_out;

	if (count)
		atomic_store_explicit(&policy->posts_in_a_row,
				      is_streaming ? VB_DRIVE_SINGLE_POSTS_MAX : 0,
				      memory_order_relaxed);
}

void vb_drive_policy_on_poll_beside(struct vb_drive_policy *policy)
{
	note_driven_poll(policy);
}

static void count_last_poll(struct vb_drive_policy *policy)
{
	uint32_t left = atomic_load_explicit(&policy->polls_before_sleep, memory_order_relaxed);

	if (left)
		atomic_store_explicit(&policy->polls_before_sleep, left - 1, memory_order_relaxed);
}

bool vb_drive_policy_on_empty_poll(struct vb_drive_policy *policy)
{
	uint32_t before = atomic_load_explicit(&policy->idle_polls, memory_order_relaxed);

	count_last_poll(policy);
	atomic_store_explicit(&policy->idle_polls, before + 1, memory_order_relaxed);
	return before >= VB_DRIVE_IDLE_POLLS_MAX;
}

/*
 * Perhaps the thread or peer that the poller waits for needs this CPU. Between threads of equal
 * priority, yielding gives that thread half of the CPU at most, so a poller that waits for the
 * helper sleeps. The poll counts with its own time, because another thread may be driving for long.
 */
enum vb_drive_rest vb_drive_policy_on_idle(struct vb_drive_policy *policy, uint64_t now_ns)
{
	note_poll(policy, now_ns);
	return atomic_load_explicit(&policy->is_helped, memory_order_relaxed) ? VB_DRIVE_SLEEP
									      : VB_DRIVE_YIELD;
}

bool vb_drive_policy_is_polled(const struct vb_drive_policy *policy, uint64_t now_ns)
{
	uint64_t polled_ns = atomic_load_explicit(&policy->polled_ns, memory_order_seq_cst);

	return is_within(polled_ns, VB_DRIVE_POLLED_RECENTLY_NS, now_ns);
}

bool vb_drive_policy_on_arm(struct vb_drive_policy *policy)
{
	atomic_store_explicit(&policy->polls_before_sleep, VB_DRIVE_LAST_POLLS,
			      memory_order_relaxed);
	/*
	 * Pairs with the helper's second look at polled_ns, after it has announced that it pauses.
	 */
	atomic_store_explicit(&policy->polled_ns, 0, memory_order_seq_cst);
	return vb_drive_policy_is_helper_pausing(policy);
}

/* --- ACKs --- */

bool vb_drive_policy_try_defer_acks(struct vb_drive_policy *policy, bool has_completions,
				    bool owes_only_acks)
{
	bool defers = has_completions && owes_only_acks &&
		      !vb_drive_policy_has_deferred_acks(policy);

	atomic_store_explicit(&policy->deferred_ack_polls,
			      defers ? VB_DRIVE_POLLS_BEFORE_ANSWER : 0, memory_order_relaxed);
	return defers;
}

bool vb_drive_policy_has_deferred_acks(const struct vb_drive_policy *policy)
{
	return atomic_load_explicit(&policy->deferred_ack_polls, memory_order_relaxed);
}

void vb_drive_policy_on_sent(struct vb_drive_policy *policy)
{
	atomic_store_explicit(&policy->deferred_ack_polls, 0, memory_order_relaxed);
}

/* --- the helper --- */

bool vb_drive_policy_is_helper_pausing(const struct vb_drive_policy *policy)
{
	return atomic_load_explicit(&policy->helper_wakes_ns, memory_order_seq_cst) ==
	       VB_DRIVE_HELPER_PAUSES;
}

/* A helper that pauses looks soon enough, and after the thread that asks. */
bool vb_drive_policy_needs_deadline(const struct vb_drive_policy *policy)
{
	return atomic_load_explicit(&policy->helper_wakes_ns, memory_order_relaxed) !=
	       VB_DRIVE_HELPER_PAUSES;
}

bool vb_drive_policy_claim_wake(struct vb_drive_policy *policy, uint64_t deadline_ns)
{
	uint64_t wakes_ns = atomic_load_explicit(&policy->helper_wakes_ns, memory_order_seq_cst);

	/* If the helper has looked meanwhile, the time that it announces now counts. */
	while (deadline_ns < wakes_ns)
		if (atomic_compare_exchange_weak_explicit(&policy->helper_wakes_ns, &wakes_ns,
							  deadline_ns, memory_order_seq_cst,
							  memory_order_seq_cst))
			return true;
	return false;
}

void vb_drive_policy_on_wait(struct vb_drive_policy *policy)
{
	atomic_fetch_add_explicit(&policy->waiter_count, 1, memory_order_seq_cst);
}

uint64_t vb_drive_policy_on_wait_end(struct vb_drive_policy *policy, uint64_t now_ns)
{
	/* Pairs with the helper's look at waiter_count, after it has announced when it wakes. */
	atomic_fetch_sub_explicit(&policy->waiter_count, 1, memory_order_seq_cst);
	return now_ns + VB_DRIVE_HELPER_RETURNS_NS;
}

bool vb_drive_policy_has_waiters(const struct vb_drive_policy *policy)
{
	return atomic_load_explicit(&policy->waiter_count, memory_order_seq_cst);
}

void vb_drive_policy_on_help(struct vb_drive_policy *policy, bool is_helped)
{
	atomic_store_explicit(&policy->is_helped, is_helped, memory_order_relaxed);
}

void vb_drive_policy_announce(struct vb_drive_policy *policy, uint64_t wakes_ns)
{
	atomic_store_explicit(&policy->helper_wakes_ns, wakes_ns, memory_order_seq_cst);
}

/* Half of the time is left then for a thread that polls less often. */
void vb_drive_policy_on_alarm_set(struct vb_drive_policy *policy, uint64_t now_ns,
				  uint64_t after_ns)
{
	atomic_store_explicit(&policy->postpone_ns, now_ns + after_ns / 2, memory_order_relaxed);
}

void vb_drive_policy_on_alarm_over(struct vb_drive_policy *policy)
{
	atomic_store_explicit(&policy->postpone_ns, VB_NEVER, memory_order_relaxed);
}

void vb_drive_policy_inherit(struct vb_drive_policy *policy)
{
	atomic_store(&policy->waiter_count, 0);
	vb_drive_policy_on_alarm_over(policy);
	vb_drive_policy_announce(policy, VB_DRIVE_HELPER_PAUSES);
}
