/* SPDX-License-Identifier: BSD-2-Clause */
/* UD: datagrams, the 40 bytes in front of them, and the Q_Key. */
#include "support_pair.h"

#include "base/bytes.h"

TEST(ud_send_arrives_behind_40_bytes_of_grh)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 140);
	post_datagram(p, A, 1, 100);
	expect_sent(p, A, "UD SEND_ONLY psn=0 len=100 qkey=0x11111111");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	deliver(p);
	expect_silence(p, B);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=140 grh");
	expect_copied(p, A, LOCAL, B, recv_at(1) + 40, 100);
	expect_untouched(p, B, recv_at(1) + 140, 16);
}

TEST(ud_over_ipv4_the_last_20_bytes_of_the_grh_area_are_a_valid_ipv4_header)
{
	struct pair *p = pair_connect_ud(1024);
	const uint8_t *header = p->node[B].memory + recv_at(1) + 20;
	uint32_t sum = 0;

	post_recv(p, B, 1, 140);
	post_datagram(p, A, 1, 100);
	settle(p);
	EXPECT_EQ(header[0], 0x45);
	EXPECT_EQ(load16(header + 2), 20 + 8 + 12 + 8 + 100 + 4);
	EXPECT_EQ(header[9], 17); /* UDP */
	EXPECT_EQ(load32(header + 12), 0x0a000001);
	EXPECT_EQ(load32(header + 16), 0x0a000002);
	for (int i = 0; i < 20; i += 2)
		sum += load16(header + i);
	EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffff);
}

TEST(ud_over_ipv6_the_grh_is_the_ipv6_header)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.is_ipv6 = true;
	struct pair *p = pair_connect(&setup);
	const uint8_t *grh = p->node[B].memory + recv_at(1);

	post_recv(p, B, 1, 140);
	post_datagram(p, A, 1, 100);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=140 grh");
	EXPECT_EQ(grh[0] >> 4, 6);
	EXPECT_MEM(grh + 8, p->node[A].gid.raw, 16);
	EXPECT_MEM(grh + 24, p->node[B].gid.raw, 16);
	expect_copied(p, A, LOCAL, B, recv_at(1) + 40, 100);
}

TEST(ud_the_completion_names_the_sender)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_completion completion;

	post_recv(p, B, 1, 140);
	post_datagram(p, A, 1, 100);
	settle(p);
	EXPECT_EQ(vb_cq_poll(p->node[B].recv_cq, &completion, 1), 1);
	EXPECT_EQ(completion.source_qpn, vb_qp_number(p->node[A].qp).v);
	EXPECT_EQ(completion.qpn, vb_qp_number(p->node[B].qp).v);
}

TEST(ud_send_imm_carries_its_immediate)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request request = datagram_request(p, A, 1, 10);

	request.opcode = VB_WR_SEND_IMM;
	request.imm = 0x99;
	post_recv(p, B, 1, 140);
	post(p, A, request);
	expect_sent(p, A, "UD SEND_ONLY_IMM psn=0 len=10 imm=0x99");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=50 imm=0x99 grh");
}

TEST(ud_every_datagram_has_the_next_psn)
{
	struct pair *p = pair_connect_ud(1024);

	post_datagram(p, A, 1, 10);
	post_datagram(p, A, 2, 10);
	expect_sent(p, A, "UD SEND_ONLY psn=0 len=10", "UD SEND_ONLY psn=1 len=10");
}

TEST(ud_a_wrong_qkey_is_dropped_and_counted)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request request = datagram_request(p, A, 1, 10);

	request.remote_qkey = 0x22222222;
	post_recv(p, B, 1, 140);
	post(p, A, request);
	settle(p);
	expect_no_completion(p, B);
	expect_dropped(p, B, QKEY, 1);
	expect_counter(p, B, QKEY_VIOLATIONS, 1);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(ud_a_qkey_with_the_high_bit_set_means_the_qps_own)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request request = datagram_request(p, A, 1, 10);

	request.remote_qkey = 0x80000005;
	post_recv(p, B, 1, 140);
	post(p, A, request);
	expect_sent(p, A, "UD SEND_ONLY psn=0 len=10 qkey=0x11111111");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=50 grh");
}

TEST(ud_without_a_receive_the_datagram_is_dropped)
{
	struct pair *p = pair_connect_ud(1024);

	post_datagram(p, A, 1, 10);
	settle(p);
	expect_dropped(p, B, NO_RECEIVE, 1);
	expect_counter(p, B, OUT_OF_BUFFER, 1);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(ud_a_datagram_longer_than_the_receive_is_dropped_and_the_receive_kept)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 139);
	post_datagram(p, A, 1, 100);
	post_datagram(p, A, 2, 99);
	send_all(p, A);
	deliver(p);
	expect_dropped(p, B, TOO_LONG, 1);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=139 grh");
	expect_state(p, B, VB_STATE_RTS);
}

TEST(ud_a_receive_shorter_than_the_grh_takes_nothing)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 20);
	post_datagram(p, A, 1, 0);
	settle(p);
	expect_no_completion(p, B);
	expect_dropped(p, B, TOO_LONG, 1);
	expect_untouched(p, B, recv_at(1), 40);
}

TEST(ud_the_grh_may_go_into_an_sge_of_its_own)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_sge sges[] = { sge_at(p, B, RECV, 40), sge_at(p, B, RECV + 0x1000, 100) };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, sges, 2), VB_OK);
	post_datagram(p, A, 1, 60);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=100 grh");
	expect_copied(p, A, LOCAL, B, RECV + 0x1000, 60);
	expect_untouched(p, B, RECV + 40, 16);
}

