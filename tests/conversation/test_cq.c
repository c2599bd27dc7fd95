/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: resizing, overrun, events and moderation. */
#include "support_pair.h"

static struct pair *pair_with_cq_depth(uint32_t depth)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.cq_depth = depth;
	return pair_connect(&setup);
}

static void write_and_settle(struct pair *p, uint64_t wr_id)
{
	post_write(p, A, wr_id, 8);
	settle(p);
}

TEST(cq_resize_keeps_what_is_in_it_in_order)
{
	struct pair *p = pair_with_cq_depth(4);

	write_and_settle(p, 1);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	write_and_settle(p, 2);
	write_and_settle(p, 3);
	write_and_settle(p, 4);
	EXPECT_EQ(vb_cq_resize(p->node[A].send_cq, 9), VB_OK);
	EXPECT_EQ(vb_cq_depth(p->node[A].send_cq), 9);
	write_and_settle(p, 5);
	write_and_settle(p, 6);
	EXPECT_EQ(vb_cq_waiting(p->node[A].send_cq), 5);
	expect_completions(p, A, "wr=2 SUCCESS WRITE", "wr=3 SUCCESS WRITE", "wr=4 SUCCESS WRITE",
			   "wr=5 SUCCESS WRITE", "wr=6 SUCCESS WRITE");
}

