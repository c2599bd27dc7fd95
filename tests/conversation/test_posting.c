/* SPDX-License-Identifier: BSD-2-Clause */
/* What posting accepts, when a queue is full, and when its slots become free again. */
#include "support_pair.h"

static struct pair *pair_with_send_depth(uint32_t depth)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.send_depth = depth;
	return pair_connect(&setup);
}

TEST(a_full_send_queue_is_ENOMEM_and_what_was_posted_before_goes_out)
{
	struct pair *p = pair_with_send_depth(2);

	post_write(p, A, 1, 10);
	post_write(p, A, 2, 10);
	EXPECT_EQ(try_post(p, A, write_request(p, A, 3, 10)), VB_ENOMEM);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	post_write(p, A, 4, 10);
	settle(p);
	expect_completions(p, A, "wr=4 SUCCESS WRITE");
}

TEST(a_slot_is_free_only_when_its_completion_was_polled)
{
	struct pair *p = pair_with_send_depth(1);

	post_write(p, A, 1, 10);
	settle(p);
	EXPECT_EQ(try_post(p, A, write_request(p, A, 2, 10)), VB_ENOMEM);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	EXPECT_EQ(try_post(p, A, write_request(p, A, 2, 10)), VB_OK);
}

TEST(an_unsignaled_request_holds_its_slot_until_a_later_completion_is_polled)
{
	struct pair *p = pair_with_send_depth(2);

	post_recv(p, B, 1, 10);
	post_recv(p, B, 2, 10);
	post_send_unsignaled(p, A, 1, 10);
	settle(p);
	expect_no_completion(p, A);
	post_send(p, A, 2, 10);
	EXPECT_EQ(try_post(p, A, send_request(p, A, 3, 10)), VB_ENOMEM);
	settle(p);
	EXPECT_EQ(try_post(p, A, send_request(p, A, 3, 10)), VB_ENOMEM);
	expect_completions(p, A, "wr=2 SUCCESS SEND");
	EXPECT_EQ(try_post(p, A, send_request(p, A, 3, 10)), VB_OK);
	EXPECT_EQ(try_post(p, A, send_request(p, A, 4, 10)), VB_OK);
	EXPECT_EQ(try_post(p, A, send_request(p, A, 5, 10)), VB_ENOMEM);
}

TEST(a_queue_full_of_unsignaled_requests_stays_full)
{
	struct pair *p = pair_with_send_depth(1);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.flags = 0;
	post(p, A, request);
	settle(p);
	expect_no_completion(p, A);
	EXPECT_EQ(try_post(p, A, write_request(p, A, 2, 10)), VB_ENOMEM);
}

TEST(an_unsignaled_request_that_fails_completes_with_its_error)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.flags = 0;
	request.rkey ^= 0x100;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
}

TEST(an_unsignaled_request_that_is_flushed_completes)
{
	struct pair *p = pair_connect_rc(1024);

	post_send_unsignaled(p, A, 1, 10);
	post_send_unsignaled(p, A, 2, 10);
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(signal_all_makes_every_request_complete)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.signal_all = true;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 10);
	post_send_unsignaled(p, A, 1, 10);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(requests_are_not_seen_before_the_doorbell_and_an_aborted_list_leaves_no_trace)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request first = write_request(p, A, 1, 10);
	struct vb_send_request second = write_request(p, A, 2, 10);

	EXPECT_EQ(vb_qp_post_send(p->node[A].qp, &first), VB_OK);
	expect_silence(p, A);
	vb_qp_discard_staged(p->node[A].qp);
	EXPECT_EQ(vb_qp_post_send(p->node[A].qp, &second), VB_OK);
	vb_qp_publish_and_ring(p->node[A].qp);
	settle(p);
	expect_completions(p, A, "wr=2 SUCCESS WRITE");
}

TEST(a_list_stops_at_the_request_that_does_not_fit_and_the_earlier_ones_are_posted)
{
	struct pair *p = pair_with_send_depth(2);
	struct vb_send_request requests[] = { write_request(p, A, 1, 10),
					      write_request(p, A, 2, 10),
					      write_request(p, A, 3, 10) };

	EXPECT_EQ(vb_qp_post_send(p->node[A].qp, &requests[0]), VB_OK);
	EXPECT_EQ(vb_qp_post_send(p->node[A].qp, &requests[1]), VB_OK);
	EXPECT_EQ(vb_qp_post_send(p->node[A].qp, &requests[2]), VB_ENOMEM);
	vb_qp_publish_and_ring(p->node[A].qp);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

TEST(a_full_receive_queue_is_ENOMEM)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.recv_depth = 2;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 10);
	post_recv(p, B, 2, 10);
	EXPECT_EQ(try_post_recv(p, B, 3, 10), VB_ENOMEM);
	post_send(p, A, 1, 10);
	settle(p);
	EXPECT_EQ(try_post_recv(p, B, 3, 10), VB_ENOMEM);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
	EXPECT_EQ(try_post_recv(p, B, 3, 10), VB_OK);
}

