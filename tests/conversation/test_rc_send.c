/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: SEND in all its forms, from the post to the completion on both sides. */
#include "support_pair.h"

#include <string.h>

TEST(rc_send_completes_at_the_receiver_when_it_arrives_and_at_the_sender_when_acknowledged)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 7, 100);
	post_send(p, A, 1, 100);
	expect_sent(p, A, "SEND_ONLY psn=0 len=100 ack");
	expect_no_completion(p, A);
	deliver(p);
	expect_completions(p, B, "wr=7 SUCCESS RECV len=100");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	expect_no_completion(p, A);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_copied(p, A, LOCAL, B, recv_at(7), 100);
	expect_untouched(p, B, recv_at(7) + 100, 100);
}

TEST(rc_send_is_cut_into_packets_of_the_path_mtu)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 2500);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_MIDDLE psn=1 len=1024",
		    "SEND_LAST psn=2 len=452 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=2 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=2500");
	expect_copied(p, A, LOCAL, B, recv_at(1), 2500);
}

TEST(rc_send_of_exactly_one_mtu_is_a_single_packet)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 1024);
	expect_sent(p, A, "SEND_ONLY psn=0 len=1024 ack");
}

TEST(rc_send_of_two_mtus_is_first_and_last_without_an_empty_rest)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 512);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_LAST psn=1 len=256 ack");
}

TEST(rc_send_at_the_largest_path_mtu)
{
	struct pair *p = pair_connect_rc(4096);

	post_recv(p, B, 1, 8192);
	post_send(p, A, 1, 5000);
	expect_sent(p, A, "SEND_FIRST psn=0 len=4096", "SEND_LAST psn=1 len=904 ack");
	deliver(p);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=5000");
	expect_copied(p, A, LOCAL, B, recv_at(1), 5000);
}

TEST(rc_send_over_ipv6_works_the_same_way)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.is_ipv6 = true;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 1500);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_LAST psn=1 len=476 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=1500");
}

TEST(rc_send_of_zero_bytes_consumes_a_receive)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sge_count = 0;
	post_recv(p, B, 3, 100);
	post(p, A, request);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack");
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=3 SUCCESS RECV len=0");
	expect_untouched(p, B, recv_at(3), 100);
}

TEST(rc_an_sge_of_length_0_means_0_bytes)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 3, 100);
	post_send(p, A, 1, 0);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack");
}

TEST(rc_a_receive_without_buffers_takes_a_send_of_zero_bytes)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(try_post_recv_sges(p, B, 3, NULL, 0), VB_OK);
	post_send(p, A, 1, 0);
	settle(p);
	expect_completions(p, B, "wr=3 SUCCESS RECV len=0");
}

TEST(rc_send_imm_carries_its_immediate_in_the_last_packet)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = send_request(p, A, 1, 1500);

	request.opcode = VB_WR_SEND_IMM;
	request.imm = 0x12345678;
	post_recv(p, B, 2, 4096);
	post(p, A, request);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024",
		    "SEND_LAST_IMM psn=1 len=476 imm=0x12345678 ack");
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=2 SUCCESS RECV len=1500 imm=0x12345678");
}

TEST(rc_send_gathers_from_all_its_sges_in_order)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_sge sges[] = { sge_at(p, A, 3000, 100), sge_at(p, A, 0, 0), sge_at(p, A, 0, 301),
				 sge_at(p, A, 7777, 1) };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = sges;
	request.sge_count = 4;
	post_recv(p, B, 1, 4096);
	post(p, A, request);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_LAST psn=1 len=146 ack");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=402");
	expect_copied(p, A, 3000, B, recv_at(1), 100);
	expect_copied(p, A, 0, B, recv_at(1) + 100, 301);
	expect_copied(p, A, 7777, B, recv_at(1) + 401, 1);
}

TEST(rc_receive_scatters_into_all_its_sges_in_order)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_sge sges[] = { sge_at(p, B, RECV, 300), sge_at(p, B, RECV + 0x1000, 1),
				 sge_at(p, B, RECV + 0x2000, 500) };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, sges, 3), VB_OK);
	post_send(p, A, 1, 600);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=600");
	expect_copied(p, A, LOCAL, B, RECV, 300);
	expect_untouched(p, B, RECV + 300, 100);
	expect_copied(p, A, LOCAL + 300, B, RECV + 0x1000, 1);
	expect_untouched(p, B, RECV + 0x1001, 100);
	expect_copied(p, A, LOCAL + 301, B, RECV + 0x2000, 299);
	expect_untouched(p, B, RECV + 0x2000 + 299, 100);
}

