/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much is outstanding at a time, how often an ACK is requested, turns between QPs, batches and
 * the ICRC modes.
 */
#include "support_pair.h"

#include <stdlib.h>

TEST(rc_no_more_packets_are_out_than_the_window_allows)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.window_packets_max = 4;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 256 * 6);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256 ack", "WRITE_MIDDLE psn=1 len=256 ack",
		    "WRITE_MIDDLE psn=2 len=256 ack", "WRITE_MIDDLE psn=3 len=256 ack");
	deliver_nth(p, 0);
	deliver_nth(p, 1);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0");
	deliver_nth(p, 4);
	expect_sent(p, A, "WRITE_MIDDLE psn=4 len=256 ack", "WRITE_LAST psn=5 len=256 ack");
	lose(p);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

/*
 * A peer that is slow but not dead would otherwise get everything repeatedly, and have even more to
 * do.
 */
TEST(rc_each_timeout_halves_how_much_may_be_out_but_one_packet_may_be)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.window_packets_max = 8;
	setup.retry_count = 7;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 256 * 20);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256 ack", "WRITE_MIDDLE psn=1 len=256 ack",
		    "WRITE_MIDDLE psn=2 len=256 ack", "WRITE_MIDDLE psn=3 len=256 ack");
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256 ack", "WRITE_MIDDLE psn=1 len=256 ack");
	for (int i = 0; i < 2; i++) {
		lose(p);
		wait_until_work(p, A);
		expect_sent(p, A, "WRITE_FIRST psn=0 len=256 ack");
	}
}

TEST(rc_after_a_timeout_each_ack_that_moves_on_lets_one_packet_more_be_out)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.window_packets_max = 4;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 256 * 20);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256 ack", "WRITE_MIDDLE psn=1 len=256 ack");
	inject(p, A, "ACKNOWLEDGE psn=1 msn=0");
	expect_sent(p, A, "WRITE_MIDDLE psn=2 len=256 ack", "WRITE_MIDDLE psn=3 len=256 ack",
		    "WRITE_MIDDLE psn=4 len=256 ack");
	inject(p, A, "ACKNOWLEDGE psn=4 msn=0");
	inject(p, A, "ACKNOWLEDGE psn=4 msn=0");
	expect_sent(p, A, "WRITE_MIDDLE psn=5 len=256 ack", "WRITE_MIDDLE psn=6 len=256 ack",
		    "WRITE_MIDDLE psn=7 len=256 ack", "WRITE_MIDDLE psn=8 len=256 ack");
	inject(p, A, "ACKNOWLEDGE psn=8 msn=0");
	expect_sent(p, A, "WRITE_MIDDLE psn=9 len=256 ack", "WRITE_MIDDLE psn=10 len=256 ack",
		    "WRITE_MIDDLE psn=11 len=256 ack", "WRITE_MIDDLE psn=12 len=256 ack");
}

/* How many packets go out before the first ACK with a window of 1,024 bytes. */
static uint32_t packets_out_with(uint32_t mtu)
{
	struct setup setup = setup_of(VB_QP_RC, mtu);
	setup.window_bytes_max = 1024;
	struct pair *p = pair_connect(&setup);
	struct vb_slot *slots = calloc(64, sizeof(*slots));
	uint32_t count;

	post_write(p, A, 1, 0x4000);
	count = vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 64);
	free(slots);
	return count;
}

TEST(rc_a_window_of_bytes_is_many_small_packets)
{
	EXPECT_EQ(packets_out_with(256), 4);
}

TEST(rc_a_window_of_bytes_is_few_large_packets)
{
	EXPECT_EQ(packets_out_with(512), 2);
}

TEST(rc_a_window_of_bytes_is_many_packets_that_are_not_full)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.window_bytes_max = 1024;
	setup.window_packets_max = 6;
	struct pair *p = pair_connect(&setup);

	for (uint64_t wr_id = 1; wr_id <= 9; wr_id++)
		post_write(p, A, wr_id, 250);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=250 ack", "WRITE_ONLY psn=1 len=250 ack",
		    "WRITE_ONLY psn=2 len=250 ack", "WRITE_ONLY psn=3 len=250 ack",
		    "WRITE_ONLY psn=4 len=250 ack");
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2");
	expect_sent(p, A, "WRITE_ONLY psn=5 len=250 ack", "WRITE_ONLY psn=6 len=250 ack");
}

