/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: requests that arrive again are answered again and not executed twice; READs are repeated. */
#include "support_pair.h"

TEST(rc_a_duplicate_send_is_acknowledged_again_and_takes_no_second_receive)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	deliver_nth(p, 0);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver_nth(p, 0);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
	expect_counter(p, B, DUPLICATE_REQUEST, 1);
	deliver_nth(p, 1);
	deliver_nth(p, 2);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(rc_a_duplicate_write_does_not_undo_what_was_written_since)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	set_word(p, B, TARGET, 42);
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	EXPECT_EQ(word_at(p, B, TARGET), 42);
}

TEST(rc_a_duplicate_is_answered_with_the_newest_psn_that_was_executed)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=2 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=2 msn=3");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=2 msn=3");
}

TEST(rc_a_duplicate_in_the_middle_of_a_message_does_not_disturb_it)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 600);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_LAST psn=2 len=88 ack");
	deliver_nth(p, 0);
	deliver_nth(p, 1);
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	lose(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 600);
}

TEST(rc_a_duplicate_read_is_executed_again_and_sees_newer_writes)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "READ_REQUEST psn=0 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	lose(p);
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
	lose(p);
	inject(p, B, "READ_REQUEST psn=0 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	EXPECT_EQ(p->held[0].bytes[16], USUAL_BYTE);
}

TEST(rc_a_duplicate_read_may_ask_for_the_rest_only)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=600");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=256", "READ_RESPONSE_LAST psn=2 len=88 msn=1");
	inject(p, B, "READ_REQUEST psn=1 va=0x2080100 dma=344");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=1 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=2 len=88 msn=1");
	inject(p, B, "WRITE_ONLY psn=3 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=2");
}

TEST(rc_a_duplicate_read_may_ask_for_any_part)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=600");
	send_all(p, B);
	inject(p, B, "READ_REQUEST psn=1 va=0x2080100 dma=256");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=1 len=256 msn=1");
	inject(p, B, "READ_REQUEST psn=0 dma=300");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1");
	inject(p, B, "READ_REQUEST psn=0 dma=600");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=256", "READ_RESPONSE_LAST psn=2 len=88 msn=1");
}

TEST(rc_a_duplicate_read_may_not_ask_for_more_or_for_nothing)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=600");
	send_all(p, B);
	inject(p, B, "READ_REQUEST psn=0 dma=601");
	inject(p, B, "READ_REQUEST psn=1 va=0x2080100 dma=345");
	inject(p, B, "READ_REQUEST psn=1 dma=256");
	inject(p, B, "READ_REQUEST psn=0 dma=0");
	expect_silence(p, B);
	expect_dropped(p, B, INVALID, 4);
}

TEST(rc_a_part_of_a_read_does_not_cut_the_answer_that_is_under_way)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=600");
	inject(p, B, "READ_REQUEST psn=1 va=0x2080100 dma=256");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=256", "READ_RESPONSE_LAST psn=2 len=88 msn=1");
	expect_dropped(p, B, OLD_DUPLICATE, 1);
}

/*
 * IBA C9-110. A requester that lost the first answer also asks for the second one again; a
 * requester that did not lose the first is still owed the second.
 */
TEST(rc_an_earlier_read_that_comes_again_is_answered_before_the_rest_of_a_later_one)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=300");
	send_all(p, B);
	lose(p);
	inject(p, B, "READ_REQUEST psn=2 dma=600");
	wait_until_work(p, B);
	inject(p, B, "READ_REQUEST psn=0 dma=300");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=2 len=256 msn=2",
		    "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1", "READ_RESPONSE_MIDDLE psn=3 len=256",
		    "READ_RESPONSE_LAST psn=4 len=88 msn=2");
}

TEST(rc_an_answer_that_an_earlier_one_interrupted_begins_anew_when_it_is_asked_for_again)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=300");
	send_all(p, B);
	lose(p);
	inject(p, B, "READ_REQUEST psn=2 dma=600");
	wait_until_work(p, B);
	inject(p, B, "READ_REQUEST psn=0 dma=300");
	inject(p, B, "READ_REQUEST psn=2 dma=600");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=2 len=256 msn=2",
		    "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1",
		    "READ_RESPONSE_FIRST psn=2 len=256 msn=2", "READ_RESPONSE_MIDDLE psn=3 len=256",
		    "READ_RESPONSE_LAST psn=4 len=88 msn=2");
}

TEST(rc_an_earlier_write_that_comes_again_is_acknowledged_before_the_rest_of_a_later_read)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	send_all(p, B);
	lose(p);
	inject(p, B, "READ_REQUEST psn=1 dma=600");
	wait_until_work(p, B);
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=1 len=256 msn=2", "ACKNOWLEDGE psn=0 msn=2",
		    "READ_RESPONSE_MIDDLE psn=2 len=256", "READ_RESPONSE_LAST psn=3 len=88 msn=2");
}

TEST(rc_a_later_write_is_acknowledged_behind_an_earlier_read_that_comes_again)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "READ_REQUEST psn=0 dma=300");
	send_all(p, B);
	lose(p);
	inject(p, B, "WRITE_ONLY psn=2 len=8 ack");
	inject(p, B, "READ_REQUEST psn=0 dma=300");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1", "ACKNOWLEDGE psn=2 msn=2");
}