TEST(rc_inline_data_is_taken_when_posted_and_needs_no_key)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[20] = "the first contents.";
	struct vb_sge sge = { (uintptr_t)bytes, sizeof(bytes), 0 };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	post_recv(p, B, 1, 100);
	post(p, A, request);
	memset(bytes, 0, sizeof(bytes));
	expect_sent(p, A, "SEND_ONLY psn=0 len=20 ack");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=20");
	EXPECT_MEM(p->node[B].memory + recv_at(1), "the first contents.", 20);
}

TEST(rc_inline_data_is_still_there_for_a_repetition)
{
	struct pair *p = pair_connect_rc(1024);
	uint8_t bytes[20] = "the first contents.";
	struct vb_sge sge = { (uintptr_t)bytes, sizeof(bytes), 0 };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	post_recv(p, B, 1, 100);
	post(p, A, request);
	memset(bytes, 0, sizeof(bytes));
	expect_sent(p, A, "SEND_ONLY psn=0 len=20 ack");
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_ONLY psn=0 len=20 ack");
	deliver(p);
	EXPECT_MEM(p->node[B].memory + recv_at(1), "the first contents.", 20);
}

TEST(rc_the_solicited_bit_is_set_in_the_last_packet_only)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_send_request request = send_request(p, A, 1, 300);

	request.flags |= VB_SEND_SOLICITED;
	post_recv(p, B, 1, 4096);
	post(p, A, request);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_LAST psn=1 len=44 ack solicited");
}

TEST(rc_send_psns_wrap_from_0xffffff_to_0)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.psn[A] = 0xfffffe;
	struct pair *p = pair_connect(&setup);

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	post_send(p, A, 1, 700);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "SEND_FIRST psn=16777214 len=256", "SEND_MIDDLE psn=16777215 len=256",
		    "SEND_LAST psn=0 len=188 ack", "SEND_ONLY psn=1 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=700", "wr=2 SUCCESS RECV len=10");
}

TEST(rc_sends_use_receives_in_the_order_in_which_they_were_posted)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 5, 100);
	post_recv(p, B, 3, 100);
	post_send(p, A, 1, 10);
	post_send(p, A, 2, 20);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS SEND");
	expect_completions(p, B, "wr=5 SUCCESS RECV len=10", "wr=3 SUCCESS RECV len=20");
}

TEST(rc_both_directions_are_independent)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, A, 11, 100);
	post_recv(p, B, 12, 100);
	post_send(p, A, 1, 10);
	post_send(p, B, 2, 20);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	expect_sent(p, B, "SEND_ONLY psn=5000 len=20 ack");
	deliver(p);
	expect_sent(p, A, "ACKNOWLEDGE psn=5000 msn=1");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=11 SUCCESS RECV len=20");
	expect_completions(p, B, "wr=2 SUCCESS SEND", "wr=12 SUCCESS RECV len=10");
}

TEST(rc_a_send_longer_than_its_receive_is_LOC_LEN_ERR_and_REM_INV_REQ_ERR_and_both_qps_in_error)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 99);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 100);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=100 ack", "SEND_ONLY psn=1 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_completions(p, B, "wr=1 LOC_LEN_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, B, VB_STATE_ERR);
	expect_untouched(p, B, recv_at(1) + 99, 10);
	deliver(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_counter(p, B, RESP_LOCAL_LENGTH_ERROR, 1);
}

TEST(rc_a_send_of_several_packets_that_outgrows_its_receive_fails_at_the_packet_that_does_not_fit)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 511);
	post_send(p, A, 1, 600);
	expect_sent(p, A, "SEND_FIRST psn=0 len=256", "SEND_MIDDLE psn=1 len=256",
		    "SEND_LAST psn=2 len=88 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
	expect_completions(p, B, "wr=1 LOC_LEN_ERR");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
}

