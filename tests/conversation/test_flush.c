/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to requests when a QP fails, is reset or is destroyed: they complete in order, each
 * exactly once, or not at all.
 */
#include "support_pair.h"

TEST(the_first_failure_has_its_status_and_the_rest_are_flushed_in_order)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request bad = write_request(p, A, 2, 8);

	bad.rkey ^= 0x100;
	post_write(p, A, 1, 8);
	post(p, A, bad);
	post_read(p, A, 3, 8);
	post_fetch_add(p, A, 4, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 REM_ACCESS_ERR", "wr=3 WR_FLUSH_ERR",
			   "wr=4 WR_FLUSH_ERR");
	expect_no_completion(p, A);
}

TEST(a_local_error_waits_until_the_requests_before_it_are_complete)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request bad = write_request(p, A, 3, 8);
	struct vb_sge sge = { 0x1234, 8, 0x777 };

	bad.sges = &sge;
	post_write(p, A, 1, 8);
	post_read(p, A, 2, 8);
	post(p, A, bad);
	post_write(p, A, 4, 8);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack", "READ_REQUEST psn=1 dma=8");
	expect_no_completion(p, A);
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=8",
			   "wr=3 LOC_PROT_ERR", "wr=4 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

TEST(a_local_error_in_the_middle_of_a_message_ends_it)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_sge sges[] = { sge_at(p, A, LOCAL, 256), { 0x1234, 256, 0x777 } };
	struct vb_send_request bad = write_request(p, A, 1, 0);

	bad.sges = sges;
	bad.sge_count = 2;
	post(p, A, bad);
	send_all(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

TEST(a_local_error_on_the_first_request_shows_at_once)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request bad = send_request(p, A, 1, 8);
	struct vb_sge sge = { 0x1234, 8, 0x777 };

	bad.sges = &sge;
	post(p, A, bad);
	post_send(p, A, 2, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(modify_to_ERR_flushes_sends_and_receives_in_order)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, A, 11, 8);
	post_recv(p, A, 12, 8);
	post_send(p, A, 1, 8);
	post_read(p, A, 2, 8);
	send_all(p, A);
	post_write(p, A, 3, 8);
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR", "wr=3 WR_FLUSH_ERR",
			   "wr=11 WR_FLUSH_ERR", "wr=12 WR_FLUSH_ERR");
	expect_silence(p, A);
}

TEST(posting_in_ERR_succeeds_and_is_flushed)
{
	struct pair *p = pair_connect_rc(1024);

	modify_state(p, A, VB_STATE_ERR);
	post_send(p, A, 1, 8);
	post_send_unsignaled(p, A, 2, 8);
	post_recv(p, A, 11, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR", "wr=11 WR_FLUSH_ERR");
}

TEST(requests_flushed_after_posting_free_their_slots)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.send_depth = 1;
	struct pair *p = pair_connect(&setup);

	modify_state(p, A, VB_STATE_ERR);
	post_send(p, A, 1, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR");
	post_send(p, A, 2, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=2 WR_FLUSH_ERR");
}

TEST(responses_that_arrive_after_the_flush_complete_nothing_twice)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_read(p, A, 2, 8);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR");
	deliver(p);
	expect_no_completion(p, A);
	EXPECT(vb_nic_counters(p->node[A].nic)->drops[VB_DROP_QP_STATE] >= 1);
}

TEST(a_receive_that_a_message_was_going_into_is_flushed_with_the_others)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	inject(p, B, "SEND_FIRST psn=0 len=256");
	modify_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(a_qp_in_ERR_answers_nothing)
{
	struct pair *p = pair_connect_rc(1024);

	modify_state(p, B, VB_STATE_ERR);
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_silence(p, B);
	expect_untouched(p, B, TARGET, 8);
	expect_dropped(p, B, QP_STATE, 1);
}

TEST(RESET_forgets_everything_and_completes_nothing)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, A, 11, 8);
	post_send(p, A, 1, 8);
	post_read(p, A, 2, 8);
	send_all(p, A);
	modify_state(p, A, VB_STATE_RESET);
	EXPECT_EQ(vb_nic_deadline(p->node[A].nic), VB_NEVER);
	expect_rest(p, A);
}

