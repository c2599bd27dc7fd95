/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC: no answers, no retransmission. A message with a gap is dropped, and the next one is accepted
 * again.
 */
#include "support_pair.h"

TEST(uc_send_completes_when_it_is_sent_and_is_not_answered)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 600);
	expect_sent(p, A, "UC SEND_FIRST psn=0 len=256", "UC SEND_MIDDLE psn=1 len=256",
		    "UC SEND_LAST psn=2 len=88");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	deliver(p);
	expect_silence(p, B);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=600");
	expect_copied(p, A, LOCAL, B, recv_at(1), 600);
}

TEST(uc_write_and_write_imm_work)
{
	struct pair *p = pair_connect_uc(1024);

	post_recv(p, B, 1, 0);
	post_write(p, A, 1, 1500);
	post_write_imm(p, A, 2, 8, 0x77);
	expect_sent(p, A, "UC WRITE_FIRST psn=0 len=1024 dma=1500", "UC WRITE_LAST psn=1 len=476",
		    "UC WRITE_ONLY_IMM psn=2 len=8 dma=8 imm=0x77");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_completions(p, B, "wr=1 SUCCESS RECV_WRITE_IMM len=8 imm=0x77");
	expect_copied(p, A, LOCAL, B, TARGET, 1500);
}

TEST(uc_a_message_with_a_gap_is_dropped_and_the_next_one_uses_its_receive)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 600);
	post_send(p, A, 2, 100);
	expect_sent(p, A, "UC SEND_FIRST psn=0 len=256", "UC SEND_MIDDLE psn=1 len=256",
		    "UC SEND_LAST psn=2 len=88", "UC SEND_ONLY psn=3 len=100");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	deliver_nth(p, 3);
	lose(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=100");
	expect_copied(p, A, LOCAL, B, recv_at(1), 100);
	expect_dropped(p, B, BROKEN_MESSAGE, 1);
	expect_silence(p, B);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(uc_a_message_whose_first_packet_is_lost_is_dropped_whole)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 600);
	send_all(p, A);
	deliver_nth(p, 1);
	deliver_nth(p, 2);
	lose(p);
	expect_no_completion(p, B);
	expect_dropped(p, B, BROKEN_MESSAGE, 2);
}

TEST(uc_a_lost_single_packet_message_leaves_no_trace)
{
	struct pair *p = pair_connect_uc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	post_send(p, A, 2, 20);
	send_all(p, A);
	deliver_nth(p, 1);
	lose(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=20");
}

TEST(uc_a_new_first_packet_after_a_gap_begins_a_new_message)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, "UC SEND_FIRST psn=0 len=256");
	inject(p, B, "UC SEND_FIRST psn=5 len=256");
	inject(p, B, "UC SEND_LAST psn=6 len=10");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=266");
}

TEST(uc_a_send_without_a_receive_is_dropped)
{
	struct pair *p = pair_connect_uc(1024);

	post_send(p, A, 1, 10);
	post_send(p, A, 2, 20);
	send_all(p, A);
	deliver_nth(p, 0);
	expect_dropped(p, B, NO_RECEIVE, 1);
	post_recv(p, B, 1, 100);
	deliver_nth(p, 1);
	lose(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=20");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND");
}

TEST(uc_the_rest_of_a_message_without_a_receive_is_dropped_too)
{
	struct pair *p = pair_connect_uc(256);

	inject(p, B, "UC SEND_FIRST psn=0 len=256");
	post_recv(p, B, 1, 4096);
	inject(p, B, "UC SEND_LAST psn=1 len=10");
	expect_no_completion(p, B);
	inject(p, B, "UC SEND_ONLY psn=2 len=10");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
}

TEST(uc_a_write_without_the_right_is_dropped_and_touches_nothing)
{
	struct pair *p = pair_connect_uc(1024);

	inject(p, B, "UC WRITE_ONLY psn=0 len=8 rkey=0x1");
	expect_silence(p, B);
	expect_dropped(p, B, REFUSED, 1);
	expect_untouched(p, B, TARGET, 8);
	inject(p, B, "UC WRITE_ONLY psn=1 len=8");
	expect_injected(p, B, TARGET, 8);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(uc_a_write_that_the_qp_does_not_allow_is_dropped)
{
	struct setup setup = setup_of(VB_QP_UC, 1024);
	setup.qp_access = 0;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "UC WRITE_ONLY psn=0 len=8");
	expect_silence(p, B);
	expect_untouched(p, B, TARGET, 8);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(uc_a_send_error_moves_the_sender_to_SQE_and_receives_go_on)
{
	struct pair *p = pair_connect_uc(1024);
	struct vb_send_request bad = send_request(p, A, 1, 8);
	struct vb_sge sge = { 0x1234, 8, 0x777 };

	bad.sges = &sge;
	post_recv(p, A, 11, 100);
	post(p, A, bad);
	post_send(p, A, 2, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_SQE);
	inject(p, A, "UC SEND_ONLY psn=5000 len=10");
	expect_completions(p, A, "wr=11 SUCCESS RECV len=10");
}

TEST(uc_a_qp_in_SQE_flushes_what_is_posted_and_can_go_back_to_RTS)
{
	struct pair *p = pair_connect_uc(1024);
	struct vb_send_request bad = send_request(p, A, 1, 8);
	struct vb_sge sge = { 0x1234, 8, 0x777 };

	bad.sges = &sge;
	post(p, A, bad);
	expect_silence(p, A);
	post_send(p, A, 2, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR", "wr=2 WR_FLUSH_ERR");
	modify_state(p, A, VB_STATE_RTS);
	post_send(p, A, 3, 8);
	expect_sent(p, A, "UC SEND_ONLY psn=0 len=8");
	expect_completions(p, A, "wr=3 SUCCESS SEND");
}

TEST(uc_a_packet_of_the_wrong_size_breaks_its_message_only)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, "UC SEND_FIRST psn=0 len=200");
	inject(p, B, "UC SEND_LAST psn=1 len=10");
	expect_no_completion(p, B);
	inject(p, B, "UC SEND_ONLY psn=2 len=10");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
}

