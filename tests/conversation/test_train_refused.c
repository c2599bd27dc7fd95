/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trains whose data the receiver cannot read, for whatever reason. They come again in packets, at
 * once and without a retry; what is wrong shows then, or nothing is.
 */
#include "support_train.h"

#include "nic/qp_priv.h"

#include <string.h>

enum { LONG = 3 * 1024 + 500 };

/* B refuses A's SEND 1, which was a train, and gets it in packets. */
static void refuse_one(struct pair *p)
{
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	deliver(p);
	expect_no_completion(p, B);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	deliver(p);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_MIDDLE psn=1 len=1024",
		    "SEND_MIDDLE psn=2 len=1024", "SEND_LAST psn=3 len=500 ack");
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
	expect_copied(p, A, LOCAL, B, recv_at(2), LONG);
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(without_permission_a_message_comes_again_in_packets)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	forbid_fetching(true);
	refuse_one(p);
	expect_counter(p, A, TRAINS_REFUSED, 1);
	expect_counter(p, A, PACKET_SEQ_ERR, 0);
	EXPECT_EQ(train_busy % 2, 0);
}

TEST(a_refusal_is_no_retry)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.retry_count = 0;
	p = connect_for_trains_as(setup);
	forbid_fetching(true);
	refuse_one(p);
	expect_state(p, A, VB_STATE_RTS);
}

/* Packets are lost on the way, which costs the one retry. */
TEST(a_nak_for_the_packets_that_repeat_a_train_is_a_retry)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.retry_count = 0;
	p = connect_for_trains_as(setup);
	forbid_fetching(true);
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	deliver(p);
	send_all(p, A);
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	lose(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK sequence");
	deliver(p);
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
}

/* More than half of all PSNs later, the end of a train seems to lie ahead again. */
TEST(a_train_that_was_fetched_long_ago_is_not_refused_by_a_nak)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_requester *requester = &node_of(p, A)->qp->requester;

	post_long_recv(p, 2, LONG);
	post_recv(p, B, 30, 8);
	post_recv(p, B, 31, 8);
	post_send(p, A, 1, LONG);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	requester->trains_end = vb_psn_add(requester->unacked, 1u << 22);
	post_send(p, A, 2, 8);
	post_send(p, A, 3, 8);
	send_all(p, A);
	deliver_nth(p, 1);
	lose(p);
	settle(p);
	expect_counter(p, A, PACKET_SEQ_ERR, 1);
	expect_counter(p, A, TRAINS_REFUSED, 0);
}

TEST(trains_behind_one_that_was_refused_come_again_too)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	forbid_fetching(true);
	post_long_recv(p, 2, LONG);
	post_long_recv(p, 3, LONG);
	post_send(p, A, 1, LONG);
	post_send(p, A, 4, LONG);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572",
		    "SEND_ONLY psn=4 len=0 ack packets=4 data=3572");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572", "wr=3 SUCCESS RECV len=3572");
	expect_copied(p, A, LOCAL, B, recv_at(3), LONG);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=4 SUCCESS SEND");
}

TEST(a_train_in_the_middle_of_a_message_may_be_refused)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	uint32_t length = 2 * TRAIN_MAX;

	post_long_recv(p, 2, length);
	post_send(p, A, 1, length);
	expect_sent(p, A, "SEND_FIRST psn=0 len=0 ack packets=8 data=8192",
		    "SEND_LAST psn=8 len=0 ack packets=8 data=8192");
	deliver_nth(p, 0);
	forbid_fetching(true);
	deliver_nth(p, 1);
	lose(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=8 msn=0 NAK sequence");
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=16384");
	expect_copied(p, A, LOCAL, B, recv_at(2), length);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

/* The SRQ's receive is taken once, although the message comes twice. */
TEST(a_refused_train_keeps_its_receive)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true;
	p = connect_for_trains_as(setup);
	forbid_fetching(true);
	refuse_one(p);
}

static void send_and_settle(struct pair *p, uint64_t wr_id)
{
	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, ROOM);
	vb_nic_set_link_room(node_of(p, B)->nic, SHM_LINK, ROOM);
	post_long_recv(p, 2, LONG);
	post_send(p, A, wr_id, LONG);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
}

static uint64_t trains_sent(struct pair *p)
{
	return vb_nic_counters(node_of(p, A)->nic)->counts[VB_COUNTER_TX_TRAINS];
}

/* How many messages go in packets before one tries a train again. */
static uint32_t count_skipped(struct pair *p)
{
	struct vb_completion completion;
	uint64_t before = trains_sent(p);
	uint32_t count = 0;

	do {
		send_and_settle(p, 1);
		EXPECT_EQ(vb_cq_poll(node_of(p, A)->send_cq, &completion, 1), 1);
		count++;
	} while (trains_sent(p) == before);
	return count - 1;
}

TEST(after_refusals_trains_are_tried_ever_more_seldom)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true; /* there are no credits to wait for */
	p = connect_for_trains_as(setup);
	forbid_fetching(true);
	refuse_one(p);
	EXPECT_EQ(count_skipped(p), 16);
	EXPECT_EQ(count_skipped(p), 32);
	EXPECT_EQ(count_skipped(p), 64);
	forbid_fetching(false);
	EXPECT_EQ(count_skipped(p), 128);
	EXPECT_EQ(count_skipped(p), 0); /* that one was fetched */
	forbid_fetching(true);
	EXPECT_EQ(count_skipped(p), 0);
	EXPECT_EQ(count_skipped(p), 16); /* from the beginning again */
}

