/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching, messages without data: the adapter reads the data itself, in between the program's
 * own requests, and tells the sender when it has. The program sees two completions of the SRQ, and
 * nothing in its send queue.
 */
#include "support_tags.h"
#include "support_train.h"

#include "nic/rendezvous_priv.h"

#include <string.h>

#define MATCH_11 "wr=1 SUCCESS TM_RECV len=0 match tag=0x11 context=0xc0de"

TEST(the_adapter_reads_the_data_and_then_tells_the_sender)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tmh fin;

	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 3000);
	post_rendezvous(p, 1, 0x11, 2500);
	expect_sent(p, A, "SEND_ONLY psn=0 len=32 ack");
	deliver(p);
	expect_completions(p, B, MATCH_11);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1", "READ_REQUEST psn=5000 dma=2500");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_sent(p, A, "READ_RESPONSE_FIRST psn=5000 len=1024 msn=1",
		    "READ_RESPONSE_MIDDLE psn=5001 len=1024",
		    "READ_RESPONSE_LAST psn=5002 len=452 msn=1");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=2500 valid");
	expect_copied(p, A, TARGET, B, recv_at(1), 2500);
	expect_untouched(p, B, recv_at(1) + 2500, 500);
	expect_sent(p, B, "SEND_ONLY psn=5003 len=16 ack");
	deliver(p);
	expect_completions(p, A, "wr=5 SUCCESS RECV len=16");
	fin = vb_tmh_load(p->node[A].memory + recv_at(5));
	EXPECT_EQ(fin.opcode, VB_TMH_FIN);
	EXPECT_EQ(fin.app_context, CONTEXT);
	EXPECT_EQ(fin.tag, 0x11);
	settle(p);
	expect_no_completion(p, B);
	expect_rest(p, B);
}

TEST(a_rendezvous_of_nothing_is_complete_as_well)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 0);
	post_rendezvous(p, 1, 0x11, 0);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 SUCCESS TM_RECV len=0 valid");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
}

TEST(what_follows_the_headers_is_not_placed)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 100);
	write_tmh(p, VB_TMH_RENDEZVOUS, 0x11);
	write_rvh(p, key_of(p, A), 10);
	post_send(p, A, 1, 64);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 SUCCESS TM_RECV len=10 valid");
	expect_copied(p, A, TARGET, B, recv_at(1), 10);
	expect_untouched(p, B, recv_at(1) + 10, 90);
}

TEST(an_unexpected_rendezvous_takes_a_receive_and_is_counted)
{
	struct pair *p = pair_connect_tags(1024);
	uint32_t handle;

	post_recv(p, B, 2, 100);
	post_rendezvous(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=32");
	EXPECT_MEM(p->node[B].memory + recv_at(2), p->node[A].memory + LOCAL, 32);
	EXPECT_EQ(try_tag(p, add_request(p, 1, 0x11, 100), &handle), VB_OK);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD sync");
}

/* A program whose receiver sends nothing itself asks for no send queue. */
TEST(a_qp_without_a_send_queue_reads_as_well)
{
	struct pair *p = pair_connect_tags(1024);
	struct node *b = &p->node[B];
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_cq = b->send_cq,
		.recv_cq = b->recv_cq,
		.srq = b->srq,
	};
	struct vb_qp *qp;

	EXPECT_EQ(vb_qp_create(b->pd, &init, &qp), VB_OK);
	b->qps[OBJECTS_MAX - 1] = qp;
	b->qp = qp;
	bring_up(p, B, qp, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	modify_state(p, A, VB_STATE_RESET);
	bring_up(p, A, p->node[A].qp, vb_qp_number(qp), VB_STATE_RTS);
	EXPECT_EQ(try_post(p, B, (struct vb_send_request){ .opcode = VB_WR_SEND }), VB_ENOMEM);
	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 100);
	post_rendezvous(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 SUCCESS TM_RECV len=10 valid");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
}

TEST(the_buffer_may_have_several_pieces)
{
	struct pair *p = pair_connect_tags(256);
	struct vb_sge sges[] = { sge_at(p, B, recv_at(3), 10), sge_at(p, B, recv_at(2), 300),
				 sge_at(p, B, recv_at(1), 0), sge_at(p, B, recv_at(0), 400) };
	struct vb_tag_request request = add_request(p, 1, 0x11, 0);
	uint32_t handle;

	post_recv(p, A, 5, 100);
	request.sges = sges;
	request.sge_count = 4;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	post_rendezvous(p, 1, 0x11, 600);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD", MATCH_11,
			   "wr=1 SUCCESS TM_RECV len=600 valid");
	expect_copied(p, A, TARGET, B, recv_at(3), 10);
	expect_copied(p, A, TARGET + 10, B, recv_at(2), 300);
	expect_copied(p, A, TARGET + 310, B, recv_at(0), 290);
	expect_untouched(p, B, recv_at(0) + 290, 110);
}

