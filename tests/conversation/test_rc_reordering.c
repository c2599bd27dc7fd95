/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC on a wire that delays, duplicates and reorders: late packets must neither confuse nor stall
 * either end.
 */
#include "support_pair.h"

#include "nic/qp_priv.h"

TEST(rc_two_packets_that_changed_places_cost_no_timeout)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 600);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_LAST psn=2 len=88 ack");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	deliver_nth(p, 1);
	lose(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, 0);
}

TEST(rc_an_ack_that_is_owed_survives_a_gap_that_closes_at_once)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=2 len=8 ack");
	inject(p, B, "WRITE_FIRST psn=1 len=256 dma=300");
	send_all(p, B);
	EXPECT(p->held_count >= 1);
}

TEST(rc_a_sequence_nak_while_waiting_for_the_receiver_does_not_stall_the_requester)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
}

TEST(rc_a_late_copy_of_an_rnr_nak_is_not_a_second_one)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.rnr_retry = 1;
	struct pair *p = pair_connect(&setup);

	post_send(p, A, 1, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	expect_no_completion(p, A);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
}

TEST(rc_a_late_copy_of_a_sequence_nak_after_progress_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_silence(p, A);
	expect_dropped(p, A, NOT_OUR_RESPONSE, 1);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(rc_a_read_response_that_arrives_after_its_repetition_was_asked_for_is_used)
{
	struct pair *p = pair_connect_rc(256);

	post_read(p, A, 1, 700);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=256", "READ_RESPONSE_LAST psn=2 len=188 msn=1");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	deliver_nth(p, 1);
	deliver_nth(p, 2);
	expect_completions(p, A, "wr=1 SUCCESS READ len=700");
	expect_copied(p, B, TARGET, A, SINK, 700);
	lose(p);
	settle(p);
	expect_no_completion(p, A);
	expect_state(p, A, VB_STATE_RTS);
}

TEST(rc_the_same_read_response_lost_again_after_a_timeout_is_an_implied_nak_again)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.retry_count = 7;
	struct pair *p = pair_connect(&setup);

	post_read(p, A, 1, 700);
	send_all(p, A);
	lose(p);
	inject(p, A, "READ_RESPONSE_FIRST psn=0 len=256 msn=1");
	inject(p, A, "READ_RESPONSE_LAST psn=2 len=188 msn=1");
	expect_sent(p, A, "READ_REQUEST psn=1 dma=444");
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "READ_REQUEST psn=1 dma=444");
	lose(p);
	inject(p, A, "READ_RESPONSE_LAST psn=2 len=188 msn=1");
	expect_sent(p, A, "READ_REQUEST psn=1 dma=444");
}

TEST(rc_responses_to_reads_behind_a_lost_one_are_asked_for_again)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	post_read(p, A, 2, 8);
	post_read(p, A, 3, 8);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1",
		    "READ_RESPONSE_ONLY psn=1 len=8 msn=2", "READ_RESPONSE_ONLY psn=2 len=8 msn=3");
	deliver_nth(p, 1);
	deliver_nth(p, 2);
	lose(p);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "READ_REQUEST psn=1 dma=8",
		    "READ_REQUEST psn=2 dma=8");
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=8", "wr=2 SUCCESS READ len=8",
			   "wr=3 SUCCESS READ len=8");
}

TEST(rc_a_stale_ack_from_before_the_wrap_is_dropped)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.psn[A] = 0xffffff;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	post_write(p, A, 3, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=2");
	inject(p, A, "ACKNOWLEDGE psn=0xffffff msn=1");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_silence(p, A);
}

TEST(rc_retry_count_0_gives_up_at_a_sequence_nak)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.retry_count = 0;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
}

