/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who drives the engine: what threads of a program do, and what the policy has them do next. The
 * engine is a few answers that each test gives. Time passes only where a test says so.
 */
#include "harness.h"

#include "host/policy/drive_policy.h"

#define US_NS 1000ull
#define MS_NS 1000000ull
#define NEVER UINT64_MAX

static struct vb_drive_policy policy;
static uint64_t now_ns = 5000 * MS_NS;

__attribute__((constructor)) static void init(void)
{
	vb_drive_policy_init(&policy);
}

/* --- what programs do ------------------------------------------------------------------------- */

/* Posts a request. Returns whether it was left to wait for others. */
static bool post(bool is_all_done)
{
	bool waits = vb_drive_policy_may_post_wait(&policy);

	vb_drive_policy_on_post(&policy);
	if (waits)
		return true;
	vb_drive_policy_on_drive(&policy, now_ns);
	vb_drive_policy_on_post_driven(&policy, now_ns);
	if (vb_drive_policy_is_streaming(&policy))
		vb_drive_policy_on_stream_driven(&policy, is_all_done);
	return false;
}

/* Posts several requests, whose answers come later. Returns how many were left to wait. */
static uint32_t post_many(uint32_t count)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < count; i++)
		waiting += post(false);
	return waiting;
}

/* Polls without result. Returns whether the program was polling before. */
static bool poll_empty(bool is_any_out)
{
	bool polls_on;

	vb_drive_policy_on_drive(&policy, now_ns);
	polls_on = vb_drive_policy_on_poll(&policy, now_ns);
	vb_drive_policy_on_poll_driven(&policy, is_any_out);
	(void)vb_drive_policy_on_empty_poll(&policy);
	return polls_on;
}

static bool is_polled(void)
{
	return vb_drive_policy_is_polled(&policy, now_ns);
}

static void defer_acks(void)
{
	EXPECT(vb_drive_policy_try_defer_acks(&policy, true, true));
}

/* --- a program that posts --------------------------------------------------------------------- */

TEST(the_first_posts_in_a_row_are_sent_one_by_one)
{
	EXPECT_EQ(post_many(VB_DRIVE_SINGLE_POSTS_MAX), 0);
	EXPECT(post(false));
}

TEST(the_posts_of_a_program_that_streams_leave_together)
{
	(void)post_many(VB_DRIVE_SINGLE_POSTS_MAX);
	for (uint32_t i = VB_DRIVE_SINGLE_POSTS_MAX + 1; i <= 10 * VB_DRIVE_POSTS_TOGETHER; i++)
		EXPECT_EQ(post(false), i % VB_DRIVE_POSTS_TOGETHER != 0);
}

TEST(asking_whether_a_post_may_wait_counts_none)
{
	for (uint32_t i = 0; i < 100; i++)
		EXPECT(!vb_drive_policy_may_post_wait(&policy));
}

TEST(an_empty_poll_ends_a_row_of_posts)
{
	for (uint32_t i = 0; i < 100; i++) {
		EXPECT_EQ(post_many(VB_DRIVE_SINGLE_POSTS_MAX - 1), 0);
		(void)poll_empty(true);
	}
	(void)post_many(VB_DRIVE_SINGLE_POSTS_MAX);
	(void)poll_empty(false);
	EXPECT_EQ(post_many(VB_DRIVE_SINGLE_POSTS_MAX), 0);
}

TEST(a_program_that_streamed_goes_on_streaming_while_packets_are_out)
{
	(void)post_many(VB_DRIVE_POSTS_TOGETHER);
	(void)poll_empty(true);
	EXPECT(post(false));
}

/* However many it had posted before: the row begins again at the first post that waits. */
TEST(the_row_of_a_program_that_goes_on_streaming_is_short)
{
	uint32_t more = VB_DRIVE_POSTS_TOGETHER - VB_DRIVE_SINGLE_POSTS_MAX;

	(void)post_many(VB_DRIVE_POSTS_TOGETHER + 5);
	(void)poll_empty(true);
	EXPECT_EQ(post_many(more), more - 1);
}

/* A WRITE to this host is done when it is posted, so each poll finds it. */
TEST(a_program_that_always_finds_its_completion_after_one_post_does_not_stream)
{
	for (uint32_t i = 0; i < 10 * VB_DRIVE_POSTS_TOGETHER; i++) {
		EXPECT(!post(true));
		EXPECT(!vb_drive_policy_on_poll_found(&policy));
	}
}