/* --- beside the program's requests --- */

TEST(the_programs_requests_go_on_and_complete_in_their_order)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, A, 5, 100);
	post_recv(p, A, 6, 100);
	add_tag(p, 1, 0x11, 3000);
	post_read(p, B, 21, 8);
	post_rendezvous(p, 1, 0x11, 2500);
	send_all(p, A);
	deliver(p);
	post_send(p, B, 22, 8);
	post_send_unsignaled(p, B, 23, 0);
	post_read(p, B, 24, 8);
	post_recv(p, A, 7, 100);
	settle(p);
	expect_completions(p, B, "wr=21 SUCCESS READ len=8", "wr=22 SUCCESS SEND",
			   "wr=24 SUCCESS READ len=8", MATCH_11,
			   "wr=1 SUCCESS TM_RECV len=2500 valid");
	expect_copied(p, A, TARGET, B, recv_at(1), 2500);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=8",
			   "wr=6 SUCCESS RECV len=0", "wr=7 SUCCESS RECV len=16");
}

TEST(the_program_has_exactly_its_send_depth)
{
	struct setup setup = tag_setup(1024);
	struct pair *p;
	struct vb_qp_init init;

	setup.send_depth = 3;
	p = pair_connect(&setup);
	vb_qp_query_init(p->node[B].qp, &init);
	EXPECT_EQ(init.send_depth, 3);
	for (uint64_t round = 0; round < 20; round++) {
		post_recv(p, A, 5, 100);
		add_tag(p, 1, 0x11, 100);
		post_rendezvous(p, 1, 0x11, 100);
		for (uint64_t i = 0; i < 3; i++)
			post_write(p, B, i, 8);
		EXPECT_EQ(try_post(p, B, write_request(p, B, 3, 8)), VB_ENOMEM);
		settle(p);
		EXPECT_EQ(try_post(p, B, write_request(p, B, 3, 8)), VB_ENOMEM); /* not polled */
		expect_completions(p, B, "wr=0 SUCCESS WRITE", "wr=1 SUCCESS WRITE",
				   "wr=2 SUCCESS WRITE", MATCH_11,
				   "wr=1 SUCCESS TM_RECV len=100 valid");
		expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
	}
}

TEST(requests_that_are_not_signaled_free_their_slots_as_ever)
{
	struct setup setup = tag_setup(1024);
	struct pair *p;

	setup.send_depth = 4;
	p = pair_connect(&setup);
	for (uint64_t round = 0; round < 10; round++) {
		struct vb_send_request silent = write_request(p, B, 1, 8);

		silent.flags = 0;
		post_recv(p, A, 5, 100);
		add_tag(p, 1, 0x11, 100);
		post_rendezvous(p, 1, 0x11, 100);
		post(p, B, silent);
		post(p, B, silent);
		settle(p);
		post(p, B, silent);
		post_write(p, B, 2, 8);
		EXPECT_EQ(try_post(p, B, silent), VB_ENOMEM);
		settle(p);
		expect_completions(p, B, "wr=2 SUCCESS WRITE", MATCH_11,
				   "wr=1 SUCCESS TM_RECV len=100 valid");
		expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
	}
}