TEST(rc_duplicates_are_answered_in_the_order_of_their_psns)
{
	struct pair *p = pair_connect_rc(256);

	set_word(p, B, TARGET, 7);
	inject(p, B, "READ_REQUEST psn=0 dma=300");
	inject(p, B, "FETCH_ADD psn=2 add=1");
	inject(p, B, "READ_REQUEST psn=3 dma=8");
	send_all(p, B);
	lose(p);
	inject(p, B, "READ_REQUEST psn=3 dma=8");
	inject(p, B, "FETCH_ADD psn=2 add=1");
	inject(p, B, "READ_REQUEST psn=0 dma=300");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1",
		    "ATOMIC_ACKNOWLEDGE psn=2 msn=2 orig=0x7",
		    "READ_RESPONSE_ONLY psn=3 len=8 msn=3");
}

TEST(rc_a_late_copy_of_a_read_whose_key_is_gone_is_dropped_and_no_reason_to_fail)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_send_request request = read_request(p, A, 1, 8);

	request.rkey = vb_mr_key(mr);
	post(p, A, request);
	send_all(p, A);
	deliver_nth(p, 0);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	deliver_nth(p, 0);
	expect_silence(p, B);
	expect_dropped(p, B, OLD_DUPLICATE, 1);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(rc_a_copy_of_a_read_that_is_dropped_does_not_hold_up_the_answers_behind_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_send_request request = read_request(p, A, 1, 8);

	request.rkey = vb_mr_key(mr);
	post(p, A, request);
	post_read(p, A, 2, 8);
	send_all(p, A);
	deliver_nth(p, 0);
	deliver_nth(p, 1);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1",
		    "READ_RESPONSE_ONLY psn=1 len=8 msn=2");
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	deliver_nth(p, 0);
	deliver_nth(p, 1);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=1 len=8 msn=2");
}

TEST(rc_a_duplicate_delivered_in_the_same_batch_is_recognised)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 0);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	inject(p, B, "FETCH_ADD psn=0 add=1");
	send_all(p, B);
	EXPECT_EQ(word_at(p, B, TARGET), 1);
	expect_counter(p, B, DUPLICATE_REQUEST, 1);
}

TEST(rc_psns_up_to_2_to_the_23_behind_are_duplicates)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.psn[A] = 0x800000;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "WRITE_ONLY psn=0x800000 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=8388608 msn=1");
	set_word(p, B, TARGET, 1);
	inject(p, B, "WRITE_ONLY psn=0x10 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=8388608 msn=1");
	EXPECT_EQ(word_at(p, B, TARGET), 1);
	expect_counter(p, B, DUPLICATE_REQUEST, 1);
}

TEST(rc_duplicates_across_the_wrap_are_recognised)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.psn[A] = 0xffffff;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "WRITE_ONLY psn=0xffffff len=8 ack");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=2");
	inject(p, B, "WRITE_ONLY psn=0xffffff len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=2");
	expect_counter(p, B, DUPLICATE_REQUEST, 1);
}

TEST(rc_a_duplicate_write_imm_gives_no_second_completion)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 0);
	post_recv(p, B, 2, 0);
	inject(p, B, "WRITE_ONLY_IMM psn=0 len=8 imm=5 ack");
	inject(p, B, "WRITE_ONLY_IMM psn=0 len=8 imm=5 ack");
	expect_completions(p, B, "wr=1 SUCCESS RECV_WRITE_IMM len=8 imm=0x5");
}

TEST(rc_a_duplicate_of_a_send_that_completed_is_not_an_rnr)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 10);
	inject(p, B, "SEND_ONLY psn=0 len=10 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, B, "SEND_ONLY psn=0 len=10 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
}

TEST(rc_a_duplicate_behind_a_naked_gap_does_not_hide_the_nak)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, B, "WRITE_ONLY psn=2 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	send_all(p, B);
	EXPECT(p->held_count >= 2);
	EXPECT_STR(p->held[p->held_count - 1].text, "ACKNOWLEDGE psn=1 msn=1 NAK sequence");
}

TEST(rc_a_duplicate_read_that_asks_for_something_else_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "READ_REQUEST psn=0 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	inject(p, B, "READ_REQUEST psn=0 va=0x2080008 dma=8");
	inject(p, B, "READ_REQUEST psn=0 dma=16");
	inject(p, B, "FETCH_ADD psn=0 add=1");
	expect_silence(p, B);
	expect_untouched(p, B, TARGET, 8);
	expect_dropped(p, B, INVALID, 3);
}

TEST(rc_atomics_are_remembered_when_max_dest_rd_atomic_grows_in_SQD)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 2;
	struct pair *p = pair_connect(&setup);
	struct vb_qp_attr attr = { .state = VB_STATE_SQD, .reads_in = 4 };

	set_word(p, B, TARGET, 0);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	send_all(p, B);
	lose(p);
	modify_state(p, B, VB_STATE_SQD);
	EXPECT_EQ(vb_qp_modify(p->node[B].qp, &attr, VB_ATTR_STATE | VB_ATTR_READS_IN), VB_OK);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x0");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x1");
	inject(p, B, "FETCH_ADD psn=2 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=2 msn=3 orig=0x2");
	EXPECT_EQ(word_at(p, B, TARGET), 3);
}

TEST(rc_the_youngest_atomics_are_remembered_when_max_dest_rd_atomic_shrinks)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 3;
	struct pair *p = pair_connect(&setup);
	struct vb_qp_attr attr = { .state = VB_STATE_SQD, .reads_in = 1 };

	set_word(p, B, TARGET, 0);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	send_all(p, B);
	lose(p);
	modify_state(p, B, VB_STATE_SQD);
	EXPECT_EQ(vb_qp_modify(p->node[B].qp, &attr, VB_ATTR_STATE | VB_ATTR_READS_IN), VB_OK);
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x1");
	EXPECT_EQ(word_at(p, B, TARGET), 2);
}