/* --- reasons ---------------------------------------------------------------------------------- */

/* A SEND from a separate region of A. */
static struct vb_send_request send_from_region(struct pair *p, struct vb_mr **mr_out)
{
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, LONG, 0);
	struct vb_send_request request = send_request(p, A, 1, LONG);

	*mr_out = make_mr(p, A, &init);
	p->sges[0] = sge_at(p, A, LOCAL, LONG);
	p->sges[0].lkey = vb_mr_key(*mr_out);
	request.sges = &p->sges[0];
	return request;
}

TEST(a_region_needs_no_remote_right)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_mr *mr;

	post_long_recv(p, 2, LONG);
	post(p, A, send_from_region(p, &mr));
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
	expect_copied(p, A, LOCAL, B, recv_at(2), LONG);
}

TEST(data_of_a_region_that_is_gone_is_not_read_and_the_send_fails)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_mr *mr;

	post_long_recv(p, 2, LONG);
	post(p, A, send_from_region(p, &mr));
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	EXPECT_EQ(drop_mr(p, A, mr), VB_OK);
	deliver(p);
	expect_untouched(p, B, recv_at(2), LONG);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	deliver(p);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_no_completion(p, B);
}

TEST(a_send_with_a_wrong_key_fails_without_a_train)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post(p, A, with_wrong_lkey(p, send_request(p, A, 1, LONG)));
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_counter(p, A, TX_TRAINS, 0);
}

TEST(nothing_is_read_from_a_QP_that_has_ended)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	modify_state(p, A, VB_STATE_ERR);
	deliver(p);
	expect_untouched(p, B, recv_at(2), LONG);
	expect_no_completion(p, B);
}

TEST(an_end_that_has_no_link_gets_packets)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	vb_qp_set_link(node_of(p, B)->qp, 0, NULL);
	vb_qp_expect_link(node_of(p, B)->qp, SHM_LINK);
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
	expect_counter(p, A, TRAINS_REFUSED, 1);
}

/* --- what no well-behaved sender offers ------------------------------------------------------- */

/* B gets A's train after the test has changed it, and reads nothing. */
static struct held *take_train(struct pair *p)
{
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	EXPECT_EQ(p->held_count, 1);
	return &p->held[0];
}

static void expect_nothing_read(struct pair *p)
{
	deliver(p);
	expect_untouched(p, B, recv_at(2), LONG);
	expect_no_completion(p, B);
}

TEST(a_key_of_another_PD_offers_nothing)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, LONG, RIGHTS_ALL);
	struct vb_mr *mr = make_mr_in(p, A, node_of(p, A)->other_pd, &init);

	take_train(p)->references[0].key = vb_mr_key(mr);
	expect_nothing_read(p);
	EXPECT_EQ(drop_mr(p, A, mr), VB_OK);
}

TEST(a_range_beyond_the_region_offers_nothing)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->references[0].address += MEMORY_LENGTH - LONG + 1;
	expect_nothing_read(p);
}

TEST(a_key_that_was_changed_offers_nothing)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->references[0].key ^= 1;
	expect_nothing_read(p);
}

static void expect_invalid(struct pair *p)
{
	expect_nothing_read(p);
	expect_dropped(p, B, INVALID, 1);
	expect_silence(p, B);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(a_train_from_the_wire_is_dropped)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->shm_link = 0;
	expect_invalid(p);
}

TEST(a_train_with_too_many_references_is_dropped)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->train.reference_count = VB_SGE_MAX + 1;
	expect_invalid(p);
}

TEST(a_train_without_references_is_dropped)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->train.reference_count = 0;
	expect_invalid(p);
}

/* The short path for an expected SEND would count one packet where the record claims seven. */
TEST(a_short_send_that_claims_to_be_a_train_is_dropped)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_recv(p, B, 2, 8);
	post_recv(p, B, 3, 8);
	post_send(p, A, 1, 8);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=8");
	post_send(p, A, 1, 8);
	send_all(p, A);
	EXPECT_EQ(p->held_count, 1);
	p->held[0].train.packet_count = 7;
	deliver(p);
	expect_no_completion(p, B);
	expect_dropped(p, B, INVALID, 1);
	expect_counter(p, B, RX_PACKETS, 8);
}

TEST(a_train_with_an_endless_reference_is_dropped)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->references[0].length = UINT32_MAX;
	expect_invalid(p);
}

TEST(lengths_that_wrap_around_are_dropped)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct held *held = take_train(p);

	held->train.reference_count = 2;
	held->references[0].length = 0x100000;
	held->references[1] = held->references[0];
	held->references[1].length = 0xfff00000u + LONG;
	expect_invalid(p);
}

TEST(a_write_is_no_train)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->bytes[0] = VB_OPCODE(VB_SERVICE_RC, VB_OP_WRITE_MIDDLE);
	expect_invalid(p);
}

static void expect_refused(struct pair *p)
{
	deliver(p);
	expect_untouched(p, B, recv_at(2), LONG);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
}

TEST(a_train_of_more_packets_than_its_data_needs_is_refused)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->train.packet_count = 5;
	expect_refused(p);
}

TEST(a_train_of_fewer_packets_than_its_data_needs_is_refused)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->train.packet_count = 3;
	expect_refused(p);
}

TEST(a_train_without_the_last_packet_is_of_full_packets)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->bytes[0] = VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_FIRST);
	expect_refused(p);
}

TEST(a_train_in_the_middle_of_nothing_is_refused)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	take_train(p)->bytes[0] = VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_LAST);
	expect_refused(p);
}