TEST(more_rendezvous_than_the_adapter_has_requests_wait_for_their_turn)
{
	struct setup setup = tag_setup(1024);
	enum { MANY = 3 * VB_OWN_REQUESTS_MAX };
	struct pair *p;
	uint32_t handle, valid = 0;
	struct vb_completion completion;

	setup.tag_count = setup.tag_depth = MANY;
	setup.send_depth = setup.recv_depth = MANY;
	setup.cq_depth = 4 * MANY;
	setup.reads_out = setup.reads_in = 2;
	p = pair_connect(&setup);
	for (uint32_t i = 0; i < MANY; i++) {
		struct vb_tag_request request = add_request(p, 1, i, 10);

		request.flags = 0;
		EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
		post_recv(p, A, 5, 100);
		post_rendezvous(p, 1, i, 10);
		send_all(p, A);
		deliver(p);
	}
	settle(p);
	while (vb_cq_poll(p->node[B].recv_cq, &completion, 1)) {
		EXPECT_EQ(completion.status, VB_STATUS_SUCCESS);
		valid += completion.flags == VB_COMPLETION_TM_DATA_VALID;
	}
	EXPECT_EQ(valid, MANY);
}

/* --- the same host --- */

TEST(the_data_of_a_local_peer_is_read_in_its_memory)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true;
	setup.tag_count = setup.tag_depth = TAGS;
	p = connect_for_trains_as(setup);
	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 3000);
	post_rendezvous(p, 1, 0x11, 2500);
	expect_sent(p, A, "SEND_ONLY psn=0 len=32 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1", "SEND_ONLY psn=5000 len=16 ack");
	expect_completions(p, B, MATCH_11, "wr=1 SUCCESS TM_RECV len=2500 valid");
	expect_copied(p, A, TARGET, B, recv_at(1), 2500);
	expect_counter(p, B, DIRECT_PARTS, 1);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
}

TEST(data_that_a_local_peer_does_not_open_ends_both_qps)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true;
	setup.tag_count = setup.tag_depth = TAGS;
	p = connect_for_trains_as(setup);
	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 3000);
	write_tmh(p, VB_TMH_RENDEZVOUS, 0x11);
	write_rvh(p, key_of(p, A) ^ 0x100, 10);
	post_send(p, A, 1, 32);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 REM_ACCESS_ERR");
	expect_untouched(p, B, recv_at(1), 100);
}

/* --- the network --- */

TEST(a_lost_read_and_a_lost_fin_are_repeated)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 3000);
	post_rendezvous(p, 1, 0x11, 2500);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	lose(p);
	wait_ns(p, 2 * ACK_TIMEOUT_NS);
	send_all(p, B);
	deliver(p);
	send_all(p, A);
	deliver_nth(p, 0);
	lose(p);
	wait_ns(p, 4 * ACK_TIMEOUT_NS);
	settle(p);
	wait_ns(p, 4 * ACK_TIMEOUT_NS);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 SUCCESS TM_RECV len=2500 valid");
	expect_copied(p, A, TARGET, B, recv_at(1), 2500);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
}

TEST(a_fin_waits_for_a_receive_of_the_sender)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	post_rendezvous(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 SUCCESS TM_RECV len=10 valid");
	post_recv(p, A, 5, 100);
	wait_ns(p, 10 * MS);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
}

TEST(a_message_in_RTR_is_read_when_the_qp_may_send)
{
	struct setup setup = tag_setup(1024);
	struct vb_qp_attr attr;
	struct pair *p;
	uint32_t mask;

	setup.state[B] = VB_STATE_RTR;
	p = pair_connect(&setup);
	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 100);
	post_rendezvous(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, MATCH_11);
	attr = attr_towards(p, B, VB_STATE_RTS, &mask);
	EXPECT_EQ(vb_qp_modify(p->node[B].qp, &attr, mask), VB_OK);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 valid");
}

/* --- what the adapter cannot read, the program must --- */