TEST(uc_an_rc_packet_is_not_for_a_uc_qp)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, "SEND_ONLY psn=0 len=10 ack");
	inject(p, B, "ACKNOWLEDGE psn=0 msn=1");
	expect_silence(p, B);
	expect_dropped(p, B, QP_TYPE, 2);
}

TEST(uc_psns_wrap)
{
	struct setup setup = setup_of(VB_QP_UC, 256);
	setup.psn[A] = 0xffffff;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 300);
	expect_sent(p, A, "UC SEND_FIRST psn=16777215 len=256", "UC SEND_LAST psn=0 len=44");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=300");
}

TEST(uc_a_receiver_in_RTR_raises_COMM_EST)
{
	struct setup setup = setup_of(VB_QP_UC, 256);
	setup.state[B] = VB_STATE_RTR;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 4096);
	inject(p, B, "UC SEND_ONLY psn=0 len=10");
	expect_events(p, B, "COMM_EST");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
}

TEST(uc_a_message_longer_than_its_receive_is_dropped_and_the_receive_kept)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 300);
	inject(p, B, "UC SEND_FIRST psn=0 len=256");
	inject(p, B, "UC SEND_LAST psn=1 len=100");
	expect_no_completion(p, B);
	expect_dropped(p, B, TOO_LONG, 1);
	expect_untouched(p, B, recv_at(1) + 300, 100);
	inject(p, B, "UC SEND_ONLY psn=2 len=10");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
	expect_state(p, B, VB_STATE_RTS);
}

TEST(uc_a_receive_whose_lkey_is_wrong_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_uc(256);
	struct vb_sge sge = { IOVA_B + RECV, 100, 0x777 };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	post_recv(p, B, 2, 100);
	inject(p, B, "UC SEND_ONLY psn=0 len=10");
	expect_completions(p, B, "wr=1 LOC_PROT_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, B, VB_STATE_ERR);
	expect_untouched(p, B, RECV, 100);
}

TEST(uc_a_receive_kept_from_a_broken_message_is_flushed_in_its_place)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	inject(p, B, "UC SEND_FIRST psn=0 len=256");
	inject(p, B, "UC SEND_LAST psn=7 len=10");
	modify_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(uc_a_write_imm_after_a_broken_send_uses_the_receive_that_was_kept)
{
	struct pair *p = pair_connect_uc(256);

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	inject(p, B, "UC SEND_FIRST psn=0 len=256");
	inject(p, B, "UC WRITE_ONLY_IMM psn=5 len=8 imm=9");
	inject(p, B, "UC SEND_ONLY psn=6 len=10");
	expect_completions(p, B, "wr=1 SUCCESS RECV_WRITE_IMM len=8 imm=0x9",
			   "wr=2 SUCCESS RECV len=10");
}

TEST(uc_a_write_imm_without_a_receive_is_dropped)
{
	struct pair *p = pair_connect_uc(256);

	inject(p, B, "UC WRITE_ONLY_IMM psn=0 len=8 imm=9");
	expect_dropped(p, B, NO_RECEIVE, 1);
	post_recv(p, B, 1, 0);
	inject(p, B, "UC WRITE_ONLY_IMM psn=1 len=8 imm=9");
	expect_completions(p, B, "wr=1 SUCCESS RECV_WRITE_IMM len=8 imm=0x9");
}

TEST(uc_a_write_is_checked_against_its_whole_length_at_the_first_packet)
{
	struct pair *p = pair_connect_uc(256);

	inject(p, B, "UC WRITE_FIRST psn=0 len=256 va=0x20fff00 dma=257");
	inject(p, B, "UC WRITE_LAST psn=1 len=1");
	expect_untouched(p, B, MEMORY_LENGTH - 256, 256);
	expect_dropped(p, B, REFUSED, 1);
	expect_dropped(p, B, BROKEN_MESSAGE, 1);
}

TEST(uc_windows_can_be_bound)
{
	struct pair *p = pair_connect_uc(256);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_1);
	struct vb_send_request request = write_request(p, A, 1, 8);

	post(p, B, bind_request(p, B, 50, mw, TARGET, 8, VB_ACCESS_REMOTE_WRITE));
	settle(p);
	expect_completions(p, B, "wr=50 SUCCESS BIND_MW");
	request.rkey = vb_mw_key(mw);
	post(p, A, request);
	settle(p);
	expect_copied(p, A, LOCAL, B, TARGET, 8);
}

TEST(uc_COMM_EST_is_raised_once)
{
	struct setup setup = setup_of(VB_QP_UC, 256);
	setup.state[B] = VB_STATE_RTR;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "UC WRITE_ONLY psn=0 len=8");
	expect_events(p, B, "COMM_EST");
	inject(p, B, "UC WRITE_ONLY psn=1 len=8");
	expect_no_event(p, B);
}