TEST(rc_small_packets_are_counted_as_well_as_their_bytes)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.window_bytes_max = 1024;
	setup.window_packets_max = 3;
	struct pair *p = pair_connect(&setup);

	for (uint64_t wr_id = 1; wr_id <= 5; wr_id++)
		post_write(p, A, wr_id, 8);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack", "WRITE_ONLY psn=1 len=8 ack",
		    "WRITE_ONLY psn=2 len=8 ack");
}

TEST(rc_after_a_timeout_small_packets_count_as_full_ones)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.window_bytes_max = 2048;
	struct pair *p = pair_connect(&setup);

	for (uint64_t wr_id = 1; wr_id <= 5; wr_id++)
		post_write(p, A, wr_id, 8);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
}

TEST(rc_a_window_of_bytes_is_at_least_one_packet)
{
	EXPECT_EQ(packets_out_with(4096), 1);
}

TEST(rc_a_long_message_asks_for_acks_on_its_way)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.window_packets_max = 8;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 256 * 5);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256 ack",
		    "WRITE_MIDDLE psn=2 len=256", "WRITE_MIDDLE psn=3 len=256 ack",
		    "WRITE_LAST psn=4 len=256 ack");
}

TEST(rc_messages_beyond_the_window_all_arrive)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.window_packets_max = 3;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 0x8000);
	post_read(p, A, 2, 0x8000);
	post_write(p, A, 3, 0x100);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=32768",
			   "wr=3 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 0x8000);
	expect_copied(p, A, LOCAL, A, SINK, 0x8000);
}

TEST(every_qp_gets_its_turn_though_another_has_much_to_send)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B), *first = p->node[A].qp;
	struct vb_slot *slots = calloc(128, sizeof(*slots));
	uint32_t of_second = 0;

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	post_write(p, A, 1, 0x20000);
	p->node[A].qp = a;
	post_write(p, A, 2, 0x20000);
	p->node[A].qp = first;
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 128), 128);
	for (int i = 0; i < 128; i++)
		of_second += vb_bth_load(slots[i].head).destination.v == vb_qp_number(b).v;
	EXPECT(of_second >= 32 && of_second <= 96);
	free(slots);
}

TEST(a_full_link_asks_for_fewer_slots_and_loses_nothing)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_slot slot;

	post_write(p, A, 1, 600);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 0), 0);
	EXPECT(vb_nic_has_work(p->node[A].nic));
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_LAST psn=2 len=88 ack");
}

/* Gathers the slots of one transmit call and hands them to B. */
static void deliver_slots(struct pair *p, const struct vb_slot *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint8_t bytes[4200];
		struct vb_frame frame = { .path.ip = slots[i].path.ip,
					  .ip_id = slots[i].ip_id,
					  .head = { bytes, slots[i].length } };

		EXPECT(vb_slot_gather(&slots[i], bytes));
		vb_nic_receive(p->node[B].nic, p->now_ns, &frame, 1);
	}
}

TEST(packets_of_one_flow_form_a_batch_whose_ip_ids_count_up_under_the_icrc)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.batch_segments_max = 3;
	struct pair *p = pair_connect(&setup);
	static struct vb_slot slots[8];

	post_write(p, A, 1, 5000);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 8), 5);
	EXPECT(!slots[0].continues && slots[0].ip_id == 0);
	/* The first packet has a RETH and is longer: it may begin a batch that shorter ones end. */
	deliver_slots(p, slots, 5);
	expect_sent(p, B, "ACKNOWLEDGE psn=4 msn=1");
	expect_copied(p, A, LOCAL, B, TARGET, 5000);
	expect_dropped(p, B, ICRC, 0);
}

TEST(without_batches_every_packet_has_the_ip_id_0_under_its_icrc)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.batch_segments_max = 64;
	struct pair *p = pair_connect(&setup);
	static struct vb_slot slots[8];

	vb_framing_stop_batching(vb_nic_framing(p->node[A].nic));
	post_write(p, A, 1, 5000);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 8), 5);
	for (uint32_t i = 0; i < 5; i++)
		EXPECT(!slots[i].continues && slots[i].ip_id == 0);
	deliver_slots(p, slots, 5);
	expect_sent(p, B, "ACKNOWLEDGE psn=4 msn=1");
}

/* The flow of A's packets, as the link would name it. */
static struct vb_flow flow_from_a(struct pair *p)
{
	static struct vb_slot slot;

