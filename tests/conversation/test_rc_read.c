/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: READ, its responses, what they acknowledge, and how a lost response is recovered. */
#include "support_pair.h"

TEST(rc_read_is_answered_in_packets_of_the_mtu_and_takes_as_many_psns)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 2500);
	post_write(p, A, 2, 8);
	expect_sent(p, A, "READ_REQUEST psn=0 va=0x2080000 dma=2500", "WRITE_ONLY psn=3 len=8 ack");
	deliver_nth(p, 0);
	lose(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=1024 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=1024",
		    "READ_RESPONSE_LAST psn=2 len=452 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=2500");
	expect_copied(p, B, TARGET, A, SINK, 2500);
	expect_untouched(p, A, SINK + 2500, 16);
}

TEST(rc_read_of_one_packet_is_answered_by_a_single_response)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 5);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=5");
	expect_copied(p, B, TARGET, A, SINK, 5);
	expect_untouched(p, A, SINK + 5, 16);
	expect_no_completion(p, B);
}

TEST(rc_read_of_zero_bytes_checks_no_key_and_takes_one_psn)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 0);

	request.rkey = 0x12345;
	request.remote_address = 0;
	post(p, A, request);
	post_write(p, A, 2, 4);
	expect_sent(p, A, "READ_REQUEST psn=0 va=0x0 rkey=0x12345 dma=0",
		    "WRITE_ONLY psn=1 len=4 ack");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=0 msn=1", "ACKNOWLEDGE psn=1 msn=2");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=0", "wr=2 SUCCESS WRITE");
}

TEST(rc_read_scatters_into_all_its_sges)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_sge sges[] = { sge_at(p, A, SINK, 300), sge_at(p, A, SINK + 0x1000, 400) };
	struct vb_send_request request = read_request(p, A, 1, 0);

	request.sges = sges;
	request.sge_count = 2;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=700");
	expect_copied(p, B, TARGET, A, SINK, 300);
	expect_untouched(p, A, SINK + 300, 16);
	expect_copied(p, B, TARGET + 300, A, SINK + 0x1000, 400);
}

TEST(rc_read_psns_wrap)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.psn[A] = 0xffffff;
	struct pair *p = pair_connect(&setup);

	post_read(p, A, 1, 600);
	post_write(p, A, 2, 8);
	expect_sent(p, A, "READ_REQUEST psn=16777215 dma=600", "WRITE_ONLY psn=2 len=8 ack");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=16777215 len=256 msn=1",
		    "READ_RESPONSE_MIDDLE psn=0 len=256", "READ_RESPONSE_LAST psn=1 len=88 msn=1",
		    "ACKNOWLEDGE psn=2 msn=2");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=600", "wr=2 SUCCESS WRITE");
}

TEST(rc_read_sees_the_writes_before_it)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 100);
	post_read(p, A, 2, 100);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=100");
	expect_copied(p, A, LOCAL, A, SINK, 100);
}

TEST(rc_writes_do_not_wait_for_a_read_before_them)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 100);
	post_write(p, A, 2, 100);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=100", "WRITE_ONLY psn=1 len=100 ack");
}

TEST(rc_a_fenced_request_waits_for_the_reads_before_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 2, 100);

	request.flags |= VB_SEND_FENCE;
	post_read(p, A, 1, 100);
	post(p, A, request);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=100");
	deliver(p);
	expect_silence(p, A);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=100 msn=1");
	deliver(p);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=100 ack");
}

TEST(rc_a_fence_does_not_wait_for_writes)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 2, 100);

	request.flags |= VB_SEND_FENCE;
	post_write(p, A, 1, 100);
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=100 ack", "WRITE_ONLY psn=1 len=100 ack");
}

TEST(rc_no_more_reads_and_atomics_are_out_than_max_rd_atomic)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_out = 2;
	struct pair *p = pair_connect(&setup);

	post_read(p, A, 1, 8);
	post_fetch_add(p, A, 2, 1);
	post_read(p, A, 3, 8);
	post_write(p, A, 4, 8);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "FETCH_ADD psn=1 add=0x1");
	deliver(p);
	expect_silence(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=8", "wr=2 SUCCESS FETCH_ADD len=8",
			   "wr=3 SUCCESS READ len=8", "wr=4 SUCCESS WRITE");
}

TEST(rc_more_reads_than_max_dest_rd_atomic_are_an_invalid_request)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 1;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "READ_REQUEST psn=0 dma=8");
	inject(p, B, "READ_REQUEST psn=1 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1",
		    "ACKNOWLEDGE psn=1 msn=1 NAK invalid request");
	expect_state(p, B, VB_STATE_ERR);
}

TEST(rc_a_read_response_acknowledges_everything_before_it)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	post_write(p, A, 2, 10);
	post_read(p, A, 3, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack", "WRITE_ONLY psn=1 len=10 ack",
		    "READ_REQUEST psn=2 dma=10");
	lose(p);
	inject(p, A, "READ_RESPONSE_ONLY psn=2 len=10 msn=3");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE",
			   "wr=3 SUCCESS READ len=10");
	expect_injected(p, A, SINK, 10);
}

TEST(rc_the_first_of_several_read_responses_already_acknowledges_what_was_before)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 10);
	post_read(p, A, 2, 512);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack", "READ_REQUEST psn=1 dma=512");
	lose(p);
	inject(p, A, "READ_RESPONSE_FIRST psn=1 len=256 msn=2");
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	inject(p, A, "READ_RESPONSE_LAST psn=2 len=256 msn=2");
	expect_completions(p, A, "wr=2 SUCCESS READ len=512");
}