TEST(cq_resize_below_what_is_in_it_is_EINVAL_and_changes_nothing)
{
	struct pair *p = pair_with_cq_depth(4);

	write_and_settle(p, 1);
	write_and_settle(p, 2);
	EXPECT_EQ(vb_cq_resize(p->node[A].send_cq, 1), VB_EINVAL);
	EXPECT_EQ(vb_cq_depth(p->node[A].send_cq), 4);
	EXPECT_EQ(vb_cq_resize(p->node[A].send_cq, 2), VB_OK);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

TEST(cq_that_is_full_to_the_last_entry_has_not_overrun)
{
	struct pair *p = pair_with_cq_depth(2);

	write_and_settle(p, 1);
	write_and_settle(p, 2);
	expect_no_event(p, A);
	EXPECT(!vb_cq_has_overrun(p->node[A].send_cq));
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

TEST(cq_overrun_is_an_error_of_the_cq_and_its_qps_and_overwrites_nothing)
{
	struct pair *p = pair_with_cq_depth(2);

	write_and_settle(p, 1);
	write_and_settle(p, 2);
	write_and_settle(p, 3);
	EXPECT(vb_cq_has_overrun(p->node[A].send_cq));
	expect_state(p, A, VB_STATE_ERR);
	expect_events(p, A, "CQ_ERR", "QP_FATAL");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

TEST(cq_overrun_takes_every_qp_of_that_cq_and_no_other)
{
	struct pair *p = pair_with_cq_depth(2);
	struct vb_qp *victim = make_qp(p, A);
	struct vb_qp_init init = { .type = VB_QP_RC, .send_depth = 1, .recv_depth = 1 };
	struct vb_cq *cq;
	struct vb_qp *bystander;

	EXPECT_EQ(vb_cq_create(p->node[A].nic, 4, NULL, &cq), VB_OK);
	init.send_cq = init.recv_cq = cq;
	EXPECT_EQ(vb_qp_create(p->node[A].pd, &init, &bystander), VB_OK);
	bring_up(p, A, victim, (vb_qpn){ 5 }, VB_STATE_RTS);
	bring_up(p, A, bystander, (vb_qpn){ 6 }, VB_STATE_RTS);
	write_and_settle(p, 1);
	write_and_settle(p, 2);
	write_and_settle(p, 3);
	EXPECT_EQ(vb_qp_state(victim), VB_STATE_ERR);
	EXPECT_EQ(vb_qp_state(bystander), VB_STATE_RTS);
	EXPECT_EQ(vb_qp_destroy(bystander), VB_OK);
	EXPECT_EQ(vb_cq_destroy(cq), VB_OK);
}

TEST(cq_overrun_at_the_receiver_ends_its_qp)
{
	struct pair *p = pair_with_cq_depth(1);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	inject(p, B, "SEND_ONLY psn=0 len=8 ack");
	inject(p, B, "SEND_ONLY psn=1 len=8 ack");
	expect_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
}

TEST(cq_armed_raises_one_event_at_the_next_completion)
{
	struct pair *p = pair_connect_rc(1024);

	vb_cq_arm(p->node[A].send_cq, false);
	expect_no_event(p, A);
	write_and_settle(p, 1);
	expect_events(p, A, "COMPLETION");
	write_and_settle(p, 2);
	expect_no_event(p, A);
	vb_cq_arm(p->node[A].send_cq, false);
	write_and_settle(p, 3);
	expect_events(p, A, "COMPLETION");
}

TEST(cq_completions_that_are_there_when_it_is_armed_raise_nothing)
{
	struct pair *p = pair_connect_rc(1024);

	write_and_settle(p, 1);
	vb_cq_arm(p->node[A].send_cq, false);
	expect_no_event(p, A);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

/*
 * A program may look for the last time before the completion comes, and arm the CQ afterwards. The
 * owner of the engine then raises the event, as hardware does.
 */
TEST(cq_completions_that_no_event_announced_can_be_raised_when_it_is_armed)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_cq *cq = p->node[A].send_cq;

	vb_cq_arm(cq, false);
	EXPECT(!vb_cq_has_unannounced(cq));
	write_and_settle(p, 1);
	expect_events(p, A, "COMPLETION");
	vb_cq_arm(cq, false); /* the program knows of completion 1, and will poll */
	EXPECT(!vb_cq_has_unannounced(cq));
	write_and_settle(p, 2);
	expect_events(p, A, "COMPLETION");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	write_and_settle(p, 3);
	expect_no_event(p, A);
	vb_cq_arm(cq, false);
	EXPECT(vb_cq_has_unannounced(cq));
	vb_cq_raise_unannounced(cq);
	expect_events(p, A, "COMPLETION");
	EXPECT(!vb_cq_has_unannounced(cq));
	vb_cq_raise_unannounced(cq); /* once for each time that it is armed */
	expect_no_event(p, A);
	expect_completions(p, A, "wr=3 SUCCESS WRITE");
}

TEST(cq_not_armed_or_armed_for_others_does_not_raise_what_no_event_announced)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_cq *cq = p->node[A].send_cq;

	write_and_settle(p, 1);
	vb_cq_raise_unannounced(cq);
	expect_no_event(p, A);
	vb_cq_arm(cq, true);
	vb_cq_raise_unannounced(cq);
	expect_no_event(p, A);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	vb_cq_arm(cq, false);
	vb_cq_raise_unannounced(cq); /* the completion is no longer there */
	expect_no_event(p, A);
}

TEST(cq_not_armed_raises_nothing)
{
	struct pair *p = pair_connect_rc(1024);

	write_and_settle(p, 1);
	expect_no_event(p, A);
}

TEST(cq_armed_for_solicited_waits_for_a_solicited_message)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	vb_cq_arm(p->node[B].recv_cq, true);
	inject(p, B, "SEND_ONLY psn=0 len=8 ack");
	expect_no_event(p, B);
	inject(p, B, "SEND_ONLY psn=1 len=8 ack solicited");
	expect_events(p, B, "COMPLETION");
}

TEST(cq_armed_for_solicited_takes_a_solicited_write_imm)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	vb_cq_arm(p->node[B].recv_cq, true);
	inject(p, B, "WRITE_ONLY_IMM psn=0 len=8 imm=1 ack solicited");
	expect_events(p, B, "COMPLETION");
}

TEST(cq_armed_for_solicited_raises_at_a_failed_completion)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	vb_cq_arm(p->node[B].recv_cq, true);
	modify_state(p, B, VB_STATE_ERR);
	expect_events(p, B, "COMPLETION");
}

TEST(cq_armed_for_any_is_not_weakened_by_arming_for_solicited)
{
	struct pair *p = pair_connect_rc(1024);

	vb_cq_arm(p->node[A].send_cq, false);
	vb_cq_arm(p->node[A].send_cq, true);
	write_and_settle(p, 1);
	expect_events(p, A, "COMPLETION");
}