TEST(a_program_whose_requests_still_wait_for_answers_streams_on)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < VB_DRIVE_POSTS_TOGETHER; i++) {
		waiting += post(false);
		EXPECT(!vb_drive_policy_on_poll_found(&policy));
	}
	EXPECT(waiting > 0);
}

TEST(a_program_that_posts_several_between_two_polls_streams_on)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < VB_DRIVE_POSTS_TOGETHER; i++) {
		waiting += post(true);
		waiting += post(true);
		EXPECT(!vb_drive_policy_on_poll_found(&policy));
	}
	EXPECT(waiting > 0);
}

/* Otherwise no one would send it. */
TEST(what_may_wait_is_left_only_to_a_helper_that_pauses)
{
	vb_drive_policy_announce(&policy, now_ns + MS_NS);
	EXPECT(!vb_drive_policy_is_helper_pausing(&policy));
	vb_drive_policy_announce(&policy, VB_DRIVE_HELPER_PAUSES);
	EXPECT(vb_drive_policy_is_helper_pausing(&policy));
}

/* --- a program that polls --------------------------------------------------------------------- */

TEST(a_program_that_has_never_polled_does_not_poll)
{
	EXPECT(!is_polled());
	EXPECT_EQ(post_many(20) > 0, true);
	EXPECT(!is_polled());
}

TEST(a_program_polls_until_a_millisecond_after_its_last_poll)
{
	(void)poll_empty(false);
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS - 1;
	EXPECT(is_polled());
	now_ns++;
	EXPECT(!is_polled());
}

/* Reading the clock for it would cost as much as the poll. */
TEST(a_poll_that_finds_something_counts_with_the_time_of_the_last_drive)
{
	vb_drive_policy_on_drive(&policy, now_ns);
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS - 1;
	EXPECT(!vb_drive_policy_on_poll_found(&policy));
	EXPECT(is_polled());
	now_ns++;
	EXPECT(!is_polled());
}

TEST(a_poll_beside_a_thread_that_drives_counts_with_the_time_of_that_drive)
{
	vb_drive_policy_on_drive(&policy, now_ns);
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS - 1;
	vb_drive_policy_on_poll_beside(&policy);
	EXPECT(is_polled());
	now_ns++;
	EXPECT(!is_polled());
}

/* The thread that asks has read the clock before the thread that polled. */
TEST(a_poll_that_is_later_than_the_time_of_the_question_is_recent)
{
	now_ns += 1;
	(void)poll_empty(false);
	now_ns -= 1;
	EXPECT(is_polled());
	EXPECT(poll_empty(false));
}

TEST(a_program_polls_on_from_its_second_poll)
{
	EXPECT(!poll_empty(false));
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS - 1;
	EXPECT(poll_empty(false));
	now_ns += VB_DRIVE_POLLED_RECENTLY_NS;
	EXPECT(!poll_empty(false));
}

TEST(a_program_that_posts_between_its_polls_counts_as_polling)
{
	(void)poll_empty(false);
	for (int i = 0; i < 100; i++) {
		now_ns += VB_DRIVE_STREAMS_NS - 1;
		EXPECT(!is_polled());
		vb_drive_policy_on_post_driven(&policy, now_ns);
		EXPECT(is_polled());
	}
	now_ns += VB_DRIVE_STREAMS_NS;
	vb_drive_policy_on_post_driven(&policy, now_ns);
	EXPECT(!is_polled());
}

/* --- a program that finds nothing for long ---------------------------------------------------- */

TEST(a_thread_gives_way_after_many_polls_that_moved_nothing)
{
	for (uint32_t i = 0; i < VB_DRIVE_IDLE_POLLS_MAX; i++)
		EXPECT(!vb_drive_policy_on_empty_poll(&policy));
	EXPECT(vb_drive_policy_on_empty_poll(&policy));
	EXPECT(vb_drive_policy_on_empty_poll(&policy));
}

TEST(polls_that_move_something_are_not_idle)
{
	for (uint32_t i = 0; i < 10 * VB_DRIVE_IDLE_POLLS_MAX; i++) {
		if (i % VB_DRIVE_IDLE_POLLS_MAX == 0)
			vb_drive_policy_on_moved(&policy);
		EXPECT(!vb_drive_policy_on_empty_poll(&policy));
	}
}

