/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that are destroyed while they still have something pending. */
#include "support_pair.h"

TEST(the_events_of_a_destroyed_qp_are_gone)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[B] = VB_STATE_RTR;
	struct pair *p = pair_connect(&setup);
	struct vb_qp *qp = make_qp(p, B);

	bring_up(p, B, qp, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	struct vb_qp_attr attr = { .state = VB_STATE_SQD, .sqd_notify = true };
	EXPECT_EQ(vb_qp_modify(qp, &attr, VB_ATTR_STATE | VB_ATTR_SQD_NOTIFY), VB_OK);
	EXPECT_EQ(drop_qp(p, B, qp), VB_OK);
	expect_no_event(p, B);
}

TEST(the_events_and_timers_of_a_destroyed_cq_are_gone)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp_init init = {
		.type = VB_QP_RC, .send_depth = 4, .recv_depth = 4, .send_sge_max = 1
	};
	struct vb_qp *qp, *first = p->node[A].qp;
	struct vb_cq *cq;

	EXPECT_EQ(vb_cq_create(p->node[A].nic, 8, NULL, &cq), VB_OK);
	EXPECT_EQ(vb_cq_moderate(cq, 10, 100), VB_OK);
	init.send_cq = init.recv_cq = cq;
	EXPECT_EQ(vb_qp_create(p->node[A].pd, &init, &qp), VB_OK);
	bring_up(p, A, qp, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	vb_cq_arm(cq, false);
	p->node[A].qp = qp;
	modify_state(p, A, VB_STATE_ERR);
	post_write(p, A, 1, 8);
	expect_silence(p, A);
	p->node[A].qp = first;
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	EXPECT_EQ(vb_cq_destroy(cq), VB_OK);
	wait_ns(p, MS);
	expect_no_event(p, A);
}

TEST(an_address_handle_may_go_when_the_datagram_is_posted)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 100);
	post_datagram(p, A, 1, 8);
	EXPECT_EQ(vb_ah_destroy(p->node[A].ahs[0]), VB_OK);
	p->node[A].ahs[0] = NULL;
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
}

TEST(a_region_that_goes_before_the_request_is_sent_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, 4096, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr(p, A, &init);
	struct vb_sge sge = { IOVA_A, 8, vb_mr_key(mr) };
	struct vb_send_request request = write_request(p, A, 1, 8);

	request.sges = &sge;
	post(p, A, request);
	EXPECT_EQ(drop_mr(p, A, mr), VB_OK);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
}

TEST(a_receive_buffer_that_goes_in_the_middle_of_a_message_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_mr_init init = mr_init_at(p, B, RECV, 4096, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_sge sge = { IOVA_B + RECV, 4096, vb_mr_key(mr) };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	inject(p, B, "SEND_FIRST psn=0 len=256");
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	inject(p, B, "SEND_LAST psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK remote operation");
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, B, RECV + 256, 8);
}

TEST(a_sink_that_goes_before_the_read_response_comes_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, SINK, 4096, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr(p, A, &init);
	struct vb_sge sge = { IOVA_A + SINK, 8, vb_mr_key(mr) };
	struct vb_send_request request = read_request(p, A, 1, 8);

	request.sges = &sge;
	post(p, A, request);
	send_all(p, A);
	EXPECT_EQ(drop_mr(p, A, mr), VB_OK);
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, A, SINK, 8);
}

TEST(completions_of_a_qp_can_be_polled_after_it_went_to_ERR_and_free_its_slots)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.send_depth = 2;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 8);
	settle(p);
	modify_state(p, A, VB_STATE_ERR);
	post_write(p, A, 2, 8);
	expect_silence(p, A);
	EXPECT_EQ(try_post(p, A, write_request(p, A, 3, 8)), VB_ENOMEM);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 WR_FLUSH_ERR");
	EXPECT_EQ(try_post(p, A, write_request(p, A, 3, 8)), VB_OK);
}

TEST(receives_in_flight_at_a_reset_of_the_peer_are_kept)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, "SEND_FIRST psn=0 len=256");
	wait_ns(p, 10000 * MS);
	expect_no_completion(p, B);
	inject(p, B, "SEND_LAST psn=1 len=8 ack");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=264");
}

TEST(a_qp_destroyed_in_the_middle_of_a_message_gives_its_objects_free)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.has_srq = true;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 4096);
	inject(p, B, "SEND_FIRST psn=0 len=256");
	inject(p, B, "READ_REQUEST psn=9 dma=100");
	/* The rig destroys everything now. */
}

TEST(what_was_posted_in_ERR_but_not_looked_at_is_forgotten_by_RESET)
{
	struct pair *p = pair_connect_rc(1024);

	modify_state(p, A, VB_STATE_ERR);
	post_write(p, A, 1, 8);
	post_recv(p, A, 2, 8);
	modify_state(p, A, VB_STATE_RESET);
	expect_rest(p, A);
}

TEST(a_doorbell_is_not_lost_when_another_rung_qp_is_destroyed)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp *other = make_qp(p, A), *first = p->node[A].qp;

	bring_up(p, A, other, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	expect_silence(p, A);
	post_write(p, A, 1, 8);
	p->node[A].qp = other;
	post_write(p, A, 2, 8);
	p->node[A].qp = first;
	EXPECT_EQ(drop_qp(p, A, other), VB_OK);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
}

TEST(an_xrc_srq_destroyed_in_the_middle_of_a_message_ends_the_receiving_qp)
{
	struct pair *p = pair_connect_xrc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, "XRC SEND_FIRST psn=0 len=256");
	EXPECT_EQ(vb_srq_destroy(p->node[B].srq), VB_OK);
	p->node[B].srq = NULL;
	expect_sent(p, B, "XRC ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
	expect_state(p, B, VB_STATE_ERR);
}

TEST(completions_of_an_xrc_qp_can_be_polled_after_the_srq_is_gone)
{
	struct pair *p = pair_connect_xrc(256);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 8);
	settle(p);
	EXPECT_EQ(vb_srq_destroy(p->node[B].srq), VB_OK);
	p->node[B].srq = NULL;
	expect_completions_of(p->node[B].recv_cq, "wr=1 SUCCESS RECV len=8");
}