TEST(cq_moderation_raises_after_count_completions)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_cq_moderate(p->node[A].send_cq, 3, 1000), VB_OK);
	vb_cq_arm(p->node[A].send_cq, false);
	write_and_settle(p, 1);
	write_and_settle(p, 2);
	expect_no_event(p, A);
	write_and_settle(p, 3);
	expect_events(p, A, "COMPLETION");
}

TEST(cq_moderation_raises_a_period_after_the_first_completion)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_cq_moderate(p->node[A].send_cq, 100, 50), VB_OK);
	vb_cq_arm(p->node[A].send_cq, false);
	write_and_settle(p, 1);
	wait_ns(p, 49999);
	expect_no_event(p, A);
	wait_ns(p, 1);
	expect_events(p, A, "COMPLETION");
	wait_ns(p, 100000);
	expect_no_event(p, A);
}

TEST(cq_moderation_0_0_switches_it_off)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_cq_moderate(p->node[A].send_cq, 100, 50), VB_OK);
	EXPECT_EQ(vb_cq_moderate(p->node[A].send_cq, 0, 0), VB_OK);
	vb_cq_arm(p->node[A].send_cq, false);
	write_and_settle(p, 1);
	expect_events(p, A, "COMPLETION");
}

TEST(cq_depth_0_is_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_cq *cq;

	EXPECT_EQ(vb_cq_create(p->node[A].nic, 0, NULL, &cq), VB_EINVAL);
	EXPECT_EQ(vb_cq_create(p->node[A].nic, vb_nic_limits(p->node[A].nic).cq_depth + 1, NULL,
			       &cq),
		  VB_EINVAL);
	EXPECT_EQ(vb_cq_resize(p->node[A].send_cq, 0), VB_EINVAL);
}

TEST(cq_in_use_cannot_be_destroyed)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_cq_destroy(p->node[A].send_cq), VB_EBUSY);
	EXPECT_EQ(vb_cq_destroy(p->node[A].recv_cq), VB_EBUSY);
}

TEST(cq_polling_takes_no_more_than_asked_for)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_completion completions[4];

	write_and_settle(p, 1);
	write_and_settle(p, 2);
	write_and_settle(p, 3);
	EXPECT_EQ(vb_cq_poll(p->node[A].send_cq, completions, 2), 2);
	EXPECT_EQ(completions[1].wr_id, 2);
	EXPECT_EQ(vb_cq_poll(p->node[A].send_cq, completions, 4), 1);
	EXPECT_EQ(completions[0].wr_id, 3);
	EXPECT_EQ(vb_cq_poll(p->node[A].send_cq, completions, 4), 0);
}

TEST(cq_completions_say_when_and_for_whom)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_completion completion;

	wait_ns(p, 12345);
	write_and_settle(p, 1);
	EXPECT_EQ(vb_cq_poll(p->node[A].send_cq, &completion, 1), 1);
	EXPECT_EQ(completion.timestamp_ns, p->now_ns);
	EXPECT_EQ(completion.qpn, vb_qp_number(p->node[A].qp).v);
}

TEST(cq_one_for_sends_and_receives_keeps_the_order_of_the_events)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp_init init = {
		.type = VB_QP_RC, .send_depth = 4, .recv_depth = 4, .recv_sge_max = 1
	};
	struct vb_cq *cq;
	struct vb_qp *qp;

	EXPECT_EQ(vb_cq_create(p->node[A].nic, 8, NULL, &cq), VB_OK);
	init.send_cq = init.recv_cq = cq;
	EXPECT_EQ(vb_qp_create(p->node[A].pd, &init, &qp), VB_OK);
	bring_up(p, A, qp, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	struct vb_qp *first = p->node[A].qp;
	p->node[A].qp = qp;
	EXPECT_EQ(try_post_recv(p, A, 7, 100), VB_OK);
	inject(p, A, "SEND_ONLY psn=5000 len=8 ack");
	modify_state(p, A, VB_STATE_ERR);
	EXPECT_EQ(try_post_recv(p, A, 8, 100), VB_OK);
	expect_silence(p, A);
	expect_completions_of(cq, "wr=7 SUCCESS RECV len=8", "wr=8 WR_FLUSH_ERR");
	p->node[A].qp = first;
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	EXPECT_EQ(vb_cq_destroy(cq), VB_OK);
}

