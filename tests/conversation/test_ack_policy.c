/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of nic/ack_policy_priv.h, one by one: when a requester asks for an ACK, when a
 * responder owes one, how it leaves, and whether it may wait. (What an ACK says and completes:
 * test_rc_ack.c.)
 */
#include "support_direct.h"

#include "nic/flight_priv.h"
#include "nic/peer_memory.h"

#include <stdlib.h>

/* --- when the requester asks --- */

static struct pair *connect_with_window(uint32_t packets)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	setup.window_packets_max = packets;
	return pair_connect(&setup);
}

/* Which of the packets that A sends now ask for an ACK, as bits. */
static uint32_t asking(struct pair *p, uint32_t expected_count)
{
	enum { CAPACITY = 32 };
	struct vb_slot *slots = calloc(CAPACITY, sizeof(*slots));
	uint32_t count = vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, CAPACITY);
	uint32_t bits = 0;

	EXPECT_EQ(count, expected_count);
	for (uint32_t i = 0; i < count; i++)
		bits |= (uint32_t)vb_bth_load(slots[i].head).ack_request << i;
	free(slots);
	return bits;
}

TEST(the_last_packet_of_each_message_asks)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 700);
	post_write(p, A, 2, 1);
	EXPECT_EQ(asking(p, 4), 1u << 2 | 1u << 3);
}

TEST(a_long_message_asks_after_each_quarter_of_the_window)
{
	struct pair *p = connect_with_window(16);

	post_write(p, A, 1, 10 * 256);
	EXPECT_EQ(asking(p, 10), 1u << 3 | 1u << 7 | 1u << 9);
}

TEST(the_packet_that_fills_the_window_asks)
{
	struct pair *p = connect_with_window(16);

	post_write(p, A, 1, 2 * 256);
	post_write(p, A, 2, 30 * 256);
	EXPECT_EQ(asking(p, 16), 1u << 1 | 1u << 5 | 1u << 9 | 1u << 13 | 1u << 15);
}

TEST(the_packet_that_fills_the_flight_asks)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.flight_bytes_max = 2 * (256 + VB_FLIGHT_PACKET_OVERHEAD);
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 30 * 256);
	EXPECT_EQ(asking(p, 2), 1u << 1);
}

TEST(a_message_without_a_receive_asks_with_its_first_packet)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	post_send(p, A, 2, 1000);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_FIRST psn=1 len=256 ack");
}

TEST(a_message_with_a_receive_does_not)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=1");
	post_send(p, A, 2, 500);
	expect_sent(p, A, "SEND_FIRST psn=1 len=256", "SEND_LAST psn=2 len=244 ack");
}

TEST(reads_and_atomics_never_ask)
{
	struct pair *p = pair_connect_rc(256);

	post_read(p, A, 1, 8);
	post_fetch_add(p, A, 2, 1);
	EXPECT_EQ(asking(p, 2), 0);
}

/* --- when the responder owes one --- */

TEST(an_ack_is_owed_for_an_executed_packet_that_asks)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8");
	expect_silence(p, B);
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
}

TEST(an_ack_is_owed_for_a_duplicate_that_asks)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8");
	inject(p, B, "WRITE_ONLY psn=0 len=8");
	expect_silence(p, B);
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
}

TEST(an_ack_is_owed_for_a_packet_that_makes_a_nak_needless)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "SEND_ONLY psn=0 len=8"); /* there is no receive: an RNR NAK is due */
	post_recv(p, B, 1, 100);
	inject(p, B, "SEND_ONLY psn=0 len=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
}

TEST(an_ack_is_owed_for_a_receive_after_none_was_announced)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	post_recv(p, B, 1, 100);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1 credits=1");
	post_recv(p, B, 2, 100);
	expect_silence(p, B);
}

TEST(a_response_takes_the_place_of_an_ack_that_is_owed)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	inject(p, B, "READ_REQUEST psn=1 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=1 len=8 msn=2");
}

TEST(a_nak_takes_the_place_of_an_ack_that_is_owed)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	inject(p, B, "WRITE_ONLY psn=2 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1 NAK sequence");
}