TEST(rc_a_receive_whose_lkey_is_wrong_is_LOC_PROT_ERR_and_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = sge_at(p, B, RECV, 100);

	sge.lkey ^= 0x5500;
	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	post_send(p, A, 1, 100);
	expect_sent(p, A, "SEND_ONLY psn=0 len=100 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote operation");
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
	expect_state(p, B, VB_STATE_ERR);
	expect_untouched(p, B, RECV, 100);
	deliver(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

TEST(rc_a_receive_into_a_region_without_local_write_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, RECV, 4096, 0);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_sge sge = { p->node[B].iova + RECV, 100, vb_mr_key(mr) };

	EXPECT_EQ(try_post_recv_sges(p, B, 1, &sge, 1), VB_OK);
	post_send(p, A, 1, 100);
	settle(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR");
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, B, RECV, 100);
}

TEST(rc_a_send_from_a_region_of_another_pd_is_LOC_PROT_ERR_and_nothing_is_sent)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, 4096, VB_ACCESS_LOCAL_WRITE);
	struct vb_mr *mr = make_mr_in(p, A, p->node[A].other_pd, &init);
	struct vb_sge sge = { p->node[A].iova, 100, vb_mr_key(mr) };
	struct vb_send_request request = send_request(p, A, 1, 100);

	request.sges = &sge;
	post(p, A, request);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

TEST(rc_a_send_reaching_beyond_its_region_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = sge_at(p, A, MEMORY_LENGTH - 99, 100);
	struct vb_send_request request = send_request(p, A, 1, 100);

	request.sges = &sge;
	post(p, A, request);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
}

TEST(rc_sending_needs_no_right_to_write)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, 4096, 0);
	struct vb_mr *mr = make_mr(p, A, &init);
	struct vb_sge sge = { p->node[A].iova, 100, vb_mr_key(mr) };
	struct vb_send_request request = send_request(p, A, 1, 100);

	request.sges = &sge;
	post_recv(p, B, 1, 100);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(rc_lengths_that_are_no_multiple_of_4_are_padded_on_the_wire_and_arrive_exact)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 64);
	post_recv(p, B, 2, 64);
	post_recv(p, B, 3, 64);
	post_send(p, A, 1, 1);
	post_send(p, A, 2, 2);
	post_send(p, A, 3, 3);
	expect_sent(p, A, "SEND_ONLY psn=0 len=1 ack", "SEND_ONLY psn=1 len=2 ack",
		    "SEND_ONLY psn=2 len=3 ack");
	EXPECT_EQ(p->held[0].length, 12 + 4 + 4);
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=1", "wr=2 SUCCESS RECV len=2",
			   "wr=3 SUCCESS RECV len=3");
	expect_copied(p, A, LOCAL, B, recv_at(3), 3);
	expect_untouched(p, B, recv_at(3) + 3, 8);
}

/* 2^31 bytes of a null region's zeros, written into a null region. */
TEST(rc_a_message_may_have_2_to_the_31_bytes)
{
	struct pair *p = pair_connect_rc(4096);
	struct vb_mr *zeros[2];

	EXPECT_EQ(vb_mr_create_null(p->node[A].pd, &zeros[A]), VB_OK);
	EXPECT_EQ(vb_mr_create_null(p->node[B].pd, &zeros[B]), VB_OK);
	struct vb_sge from = { 0, 0x80000000u, vb_mr_key(zeros[A]) };
	struct vb_sge to = { 0, 0x80000000u, vb_mr_key(zeros[B]) };
	struct vb_send_request request = send_request(p, A, 1, 0);

	request.sges = &from;
	EXPECT_EQ(try_post_recv_sges(p, B, 1, &to, 1), VB_OK);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=2147483648");
	EXPECT_EQ(vb_mr_destroy(zeros[A]), VB_OK);
	EXPECT_EQ(vb_mr_destroy(zeros[B]), VB_OK);
}

static void expect_to_arrive_at_mtu(uint32_t mtu)
{
	struct pair *p = pair_connect_rc(mtu);

	post_recv(p, B, 1, 0x8000);
	post_send(p, A, 1, 0x8000 - 3);
	post_write(p, A, 2, 0x8000 - 2);
	post_read(p, A, 3, 0x8000 - 1);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE",
			   "wr=3 SUCCESS READ len=32767");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=32765");
	expect_copied(p, A, LOCAL, B, recv_at(1), 0x8000 - 3);
	expect_copied(p, A, LOCAL, B, TARGET, 0x8000 - 2);
	expect_copied(p, A, LOCAL, A, SINK, 0x8000 - 2);
}

TEST(rc_everything_arrives_at_path_mtu_256)
{
	expect_to_arrive_at_mtu(256);
}

TEST(rc_everything_arrives_at_path_mtu_512)
{
	expect_to_arrive_at_mtu(512);
}

TEST(rc_everything_arrives_at_path_mtu_2048)
{
	expect_to_arrive_at_mtu(2048);
}

TEST(rc_everything_arrives_at_path_mtu_4096)
{
	expect_to_arrive_at_mtu(4096);
}