TEST(rc_a_gap_in_the_read_responses_is_an_implied_nak_and_only_the_rest_is_asked_for_again)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 4000);
	expect_sent(p, A, "READ_REQUEST psn=0 va=0x2080000 dma=4000");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=1024 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=1024", "READ_RESPONSE_MIDDLE psn=2 len=1024",
		    "READ_RESPONSE_LAST psn=3 len=928 msn=1");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	lose(p);
	expect_sent(p, A, "READ_REQUEST psn=1 va=0x2080400 dma=2976");
	expect_counter(p, A, IMPLIED_NAK_SEQ_ERR, 1);
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=1 len=1024 msn=1",
		    "READ_RESPONSE_MIDDLE psn=2 len=1024",
		    "READ_RESPONSE_LAST psn=3 len=928 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=4000");
	expect_copied(p, B, TARGET, A, SINK, 4000);
}

TEST(rc_several_responses_behind_one_gap_cause_one_repetition)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 4000);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=4000");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=1024 msn=1",
		    "READ_RESPONSE_MIDDLE psn=1 len=1024", "READ_RESPONSE_MIDDLE psn=2 len=1024",
		    "READ_RESPONSE_LAST psn=3 len=928 msn=1");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	expect_sent(p, A, "READ_REQUEST psn=1 dma=2976");
	deliver_nth(p, 3);
	lose(p);
	expect_silence(p, A);
	expect_counter(p, A, IMPLIED_NAK_SEQ_ERR, 1);
}

TEST(rc_a_lost_last_read_response_costs_one_timeout_and_asks_only_for_the_rest)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 2048);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=2048");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=1024 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=1024 msn=1");
	deliver_nth(p, 0);
	lose(p);
	expect_silence(p, A);
	wait_until_work(p, A);
	expect_sent(p, A, "READ_REQUEST psn=1 va=0x2080400 dma=1024");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=1 len=1024 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=2048");
	expect_copied(p, B, TARGET, A, SINK, 2048);
}

TEST(rc_an_acknowledgement_behind_an_unanswered_read_is_an_implied_nak)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	post_write(p, A, 2, 8);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "WRITE_ONLY psn=1 len=8 ack");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1", "ACKNOWLEDGE psn=1 msn=2");
	deliver_nth(p, 1);
	lose(p);
	expect_no_completion(p, A);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "WRITE_ONLY psn=1 len=8 ack");
	expect_counter(p, A, IMPLIED_NAK_SEQ_ERR, 1);
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=8", "wr=2 SUCCESS WRITE");
}

TEST(rc_a_read_response_of_the_wrong_length_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	post_write(p, A, 2, 8);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=8", "WRITE_ONLY psn=1 len=8 ack");
	lose(p);
	inject(p, A, "READ_RESPONSE_ONLY psn=0 len=12 msn=1");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_untouched(p, A, SINK, 12);
	expect_counter(p, A, BAD_RESP_ERR, 1);
}

TEST(rc_a_first_read_response_shorter_than_the_mtu_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 2000);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=2000");
	lose(p);
	inject(p, A, "READ_RESPONSE_FIRST psn=0 len=1000 msn=1");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR");
}

TEST(rc_a_read_response_that_ends_too_early_is_BAD_RESP_ERR)
{
	struct pair *p = pair_connect_rc(256);

	post_read(p, A, 1, 700);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=700");
	lose(p);
	inject(p, A, "READ_RESPONSE_FIRST psn=0 len=256 msn=1");
	inject(p, A, "READ_RESPONSE_LAST psn=1 len=256 msn=1");
	expect_completions(p, A, "wr=1 BAD_RESP_ERR");
}

TEST(rc_a_duplicate_read_response_is_dropped)
{
	struct pair *p = pair_connect_rc(256);

	post_read(p, A, 1, 300);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=300");
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1");
	deliver_nth(p, 0);
	deliver_nth(p, 0);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=300");
	expect_silence(p, A);
	expect_copied(p, B, TARGET, A, SINK, 300);
}

TEST(rc_a_read_into_a_region_without_local_write_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, SINK, 4096, 0);
	struct vb_mr *mr = make_mr(p, A, &init);
	struct vb_sge sge = { IOVA_A + SINK, 100, vb_mr_key(mr) };
	struct vb_send_request request = read_request(p, A, 1, 100);

	request.sges = &sge;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_untouched(p, A, SINK, 100);
}

TEST(rc_a_read_longer_than_2_to_the_31_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "READ_REQUEST psn=0 dma=0x80000001");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
}

TEST(rc_reads_are_answered_in_the_order_of_the_requests)
{
	struct pair *p = pair_connect_rc(256);

	post_read(p, A, 1, 300);
	post_fetch_add(p, A, 2, 1);
	post_read(p, A, 3, 8);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=300", "FETCH_ADD psn=2 add=0x1",
		    "READ_REQUEST psn=3 dma=8");
	set_word(p, B, TARGET, 0x41);
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "READ_RESPONSE_LAST psn=1 len=44 msn=1",
		    "ATOMIC_ACKNOWLEDGE psn=2 msn=2 orig=0x41",
		    "READ_RESPONSE_ONLY psn=3 len=8 msn=3");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=300", "wr=2 SUCCESS FETCH_ADD len=8",
			   "wr=3 SUCCESS READ len=8");
}
