/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC: requests name the SRQ whose receives they use. */
#include "support_pair.h"

#include <stdio.h>

TEST(xrc_send_names_its_srq_and_completes_in_that_srqs_cq)
{
	struct pair *p = pair_connect_xrc(1024);
	char line[80];

	snprintf(line, sizeof(line), "XRC SEND_LAST psn=1 len=476 srqn=%u ack",
		 vb_srq_number(p->node[B].srq));
	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 1500);
	expect_sent(p, A, "XRC SEND_FIRST psn=0 len=1024", line);
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=1500");
	expect_sent(p, B, "XRC ACKNOWLEDGE psn=1 msn=1 credits=none");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_copied(p, A, LOCAL, B, recv_at(1), 1500);
}

TEST(xrc_the_srq_is_chosen_by_its_number)
{
	struct pair *p = pair_connect_xrc(1024);
	struct node *b = node_of(p, B);
	struct vb_srq_init init = { .depth = 4, .sge_max = 1, .xrcd = b->xrcd, .cq = b->recv_cq };
	struct vb_send_request request = send_request(p, A, 1, 10);
	struct vb_srq *first = b->srq, *second;

	EXPECT_EQ(vb_srq_create(b->pd, &init, &second), VB_OK);
	post_recv(p, B, 1, 100);
	b->srq = second;
	post_recv(p, B, 2, 100);
	request.remote_srqn = vb_srq_number(second);
	post(p, A, request);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=10");
	b->srq = first;
	post_send(p, A, 2, 20);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=20");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND");
	EXPECT_EQ(vb_srq_destroy(second), VB_OK);
}

TEST(xrc_a_number_that_names_no_srq_is_an_invalid_request)
{
	struct pair *p = pair_connect_xrc(1024);
	struct vb_send_request request = send_request(p, A, 1, 10);

	request.remote_srqn ^= 0x400;
	post_recv(p, B, 1, 100);
	post(p, A, request);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "XRC ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_state(p, B, VB_STATE_ERR);
	expect_no_completion(p, B);
}

TEST(xrc_an_srq_of_another_domain_is_an_invalid_request)
{
	struct pair *p = pair_connect_xrc(1024);
	struct node *b = node_of(p, B);
	struct vb_send_request request = send_request(p, A, 1, 10);
	struct vb_srq_init init = { .depth = 4, .sge_max = 1, .cq = b->recv_cq };
	struct vb_xrcd *xrcd;
	struct vb_srq *srq;

	EXPECT_EQ(vb_xrcd_create(b->nic, &xrcd), VB_OK);
	init.xrcd = xrcd;
	EXPECT_EQ(vb_srq_create(b->pd, &init, &srq), VB_OK);
	request.remote_srqn = vb_srq_number(srq);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	EXPECT_EQ(vb_srq_destroy(srq), VB_OK);
	EXPECT_EQ(vb_xrcd_destroy(xrcd), VB_OK);
}

TEST(xrc_an_empty_srq_is_rnr)
{
	struct pair *p = pair_connect_xrc(1024);

	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "XRC ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	post_recv(p, B, 1, 10);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
}

TEST(xrc_write_read_and_atomics_work_as_on_rc)
{
	struct pair *p = pair_connect_xrc(1024);

	post_write(p, A, 1, 8);
	post_read(p, A, 2, 8);
	post_fetch_add(p, A, 3, 1);
	expect_sent(p, A, "XRC WRITE_ONLY psn=0 len=8 ack", "XRC READ_REQUEST psn=1 dma=8",
		    "XRC FETCH_ADD psn=2 add=0x1");
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=8",
			   "wr=3 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, B, TARGET), word_at(p, A, SINK) + 1);
}

TEST(xrc_write_imm_uses_a_receive_of_the_named_srq)
{
	struct pair *p = pair_connect_xrc(1024);

	post_recv(p, B, 4, 0);
	post_write_imm(p, A, 1, 8, 7);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_completions(p, B, "wr=4 SUCCESS RECV_WRITE_IMM len=8 imm=0x7");
}