TEST(rc_a_message_repeated_from_the_middle_arrives_whole)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_sge sges[] = { sge_at(p, A, 10, 300), sge_at(p, A, 5000, 100),
				 sge_at(p, A, 900, 500) };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = sges;
	request.sge_count = 3;
	post_recv(p, B, 1, 4096);
	post(p, A, request);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_MIDDLE psn=1 len=256",
		    "SEND_MIDDLE psn=2 len=256", "SEND_LAST psn=3 len=132 ack");
	deliver_nth(p, 0);
	deliver_nth(p, 3);
	lose(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK sequence");
	deliver(p);
	expect_sent(p, A, "SEND_MIDDLE psn=1 len=256", "SEND_MIDDLE psn=2 len=256",
		    "SEND_LAST psn=3 len=132 ack");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=900");
	expect_copied(p, A, 10, B, recv_at(1), 300);
	expect_copied(p, A, 5000, B, recv_at(1) + 300, 100);
	expect_copied(p, A, 900, B, recv_at(1) + 400, 500);
}

TEST(rc_a_repetition_whose_memory_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, 4096, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr(p, A, &init);
	struct vb_sge sge = { IOVA_A, 8, vb_mr_key(mr) };
	struct vb_send_request request = write_request(p, A, 1, 8);

	request.sges = &sge;
	post(p, A, request);
	send_all(p, A);
	lose(p);
	EXPECT_EQ(drop_mr(p, A, mr), VB_OK);
	wait_ns(p, 2 * ACK_TIMEOUT_NS);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
}

TEST(rc_an_rnr_nak_for_the_middle_of_what_is_out_keeps_the_order)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	post_send(p, A, 2, 10);
	post_write(p, A, 3, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1 RNR_NAK 0.64 ms");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_untouched(p, B, TARGET, 10);
	post_recv(p, B, 2, 100);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=1 len=10 ack", "WRITE_ONLY psn=2 len=10 ack");
	settle(p);
	expect_completions(p, A, "wr=2 SUCCESS SEND", "wr=3 SUCCESS WRITE");
}

TEST(rc_a_nak_with_a_code_that_does_not_exist_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 syndrome=0x7f");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR");
}

TEST(rc_a_reserved_syndrome_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 syndrome=0x40");
	expect_no_completion(p, A);
	expect_dropped(p, A, INVALID, 1);
}

TEST(rc_an_atomic_result_for_a_read_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=5");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR");
	expect_untouched(p, A, SINK, 8);
}

TEST(rc_a_read_response_for_an_atomic_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_fetch_add(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR");
	expect_untouched(p, A, SINK, 8);
}

TEST(rc_a_read_with_max_rd_atomic_0_is_LOC_QP_OP_ERR)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_out = 0;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 8);
	post_read(p, A, 2, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 LOC_QP_OP_ERR");
}

TEST(rc_a_read_at_a_responder_with_max_dest_rd_atomic_0_is_an_invalid_request)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 0;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "READ_REQUEST psn=0 dma=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
}

TEST(rc_a_sequence_nak_behind_an_unanswered_read_asks_for_the_read_first)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	post_write(p, A, 2, 8);
	post_write(p, A, 3, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=2 msn=2 NAK sequence");
	expect_no_completion(p, A);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "WRITE_ONLY psn=1 len=8 ack",
		    "WRITE_ONLY psn=2 len=8 ack");
	expect_counter(p, A, IMPLIED_NAK_SEQ_ERR, 1);
}

TEST(rc_an_rnr_nak_behind_an_unanswered_read_asks_for_the_read_first)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	post_send(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=1 RNR_NAK 0.64 ms");
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "SEND_ONLY psn=1 len=8 ack");
}

TEST(rc_an_ack_while_waiting_for_the_receiver_completes_what_it_covers)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 8);
	post_send(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=1 len=8 ack");
}

TEST(rc_an_ack_of_everything_while_waiting_for_the_receiver_ends_the_wait_in_silence)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_rest(p, A);
	post_write(p, A, 2, 8);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=8 ack");
}

TEST(rc_a_read_response_for_a_request_that_is_no_read_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	expect_no_completion(p, A);
	expect_dropped(p, A, NOT_OUR_RESPONSE, 1);
	expect_state(p, A, VB_STATE_RTS);
}

