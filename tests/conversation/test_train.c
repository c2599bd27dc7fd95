/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long SENDs to a peer on the same host. They go in trains: the peer reads the data in the sender's
 * memory. Everything else is as with packets.
 */
#include "support_train.h"

#include <string.h>

enum { LONG = 3 * 1024 + 500 };

/* A's SEND 1 of `LONG` bytes is under way in one train, and B has its receive. */
static struct pair *begin(enum vb_qp_type type)
{
	struct pair *p = connect_for_trains(type);

	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	return p;
}

static void expect_arrived(struct pair *p)
{
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
	expect_copied(p, A, LOCAL, B, recv_at(2), LONG);
	expect_untouched(p, B, recv_at(2) + LONG, 16);
}

/* --- messages that go in trains --------------------------------------------------------------- */

TEST(a_long_send_is_one_record_and_the_peer_reads_the_data)
{
	struct pair *p = begin(VB_QP_RC);

	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	expect_arrived(p);
	EXPECT_EQ(train_busy, 2); /* announced, and over */
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=1");
	expect_no_completion(p, A);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	post_recv(p, B, 4, 8);
	send_all(p, B);
	deliver(p); /* credits */
	post_send(p, A, 3, 8);
	expect_sent(p, A, "SEND_ONLY psn=4 len=8 ack");
}

TEST(a_shorter_send_goes_in_packets)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_send(p, A, 1, TRAIN_MIN - 1);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_LAST psn=1 len=1023 ack");
}

TEST(a_longer_send_takes_several_trains_and_its_rest_goes_in_packets)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_long_recv(p, 2, 2 * TRAIN_MAX + 1500);
	post_send(p, A, 1, 2 * TRAIN_MAX + 1500);
	expect_sent(p, A, "SEND_FIRST psn=0 len=0 ack packets=8 data=8192",
		    "SEND_MIDDLE psn=8 len=0 ack packets=8 data=8192",
		    "SEND_MIDDLE psn=16 len=1024", "SEND_LAST psn=17 len=476 ack");
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=17884");
	expect_copied(p, A, LOCAL, B, recv_at(2), 2 * TRAIN_MAX + 1500);
	expect_sent(p, B, "ACKNOWLEDGE psn=17 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(psns_of_trains_wrap)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.psn[A] = 0xfffffe;
	p = connect_for_trains_as(setup);
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	expect_sent(p, A, "SEND_ONLY psn=16777214 len=0 ack packets=4 data=3572");
	expect_arrived(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(a_train_has_the_immediate_and_the_event_of_its_last_packet)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_send_request request = send_request(p, A, 1, LONG);

	request.opcode = VB_WR_SEND_IMM;
	request.imm = 0x1234;
	request.flags |= VB_SEND_SOLICITED;
	vb_cq_arm(node_of(p, B)->recv_cq, true);
	post_long_recv(p, 2, LONG);
	post(p, A, request);
	expect_sent(p, A, "SEND_ONLY_IMM psn=0 len=0 imm=0x1234 ack solicited packets=4 data=3572");
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572 imm=0x1234");
	expect_events(p, B, "COMPLETION");
}

TEST(a_train_invalidates_a_window)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_send_request request = send_request(p, A, 1, LONG);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);

	post(p, B, bind_request(p, B, 7, mw, TARGET, 4096, VB_ACCESS_REMOTE_WRITE));
	expect_silence(p, B);
	expect_completions(p, B, "wr=7 SUCCESS BIND_MW");
	request.opcode = VB_WR_SEND_INV;
	request.imm = vb_mw_key(mw);
	post_long_recv(p, 2, LONG);
	post_long_recv(p, 3, LONG);
	post(p, A, request);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	post(p, A, request); /* a second time it is an error */
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=4 msn=1 NAK remote access");
}