/* The program gets the headers in the tag's buffer. */
static void expect_incomplete(struct pair *p, uint32_t length)
{
	struct vb_completion completion;

	post_rendezvous(p, 1, 0x11, length);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	EXPECT_EQ(vb_cq_poll(p->node[B].recv_cq, &completion, 1), 1);
	EXPECT_EQ(completion.status, VB_STATUS_TM_RNDV_INCOMPLETE);
	EXPECT_EQ(completion.wr_id, 1);
	EXPECT_EQ(completion.opcode, VB_COMPLETION_TM_RECV);
	EXPECT_EQ(completion.byte_length, 32);
	EXPECT_EQ(completion.tag, 0x11);
	EXPECT_EQ(completion.tag_context, CONTEXT);
	EXPECT_EQ(completion.flags, VB_COMPLETION_TM_MATCH | VB_COMPLETION_TM_DATA_VALID);
	EXPECT_MEM(p->node[B].memory + recv_at(1), p->node[A].memory + LOCAL, 32);
	expect_no_completion(p, B);
	expect_state(p, B, VB_STATE_RTS);
	for (uint64_t i = 0; i < TAGS; i++)
		add_tag(p, i, i, 100); /* the tag is free again */
}

TEST(data_that_does_not_fit_is_left_to_the_program)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	expect_incomplete(p, 101);
}

TEST(a_length_beyond_all_messages_is_left_to_the_program)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	expect_incomplete(p, UINT32_MAX);
}

TEST(a_qp_that_may_not_read_leaves_it_to_the_program)
{
	struct setup setup = tag_setup(1024);
	struct pair *p;

	setup.reads_out = 0;
	p = pair_connect(&setup);
	add_tag(p, 1, 0x11, 100);
	expect_incomplete(p, 10);
}

TEST(a_qp_of_another_protection_domain_leaves_it_to_the_program)
{
	struct pair *p = pair_connect_tags(1024);
	struct node *b = &p->node[B];
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_cq = b->send_cq,
		.recv_cq = b->recv_cq,
		.srq = b->srq,
		.send_depth = 4,
	};
	struct vb_qp *qp;

	EXPECT_EQ(vb_qp_create(b->other_pd, &init, &qp), VB_OK);
	b->qps[OBJECTS_MAX - 1] = qp;
	bring_up(p, B, qp, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	b->qp = qp;
	modify_state(p, A, VB_STATE_RESET);
	bring_up(p, A, p->node[A].qp, vb_qp_number(qp), VB_STATE_RTS);
	add_tag(p, 1, 0x11, 100);
	expect_incomplete(p, 10);
}

TEST(headers_that_do_not_fit_either_end_the_qp)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 31);
	post_rendezvous(p, 1, 0x11, 32);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_completions(p, B, "wr=1 LOC_LEN_ERR");
	expect_untouched(p, B, recv_at(1), 64);
}

/* --- failures --- */

TEST(data_that_the_sender_does_not_open_ends_both_qps)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 100);
	write_tmh(p, VB_TMH_RENDEZVOUS, 0x11);
	write_rvh(p, key_of(p, A) ^ 0x100, 10);
	post_send(p, A, 1, 32);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 REM_ACCESS_ERR");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_state(p, B, VB_STATE_ERR);
	expect_untouched(p, B, recv_at(1), 100);
	for (uint64_t i = 0; i < TAGS; i++)
		add_tag(p, i, i, 100);
}

/* The sender's key of its own would open B's memory, if the adapter took it for a local one. */
TEST(a_rendezvous_reads_the_senders_memory_whatever_its_key_says)
{
	struct pair *p = pair_connect_tags(1024);
	const struct vb_rvh rvh = { p->node[B].iova + TARGET, key_of(p, B), 10 };

	post_recv(p, A, 5, 100);
	add_tag(p, 1, 0x11, 100);
	write_tmh(p, VB_TMH_RENDEZVOUS, 0x11);
	vb_rvh_store(p->node[A].memory + LOCAL + VB_TMH_SIZE, &rvh);
	post_send(p, A, 1, 32);
	settle(p);
	expect_completions(p, B, MATCH_11, "wr=1 REM_ACCESS_ERR");
	expect_untouched(p, B, recv_at(1), 100);
}

TEST(a_buffer_whose_key_is_gone_ends_the_qp)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request request = add_request(p, 1, 0x11, 100);
	struct vb_sge sge = *request.sges;
	uint32_t handle;

	sge.lkey ^= 0x100;
	request.sges = &sge;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	post_rendezvous(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD", MATCH_11, "wr=1 LOC_PROT_ERR");
	expect_state(p, B, VB_STATE_ERR);
}

