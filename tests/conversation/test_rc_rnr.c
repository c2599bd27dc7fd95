/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC: a receiver that is not ready, the timer that it names, and how often the requester retries.
 */
#include "support_pair.h"

static struct pair *pair_with_rnr(uint8_t rnr_retry, uint8_t min_rnr_timer)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.rnr_retry = rnr_retry;
	setup.min_rnr_timer = min_rnr_timer;
	return pair_connect(&setup);
}

TEST(rc_a_send_without_a_receive_is_repeated_after_the_time_that_the_responder_names)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	expect_silence(p, A);
	wait_ns(p, 639999);
	expect_silence(p, A);
	post_recv(p, B, 1, 10);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
	expect_counter(p, A, RNR_NAK_RETRY_ERR, 1);
	expect_counter(p, B, RNR_NAK_SENT, 1);
	expect_counter(p, B, OUT_OF_BUFFER, 1);
}

static void expect_rnr_timer(uint8_t code, const char *nak, uint64_t time_ns)
{
	struct pair *p = pair_with_rnr(7, code);
	uint64_t waited;

	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, nak);
	deliver(p);
	expect_silence(p, A);
	waited = wait_until_work(p, A);
	EXPECT(waited >= time_ns && waited <= time_ns * 4);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
}

TEST(rc_rnr_timer_code_0_is_the_longest_655_36_ms)
{
	expect_rnr_timer(0, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 655.36 ms", 655360000);
}

TEST(rc_rnr_timer_code_1_is_10_us)
{
	expect_rnr_timer(1, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.01 ms", 10000);
}

TEST(rc_rnr_timer_code_5_is_60_us)
{
	expect_rnr_timer(5, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.06 ms", 60000);
}

TEST(rc_rnr_timer_code_31_is_491_52_ms)
{
	expect_rnr_timer(31, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 491.52 ms", 491520000);
}

TEST(rc_the_rnr_timer_is_the_responders_and_not_our_own)
{
	struct pair *p = pair_with_rnr(2, 31);

	post_send(p, A, 1, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.02 ms");
	EXPECT(wait_until_work(p, A) <= 80000);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
}

TEST(rc_rnr_retry_0_gives_up_at_the_first_rnr_nak)
{
	struct pair *p = pair_with_rnr(0, 1);

	post_send(p, A, 1, 10);
	post_send(p, A, 2, 10);
	settle(p);
	expect_completions(p, A, "wr=1 RNR_RETRY_EXC_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_state(p, B, VB_STATE_RTS);
	expect_counter(p, A, RNR_RETRY_EXCEEDED_ERR, 1);
}

TEST(rc_rnr_retry_2_tries_three_times)
{
	struct pair *p = pair_with_rnr(2, 1);

	post_send(p, A, 1, 10);
	settle(p);
	wait_until_work(p, A);
	settle(p);
	wait_until_work(p, A);
	expect_no_completion(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 RNR_RETRY_EXC_ERR");
	expect_counter(p, B, RNR_NAK_SENT, 3);
}

TEST(rc_rnr_retry_6_tries_seven_times)
{
	struct pair *p = pair_with_rnr(6, 1);

	post_send(p, A, 1, 10);
	settle(p);
	for (int i = 0; i < 6; i++) {
		expect_no_completion(p, A);
		wait_until_work(p, A);
		settle(p);
	}
	expect_completions(p, A, "wr=1 RNR_RETRY_EXC_ERR");
}

TEST(rc_rnr_retry_7_is_for_ever)
{
	struct pair *p = pair_with_rnr(7, 1);

	post_send(p, A, 1, 10);
	settle(p);
	for (int i = 0; i < 50; i++) {
		wait_until_work(p, A);
		settle(p);
	}
	expect_no_completion(p, A);
	post_recv(p, B, 1, 10);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(rc_rnr_retries_do_not_use_up_the_other_retries)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.rnr_retry = 7;
	setup.retry_count = 0;
	struct pair *p = pair_connect(&setup);

	post_send(p, A, 1, 10);
	settle(p);
	wait_until_work(p, A);
	settle(p);
	wait_until_work(p, A);
	post_recv(p, B, 1, 10);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(rc_progress_gives_the_rnr_retries_back)
{
	struct pair *p = pair_with_rnr(1, 1);

	post_send(p, A, 1, 10);
	post_send(p, A, 2, 10);
	settle(p);
	post_recv(p, B, 1, 10);
	wait_until_work(p, A);
	settle(p); /* the first arrives, the second finds no receive */
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	wait_until_work(p, A);
	post_recv(p, B, 2, 10);
	settle(p);
	expect_completions(p, A, "wr=2 SUCCESS SEND");
}

TEST(rc_an_rnr_nak_acknowledges_everything_before_it)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack", "SEND_ONLY psn=1 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1 RNR_NAK 0.64 ms");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=1 len=10 ack");
}

TEST(rc_what_arrives_behind_an_rnr_nak_is_dropped_without_another_nak)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "SEND_ONLY psn=0 len=10 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	inject(p, B, "SEND_ONLY psn=1 len=10 ack");
	inject(p, B, "WRITE_ONLY psn=2 len=10 ack");
	expect_silence(p, B);
	expect_untouched(p, B, TARGET, 10);
	expect_dropped(p, B, OUT_OF_SEQUENCE, 2);
}

TEST(rc_the_requester_sends_nothing_new_while_it_waits_for_the_receiver)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 10);
	settle(p);
	post_write(p, A, 2, 10);
	expect_silence(p, A);
	post_recv(p, B, 1, 10);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack", "WRITE_ONLY psn=1 len=10 ack");
}

TEST(rc_the_ack_timer_does_not_run_while_the_requester_waits_for_the_receiver)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.timeout = 1; /* 8 us */
	setup.min_rnr_timer = 12;
	struct pair *p = pair_connect(&setup);

	post_send(p, A, 1, 10);
	settle(p);
	wait_ns(p, 600000);
	expect_silence(p, A);
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, 0);
}

TEST(rc_a_send_of_several_packets_is_refused_at_its_first)
{
	struct pair *p = pair_connect_rc(256);

	post_send(p, A, 1, 600);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	post_recv(p, B, 1, 600);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_MIDDLE psn=1 len=256",
		    "SEND_LAST psn=2 len=88 ack");
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=600");
}
