/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC: end-to-end credits. An ACK states how many receives are posted beyond the messages that its
 * MSN counts.
 */
#include "support_pair.h"

/* A has written once and received this answer. */
static struct pair *connect_and_hear(const char *answer)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, answer);
	return p;
}

TEST(rc_an_ack_carries_the_number_of_receives_that_are_left)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	post_recv(p, B, 3, 100);
	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=2");
}

TEST(rc_credits_are_rounded_down_to_what_can_be_expressed)
{
	struct pair *p = pair_connect_rc(1024);

	for (uint64_t wr_id = 1; wr_id <= 8; wr_id++)
		post_recv(p, B, wr_id, 100);
	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=6");
}

TEST(rc_read_responses_carry_credits_too)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_read(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=10 msn=1 credits=1");
}

TEST(rc_a_responder_with_an_srq_gives_no_credits)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.has_srq = true;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=none");
}

TEST(rc_no_more_sends_go_out_than_there_are_credits_for)
{
	struct pair *p = connect_and_hear("ACKNOWLEDGE psn=0 msn=1 credits=2");

	post_send(p, A, 2, 10);
	post_send(p, A, 3, 10);
	post_send(p, A, 4, 10);
	expect_sent(p, A, "SEND_ONLY psn=1 len=10 ack", "SEND_ONLY psn=2 len=10 ack");
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2 credits=2");
	expect_sent(p, A, "SEND_ONLY psn=3 len=10 ack");
}

TEST(rc_writes_and_reads_need_no_credits)
{
	struct pair *p = connect_and_hear("ACKNOWLEDGE psn=0 msn=1 credits=0");

	post_write(p, A, 2, 8);
	post_read(p, A, 3, 8);
	post_write(p, A, 4, 8);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=8 ack", "READ_REQUEST psn=2 dma=8",
		    "WRITE_ONLY psn=3 len=8 ack");
}

TEST(rc_without_credits_one_packet_goes_out_to_ask)
{
	struct pair *p = connect_and_hear("ACKNOWLEDGE psn=0 msn=1 credits=0");

	post_send(p, A, 2, 1500);
	post_send(p, A, 3, 10);
	expect_silence(p, A); /* the peer may announce a receive */
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_FIRST psn=1 len=1024 ack");
	inject(p, A, "ACKNOWLEDGE psn=1 msn=1 credits=0");
	expect_sent(p, A, "SEND_LAST psn=2 len=476 ack");
}

TEST(rc_credits_that_arrive_later_set_the_sends_free)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	post_send(p, A, 3, 10);
	post_send(p, A, 4, 10);
	expect_silence(p, A);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2 credits=2");
	expect_sent(p, A, "SEND_ONLY psn=2 len=10 ack", "SEND_ONLY psn=3 len=10 ack");
}

TEST(rc_an_ack_that_was_overtaken_takes_no_credits_back)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2 credits=4");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	post_send(p, A, 3, 10);
	post_send(p, A, 4, 10);
	expect_sent(p, A, "SEND_ONLY psn=2 len=10 ack", "SEND_ONLY psn=3 len=10 ack");
}

TEST(rc_a_requester_that_has_seen_no_credits_is_not_limited)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 10);
	post_send(p, A, 2, 10);
	post_send(p, A, 3, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack", "SEND_ONLY psn=1 len=10 ack",
		    "SEND_ONLY psn=2 len=10 ack");
}

TEST(rc_everything_arrives_though_the_receiver_posts_one_receive_at_a_time)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	settle(p);
	post_send(p, A, 2, 10);
	post_send(p, A, 3, 10);
	settle(p);
	post_recv(p, B, 2, 100);
	wait_until_work(p, A);
	settle(p);
	post_recv(p, B, 3, 100);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND", "wr=3 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10", "wr=2 SUCCESS RECV len=10",
			   "wr=3 SUCCESS RECV len=10");
}

TEST(rc_a_responder_that_gives_no_credits_any_more_sets_the_sends_free)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2 credits=none");
	post_send(p, A, 3, 10);
	post_send(p, A, 4, 10);
	expect_sent(p, A, "SEND_ONLY psn=2 len=10 ack", "SEND_ONLY psn=3 len=10 ack");
}

TEST(rc_a_requester_that_has_heard_of_no_receives_is_told_of_the_next)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	post_recv(p, B, 2, 100);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=1");
	post_recv(p, B, 3, 100);
	expect_silence(p, B);
}

TEST(rc_a_send_without_credits_goes_when_the_latest_ack_comes_again_with_some)
{
	struct pair *p = connect_and_hear("ACKNOWLEDGE psn=0 msn=1 credits=0");

	post_send(p, A, 2, 10);
	expect_silence(p, A);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=1");
	expect_sent(p, A, "SEND_ONLY psn=1 len=10 ack");
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2 credits=0");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS SEND");
	expect_silence(p, A);
	EXPECT_EQ(vb_nic_deadline(p->node[A].nic), VB_NEVER);
}

TEST(rc_the_wait_for_credits_does_not_shorten_the_time_for_the_answer)
{
	struct pair *p = connect_and_hear("ACKNOWLEDGE psn=0 msn=1 credits=0");

	post_send(p, A, 2, 10);
	expect_silence(p, A);
	EXPECT(vb_nic_deadline(p->node[A].nic) <= p->now_ns + 1000000);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=1");
	expect_sent(p, A, "SEND_ONLY psn=1 len=10 ack");
	EXPECT(vb_nic_deadline(p->node[A].nic) > p->now_ns + 1000000);
}

TEST(rc_all_messages_arrive_though_no_rnr_retry_is_allowed_and_receives_come_late)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	struct pair *p;

	setup.rnr_retry = 0;
	p = pair_connect(&setup);
	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	settle(p);
	for (uint64_t i = 2; i < 5; i++) {
		post_send(p, A, i, 10);
		settle(p);
		post_recv(p, B, i, 100);
		settle(p);
	}
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND", "wr=3 SUCCESS SEND",
			   "wr=4 SUCCESS SEND");
}

TEST(rc_new_receives_are_told_of_behind_a_read)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	settle(p);
	post_read(p, A, 2, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=8");
	post_send(p, A, 3, 10);
	expect_silence(p, A);
	post_recv(p, B, 1, 100);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=2 credits=1");
	deliver(p);
	expect_sent(p, A, "SEND_ONLY psn=2 len=10 ack");
}