TEST(xrc_receives_are_checked_against_the_srqs_own_pd)
{
	struct pair *p = pair_connect_xrc(1024);
	struct node *b = node_of(p, B);
	struct vb_srq_init init = { .depth = 4, .sge_max = 1, .xrcd = b->xrcd, .cq = b->recv_cq };
	struct vb_mr_init mr_init = mr_init_at(p, B, RECV, 0x1000, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr_in(p, B, b->other_pd, &mr_init);
	struct vb_sge sge = { IOVA_B + RECV, 100, vb_mr_key(mr) };
	struct vb_recv_request receive = { .wr_id = 9, .sges = &sge, .sge_count = 1 };
	struct vb_send_request request = send_request(p, A, 1, 10);
	struct vb_srq *srq;

	EXPECT_EQ(vb_srq_create(b->other_pd, &init, &srq), VB_OK);
	EXPECT_EQ(vb_srq_post_recv(srq, &receive), VB_OK);
	request.remote_srqn = vb_srq_number(srq);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=9 SUCCESS RECV len=10");
	EXPECT_EQ(vb_srq_destroy(srq), VB_OK);
}

TEST(xrc_qps_take_no_receives_and_the_receiving_one_no_sends)
{
	struct pair *p = pair_connect_xrc(1024);
	struct vb_recv_request receive = { .wr_id = 1 };
	struct vb_send_request send = send_request(p, B, 1, 8);

	EXPECT_EQ(vb_qp_post_recv(p->node[A].qp, &receive), VB_EINVAL);
	EXPECT_EQ(vb_qp_post_recv(p->node[B].qp, &receive), VB_EINVAL);
	EXPECT_EQ(vb_qp_post_send(p->node[B].qp, &send), VB_EOPNOTSUPP);
}

TEST(xrc_a_domain_in_use_cannot_be_destroyed)
{
	struct pair *p = pair_connect_xrc(1024);

	EXPECT_EQ(vb_xrcd_destroy(p->node[B].xrcd), VB_EBUSY);
}

TEST(xrc_an_rc_packet_is_not_for_an_xrc_qp)
{
	struct pair *p = pair_connect_xrc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_silence(p, B);
	expect_dropped(p, B, QP_TYPE, 1);
}

TEST(xrc_lost_requests_and_responses_are_recovered_as_on_rc)
{
	struct pair *p = pair_connect_xrc(256);

	post_read(p, A, 1, 600);
	expect_sent(p, A, "XRC READ_REQUEST psn=0 dma=600");
	deliver(p);
	expect_sent(p, B, "XRC READ_RESPONSE_FIRST psn=0 len=256 msn=1",
		    "XRC READ_RESPONSE_MIDDLE psn=1 len=256",
		    "XRC READ_RESPONSE_LAST psn=2 len=88 msn=1");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	lose(p);
	expect_sent(p, A, "XRC READ_REQUEST psn=1 dma=344");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=600");
}

TEST(xrc_the_completions_of_a_destroyed_qp_are_purged_from_the_srqs_cq)
{
	struct pair *p = pair_connect_xrc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	settle(p);
	EXPECT_EQ(drop_qp(p, B, p->node[B].qp), VB_OK);
	expect_completions_of(p->node[B].recv_cq, NULL);
}

TEST(xrc_the_limit_event_of_the_srq_is_raised)
{
	struct setup setup = setup_of(VB_QP_XRC_SEND, 1024);
	setup.srq_limit = 1;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	settle(p);
	expect_events(p, B, "SRQ_LIMIT_REACHED");
}

TEST(xrc_a_request_to_the_sending_qp_is_dropped)
{
	struct pair *p = pair_connect_xrc(1024);

	inject(p, A, "XRC WRITE_ONLY psn=5000 len=8 ack");
	expect_silence(p, A);
	expect_dropped(p, A, QP_TYPE, 1);
}

TEST(xrc_an_error_of_the_receiving_qp_leaves_the_srq_alone)
{
	struct pair *p = pair_connect_xrc(1024);
	struct vb_send_request bad = write_request(p, A, 1, 8);

	bad.rkey ^= 0x100;
	post_recv(p, B, 1, 100);
	post(p, A, bad);
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_no_completion(p, B);
	expect_state(p, B, VB_STATE_ERR);
}

/* A WRITE of A that names an SRQ of B's other PD, with this key. */
static void expect_write_for_the_other_pd(bool key_is_of_that_pd, const char *completion)
{
	struct pair *p = pair_connect_xrc(1024);
	struct node *b = node_of(p, B);
	struct vb_srq_init init = { .depth = 4, .sge_max = 1, .xrcd = b->xrcd, .cq = b->recv_cq };
	struct vb_mr_init mr_init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_mr *mr = make_mr_in(p, B, key_is_of_that_pd ? b->other_pd : b->pd, &mr_init);
	struct vb_send_request request = write_request(p, A, 1, 8);
	struct vb_srq *srq;

	EXPECT_EQ(vb_srq_create(b->other_pd, &init, &srq), VB_OK);
	request.rkey = vb_mr_key(mr);
	request.remote_srqn = vb_srq_number(srq);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, completion);
	EXPECT_EQ(vb_srq_destroy(srq), VB_OK);
}

TEST(xrc_requests_reach_the_memory_of_the_pd_of_the_srq_that_they_name)
{
	expect_write_for_the_other_pd(true, "wr=1 SUCCESS WRITE");
}

TEST(xrc_requests_do_not_reach_the_memory_of_another_pd)
{
	expect_write_for_the_other_pd(false, "wr=1 REM_ACCESS_ERR");
}