	post_write(p, A, 99, 8);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	deliver_slots(p, &slot, 1);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	return slot.path.ip;
}

TEST(batches_of_a_numbered_flow_count_up_and_so_do_their_segments_under_the_icrc)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.batch_segments_max = 3;
	struct pair *p = pair_connect(&setup);
	struct vb_flow flow = flow_from_a(p);
	static const uint16_t numbers[] = { 65535, 0, 0, 1,
					    2 }; /* the first packet is the longest */
	static struct vb_slot slots[8];

	vb_framing_number_flow(vb_nic_framing(p->node[A].nic), 3, &flow, 65535);
	post_write(p, A, 1, 5000);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 8), 5);
	for (uint32_t i = 0; i < 5; i++) {
		EXPECT(slots[i].is_numbered);
		EXPECT_EQ(slots[i].continues, i != 0 && i != 2);
		EXPECT_EQ(slots[i].ip_id, numbers[i]);
	}
	deliver_slots(p, slots, 5);
	expect_sent(p, B, "ACKNOWLEDGE psn=5 msn=2");
	expect_dropped(p, B, ICRC, 0);
}

TEST(a_flow_is_numbered_until_it_is_no_more_and_others_are_not)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.batch_segments_max = 64;
	struct pair *p = pair_connect(&setup);
	struct vb_flow flow = flow_from_a(p), other = flow;
	static struct vb_slot slot;

	other.hop_limit++;
	vb_framing_number_flow(vb_nic_framing(p->node[A].nic), 0, &other, 7);
	post_write(p, A, 1, 8);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	EXPECT(!slot.is_numbered && slot.ip_id == 0);
	vb_framing_number_flow(vb_nic_framing(p->node[A].nic), 1, &flow, 1000);
	post_write(p, A, 2, 8);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	EXPECT(slot.is_numbered && !slot.continues && slot.ip_id == 1000);
	vb_framing_number_flow(vb_nic_framing(p->node[A].nic), 1, NULL, 0);
	post_write(p, A, 3, 8);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	EXPECT(!slot.is_numbered && !slot.continues && slot.ip_id == 0);
}

TEST(a_segment_of_a_batch_is_as_long_as_the_first_but_for_the_last)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.batch_segments_max = 64;
	struct pair *p = pair_connect(&setup);
	static struct vb_slot slots[64];
	uint32_t count, first = 0, continued = 0;

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 256 * 6 + 10);
	count = vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 64);
	EXPECT_EQ(count, 7);
	for (uint32_t i = 0; i < count; i++) {
		first = slots[i].continues ? first : i;
		continued += slots[i].continues;
		EXPECT_EQ(slots[i].ip_id, i - first);
		EXPECT(slots[i].length <= slots[first].length);
		EXPECT(i + 1 == count || !slots[i + 1].continues ||
		       slots[i].length == slots[first].length);
	}
	EXPECT_EQ(continued, 6);
}

TEST(icrc_strict_wants_the_ip_id_to_be_right)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack ip-id=7");
	expect_silence(p, B);
	expect_dropped(p, B, ICRC, 1);
}

static struct pair *pair_with_icrc(enum vb_icrc_mode mode)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.icrc_mode = mode;
	return pair_connect(&setup);
}

TEST(icrc_solved_finds_the_ip_id_out)
{
	struct pair *p = pair_with_icrc(VB_ICRC_SOLVED);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack ip-id=7");
	inject(p, B, "WRITE_ONLY psn=1 len=8 ack ip-id=54321");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
}

/* A wrong guess must never make a packet worse off than no guess. */
TEST(icrc_solved_takes_senders_that_count_up_jump_back_or_stop_counting)
{
	struct pair *p = pair_with_icrc(VB_ICRC_SOLVED);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ip-id=65535");
	inject(p, B, "WRITE_ONLY psn=1 len=8 ip-id=0");
	inject(p, B, "WRITE_ONLY psn=2 len=8 ip-id=1");
	inject(p, B, "WRITE_ONLY psn=3 len=8 ip-id=2");
	inject(p, B, "WRITE_ONLY psn=4 len=8 ip-id=1");
	inject(p, B, "WRITE_ONLY psn=5 len=8 ip-id=0");
	inject(p, B, "WRITE_ONLY psn=6 len=8 ack ip-id=0");
	expect_sent(p, B, "ACKNOWLEDGE psn=6 msn=7");
	inject(p, B, "WRITE_ONLY psn=7 len=8 ack bad-icrc");
	expect_dropped(p, B, ICRC, 1);
}