TEST(ud_a_datagram_longer_than_the_mtu_is_LOC_LEN_ERR_and_SQE)
{
	struct pair *p = pair_connect_ud(4096);

	post_datagram(p, A, 1, 4097);
	post_datagram(p, A, 2, 8);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_LEN_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_SQE);
}

TEST(ud_a_send_error_moves_to_SQE_and_receives_go_on)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request bad = datagram_request(p, A, 1, 8);
	struct vb_sge sge = { 0x1234, 8, 0x777 };

	bad.sges = &sge;
	post_recv(p, A, 11, 100);
	post(p, A, bad);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_state(p, A, VB_STATE_SQE);
	inject(p, A, "UD SEND_ONLY psn=0 len=8");
	expect_completions(p, A, "wr=11 SUCCESS RECV len=48 grh");
	modify_state(p, A, VB_STATE_RTS);
	post_datagram(p, A, 2, 8);
	expect_sent(p, A, "UD SEND_ONLY psn=0 len=8");
}

TEST(ud_a_receive_whose_lkey_is_wrong_completes_with_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_sge sge = { IOVA_B + RECV, 140, 0x777 };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	post_datagram(p, A, 1, 8);
	settle(p);
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, B, RECV, 140);
}

TEST(ud_a_receiver_in_RTR_takes_datagrams)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.state[B] = VB_STATE_RTR;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 140);
	post_datagram(p, A, 1, 8);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
}

TEST(ud_takes_datagrams_from_anybody)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 140);
	inject(p, B, "UD SEND_ONLY psn=77 len=8 srcqp=0x4321 stranger");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
}

TEST(ud_psns_need_not_be_in_sequence)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 140);
	post_recv(p, B, 2, 140);
	inject(p, B, "UD SEND_ONLY psn=77 len=8");
	inject(p, B, "UD SEND_ONLY psn=3 len=8");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh", "wr=2 SUCCESS RECV len=48 grh");
}

TEST(ud_an_rc_packet_is_not_for_a_ud_qp)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 140);
	inject(p, B, "SEND_ONLY psn=0 len=8 ack");
	expect_silence(p, B);
	expect_dropped(p, B, QP_TYPE, 1);
}

TEST(ud_a_request_without_an_address_handle_is_EINVAL)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request request = datagram_request(p, A, 1, 8);

	request.ah = NULL;
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
}

TEST(ud_inline_data_can_be_sent)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_sge sge = { (uintptr_t) "inline", 7, 0 };
	struct vb_send_request request = datagram_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	post_recv(p, B, 1, 140);
	post(p, A, request);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=47 grh");
	EXPECT_MEM(p->node[B].memory + recv_at(1) + 40, "inline", 7);
}

TEST(ud_the_address_handle_decides_traffic_class_hop_limit_and_flow_label)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.is_ipv6 = true;
	struct pair *p = pair_connect(&setup);
	struct vb_address address = { .destination = p->node[B].gid,
				      .flow_label = 0x12345,
				      .hop_limit = 3,
				      .traffic_class = 0x68 };

	EXPECT_EQ(vb_ah_create(p->node[A].pd, &address, &p->node[A].ahs[0]), VB_OK);
	post_datagram(p, A, 1, 8);
	expect_sent(p, A, "UD SEND_ONLY psn=0 len=8");
	EXPECT_EQ(p->held[0].flow.flow_label, 0x12345);
	EXPECT_EQ(p->held[0].flow.hop_limit, 3);
	EXPECT_EQ(p->held[0].flow.traffic_class, 0x68);
}

TEST(an_address_handle_with_an_empty_gid_entry_is_EINVAL)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_address address = { .destination = p->node[B].gid, .source_index = 5 };
	struct vb_ah *ah;

	EXPECT_EQ(vb_ah_create(p->node[A].pd, &address, &ah), VB_EINVAL);
}

TEST(an_address_handle_from_ipv4_to_ipv6_is_EINVAL)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_address address = { .destination = { { 0xfe, 0x80, [15] = 9 } } };
	struct vb_ah *ah;

	EXPECT_EQ(vb_ah_create(p->node[A].pd, &address, &ah), VB_EINVAL);
}

TEST(ud_a_datagram_whose_gid_entry_was_emptied_is_LOC_QP_OP_ERR)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid none = { { 0 } };

	post_datagram(p, A, 1, 8);
	EXPECT_EQ(vb_nic_set_gid(p->node[A].nic, 0, &none), VB_OK);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_QP_OP_ERR");
	expect_state(p, A, VB_STATE_SQE);
}

TEST(ud_an_error_waits_for_the_completion_of_what_was_sent_before_it)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_send_request bad = datagram_request(p, A, 2, 8);
	struct vb_sge sge = { 0x1234, 8, 0x777 };

	bad.sges = &sge;
	post_datagram(p, A, 1, 8);
	post(p, A, bad);
	post_datagram(p, A, 3, 8);
	expect_sent(p, A, "UD SEND_ONLY psn=0 len=8");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 LOC_PROT_ERR", "wr=3 WR_FLUSH_ERR");
}

TEST(ud_a_completion_does_not_come_before_the_link_has_read_the_packet)
{
	struct pair *p = pair_connect_ud(1024);
	static struct vb_slot slot;

	post_datagram(p, A, 1, 1000);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	expect_no_completion(p, A);
	EXPECT(vb_nic_has_work(p->node[A].nic));
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}
