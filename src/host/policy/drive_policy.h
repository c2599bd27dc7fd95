/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who drives the engine, and when: the rules for threads of the program. The caller reports what a
 * thread has done, and is told what to do about it. Nothing here drives, sleeps or reads a clock,
 * so every rule can be shown by a unit test. docs/adr/0006 has the rules in one table.
 *
 * Any thread may call any function. Most counts are plain loads and stores: if two threads report
 * at the same moment, one report may be lost, which delays a decision by one report.
 */
#ifndef VB_HOST_POLICY_DRIVE_POLICY_H
#define VB_HOST_POLICY_DRIVE_POLICY_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread that drives takes at most this many turns; the next caller or the helper goes on. */
#define VB_DRIVE_TURNS_MAX 16u

#define VB_DRIVE_SINGLE_POSTS_MAX 8u /* in a row: up to this many are sent one by one */
#define VB_DRIVE_POSTS_TOGETHER 32u

/*
 * A program that polls does so every few microseconds; but where CPUs are few or slow, the program
 * itself may have to wait for one.
 */
#define VB_DRIVE_POLLED_RECENTLY_NS 1000000u
#define VB_DRIVE_STREAMS_NS 10000000u /* between two polls of a program that posts meanwhile */
#define VB_DRIVE_LAST_POLLS 4u /* polls that a program may do between arming a CQ and sleeping */
#define VB_DRIVE_IDLE_POLLS_MAX 128u
#define VB_DRIVE_REST_NS 1000000u /* the longest sleep of a poller that waits for the helper */

/*
 * A helper that pauses sets an alarm, which threads that poll postpone: since when it was last
 * postponed, and when it rings then.
 */
#define VB_DRIVE_POSTPONE_AFTER_NS 1000000u
#define VB_DRIVE_POSTPONED_NS 2000000u /* from now */

/* Polls that find something. A program may look at two CQs before it posts. */
#define VB_DRIVE_POLLS_BEFORE_ANSWER 2u

/*
 * A thread that sleeps on a descriptor keeps alive what is behind it, even if the program has
 * closed it, and does not notice what arrives at its successor. So no thread sleeps longer than
 * this.
 */
#define VB_DRIVE_CHECK_NS 250000000u
#define VB_DRIVE_HELPER_RETURNS_NS 10000000u /* after a waiting thread has returned */

/*
 * The announcement of a helper that pauses because other threads poll. It looks a millisecond or
 * two after they stop: no thread needs to wake it for a deadline.
 */
#define VB_DRIVE_HELPER_PAUSES 0u

struct vb_drive_policy {
	_Atomic uint64_t driven_ns; /* when a thread last drove the engine */
	_Atomic uint64_t polled_ns; /* when the program last looked for completions */
	/* This many further polls that find nothing do not count. */
	_Atomic uint32_t polls_before_sleep;
	/*
	 * Deferred answers wait for the program's next call, or for this many further polls that
	 * find something. 0: none waits.
	 */
	_Atomic uint32_t deferred_ack_polls;
	_Atomic uint32_t idle_polls; /* in a row, that moved nothing */
	_Atomic uint32_t posts_in_a_row; /* since a poll last found no completion */
	_Atomic uint32_t posts_at_poll; /* what posts_in_a_row was at the last poll */
	/* After many posts in a row: none of them had to wait for an answer. */
	_Atomic bool is_all_done;

	_Atomic bool is_helped; /* the helper owns the engine */
	_Atomic uint32_t waiter_count; /* threads that wait on the sockets */
	_Atomic uint32_t rounds; /* complete rounds by threads that poll */
	/* When the helper will look by itself, or VB_DRIVE_HELPER_PAUSES. */
	_Atomic uint64_t helper_wakes_ns;
	/* When to postpone the helper's alarm; VB_NEVER: the helper does not rely on it. */
	_Atomic uint64_t postpone_ns;
};

void vb_drive_policy_init(struct vb_drive_policy *policy);

/* --- driving --- */

/* A thread begins to drive. */
void vb_drive_policy_on_drive(struct vb_drive_policy *policy, uint64_t now_ns);
/* Driving has moved something. */
void vb_drive_policy_on_moved(struct vb_drive_policy *policy);

/* --- posts --- */

/*
 * Whether the next request may wait in its queue for further ones. A program that keeps posting
 * without looking for completions streams: its packets wait for more, until there are enough of
 * them or the program polls. If it does neither, the helper finds them; so they wait only while the
 * helper pauses, which is not for long (see vb_drive_policy_is_helper_pausing()).
 */
bool vb_drive_policy_may_post_wait(const struct vb_drive_policy *policy);
void vb_drive_policy_on_post(struct vb_drive_policy *policy);

/* The thread that has posted begins to drive. */
void vb_drive_policy_on_post_driven(struct vb_drive_policy *policy, uint64_t now_ns);