TEST(rc_an_answer_with_data_to_an_atomic_write_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post(p, A, atomic_write_request(p, A, 1));
	send_all(p, A);
	lose(p);
	inject(p, A, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR");
}

TEST(rc_local_operations_between_repeated_requests_are_done_once)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, A, VB_MW_TYPE_2);

	post_write(p, A, 1, 8);
	post(p, A, bind_request(p, A, 2, mw, TARGET, 8, VB_ACCESS_REMOTE_READ));
	post_write(p, A, 3, 8);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack", "WRITE_ONLY psn=1 len=8 ack");
	expect_no_completion(p, A);
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack", "WRITE_ONLY psn=1 len=8 ack");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS BIND_MW",
			   "wr=3 SUCCESS WRITE");
}

TEST(rc_a_local_operation_behind_a_read_completes_after_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, A, VB_MW_TYPE_2);

	post_read(p, A, 1, 8);
	post(p, A, bind_request(p, A, 2, mw, TARGET, 8, VB_ACCESS_REMOTE_READ));
	send_all(p, A);
	expect_no_completion(p, A);
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=8", "wr=2 SUCCESS BIND_MW");
}

TEST(rc_a_local_error_behind_lost_requests_waits_for_their_repetition)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post(p, A, invalidate_request(2, 0x12345));
	post_write(p, A, 3, 8);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
	lose(p);
	wait_until_work(p, A);
	expect_no_completion(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 MW_BIND_ERR", "wr=3 WR_FLUSH_ERR");
}

TEST(rc_replies_and_requests_take_turns)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, B, 1, 512);
	inject(p, B, "READ_REQUEST psn=0 dma=700");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1", "WRITE_FIRST psn=5000 len=256",
		    "READ_RESPONSE_MIDDLE psn=1 len=256", "WRITE_LAST psn=5001 len=256 ack",
		    "READ_RESPONSE_LAST psn=2 len=188 msn=1");
}

TEST(rc_no_more_psns_are_out_than_half_the_circle)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_send_request request = read_request(p, A, 1, 0);
	struct vb_mr *null;

	EXPECT_EQ(vb_mr_create_null(p->node[A].pd, &null), VB_OK);
	struct vb_sge sink = { 0, 0x80000000u, vb_mr_key(null) };
	request.sges = &sink;
	post(p, A, request);
	post_write(p, A, 2, 8);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=2147483648");
	lose(p);
	modify_state(p, A, VB_STATE_RESET);
	EXPECT_EQ(vb_mr_destroy(null), VB_OK);
}

TEST(rc_a_gap_that_moved_on_before_its_nak_went_out_is_naked_once)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=2 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1 NAK sequence");
	inject(p, B, "WRITE_ONLY psn=3 len=8 ack");
	expect_silence(p, B);
}

/*
 * A NAK has left, and the peer goes back for everything behind the gap. A later NAK that is not
 * needed after all is replaced by an ACK.
 */
TEST(rc_what_was_dropped_after_a_nak_had_left_is_not_naked_again)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "SEND_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	inject(p, B, "SEND_ONLY psn=2 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=0 len=8");
	inject(p, B, "SEND_ONLY psn=1 len=8 ack"); /* finds no receive … */
	post_recv(p, B, 1, 8);
	inject(p, B, "SEND_ONLY psn=1 len=8 ack"); /* … and comes again before the RNR NAK leaves */
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
}

/* As if the peer had sent that many requests. */
static void skip_psns(struct pair *p, uint32_t count)
{
	struct vb_responder *responder = &p->node[B].qp->responder;

	responder->expected = vb_psn_add(responder->expected, count);
}

TEST(rc_packets_that_were_dropped_half_a_circle_ago_are_forgotten)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack"); /* before the NAK for it leaves */
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
	skip_psns(p, 0x800001);
	inject(p, B, "SEND_ONLY psn=8388611 len=8 ack");
	post_recv(p, B, 1, 8);
	inject(p, B, "SEND_ONLY psn=8388611 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=8388611 msn=3");
}