TEST(cq_overrun_by_an_xrc_srq_ends_the_receiving_qp)
{
	struct setup setup = setup_of(VB_QP_XRC_SEND, 1024);
	setup.cq_depth = 1;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	inject(p, B, "XRC SEND_ONLY psn=0 len=8 ack");
	inject(p, B, "XRC SEND_ONLY psn=1 len=8 ack");
	expect_state(p, B, VB_STATE_ERR);
	expect_completions_of(p->node[B].recv_cq, "wr=1 SUCCESS RECV len=8");
}

TEST(cq_that_has_overrun_ends_every_qp_that_comes_back_to_it)
{
	struct pair *p = pair_with_cq_depth(1);

	write_and_settle(p, 1);
	write_and_settle(p, 2);
	expect_state(p, A, VB_STATE_ERR);
	modify_state(p, A, VB_STATE_RESET);
	modify_state(p, B, VB_STATE_RESET);
	bring_up(p, A, p->node[A].qp, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	bring_up(p, B, p->node[B].qp, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	write_and_settle(p, 3);
	expect_state(p, A, VB_STATE_ERR);
	expect_no_completion(p, A);
}

TEST(cq_moderation_with_a_count_but_no_period_does_not_wait)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_cq_moderate(p->node[A].send_cq, 5, 0), VB_OK);
	vb_cq_arm(p->node[A].send_cq, false);
	write_and_settle(p, 1);
	expect_events(p, A, "COMPLETION");
}

TEST(cq_overrun_while_sending_ends_the_qp)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.cq_depth = 1;
	struct pair *p = pair_connect(&setup);

	post_datagram(p, A, 1, 8);
	post_datagram(p, A, 2, 8);
	settle(p);
	expect_state(p, A, VB_STATE_ERR);
	expect_events(p, A, "CQ_ERR", "QP_FATAL");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

/*
 * The CQ of the main QP's receives has room for one completion and is full. A second QP, whose
 * sends complete there, has a send that fails while the packets of both QPs are made: the CQ
 * overruns, and the main QP will end.
 */
static void overrun_while_sending(struct pair *p)
{
	struct vb_qp_init init = { .type = p->setup.type,
				   .send_depth = 1,
				   .recv_depth = 1,
				   .send_sge_max = 1,
				   .send_cq = p->node[A].recv_cq,
				   .recv_cq = p->node[A].recv_cq };
	struct vb_sge wrong = { p->node[A].iova, 8, key_of(p, A) ^ 1 };
	struct vb_send_request failing = write_request(p, A, 7, 8);
	struct vb_slot slots[4];
	struct vb_qp *qp;

	EXPECT_EQ(vb_qp_create(p->node[A].pd, &init, &qp), VB_OK);
	bring_up(p, A, qp, (vb_qpn){ 5 }, VB_STATE_RTS);
	failing.sges = &wrong;
	post_write(p, A, 1, 512);
	EXPECT_EQ(vb_qp_post_send(qp, &failing), VB_OK);
	vb_qp_publish_and_ring(qp);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 4), 1);
	EXPECT(vb_cq_has_overrun(p->node[A].recv_cq));
	EXPECT_EQ(vb_cq_waiting(p->node[A].send_cq), 0); /* the link has not read the buffer yet */
	EXPECT(vb_nic_has_work(p->node[A].nic));
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 4), 0);
	expect_state(p, A, VB_STATE_ERR);
	EXPECT_EQ(vb_cq_waiting(p->node[A].send_cq), 1);
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
}

TEST(cq_overrun_ends_no_uc_request_whose_packet_the_link_has_yet_to_read)
{
	struct setup setup = setup_of(VB_QP_UC, 1024);
	setup.cq_depth = 1;
	struct pair *p = pair_connect(&setup);

	post_recv(p, A, 1, 100);
	inject(p, A, "UC SEND_ONLY psn=0 len=8");
	overrun_while_sending(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=1 SUCCESS RECV len=8");
}

TEST(cq_overrun_ends_no_rc_request_whose_packet_the_link_has_yet_to_read)
{
	struct pair *p = pair_with_cq_depth(1);

	post_recv(p, A, 1, 100);
	inject(p, A, "SEND_ONLY psn=5000 len=8");
	overrun_while_sending(p);
}