TEST(too_many_sges_are_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sges[5] = { 0 };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = sges;
	request.sge_count = 5;
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
	EXPECT_EQ(try_post_recv_sges(p, A, 1, sges, 5), VB_EINVAL);
}

TEST(inline_data_beyond_the_limit_are_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	static uint8_t bytes[65];
	struct vb_sge sge = { (uintptr_t)bytes, 65, 0 };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
	sge.length = 64;
	EXPECT_EQ(try_post(p, A, request), VB_OK);
}

TEST(a_read_or_atomic_cannot_be_inline)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request read = read_request(p, A, 1, 8);
	struct vb_send_request atomic = fetch_add_request(p, A, 1, 8);

	read.flags |= VB_SEND_INLINE;
	atomic.flags |= VB_SEND_INLINE;
	EXPECT_EQ(try_post(p, A, read), VB_EINVAL);
	EXPECT_EQ(try_post(p, A, atomic), VB_EINVAL);
}

TEST(a_message_longer_than_2_to_the_31_is_refused_when_posted)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(try_post(p, A, write_request(p, A, 1, 0x80000001u)), VB_EINVAL);
}

TEST(an_unknown_opcode_is_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = send_request(p, A, 1, 8);

	request.opcode = (enum vb_wr_opcode)77;
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
}

TEST(uc_has_no_reads_and_atomics)
{
	struct pair *p = pair_connect_uc(1024);

	EXPECT_EQ(try_post(p, A, read_request(p, A, 1, 8)), VB_EOPNOTSUPP);
	EXPECT_EQ(try_post(p, A, fetch_add_request(p, A, 1, 8)), VB_EOPNOTSUPP);
	EXPECT_EQ(try_post(p, A, compare_swap_request(p, A, 1, 8, 9)), VB_EOPNOTSUPP);
	EXPECT_EQ(try_post(p, A, atomic_write_request(p, A, 1)), VB_EOPNOTSUPP);
}

TEST(ud_has_only_sends)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request write = datagram_request(p, A, 1, 8);

	write.opcode = VB_WR_WRITE;
	EXPECT_EQ(try_post(p, A, write), VB_EOPNOTSUPP);
	write.opcode = VB_WR_READ;
	EXPECT_EQ(try_post(p, A, write), VB_EOPNOTSUPP);
	write.opcode = VB_WR_SEND_INV;
	EXPECT_EQ(try_post(p, A, write), VB_EOPNOTSUPP);
}

static struct pair *pair_with_a_in(enum vb_qp_state state)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.state[A] = state;
	return pair_connect(&setup);
}

TEST(a_qp_in_RESET_takes_neither_sends_nor_receives)
{
	struct pair *p = pair_with_a_in(VB_STATE_RESET);

	EXPECT_EQ(try_post(p, A, send_request(p, A, 1, 10)), VB_EINVAL);
	EXPECT_EQ(try_post_recv(p, A, 1, 10), VB_EINVAL);
}

TEST(receives_may_be_posted_from_INIT_on_but_no_sends)
{
	struct pair *p = pair_with_a_in(VB_STATE_INIT);

	EXPECT_EQ(try_post(p, A, send_request(p, A, 1, 10)), VB_EINVAL);
	EXPECT_EQ(try_post_recv(p, A, 1, 10), VB_OK);
}

TEST(a_receive_posted_in_INIT_is_used_after_RTR)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[B] = VB_STATE_INIT;
	struct pair *p = pair_connect(&setup);
	uint32_t mask;
	struct vb_qp_attr attr = attr_towards(p, B, VB_STATE_RTR, &mask);

	post_recv(p, B, 1, 10);
	EXPECT_EQ(vb_qp_modify(p->node[B].qp, &attr, mask), VB_OK);
	post_send(p, A, 1, 10);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
}

TEST(a_qp_in_RTR_takes_receives_but_no_sends)
{
	struct pair *p = pair_with_a_in(VB_STATE_RTR);

	EXPECT_EQ(try_post(p, A, send_request(p, A, 1, 10)), VB_EINVAL);
	EXPECT_EQ(try_post_recv(p, A, 1, 10), VB_OK);
}

TEST(a_receive_queue_behind_an_srq_takes_no_receives_of_its_own)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.has_srq = true;
	struct pair *p = pair_connect(&setup);
	struct vb_sge sge = sge_at(p, B, RECV, 10);
	struct vb_recv_request request = { .wr_id = 1, .sges = &sge, .sge_count = 1 };

	EXPECT_EQ(vb_qp_post_recv(p->node[B].qp, &request), VB_EINVAL);
}
