/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: WRITE and WRITE_IMM. */
#include "support_pair.h"

#include <stdio.h>

TEST(rc_write_places_its_bytes_and_tells_the_target_nothing)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_write(p, A, 1, 2000);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=1024 va=0x2080000 dma=2000",
		    "WRITE_LAST psn=1 len=976 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_no_completion(p, B);
	expect_copied(p, A, LOCAL, B, TARGET, 2000);
	expect_untouched(p, B, TARGET - 16, 16);
	expect_untouched(p, B, TARGET + 2000, 16);
}

TEST(rc_write_of_one_packet_names_address_key_and_length)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 8);

	request.remote_address += 0x123;
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 va=0x2080123 dma=8 ack");
	deliver(p);
	expect_copied(p, A, LOCAL, B, TARGET + 0x123, 8);
}

TEST(rc_write_psns_wrap)
{
	struct setup setup = setup_of(VB_QP_RC, 256);
	setup.psn[A] = 0xffffff;
	struct pair *p = pair_connect(&setup);

	post_write(p, A, 1, 600);
	expect_sent(p, A, "WRITE_FIRST psn=16777215 len=256", "WRITE_MIDDLE psn=0 len=256",
		    "WRITE_LAST psn=1 len=88 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 600);
}

TEST(rc_write_of_zero_bytes_checks_no_key)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 0);

	request.rkey = 0x12345;
	request.remote_address = 0;
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=0 va=0x0 rkey=0x12345 dma=0 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(rc_write_gathers_from_all_its_sges)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sges[] = { sge_at(p, A, 500, 7), sge_at(p, A, 100, 1100) };
	struct vb_send_request request = write_request(p, A, 1, 0);

	request.sges = sges;
	request.sge_count = 2;
	post(p, A, request);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=1024 dma=1107", "WRITE_LAST psn=1 len=83 ack");
	deliver(p);
	expect_copied(p, A, 500, B, TARGET, 7);
	expect_copied(p, A, 100, B, TARGET + 7, 1100);
}

TEST(rc_write_imm_consumes_a_receive_reports_the_writes_length_and_leaves_the_receives_buffer_alone)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 9, 10);
	post_write_imm(p, A, 1, 1500, 0x2a);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=1024 dma=1500",
		    "WRITE_LAST_IMM psn=1 len=476 imm=0x2a ack");
	deliver(p);
	expect_completions(p, B, "wr=9 SUCCESS RECV_WRITE_IMM len=1500 imm=0x2a");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 1500);
	expect_untouched(p, B, recv_at(9), 4096);
}

TEST(rc_write_imm_of_zero_bytes_only_carries_the_immediate)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 9, 10);
	post_write_imm(p, A, 1, 0, 0x80000001);
	expect_sent(p, A, "WRITE_ONLY_IMM psn=0 len=0 dma=0 imm=0x80000001 ack");
	deliver(p);
	expect_completions(p, B, "wr=9 SUCCESS RECV_WRITE_IMM len=0 imm=0x80000001");
}

TEST(rc_write_imm_accepts_a_receive_whose_lkey_is_wrong_since_it_writes_nothing_there)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = { 0x1234, 100, 0x777 };

	EXPECT_EQ(try_post_recv_sges(p, B, 9, &sge, 1), VB_OK);
	post_write_imm(p, A, 1, 8, 5);
	settle(p);
	expect_completions(p, B, "wr=9 SUCCESS RECV_WRITE_IMM len=8 imm=0x5");
}