TEST(the_buffers_of_both_ends_have_borders_of_their_own)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_send_request request = send_request(p, A, 1, 3000);
	struct vb_sge from[4] = { sge_at(p, A, LOCAL, 1), sge_at(p, A, LOCAL + 1, 0),
				  sge_at(p, A, LOCAL + 1, 1999), sge_at(p, A, LOCAL + 2000, 1000) };
	struct vb_sge to[3] = { sge_at(p, B, recv_at(2), 777), sge_at(p, B, recv_at(2) + 777, 1300),
				sge_at(p, B, recv_at(2) + 2077, 1000) };

	request.sges = from;
	request.sge_count = 4;
	EXPECT_EQ(try_post_recv_sges(p, B, 2, to, 3), VB_OK);
	post(p, A, request);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=3 data=3000");
	EXPECT_EQ(p->held[0].train.reference_count, 3);
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3000");
	expect_copied(p, A, LOCAL, B, recv_at(2), 3000);
}

TEST(a_train_takes_a_receive_of_an_srq)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true;
	p = connect_for_trains_as(setup);
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	expect_arrived(p);
}

TEST(a_train_of_xrc_takes_a_receive_of_the_srq_that_it_names)
{
	struct pair *p = connect_for_trains(VB_QP_XRC_SEND);
	struct vb_send_request request = send_request(p, A, 1, LONG);

	request.remote_srqn = vb_srq_number(node_of(p, B)->srq);
	post_long_recv(p, 2, LONG);
	post(p, A, request);
	expect_sent(p, A, "XRC SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	expect_arrived(p);
	expect_sent(p, B, "XRC ACKNOWLEDGE psn=3 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(uc_has_no_trains)
{
	struct pair *p = connect_for_trains(VB_QP_UC);

	post_send(p, A, 1, LONG);
	expect_sent(p, A, "UC SEND_FIRST psn=0 len=1024", "UC SEND_MIDDLE psn=1 len=1024",
		    "UC SEND_MIDDLE psn=2 len=1024", "UC SEND_LAST psn=3 len=500");
}

TEST(a_write_with_immediate_has_no_trains)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_write_imm(p, A, 1, LONG, 5);
	send_all(p, A);
	EXPECT_EQ(p->held_count, 4);
}

TEST(without_a_link_there_are_no_trains)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	vb_qp_set_link(node_of(p, A)->qp, 0, NULL);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	EXPECT_EQ(p->held_count, 4);
}

/* Both ends count what the packets would have had. */
TEST(a_train_counts_as_its_packets)
{
	struct pair *p = begin(VB_QP_RC);
	uint64_t bytes = 4 * (VB_BTH_SIZE + VB_ICRC_SIZE) + LONG;

	send_all(p, A);
	deliver(p);
	expect_counter(p, A, TX_PACKETS, 4);
	expect_counter(p, B, RX_PACKETS, 4);
	expect_counter(p, A, TX_BYTES, bytes);
	expect_counter(p, B, RX_BYTES, bytes);
	expect_counter(p, A, TX_TRAINS, 1);
	expect_counter(p, B, RX_TRAINS, 1);
}

TEST(a_train_with_an_immediate_counts_the_header_once)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_send_request request = send_request(p, A, 1, 3001);

	request.opcode = VB_WR_SEND_IMM;
	post_long_recv(p, 2, LONG);
	post(p, A, request);
	send_all(p, A);
	deliver(p);
	/* 3 bytes of pad */
	expect_counter(p, A, TX_BYTES, 3 * (VB_BTH_SIZE + VB_ICRC_SIZE) + VB_IMM_SIZE + 3004);
	expect_counter(p, B, RX_BYTES, 3 * (VB_BTH_SIZE + VB_ICRC_SIZE) + VB_IMM_SIZE + 3004);
}

TEST(an_ack_rides_on_a_train)
{
	struct pair *p = begin(VB_QP_RC);
	struct vb_slot slots[2];

	post_recv(p, A, 8, 100);
	post_send(p, B, 9, 8);
	expect_sent(p, B, "SEND_ONLY psn=5000 len=8 ack");
	deliver(p);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, 2), 1);
	EXPECT_EQ(slots[0].train.packet_count, 4);
	EXPECT(slots[0].piggyback_ack.is_there);
}

