/* SPDX-License-Identifier: BSD-2-Clause */
/* No packet disappears silently: each refused frame is counted under exactly one reason. */
#include "support_pair.h"

#include <string.h>

static uint64_t drops_in_all(struct pair *p, enum side side)
{
	const struct vb_counters *counters = vb_nic_counters(p->node[side].nic);
	uint64_t sum = 0;

	for (int i = 0; i < VB_DROP_COUNT; i++)
		sum += counters->drops[i];
	return sum;
}

#define expect_one_drop(p, side, name)                    \
	do {                                              \
		expect_dropped(p, side, name, 1);         \
		EXPECT_EQ(drops_in_all(p, side), 1);      \
		expect_silence(p, side);                  \
		expect_untouched(p, side, TARGET, 0x100); \
	} while (0)

/* Delivers raw bytes as a frame from A to B. */
static void receive_bytes(struct pair *p, const uint8_t *bytes, uint32_t length)
{
	struct vb_frame frame = {
		.path.ip = { .source = p->node[A].gid,
			     .destination = p->node[B].gid,
			     .source_port = 0xc000,
			     .hop_limit = 64 },
		.head = { bytes, length },
	};

	vb_nic_receive(p->node[B].nic, p->now_ns, &frame, 1);
}

TEST(drop_a_frame_that_is_too_short_for_its_headers)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[15] = { 0 };

	receive_bytes(p, bytes, sizeof(bytes));
	expect_one_drop(p, B, TOO_SHORT);
}

TEST(drop_an_empty_frame)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[1] = { 0 };

	receive_bytes(p, bytes, 0);
	expect_one_drop(p, B, TOO_SHORT);
}

TEST(drop_a_frame_of_another_transport_version)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[16] = { 0x04, 0x01 };

	receive_bytes(p, bytes, sizeof(bytes));
	expect_one_drop(p, B, VERSION);
}

TEST(drop_an_opcode_that_does_not_exist)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[32] = { 0x1f };

	receive_bytes(p, bytes, sizeof(bytes));
	expect_one_drop(p, B, OPCODE);
}

TEST(drop_a_payload_where_none_may_be)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[12 + 4 + 8 + 4] = { 0x11 };

	receive_bytes(p, bytes, sizeof(bytes));
	expect_one_drop(p, B, LENGTH);
}

TEST(drop_a_frame_whose_icrc_is_wrong)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack bad-icrc");
	expect_one_drop(p, B, ICRC);
	expect_counter(p, B, RX_ICRC_ENCAPSULATED, 1);
}

TEST(a_corrupted_packet_is_recovered_like_a_lost_one)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 100);
	send_all(p, A);
	corrupt_nth(p, 0);
	deliver(p);
	expect_one_drop(p, B, ICRC);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 100);
}

TEST(drop_a_congestion_notification)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "CNP psn=0 len=16");
	expect_one_drop(p, B, CONGESTION_NOTICE);
}

TEST(drop_a_packet_to_a_qp_that_does_not_exist)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack dest=0x654321");
	expect_one_drop(p, B, NO_QP);
}

static void expect_drop_in(enum vb_qp_state state)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[B] = state;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_one_drop(p, B, QP_STATE);
}

TEST(drop_a_packet_to_a_qp_in_RESET)
{
	expect_drop_in(VB_STATE_RESET);
}

TEST(drop_a_packet_to_a_qp_in_INIT)
{
	expect_drop_in(VB_STATE_INIT);
}

TEST(drop_a_response_to_a_qp_in_RTR)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[B] = VB_STATE_RTR;
	struct pair *p = pair_connect(&setup);

	inject(p, B, "ACKNOWLEDGE psn=5000 msn=0");
	EXPECT_EQ(drops_in_all(p, B), 1);
	expect_state(p, B, VB_STATE_RTR);
}

TEST(drop_an_opcode_of_another_service)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "UC WRITE_ONLY psn=0 len=8");
	expect_one_drop(p, B, QP_TYPE);
}

TEST(drop_a_datagram_to_an_rc_qp)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "UD SEND_ONLY psn=0 len=8");
	expect_one_drop(p, B, QP_TYPE);
}