TEST(a_thread_that_waits_for_the_helper_sleeps_and_any_other_yields)
{
	EXPECT_EQ(vb_drive_policy_on_idle(&policy, now_ns), VB_DRIVE_YIELD);
	vb_drive_policy_on_help(&policy, true);
	EXPECT_EQ(vb_drive_policy_on_idle(&policy, now_ns), VB_DRIVE_SLEEP);
	vb_drive_policy_on_help(&policy, false);
	EXPECT_EQ(vb_drive_policy_on_idle(&policy, now_ns), VB_DRIVE_YIELD);
}

/* The helper drives for so long that the time of its drive is out of date. */
TEST(a_thread_that_gives_way_counts_as_polling_with_its_own_time)
{
	vb_drive_policy_on_drive(&policy, now_ns);
	now_ns += 10 * MS_NS;
	vb_drive_policy_on_poll_beside(&policy);
	EXPECT(!is_polled());
	(void)vb_drive_policy_on_idle(&policy, now_ns);
	EXPECT(is_polled());
}

/* --- a program that arms a CQ and sleeps ------------------------------------------------------ */

TEST(a_program_that_arms_a_cq_does_not_poll)
{
	(void)poll_empty(false);
	EXPECT(is_polled());
	EXPECT(vb_drive_policy_on_arm(&policy));
	EXPECT(!is_polled());
}

TEST(the_last_polls_between_arming_and_sleeping_do_not_count)
{
	EXPECT(vb_drive_policy_on_arm(&policy));
	for (uint32_t i = 0; i < VB_DRIVE_LAST_POLLS; i++) {
		EXPECT(!poll_empty(false));
		EXPECT(!is_polled());
	}
	(void)poll_empty(false);
	EXPECT(is_polled());
}

/* It finds one, works on it, posts, arms again: it sleeps in between all the same. */
TEST(neither_finding_nor_posting_after_arming_counts_as_polling)
{
	EXPECT(vb_drive_policy_on_arm(&policy));
	for (uint32_t i = 0; i < 10 * VB_DRIVE_LAST_POLLS; i++) {
		(void)post(true);
		EXPECT(!vb_drive_policy_on_poll_found(&policy));
		EXPECT(!is_polled());
	}
}

TEST(arming_wakes_only_a_helper_that_pauses)
{
	vb_drive_policy_announce(&policy, now_ns + MS_NS);
	EXPECT(!vb_drive_policy_on_arm(&policy));
	vb_drive_policy_announce(&policy, VB_DRIVE_HELPER_PAUSES);
	EXPECT(vb_drive_policy_on_arm(&policy));
}

/* --- deferred ACKs ---------------------------------------------------------------------------- */

TEST(acks_are_deferred_if_the_poll_brought_a_completion_and_nothing_else_is_to_be_sent)
{
	EXPECT(!vb_drive_policy_try_defer_acks(&policy, false, true));
	EXPECT(!vb_drive_policy_try_defer_acks(&policy, true, false));
	EXPECT(!vb_drive_policy_has_deferred_acks(&policy));
	EXPECT(vb_drive_policy_try_defer_acks(&policy, true, true));
	EXPECT(vb_drive_policy_has_deferred_acks(&policy));
}

TEST(acks_are_not_deferred_twice_in_a_row)
{
	defer_acks();
	EXPECT(!vb_drive_policy_try_defer_acks(&policy, true, true));
	EXPECT(!vb_drive_policy_has_deferred_acks(&policy));
	defer_acks();
}

TEST(a_program_that_finds_and_then_posts_has_its_acks_deferred_each_time)
{
	for (int i = 0; i < 100; i++) {
		defer_acks();
		EXPECT(!vb_drive_policy_on_poll_found(&policy));
		vb_drive_policy_on_sent(&policy); /* with the request */
	}
}

TEST(a_program_that_only_receives_answers_with_its_second_poll)
{
	defer_acks();
	for (uint32_t i = 1; i < VB_DRIVE_POLLS_BEFORE_ANSWER; i++)
		EXPECT(!vb_drive_policy_on_poll_found(&policy));
	EXPECT(vb_drive_policy_on_poll_found(&policy));
	EXPECT(vb_drive_policy_on_poll_found(&policy)); /* another thread had the engine */
	vb_drive_policy_on_sent(&policy);
	EXPECT(!vb_drive_policy_on_poll_found(&policy));
}

/* --- the helper's alarm ----------------------------------------------------------------------- */

#define ALARM_NS (100 * MS_NS)

/* The helper sleeps until its alarm rings. */
static void set_alarm(void)
{
	vb_drive_policy_on_alarm_set(&policy, now_ns, ALARM_NS);
}