/* --- receives --------------------------------------------------------------------------------- */

TEST(without_a_receive_a_train_waits_and_comes_again_in_packets)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true; /* no credits are announced */
	p = connect_for_trains_as(setup);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	post_long_recv(p, 2, LONG);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_MIDDLE psn=1 len=1024",
		    "SEND_MIDDLE psn=2 len=1024", "SEND_LAST psn=3 len=500 ack");
	expect_arrived(p);
	send_all(p, B);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_counter(p, A, TRAINS_REFUSED, 0);
}

/* B announces no receives, so A asks with one packet; the rest follows in a train. */
TEST(a_message_without_credits_begins_with_a_packet)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_recv(p, B, 4, 8);
	post_send(p, A, 5, 8);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	deliver(p); /* no credits are left */
	post_send(p, A, 1, LONG);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_FIRST psn=1 len=1024 ack");
	post_long_recv(p, 2, LONG);
	deliver(p);
	send_all(p, B);
	deliver(p);
	expect_sent(p, A, "SEND_LAST psn=2 len=0 ack packets=3 data=2548");
	deliver(p);
	expect_copied(p, A, LOCAL, B, recv_at(2), LONG);
}

TEST(a_train_longer_than_its_receive_ends_both_QPs)
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_recv(p, B, 2, 3000);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_completions(p, B, "wr=2 LOC_LEN_ERR");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_untouched(p, B, recv_at(2), LONG);
}

TEST(a_receive_with_a_wrong_key_ends_as_with_packets)
{
	struct pair *p = connect_for_trains(VB_QP_RC);
	struct vb_sge sge = sge_at(p, B, recv_at(2), LONG);

	sge.lkey ^= 0x100;
	EXPECT_EQ(try_post_recv_sges(p, B, 2, &sge, 1), VB_OK);
	post_send(p, A, 1, LONG);
	settle(p);
	expect_completions(p, B, "wr=2 LOC_PROT_ERR");
	expect_completions(p, A, "wr=1 REM_OP_ERR");
}

/* --- duplicates and gaps ---------------------------------------------------------------------- */

TEST(a_train_that_comes_twice_is_acknowledged_twice_and_executed_once)
{
	struct pair *p = begin(VB_QP_RC);

	post_long_recv(p, 3, LONG);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=4 data=3572");
	deliver_nth(p, 0);
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=1");
	deliver_nth(p, 0);
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=1");
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
	expect_counter(p, B, DUPLICATE_REQUEST, 1);
}

TEST(a_train_after_a_gap_is_not_executed)
{
	struct pair *p = begin(VB_QP_RC);

	post_long_recv(p, 3, LONG);
	send_all(p, A);
	lose(p);
	post_send(p, A, 4, LONG);
	expect_sent(p, A, "SEND_ONLY psn=4 len=0 ack packets=4 data=3572");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_no_completion(p, B);
	expect_untouched(p, B, recv_at(2), LONG);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572", "wr=3 SUCCESS RECV len=3572");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=4 SUCCESS SEND");
}

TEST(what_is_not_answered_comes_again_in_packets)
{
	struct pair *p = begin(VB_QP_RC);

	send_all(p, A);
	lose(p);
	wait_ns(p, ACK_TIMEOUT_NS);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_MIDDLE psn=1 len=1024",
		    "SEND_MIDDLE psn=2 len=1024", "SEND_LAST psn=3 len=500 ack");
	expect_arrived(p);
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, 1);
}

/* The peer was slow: it gets the train and the repetition. */
TEST(packets_after_the_train_that_they_repeat_are_duplicates)
{
	struct pair *p = begin(VB_QP_RC);

	post_long_recv(p, 3, LONG);
	send_all(p, A);
	wait_ns(p, ACK_TIMEOUT_NS);
	send_all(p, A);
	EXPECT_EQ(p->held_count, 5);
	expect_arrived(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=3 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_rest(p, A);
}