TEST(drop_a_packet_with_another_pkey)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack pkey=0x8001");
	expect_one_drop(p, B, PKEY);
	expect_counter(p, B, PKEY_VIOLATIONS, 1);
}

TEST(a_limited_member_is_heard_by_a_full_member)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack pkey=0x7fff");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
}

TEST(two_limited_members_do_not_hear_each_other)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_nic_set_pkey(p->node[B].nic, 0, 0x7fff), VB_OK);
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack pkey=0x7fff");
	expect_one_drop(p, B, PKEY);
}

TEST(a_qp_uses_the_pkey_of_its_index)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.state[B] = VB_STATE_INIT;
	struct pair *p = pair_connect(&setup);
	struct vb_qp_attr attr = { .state = VB_STATE_RTR, .pkey_index = 3 };

	EXPECT_EQ(vb_nic_set_pkey(p->node[B].nic, 3, 0x9234), VB_OK);
	EXPECT_EQ(vb_qp_modify(p->node[B].qp, &attr, VB_ATTR_STATE | VB_ATTR_PKEY_INDEX), VB_OK);
	post_recv(p, B, 1, 100);
	inject(p, B, "UD SEND_ONLY psn=0 len=8");
	expect_dropped(p, B, PKEY, 1);
	inject(p, B, "UD SEND_ONLY psn=0 len=8 pkey=0x9234");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
}

TEST(drop_a_packet_that_is_not_from_the_peer)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack stranger");
	expect_one_drop(p, B, ADDRESS);
}

TEST(drop_an_acknowledgement_that_is_not_from_the_peer)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 stranger");
	expect_dropped(p, A, ADDRESS, 1);
	expect_no_completion(p, A);
}

TEST(drop_what_comes_after_the_packet_that_kills_the_qp)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 rkey=0x1 ack");
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	EXPECT_EQ(drops_in_all(p, B), 1);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	expect_untouched(p, B, TARGET, 8);
}

TEST(packets_and_bytes_are_counted)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	settle(p);
	expect_counter(p, A, TX_PACKETS, 1);
	expect_counter(p, B, RX_PACKETS, 1);
	expect_counter(p, B, TX_PACKETS, 1);
	expect_counter(p, A, RX_PACKETS, 1);
	EXPECT(vb_nic_counters(p->node[A].nic)->counts[VB_COUNTER_TX_BYTES] >= 8);
	EXPECT_EQ(vb_nic_counters(p->node[A].nic)->counts[VB_COUNTER_TX_BYTES],
		  vb_nic_counters(p->node[B].nic)->counts[VB_COUNTER_RX_BYTES]);
}

TEST(requests_are_counted_by_kind)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 2000);
	post_read(p, A, 2, 8);
	post_fetch_add(p, A, 3, 1);
	post_compare_swap(p, A, 4, 1, 2);
	settle(p);
	expect_counter(p, B, RX_WRITE_REQUESTS, 1);
	expect_counter(p, B, RX_READ_REQUESTS, 1);
	expect_counter(p, B, RX_ATOMIC_REQUESTS, 2);
}

TEST(counters_and_drops_have_the_names_that_rdma_people_know)
{
	EXPECT_STR(vb_counter_name(VB_COUNTER_OUT_OF_SEQUENCE), "out_of_sequence");
	EXPECT_STR(vb_counter_name(VB_COUNTER_PACKET_SEQ_ERR), "packet_seq_err");
	EXPECT_STR(vb_counter_name(VB_COUNTER_LOCAL_ACK_TIMEOUT_ERR), "local_ack_timeout_err");
	EXPECT_STR(vb_counter_name(VB_COUNTER_DUPLICATE_REQUEST), "duplicate_request");
	EXPECT_STR(vb_counter_name(VB_COUNTER_RNR_NAK_RETRY_ERR), "rnr_nak_retry_err");
	EXPECT_STR(vb_counter_name(VB_COUNTER_IMPLIED_NAK_SEQ_ERR), "implied_nak_seq_err");
	EXPECT_STR(vb_counter_name(VB_COUNTER_RX_ICRC_ENCAPSULATED), "rx_icrc_encapsulated");
	EXPECT_STR(vb_drop_name(VB_DROP_ICRC), "icrc");
}