TEST(RESET_purges_the_completions_of_that_qp_only)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp *other = make_qp(p, A);
	struct vb_qp *first = p->node[A].qp;

	bring_up(p, A, other, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	post_write(p, A, 1, 8);
	settle(p);
	p->node[A].qp = other;
	modify_state(p, A, VB_STATE_ERR);
	post_write(p, A, 2, 8);
	expect_silence(p, A);
	p->node[A].qp = first;
	post_write(p, A, 3, 8);
	settle(p);
	modify_state(p, A, VB_STATE_RESET);
	expect_completions(p, A, "wr=2 WR_FLUSH_ERR");
}

TEST(destroy_purges_the_completions_of_that_qp_only)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp *other = make_qp(p, A);
	struct vb_qp *first = p->node[A].qp;

	bring_up(p, A, other, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	post_write(p, A, 1, 8);
	settle(p);
	p->node[A].qp = other;
	modify_state(p, A, VB_STATE_ERR);
	post_recv(p, A, 21, 8);
	post_write(p, A, 2, 8);
	expect_silence(p, A);
	p->node[A].qp = first;
	EXPECT_EQ(drop_qp(p, A, other), VB_OK);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(a_qp_can_be_used_again_after_RESET)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	settle(p);
	modify_state(p, A, VB_STATE_RESET);
	modify_state(p, B, VB_STATE_RESET);
	p->setup.psn[A] = 100;
	bring_up(p, A, p->node[A].qp, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	bring_up(p, B, p->node[B].qp, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	post_recv(p, B, 1, 100);
	post_send(p, A, 5, 50);
	expect_sent(p, A, "SEND_ONLY psn=100 len=50 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=100 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=5 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=50");
}

TEST(a_qp_can_be_destroyed_with_everything_under_way)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 2000);
	post_read(p, A, 2, 2000);
	send_all(p, A);
	deliver(p);
	post_write(p, A, 3, 8);
	/* The rig destroys both QPs now, with requests posted, packets out and replies pending. */
}

TEST(packets_to_a_destroyed_qp_are_dropped)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp *qp = make_qp(p, B);
	uint32_t number = vb_qp_number(qp).v;

	EXPECT_EQ(drop_qp(p, B, qp), VB_OK);
	post_write(p, A, 1, 8);
	EXPECT(number != vb_qp_number(p->node[B].qp).v);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(an_error_counts_under_its_name)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request bad = write_request(p, A, 1, 8);

	bad.rkey ^= 0x100;
	post_recv(p, B, 1, 8);
	post(p, A, bad);
	post_write(p, A, 2, 8);
	settle(p);
	expect_counter(p, A, REQ_CQE_ERROR, 1);
	expect_counter(p, A, REQ_CQE_FLUSH_ERROR, 1);
	expect_counter(p, B, RESP_CQE_FLUSH_ERROR, 1);
}

TEST(modify_from_INIT_to_ERR_flushes_the_receives)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[A] = VB_STATE_INIT;
	struct pair *p = pair_connect(&setup);

	post_recv(p, A, 1, 8);
	post_recv(p, A, 2, 8);
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(a_responder_that_refuses_flushes_its_own_requests_too)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, B, 1, 8);
	post_read(p, B, 2, 8);
	send_all(p, B);
	lose(p);
	inject(p, B, "WRITE_ONLY psn=0 len=8 rkey=0x1 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(a_requester_that_fails_flushes_the_receive_in_use_too)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, A, 7, 4096);
	inject(p, A, "SEND_FIRST psn=5000 len=256");
	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK remote operation");
	expect_completions(p, A, "wr=1 REM_OP_ERR", "wr=7 WR_FLUSH_ERR");
}

TEST(reads_that_wait_for_their_answer_are_forgotten_in_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "READ_REQUEST psn=0 dma=2000");
	inject(p, B, "FETCH_ADD psn=2 add=1");
	inject(p, B, "WRITE_ONLY psn=3 len=8 ack");
	modify_state(p, B, VB_STATE_ERR);
	expect_silence(p, B);
}

TEST(a_qp_in_ERR_has_no_deadline)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	EXPECT(vb_nic_deadline(p->node[A].nic) != VB_NEVER);
	modify_state(p, A, VB_STATE_ERR);
	EXPECT_EQ(vb_nic_deadline(p->node[A].nic), VB_NEVER);
}