TEST(rc_write_imm_without_a_receive_is_rnr_at_the_packet_with_the_immediate)
{
	struct pair *p = pair_connect_rc(1024);

	post_write_imm(p, A, 1, 1500, 0x2a);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=1024",
		    "WRITE_LAST_IMM psn=1 len=476 imm=0x2a ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	post_recv(p, B, 9, 10);
	EXPECT(wait_until_work(p, A) >= 640000);
	expect_sent(p, A, "WRITE_LAST_IMM psn=1 len=476 imm=0x2a ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_completions(p, B, "wr=9 SUCCESS RECV_WRITE_IMM len=1500 imm=0x2a");
	expect_copied(p, A, LOCAL, B, TARGET, 1500);
}

TEST(rc_write_is_checked_against_its_whole_length_at_the_first_packet)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 3000);

	request.remote_address = IOVA_B + MEMORY_LENGTH - 2999;
	post(p, A, request);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=1024 dma=3000", "WRITE_MIDDLE psn=1 len=1024",
		    "WRITE_LAST psn=2 len=952 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_untouched(p, B, MEMORY_LENGTH - 2999, 2999);
}

TEST(rc_write_whose_packets_are_shorter_than_announced_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_FIRST psn=0 len=1024 dma=2000");
	inject(p, B, "WRITE_LAST psn=1 len=900 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
	expect_state(p, B, VB_STATE_ERR);
}

TEST(rc_write_whose_packets_are_longer_than_announced_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_FIRST psn=0 len=1024 dma=1500");
	inject(p, B, "WRITE_LAST psn=1 len=480 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
	expect_untouched(p, B, TARGET + 1024, 480);
}

TEST(rc_write_only_whose_length_differs_from_what_it_announces_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 dma=16 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_untouched(p, B, TARGET, 16);
}

TEST(rc_writes_of_one_qp_are_placed_in_order)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge second = sge_at(p, A, 0x1000, 100);
	struct vb_send_request request = write_request(p, A, 2, 100);

	request.sges = &second;
	post_write(p, A, 1, 100);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_copied(p, A, 0x1000, B, TARGET, 100);
}

TEST(rc_write_may_be_inline)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = { (uintptr_t) "inline", 7, 0 };
	struct vb_send_request request = write_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	post(p, A, request);
	settle(p);
	EXPECT_MEM(p->node[B].memory + TARGET, "inline", 7);
}

/* An implicit region of B allows any length: only the limit of the transport remains. */
static uint32_t key_of_all_memory(struct pair *p)
{
	struct vb_mr_init init = { .length = UINT64_MAX,
				   .access = RIGHTS_ALL | VB_ACCESS_ON_DEMAND };

	return vb_mr_key(make_mr(p, B, &init));
}

TEST(rc_a_write_may_announce_2_to_the_31_bytes_and_not_one_more)
{
	struct pair *p = pair_connect_rc(256);
	char line[120];

	snprintf(line, sizeof(line),
		 "WRITE_FIRST psn=0 len=256 va=0x%llx rkey=0x%x dma=0x80000000 ack",
		 (unsigned long long)(uintptr_t)p->node[B].memory + TARGET, key_of_all_memory(p));
	inject(p, B, line);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0");
	expect_injected(p, B, TARGET, 256);
}

TEST(rc_a_write_that_announces_more_than_2_to_the_31_bytes_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(256);
	char line[120];

	snprintf(line, sizeof(line),
		 "WRITE_FIRST psn=0 len=256 va=0x%llx rkey=0x%x dma=0x80000001 ack",
		 (unsigned long long)(uintptr_t)p->node[B].memory + TARGET, key_of_all_memory(p));
	inject(p, B, line);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_untouched(p, B, TARGET, 256);
}

TEST(rc_a_read_may_ask_for_2_to_the_31_bytes)
{
	struct pair *p = pair_connect_rc(256);
	static struct vb_slot slot;
	char line[120];

	snprintf(line, sizeof(line), "READ_REQUEST psn=0 va=0x%llx rkey=0x%x dma=0x80000000",
		 (unsigned long long)(uintptr_t)p->node[B].memory + TARGET, key_of_all_memory(p));
	inject(p, B, line);
	EXPECT_EQ(vb_nic_transmit(p->node[B].nic, p->now_ns, &slot, 1), 1);
	EXPECT_EQ(vb_bth_load(slot.head).opcode, VB_OP_READ_RESPONSE_FIRST);
}