TEST(a_peer_that_is_gone_ends_the_rendezvous)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	post_rendezvous(p, 1, 0x11, 10);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	lose(p);
	for (uint32_t i = 0; i < 10; i++) {
		wait_ns(p, 4 * ACK_TIMEOUT_NS);
		send_all(p, B);
		lose(p);
	}
	expect_completions(p, B, MATCH_11, "wr=1 RETRY_EXC_ERR");
	expect_state(p, B, VB_STATE_ERR);
}

/* B has rendezvous under way and waiting, and requests of the program between them. */
static struct pair *pair_with_many(void)
{
	struct setup setup = tag_setup(1024);
	struct vb_completion completion;
	struct pair *p;
	uint32_t handle;

	setup.tag_count = setup.tag_depth = VB_OWN_REQUESTS_MAX + 1;
	setup.reads_out = 1;
	setup.send_depth = 32;
	p = pair_connect(&setup);
	for (uint32_t i = 0; i <= VB_OWN_REQUESTS_MAX; i++) {
		struct vb_tag_request request = add_request(p, 1, i, 10);

		request.flags = 0;
		EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
		post_rendezvous(p, i, i, 10);
		send_all(p, A);
		deliver(p);
		if (i == 2)
			post_write(p, B, 50, 8);
		send_all(p, B);
		lose(p);
		while (vb_cq_poll(p->node[A].send_cq, &completion, 1))
			;
	}
	while (vb_cq_poll(p->node[B].recv_cq, &completion, 1))
		EXPECT_EQ(completion.flags, VB_COMPLETION_TM_MATCH);
	return p;
}

static void expect_all_flushed(struct pair *p)
{
	struct vb_completion completion;
	uint32_t count = 0;

	for (; vb_cq_poll(p->node[B].recv_cq, &completion, 1); count++) {
		EXPECT_EQ(completion.status, VB_STATUS_WR_FLUSH_ERR);
		EXPECT_EQ(completion.wr_id, 1);
	}
	EXPECT_EQ(count, VB_OWN_REQUESTS_MAX + 1);
	for (uint32_t i = 0; i <= VB_OWN_REQUESTS_MAX; i++)
		add_tag(p, 1, i, 10);
}

TEST(a_qp_in_error_flushes_all_rendezvous_and_the_programs_requests)
{
	struct pair *p = pair_with_many();

	modify_state(p, B, VB_STATE_ERR);
	expect_completions_of(p->node[B].send_cq, "wr=50 WR_FLUSH_ERR");
	expect_all_flushed(p);
	post_write(p, B, 51, 8);
	expect_silence(p, B);
	expect_completions(p, B, "wr=51 WR_FLUSH_ERR");
}

TEST(a_reset_qp_ends_all_rendezvous_and_is_as_new)
{
	struct pair *p = pair_with_many();
	struct vb_completion completion;

	modify_state(p, B, VB_STATE_RESET);
	EXPECT_EQ(vb_cq_poll(p->node[B].send_cq, &completion, 1), 0);
	expect_all_flushed(p);
	modify_state(p, A, VB_STATE_RESET);
	bring_up(p, A, p->node[A].qp, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	bring_up(p, B, p->node[B].qp, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	post_recv(p, A, 5, 100);
	post_write(p, B, 51, 8);
	post_rendezvous(p, 1, 3, 10);
	settle(p);
	expect_completions(p, B, "wr=51 SUCCESS WRITE",
			   "wr=1 SUCCESS TM_RECV len=0 match tag=0x3 context=0xc0de",
			   "wr=1 SUCCESS TM_RECV len=10 valid");
}

TEST(a_destroyed_qp_ends_all_rendezvous)
{
	struct pair *p = pair_with_many();

	EXPECT_EQ(drop_qp(p, B, p->node[B].qp), VB_OK);
	expect_all_flushed(p);
}

TEST(a_qp_that_drains_finishes_what_it_has_begun_and_reads_the_rest_later)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, A, 5, 100);
	post_recv(p, A, 6, 100);
	add_tag(p, 1, 0x11, 100);
	modify_state(p, B, VB_STATE_SQD);
	post_rendezvous(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, MATCH_11);
	modify_state(p, B, VB_STATE_RTS);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 valid");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=5 SUCCESS RECV len=16");
}
