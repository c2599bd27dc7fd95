/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: acknowledgements, what they cover, and which of them are ignored. */
#include "support_pair.h"

TEST(rc_one_ack_answers_a_batch_of_packets_and_completes_all_of_their_requests)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	post_write(p, A, 2, 10);
	post_write(p, A, 3, 2000);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack", "WRITE_ONLY psn=1 len=10 ack",
		    "WRITE_FIRST psn=2 len=1024", "WRITE_LAST psn=3 len=976 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=3");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE", "wr=3 SUCCESS WRITE");
}

TEST(rc_an_ack_completes_only_what_it_covers)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	post_write(p, A, 2, 10);
	post_write(p, A, 3, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	inject(p, A, "ACKNOWLEDGE psn=2 msn=3");
	expect_completions(p, A, "wr=3 SUCCESS WRITE");
}

TEST(rc_an_ack_in_the_middle_of_a_message_completes_nothing_yet)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 600);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=0");
	expect_no_completion(p, A);
	inject(p, A, "ACKNOWLEDGE psn=2 msn=1");
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(rc_packets_that_do_not_ask_are_not_acknowledged)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 4096);
	inject(p, B, "SEND_FIRST psn=0 len=1024");
	expect_silence(p, B);
	inject(p, B, "SEND_LAST psn=1 len=10 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1");
}

TEST(rc_a_packet_in_the_middle_that_asks_is_acknowledged)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_FIRST psn=0 len=1024 dma=3000 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0");
}

TEST(rc_the_msn_counts_messages_and_not_packets)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	post_write(p, A, 1, 1000);
	settle(p);
	post_send(p, A, 2, 700);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=6 msn=2");
	deliver(p);
	post_read(p, A, 3, 600);
	post_fetch_add(p, A, 4, 1);
	post_write(p, A, 5, 1);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	lose(p);
	inject(p, B, "WRITE_ONLY psn=11 len=1 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=11 msn=5");
}

TEST(rc_an_ack_that_was_seen_already_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	post_write(p, A, 2, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_silence(p, A);
	expect_state(p, A, VB_STATE_RTS);
}

TEST(rc_a_response_while_nothing_is_outstanding_is_dropped_with_a_reason)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, A, "READ_RESPONSE_ONLY psn=0 len=8 msn=1");
	inject(p, A, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=5");
	expect_dropped(p, A, NOT_OUR_RESPONSE, 3);
	expect_no_completion(p, A);
	expect_state(p, A, VB_STATE_RTS);
}

TEST(rc_an_ack_for_what_was_never_sent_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2");
	expect_no_completion(p, A);
	expect_dropped(p, A, NOT_OUR_RESPONSE, 1);
}

TEST(rc_a_fatal_nak_for_what_was_never_sent_is_dropped)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, A, "ACKNOWLEDGE psn=77 msn=1 NAK remote access");
	expect_state(p, A, VB_STATE_RTS);
	expect_dropped(p, A, NOT_OUR_RESPONSE, 1);
}

TEST(rc_a_lost_ack_is_made_good_by_the_next_one)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	lose(p);
	post_write(p, A, 2, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

TEST(rc_acks_wrap_with_the_psn)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.psn[A] = 0xffffff;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 10);
	post_write(p, A, 2, 10);
	expect_sent(p, A, "WRITE_ONLY psn=16777215 len=10 ack", "WRITE_ONLY psn=0 len=10 ack");
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0xffffff msn=1");
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=2");
	expect_completions(p, A, "wr=2 SUCCESS WRITE");
}

TEST(rc_migreq_is_sent_as_1_and_both_values_are_accepted)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack unmigrated");
	/* the rig checks the bit of every packet sent */
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
}

TEST(rc_a_responder_in_RTR_answers_and_raises_COMM_EST_once)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[B] = VB_STATE_RTR;
	struct pair *p = pair_connect(&setup);

	expect_no_event(p, B);
	post_write(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_events(p, B, "COMM_EST");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	post_write(p, A, 2, 10);
	settle(p);
	expect_no_event(p, B);
	expect_completions(p, A, "wr=2 SUCCESS WRITE");
}

/* The packets that B sends next, as opcodes; in one call, as a link asks for them. */
static void expect_opcodes(struct pair *p, uint32_t capacity, uint32_t from,
			   const enum vb_packet_op *ops, uint32_t count)
{
	struct vb_slot *slots = calloc(capacity, sizeof(*slots));

	EXPECT_EQ(vb_nic_transmit(p->node[B].nic, p->now_ns, slots, capacity), from + count);
	for (uint32_t i = 0; i < count; i++)
		EXPECT_EQ(slots[from + i].head[0], VB_OPCODE(VB_SERVICE_RC, ops[i]));
	free(slots);
}

TEST(rc_an_ack_lets_the_requests_of_its_qp_go_first)
{
	static const enum vb_packet_op ops[] = { VB_OP_WRITE_ONLY, VB_OP_WRITE_ONLY,
						 VB_OP_ACKNOWLEDGE };
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	deliver(p);
	post_write(p, B, 2, 8);
	post_write(p, B, 3, 8);
	expect_opcodes(p, 8, 0, ops, 3);
}

TEST(rc_an_ack_goes_out_though_there_is_no_end_of_requests)
{
	static const enum vb_packet_op ops[] = { VB_OP_WRITE_MIDDLE, VB_OP_ACKNOWLEDGE };
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 8);
	send_all(p, A);
	deliver(p);
	post_write(p, B, 2, 0x8000);
	expect_opcodes(p, 32, 30, ops, 2);
}

TEST(rc_a_nak_does_not_wait_for_requests)
{
	static const enum vb_packet_op ops[] = { VB_OP_ACKNOWLEDGE, VB_OP_WRITE_ONLY };
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	post_write(p, A, 2, 8);
	send_all(p, A);
	deliver(p);
	post_write(p, B, 3, 8);
	expect_opcodes(p, 8, 0, ops, 2);
}

TEST(rc_an_ack_that_lets_requests_go_first_goes_out_though_they_end_the_qp)
{
	static const enum vb_packet_op ops[] = { VB_OP_ACKNOWLEDGE };
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = send_request(p, B, 7, 8);
	struct vb_sge nowhere = { 0x1234, 8, 0x777 };

	request.sges = &nowhere;
	post_recv(p, B, 1, 64);
	post_send(p, A, 1, 8);
	send_all(p, A);
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
	post(p, B, request);
	expect_opcodes(p, 8, 0, ops, 1);
	expect_completions(p, B, "wr=7 LOC_PROT_ERR");
	expect_state(p, B, VB_STATE_ERR);
}

/* A peer may mistake a plain ACK of that PSN for the answer, if the answer itself is lost. */
TEST(rc_a_read_or_atomic_is_acknowledged_by_its_response_alone)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 100);
	inject(p, B, "FETCH_ADD psn=0 add=1 ack");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x64");
	inject(p, B, "READ_REQUEST psn=1 dma=2000 ack");
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=1 len=1024 msn=2",
		    "READ_RESPONSE_LAST psn=2 len=976 msn=2");
}

TEST(rc_the_response_to_a_read_acknowledges_what_came_before_it)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	inject(p, B, "READ_REQUEST psn=1 dma=100");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=1 len=100 msn=2");
}

TEST(rc_a_duplicate_write_before_an_atomic_is_acknowledged_without_the_atomic)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	set_word(p, B, TARGET, 100);
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x64");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=2");
}