TEST(icrc_solved_still_refuses_what_no_ip_id_explains)
{
	struct pair *p = pair_with_icrc(VB_ICRC_SOLVED);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack bad-icrc");
	expect_silence(p, B);
	expect_dropped(p, B, ICRC, 1);
}

TEST(icrc_off_checks_nothing)
{
	struct pair *p = pair_with_icrc(VB_ICRC_OFF);

	inject(p, B, "WRITE_ONLY psn=0 len=8 ack bad-icrc");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
}

TEST(inline_data_may_take_several_packets)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.inline_max = 512;
	struct pair *p = pair_connect(&setup);
	struct vb_sge sge = { (uintptr_t)p->node[A].memory, 500, 0 };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	post_recv(p, B, 1, 4096);
	post(p, A, request);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_LAST psn=1 len=244 ack");
	deliver_nth(p, 0);
	lose(p);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=500");
	expect_copied(p, A, LOCAL, B, recv_at(1), 500);
}

TEST(a_packet_may_gather_from_as_many_sges_as_the_adapter_takes)
{
	struct setup setup = setup_of(VB_QP_RC, 4096);
	setup.sge_max = VB_SGE_MAX;
	struct pair *p = pair_connect(&setup);
	struct vb_sge from[VB_SGE_MAX], to[VB_SGE_MAX];
	struct vb_send_request request = send_request(p, A, 1, 0);

	for (uint32_t i = 0; i < VB_SGE_MAX; i++) {
		from[i] = sge_at(p, A, i * 200, 101);
		to[i] = sge_at(p, B, RECV + i * 300, 101);
	}
	request.sges = from;
	request.sge_count = VB_SGE_MAX;
	EXPECT_EQ(try_post_recv_sges(p, B, 1, to, VB_SGE_MAX), VB_OK);
	post(p, A, request);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=3232");
	expect_copied(p, A, 0, B, RECV, 101);
	expect_copied(p, A, 31 * 200, B, RECV + 31 * 300, 101);
}

TEST(a_shorter_packet_ends_its_batch)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.batch_segments_max = 64;
	struct pair *p = pair_connect(&setup);
	static struct vb_slot slots[8];

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	post_send(p, A, 1, 300);
	post_send(p, A, 2, 300);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 8), 4);
	EXPECT(!slots[0].continues && slots[1].continues && !slots[2].continues &&
	       slots[3].continues);
	EXPECT_EQ(slots[2].ip_id, 0);
	EXPECT_EQ(slots[3].ip_id, 1);
	deliver_slots(p, slots, 4);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=300", "wr=2 SUCCESS RECV len=300");
}

TEST(packets_of_another_flow_begin_a_batch_of_their_own)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.batch_segments_max = 64;
	struct pair *p = pair_connect(&setup);
	struct vb_qp *other = make_qp(p, A), *first = p->node[A].qp;
	static struct vb_slot slots[8];

	bring_up(p, A, other, (vb_qpn){ 0x1234 }, VB_STATE_RTS);
	post_write(p, A, 1, 8);
	p->node[A].qp = other;
	post_write(p, A, 2, 8);
	p->node[A].qp = first;
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 8), 2);
	EXPECT(slots[0].path.ip.source_port == slots[1].path.ip.source_port || !slots[1].continues);
}

/* A writes from two new QPs to these QPNs; true if the packets form one batch. */
static bool write_in_one_batch(struct pair *p, uint32_t first, uint32_t second)
{
	static struct vb_slot slots[8];
	uint32_t qpns[] = { first, second };

	for (uint32_t i = 0; i < 2; i++) {
		p->node[A].qp = make_qp(p, A);
		bring_up(p, A, p->node[A].qp, (vb_qpn){ qpns[i] }, VB_STATE_RTS);
		post_write(p, A, i, 8);
	}
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 8), 2);
	return slots[1].continues;
}

TEST(a_batch_goes_to_one_socket_where_the_receiver_steers_by_destination_qpns)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.batch_segments_max = 64;
	setup.batch_qpn_mask = 0xff0000;
	setup.has_one_source_port = true;
	struct pair *p = pair_connect(&setup);

	EXPECT(write_in_one_batch(p, 0x120034, 0x12ffff));
	EXPECT(!write_in_one_batch(p, 0x120034, 0x130034));
}