bool vb_drive_policy_is_streaming(const struct vb_drive_policy *policy);
/* The request of a streaming program was driven; `is_all_done`: nothing waits for an answer. */
void vb_drive_policy_on_stream_driven(struct vb_drive_policy *policy, bool is_all_done);

/* --- polls --- */

/* A poll found completions. True: deferred ACKs must be sent now. */
VB_MUST_USE bool vb_drive_policy_on_poll_found(struct vb_drive_policy *policy);

/*
 * A poll found nothing, and its thread begins to drive. True if the program was also polling a
 * moment ago: one poll does not mean that another follows soon.
 */
bool vb_drive_policy_on_poll(struct vb_drive_policy *policy, uint64_t now_ns);
/*
 * That thread has looked at everything; `polls_on` as above. True: it must postpone the helper's
 * alarm to VB_DRIVE_POSTPONED_NS from now; no other thread is told so.
 */
VB_MUST_USE bool vb_drive_policy_on_round(struct vb_drive_policy *policy, uint64_t now_ns,
					  bool polls_on);
/* That thread is done. `is_any_out`: packets of ours still wait for their answers. */
void vb_drive_policy_on_poll_driven(struct vb_drive_policy *policy, bool is_any_out);

/* A poll found nothing, and another thread drives. */
void vb_drive_policy_on_poll_beside(struct vb_drive_policy *policy);

/* A poll found nothing, whichever thread drove. True: the thread gives way to others. */
bool vb_drive_policy_on_empty_poll(struct vb_drive_policy *policy);

enum vb_drive_rest {
	VB_DRIVE_YIELD, /* let any other thread have this CPU for once */
	VB_DRIVE_SLEEP, /* until the helper has released the engine, or VB_DRIVE_REST_NS */
};

/* The thread gives way: how? */
enum vb_drive_rest vb_drive_policy_on_idle(struct vb_drive_policy *policy, uint64_t now_ns);

/* Whether some thread of the program polls: that thread drives, and no other needs to. */
bool vb_drive_policy_is_polled(const struct vb_drive_policy *policy, uint64_t now_ns);

/*
 * The program has armed a CQ: it looks once more and then sleeps, so that the helper must not rely
 * on its polls. True: the helper pauses, and must be woken now.
 */
VB_MUST_USE bool vb_drive_policy_on_arm(struct vb_drive_policy *policy);

/* --- ACKs --- */

/*
 * A thread that polls has received. Whether what is to be sent waits for what the program does
 * next: it has found what it polls for and usually posts then, and both go out together. Only ACKs
 * wait. Never twice in a row: a program that only receives must also answer.
 */
VB_MUST_USE bool vb_drive_policy_try_defer_acks(struct vb_drive_policy *policy,
						bool has_completions, bool owes_only_acks);
bool vb_drive_policy_has_deferred_acks(const struct vb_drive_policy *policy);
/* Everything that the engine had to send was sent. */
void vb_drive_policy_on_sent(struct vb_drive_policy *policy);

/* --- the helper, for other threads --- */

/*
 * Whether the helper pauses. After a doorbell: if so, the request may be left to the helper. That
 * pairs with the helper's look at the doorbells, after it has announced when it wakes.
 */
bool vb_drive_policy_is_helper_pausing(const struct vb_drive_policy *policy);
/* Whether a thread that has driven must compute the deadline, because the helper keeps it. */
bool vb_drive_policy_needs_deadline(const struct vb_drive_policy *policy);
/*
 * The helper has to look at this time at the latest. True: it would look later, and the caller must
 * wake it; no other thread is told so.
 */
VB_MUST_USE bool vb_drive_policy_claim_wake(struct vb_drive_policy *policy, uint64_t deadline_ns);

/* A thread begins to wait on the sockets … */
void vb_drive_policy_on_wait(struct vb_drive_policy *policy);
/* … and has returned: when the helper has to look at the latest. */
uint64_t vb_drive_policy_on_wait_end(struct vb_drive_policy *policy, uint64_t now_ns);
bool vb_drive_policy_has_waiters(const struct vb_drive_policy *policy);

/* --- the helper, for itself --- */

/* The helper has taken the engine, or is about to release it. */
void vb_drive_policy_on_help(struct vb_drive_policy *policy, bool is_helped);
/* The helper will look by itself at this time, or pauses. */
void vb_drive_policy_announce(struct vb_drive_policy *policy, uint64_t wakes_ns);

/*
 * The helper has set its alarm to ring after this time, unless it is postponed; and it does not
 * sleep any more. The alarm may still ring; no thread waits for it.
 */
void vb_drive_policy_on_alarm_set(struct vb_drive_policy *policy, uint64_t now_ns,
				  uint64_t after_ns);
void vb_drive_policy_on_alarm_over(struct vb_drive_policy *policy);

/* In a forked child: there is neither a helper nor a thread that waits. */
void vb_drive_policy_inherit(struct vb_drive_policy *policy);

#endif
