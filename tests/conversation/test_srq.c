/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: the limit event, and what a failing QP does and does not take with it. */
#include "support_pair.h"

static struct pair *pair_with_srq(uint32_t depth, uint32_t limit)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	setup.has_srq = true;
	setup.recv_depth = depth;
	setup.srq_limit = limit;
	return pair_connect(&setup);
}

TEST(srq_receives_are_used_in_order)
{
	struct pair *p = pair_with_srq(8, 0);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 10);
	post_send(p, A, 2, 20);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10", "wr=2 SUCCESS RECV len=20");
}

TEST(srq_is_shared_by_its_qps)
{
	struct pair *p = pair_with_srq(8, 0);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B);

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 10);
	settle(p);
	p->node[A].qp = a;
	post_send(p, A, 2, 20);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10", "wr=2 SUCCESS RECV len=20");
}

TEST(srq_limit_event_is_raised_once_when_fewer_than_the_limit_are_left)
{
	struct pair *p = pair_with_srq(8, 2);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	post_recv(p, B, 3, 100);
	post_send(p, A, 1, 10);
	settle(p);
	expect_no_event(p, B);
	EXPECT_EQ(vb_srq_limit(p->node[B].srq), 2);
	post_send(p, A, 2, 10);
	settle(p);
	expect_events(p, B, "SRQ_LIMIT_REACHED");
	EXPECT_EQ(vb_srq_limit(p->node[B].srq), 0);
	post_send(p, A, 3, 10);
	settle(p);
	expect_no_event(p, B);
}

TEST(srq_limit_can_be_armed_again)
{
	struct pair *p = pair_with_srq(8, 1);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	settle(p);
	expect_events(p, B, "SRQ_LIMIT_REACHED");
	post_recv(p, B, 2, 100);
	EXPECT_EQ(vb_srq_set_limit(p->node[B].srq, 1), VB_OK);
	post_send(p, A, 2, 10);
	settle(p);
	expect_events(p, B, "SRQ_LIMIT_REACHED");
}

TEST(srq_limit_beyond_the_depth_is_EINVAL)
{
	struct pair *p = pair_with_srq(8, 0);

	EXPECT_EQ(vb_srq_set_limit(p->node[B].srq, 9), VB_EINVAL);
	EXPECT_EQ(vb_srq_set_limit(p->node[B].srq, 8), VB_OK);
}

TEST(srq_entries_are_not_flushed_by_a_qps_error_and_LAST_WQE_REACHED_is_raised)
{
	struct pair *p = pair_with_srq(8, 0);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	modify_state(p, B, VB_STATE_ERR);
	expect_no_completion(p, B);
	expect_events(p, B, "QP_LAST_WQE_REACHED");
}

TEST(srq_the_entry_in_use_is_flushed_with_its_qp)
{
	struct pair *p = pair_with_srq(8, 0);

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	inject(p, B, "SEND_FIRST psn=0 len=256");
	modify_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR");
}

TEST(srq_entries_left_by_a_failed_qp_serve_the_others)
{
	struct pair *p = pair_with_srq(8, 0);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B);

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	post_recv(p, B, 1, 100);
	modify_state(p, B, VB_STATE_ERR);
	p->node[A].qp = a;
	post_send(p, A, 1, 10);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
}

TEST(srq_empty_is_rnr)
{
	struct pair *p = pair_with_srq(8, 0);

	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
}

TEST(srq_full_is_ENOMEM_and_a_used_entry_makes_room_without_a_poll)
{
	struct pair *p = pair_with_srq(1, 0);

	post_recv(p, B, 1, 100);
	EXPECT_EQ(try_post_recv(p, B, 2, 100), VB_ENOMEM);
	post_send(p, A, 1, 10);
	settle(p);
	EXPECT_EQ(try_post_recv(p, B, 2, 100), VB_OK);
}

TEST(srq_resize_keeps_the_entries_in_order)
{
	struct pair *p = pair_with_srq(2, 0);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	EXPECT_EQ(vb_srq_resize(p->node[B].srq, 1), VB_EINVAL);
	EXPECT_EQ(vb_srq_resize(p->node[B].srq, 5), VB_OK);
	EXPECT_EQ(vb_srq_depth(p->node[B].srq), 5);
	post_recv(p, B, 3, 100);
	post_send(p, A, 1, 10);
	post_send(p, A, 2, 10);
	post_send(p, A, 3, 10);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10", "wr=2 SUCCESS RECV len=10",
			   "wr=3 SUCCESS RECV len=10");
}

TEST(srq_in_use_cannot_be_destroyed)
{
	struct pair *p = pair_with_srq(8, 0);

	EXPECT_EQ(vb_srq_destroy(p->node[B].srq), VB_EBUSY);
}

TEST(srq_a_wrong_lkey_is_LOC_PROT_ERR_for_that_entry_only)
{
	struct pair *p = pair_with_srq(8, 0);
	struct vb_sge sge = { IOVA_B + RECV, 100, 0x777 };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 10);
	settle(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR");
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
}

TEST(srq_write_imm_uses_an_entry)
{
	struct pair *p = pair_with_srq(8, 0);

	post_recv(p, B, 1, 100);
	post_write_imm(p, A, 1, 8, 3);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV_WRITE_IMM len=8 imm=0x3");
	expect_untouched(p, B, recv_at(1), 100);
}

TEST(srq_of_a_ud_qp_works)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.has_srq = true;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 100);
	post_datagram(p, A, 1, 8);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
}

TEST(srq_of_a_uc_qp_works)
{
	struct setup setup = setup_of(VB_QP_UC, 256);
	setup.has_srq = true;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 300);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=300");
}

TEST(srq_a_message_longer_than_its_entry_is_LOC_LEN_ERR)
{
	struct pair *p = pair_with_srq(8, 0);

	post_recv(p, B, 1, 10);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 11);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_completions(p, B, "wr=1 LOC_LEN_ERR");
	expect_events(p, B, "QP_LAST_WQE_REACHED");
}

TEST(srq_entries_are_checked_against_the_srqs_own_pd)
{
	struct pair *p = pair_with_srq(8, 0);
	struct node *b = node_of(p, B);
	struct vb_mr_init init = mr_init_at(p, B, RECV, 0x1000, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr_in(p, B, b->other_pd, &init);
	struct vb_sge sge = { IOVA_B + RECV, 100, vb_mr_key(mr) };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	post_send(p, A, 1, 10);
	settle(p);
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
}