static bool has_to_postpone(bool polls_on)
{
	return vb_drive_policy_on_round(&policy, now_ns, polls_on);
}

TEST(a_thread_that_polls_on_postpones_the_alarm_when_half_of_its_time_has_passed)
{
	set_alarm();
	now_ns += ALARM_NS / 2 - 1;
	EXPECT(!has_to_postpone(true));
	now_ns++;
	EXPECT(has_to_postpone(true));
}

/* One poll does not mean that another follows soon. */
TEST(a_thread_that_polls_now_and_then_postpones_no_alarm)
{
	set_alarm();
	now_ns += ALARM_NS;
	EXPECT(!has_to_postpone(false));
	EXPECT(has_to_postpone(true));
}

TEST(the_alarm_is_postponed_once_in_a_while_and_by_one_thread)
{
	set_alarm();
	now_ns += ALARM_NS;
	EXPECT(has_to_postpone(true));
	EXPECT(!has_to_postpone(true));
	now_ns += VB_DRIVE_POSTPONE_AFTER_NS - 1;
	EXPECT(!has_to_postpone(true));
	now_ns++;
	EXPECT(has_to_postpone(true));
}

TEST(no_thread_postpones_the_alarm_of_a_helper_that_is_awake)
{
	now_ns += 1000 * ALARM_NS;
	EXPECT(!has_to_postpone(true)); /* it was never set */
	set_alarm();
	vb_drive_policy_on_alarm_over(&policy);
	now_ns += 1000 * ALARM_NS;
	EXPECT(!has_to_postpone(true));
}

/* --- several threads -------------------------------------------------------------------------- */

TEST(a_deadline_before_the_helpers_next_look_wakes_it)
{
	vb_drive_policy_announce(&policy, now_ns + MS_NS);
	EXPECT(!vb_drive_policy_claim_wake(&policy, now_ns + MS_NS));
	EXPECT(!vb_drive_policy_claim_wake(&policy, NEVER));
	EXPECT(vb_drive_policy_claim_wake(&policy, now_ns + MS_NS - 1));
}

TEST(only_one_of_two_threads_wakes_the_helper_for_the_same_deadline)
{
	vb_drive_policy_announce(&policy, now_ns + MS_NS);
	EXPECT(vb_drive_policy_claim_wake(&policy, now_ns + US_NS));
	EXPECT(!vb_drive_policy_claim_wake(&policy, now_ns + US_NS));
	EXPECT(vb_drive_policy_claim_wake(&policy, now_ns));
}

TEST(no_deadline_wakes_a_helper_that_pauses_and_none_need_be_computed)
{
	vb_drive_policy_announce(&policy, VB_DRIVE_HELPER_PAUSES);
	EXPECT(!vb_drive_policy_needs_deadline(&policy));
	EXPECT(!vb_drive_policy_claim_wake(&policy, 0));
	vb_drive_policy_announce(&policy, now_ns);
	EXPECT(vb_drive_policy_needs_deadline(&policy));
	EXPECT(vb_drive_policy_claim_wake(&policy, 0));
}

TEST(the_helper_looks_soon_after_a_waiting_thread_has_returned)
{
	vb_drive_policy_on_wait(&policy);
	vb_drive_policy_on_wait(&policy);
	EXPECT_EQ(vb_drive_policy_on_wait_end(&policy, now_ns),
		  now_ns + VB_DRIVE_HELPER_RETURNS_NS);
	EXPECT(vb_drive_policy_has_waiters(&policy));
	(void)vb_drive_policy_on_wait_end(&policy, now_ns);
	EXPECT(!vb_drive_policy_has_waiters(&policy));
}

/* One thread streams; another looks for completions all the time. */
TEST(a_thread_that_polls_ends_the_row_of_another_that_posts)
{
	for (uint32_t i = 0; i < 10 * VB_DRIVE_POSTS_TOGETHER; i++) {
		EXPECT(!post(false));
		(void)poll_empty(true);
	}
}

TEST(a_forked_child_has_no_helper_and_no_waiting_thread)
{
	vb_drive_policy_on_wait(&policy);
	vb_drive_policy_announce(&policy, now_ns);
	set_alarm();
	vb_drive_policy_inherit(&policy);
	now_ns += ALARM_NS;
	EXPECT(!has_to_postpone(true));
	EXPECT(!vb_drive_policy_has_waiters(&policy));
	EXPECT(!vb_drive_policy_claim_wake(&policy, 0));
}