/* --- how it leaves --- */

/*
 * B owes an ACK and has two WRITEs to send. Which of its next packets, in a turn of up to
 * `capacity`, is the ACK.
 */
static uint32_t ack_among_writes(uint32_t capacity)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_slot *slots = calloc(capacity, sizeof(*slots));
	uint32_t count, index = 0;

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	post_write(p, B, 1, 8);
	post_write(p, B, 2, 8);
	count = vb_nic_transmit(node_of(p, B)->nic, p->now_ns, slots, capacity);
	while (index < count && slots[index].head[0] != VB_OPCODE(VB_SERVICE_RC, VB_OP_ACKNOWLEDGE))
		index++;
	free(slots);
	return index;
}

TEST(on_the_wire_it_follows_the_requests_of_its_qp)
{
	EXPECT_EQ(ack_among_writes(8), 2);
}

TEST(it_waits_no_longer_than_the_turn)
{
	EXPECT_EQ(ack_among_writes(2), 1);
}

TEST(on_a_shared_memory_link_the_first_request_carries_it)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot *slots = calloc(4, sizeof(*slots));

	expect_silence(p, A);
	inject(p, A, "WRITE_ONLY psn=5000 len=8 ack");
	post_send(p, A, 1, 8);
	post_send(p, A, 2, 8);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, 4), 2);
	EXPECT(slots[0].piggyback_ack.is_there && !slots[1].piggyback_ack.is_there);
	EXPECT_EQ(slots[0].piggyback_ack.psn.v, 5000);
	free(slots);
}

/* --- whether it may wait --- */

TEST(an_ack_alone_may_wait)
{
	struct pair *p = pair_connect_rc(1024);
	const struct vb_nic *nic = node_of(p, B)->nic;

	expect_silence(p, B);
	EXPECT(!vb_nic_can_defer_acks(nic)); /* there is none */
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	EXPECT(vb_nic_can_defer_acks(nic));
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	EXPECT(!vb_nic_can_defer_acks(nic));
}

TEST(an_ack_with_a_request_to_send_may_not)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, B, 1, 8);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	EXPECT_EQ(vb_qp_post_send(node_of(p, B)->qp, &request), VB_OK);
	EXPECT(vb_nic_can_defer_acks(node_of(p, B)->nic)); /* the engine does not see it yet */
	EXPECT(vb_qp_publish_sends(node_of(p, B)->qp));
	EXPECT(!vb_nic_can_defer_acks(node_of(p, B)->nic));
}

TEST(an_ack_with_a_doorbell_to_look_at_may_not)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	vb_qp_ring_doorbell(node_of(p, B)->qp);
	EXPECT(!vb_nic_can_defer_acks(node_of(p, B)->nic));
}

TEST(a_nak_may_not_wait)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	EXPECT(!vb_nic_can_defer_acks(node_of(p, B)->nic));
}

TEST(a_response_may_not_wait)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "READ_REQUEST psn=0 dma=8");
	EXPECT(!vb_nic_can_defer_acks(node_of(p, B)->nic));
}

/* One more QP of B owes an ACK to one of A. */
static void owe_by_another_qp(struct pair *p)
{
	struct vb_send_request request = write_request(p, A, 1, 8);
	struct vb_qp *from = make_qp(p, A);
	struct vb_qp *to = make_qp(p, B);

	bring_up(p, A, from, vb_qp_number(to), VB_STATE_RTS);
	bring_up(p, B, to, vb_qp_number(from), VB_STATE_RTS);
	EXPECT_EQ(vb_qp_post_send(from, &request), VB_OK);
	vb_qp_publish_and_ring(from);
	send_all(p, A);
	deliver(p);
}

TEST(four_acks_may_wait_but_not_five)
{
	struct pair *p = pair_connect_rc(1024);

	expect_silence(p, B);
	for (uint32_t i = 0; i < 4; i++) {
		owe_by_another_qp(p);
		EXPECT(vb_nic_can_defer_acks(node_of(p, B)->nic));
	}
	owe_by_another_qp(p);
	EXPECT(!vb_nic_can_defer_acks(node_of(p, B)->nic));
}
