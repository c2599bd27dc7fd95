/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of the engine itself, as an independent program reads them. Two adapters hold a
 * conversation in the words of vb_packet_describe(), which states every packet that must come. Each
 * packet goes into a capture; tshark must read in it what the words say and find nothing malformed,
 * and the ICRC must be right.
 */
#include "conversation/support_pair.h"
#include "golden/support_golden.h"

static struct golden *golden;

/* Everything in flight goes into the capture, and is then delivered. */
static void capture_and_deliver(struct pair *p)
{
	for (uint32_t i = 0; i < p->held_count; i++) {
		const struct held *held = &p->held[i];
		struct vb_packet packet;

		EXPECT_EQ(vb_packet_parse(held->bytes, held->length, held->length, &packet),
			  VB_PARSED);
		golden_add(golden, &held->flow, held->ip_id, &packet, held->bytes, held->length);
	}
	deliver(p);
}

#define expect_captured(p, side, ...)              \
	do {                                       \
		expect_sent(p, side, __VA_ARGS__); \
		capture_and_deliver(p);            \
	} while (0)

static void expect_tshark_agrees(void)
{
	const char *disagreement = golden_disagreement(golden);

	if (disagreement)
		FAIL("%s", disagreement);
	golden_destroy(golden);
}

static void begin(void)
{
	if (!golden_has_tshark())
		SKIP("tshark is not installed");
	golden = golden_create();
}

static struct setup setup_with_ipv6(enum vb_qp_type type, bool is_ipv6)
{
	struct setup setup = setup_of(type, 256);

	setup.is_ipv6 = is_ipv6;
	return setup;
}

static void talk_rc(bool is_ipv6)
{
	struct setup setup = setup_with_ipv6(VB_QP_RC, is_ipv6);
	struct pair *p;
	struct vb_mw *mw;
	struct vb_send_request request;

	begin();
	p = pair_connect(&setup);
	post_recv(p, B, 1, 700);
	post_send(p, A, 1, 600);
	expect_captured(p, A, "SEND_FIRST psn=0 len=256", "SEND_MIDDLE psn=1 len=256",
			"SEND_LAST psn=2 len=88 ack");
	expect_captured(p, B, "ACKNOWLEDGE psn=2 msn=1 credits=0");

	request = send_request(p, A, 2, 7);
	request.opcode = VB_WR_SEND_IMM;
	request.imm = 0x12345678;
	request.flags |= VB_SEND_SOLICITED;
	post(p, A, request);
	expect_silence(p, A);
	wait_until_work(p, A); /* the peer announces no receive, so A asks */
	expect_captured(p, A, "SEND_ONLY_IMM psn=3 len=7 imm=0x12345678 ack solicited");
	expect_captured(p, B, "ACKNOWLEDGE psn=3 msn=1 RNR_NAK 0.64 ms");
	post_recv(p, B, 2, 100);
	wait_until_work(p, A);
	expect_captured(p, A, "SEND_ONLY_IMM psn=3 len=7 imm=0x12345678 ack solicited");
	expect_captured(p, B, "ACKNOWLEDGE psn=3 msn=2 credits=0");

	post_write(p, A, 3, 300);
	expect_captured(p, A, "WRITE_FIRST psn=4 len=256 dma=300", "WRITE_LAST psn=5 len=44 ack");
	expect_captured(p, B, "ACKNOWLEDGE psn=5 msn=3 credits=0");
	post_recv(p, B, 3, 0);
	/* the same again: A waits for it */
	expect_captured(p, B, "ACKNOWLEDGE psn=5 msn=3 credits=1");
	post_write_imm(p, A, 4, 513, 99);
	expect_captured(p, A, "WRITE_FIRST psn=6 len=256 dma=513", "WRITE_MIDDLE psn=7 len=256",
			"WRITE_LAST_IMM psn=8 len=1 imm=0x63 ack");
	expect_captured(p, B, "ACKNOWLEDGE psn=8 msn=4 credits=0");
	post_write(p, A, 5, 0);
	expect_captured(p, A, "WRITE_ONLY psn=9 len=0 dma=0 ack");
	expect_captured(p, B, "ACKNOWLEDGE psn=9 msn=5 credits=0");

	post_read(p, A, 6, 600);
	expect_captured(p, A, "READ_REQUEST psn=10 dma=600");
	expect_captured(p, B, "READ_RESPONSE_FIRST psn=10 len=256 msn=6",
			"READ_RESPONSE_MIDDLE psn=11 len=256",
			"READ_RESPONSE_LAST psn=12 len=88 msn=6");
	post_read(p, A, 7, 5);
	expect_captured(p, A, "READ_REQUEST psn=13 dma=5");
	expect_captured(p, B, "READ_RESPONSE_ONLY psn=13 len=5 msn=7");
	set_word(p, B, TARGET, 41);
	post_fetch_add(p, A, 8, 1);
	expect_captured(p, A, "FETCH_ADD psn=14 add=0x1");
	expect_captured(p, B, "ATOMIC_ACKNOWLEDGE psn=14 msn=8 orig=0x29");
	post_compare_swap(p, A, 9, 42, 7);
	expect_captured(p, A, "COMPARE_SWAP psn=15 swap=0x7 compare=0x2a");
	expect_captured(p, B, "ATOMIC_ACKNOWLEDGE psn=15 msn=9 orig=0x2a");
	post(p, A, atomic_write_request(p, A, 10));
	expect_captured(p, A, "ATOMIC_WRITE psn=16 len=8 dma=8");
	expect_captured(p, B, "READ_RESPONSE_ONLY psn=16 len=0 msn=10");

	mw = make_mw(p, B, VB_MW_TYPE_2);
	post(p, B, bind_request(p, B, 11, mw, TARGET, 64, VB_ACCESS_REMOTE_WRITE));
	expect_silence(p, B);
	post_recv(p, B, 12, 100);
	expect_captured(p, B, "ACKNOWLEDGE psn=9 msn=10 credits=1");
	request = send_request(p, A, 12, 3);
	request.opcode = VB_WR_SEND_INV;
	request.imm = vb_mw_key(mw);
	post(p, A, request);
	send_all(p, A);
	capture_and_deliver(p);
	expect_captured(p, B, "ACKNOWLEDGE psn=17 msn=11 credits=0");

	inject(p, B, "WRITE_ONLY psn=20 len=4 ack");
	expect_captured(p, B, "ACKNOWLEDGE psn=18 msn=11 NAK sequence");
	request = write_request(p, A, 13, 4);
	request.rkey ^= 0x5a00;
	post(p, A, request);
	expect_captured(p, A, "WRITE_ONLY psn=18 len=4 ack");
	expect_captured(p, B, "ACKNOWLEDGE psn=18 msn=11 NAK remote access");
	expect_tshark_agrees();
}

TEST(what_rc_emits_over_ipv4_is_what_tshark_reads)
{
	talk_rc(false);
}

TEST(what_rc_emits_over_ipv6_is_what_tshark_reads)
{
	talk_rc(true);
}

static void talk_uc(bool is_ipv6)
{
	struct setup setup = setup_with_ipv6(VB_QP_UC, is_ipv6);
	struct pair *p;

	begin();
	p = pair_connect(&setup);
	post_recv(p, B, 1, 700);
	post_send(p, A, 1, 600);
	post_write(p, A, 2, 257);
	expect_captured(p, A, "UC SEND_FIRST psn=0 len=256", "UC SEND_MIDDLE psn=1 len=256",
			"UC SEND_LAST psn=2 len=88", "UC WRITE_FIRST psn=3 len=256 dma=257",
			"UC WRITE_LAST psn=4 len=1");
	expect_tshark_agrees();
}

TEST(what_uc_emits_over_ipv4_is_what_tshark_reads)
{
	talk_uc(false);
}

TEST(what_uc_emits_over_ipv6_is_what_tshark_reads)
{
	talk_uc(true);
}

static void talk_ud(bool is_ipv6)
{
	struct setup setup = setup_with_ipv6(VB_QP_UD, is_ipv6);
	struct vb_send_request request;
	struct pair *p;

	begin();
	p = pair_connect(&setup);
	post_recv(p, B, 1, 700);
	post_recv(p, B, 2, 700);
	post_datagram(p, A, 1, 33);
	request = datagram_request(p, A, 2, 0);
	request.opcode = VB_WR_SEND_IMM;
	request.imm = 5;
	post(p, A, request);
	expect_captured(p, A, "UD SEND_ONLY psn=0 len=33 qkey=0x11111111",
			"UD SEND_ONLY_IMM psn=1 len=0 qkey=0x11111111 imm=0x5");
	expect_tshark_agrees();
}

TEST(what_ud_emits_over_ipv4_is_what_tshark_reads)
{
	talk_ud(false);
}

TEST(what_ud_emits_over_ipv6_is_what_tshark_reads)
{
	talk_ud(true);
}

TEST(what_xrc_emits_is_what_tshark_reads)
{
	struct setup setup = setup_with_ipv6(VB_QP_XRC_SEND, false);
	struct pair *p;

	begin();
	p = pair_connect(&setup);
	post_recv(p, B, 1, 700);
	post_send(p, A, 1, 300);
	post_read(p, A, 2, 10);
	post_fetch_add(p, A, 3, 9);
	expect_captured(p, A, "XRC SEND_FIRST psn=0 len=256", "XRC SEND_LAST psn=1 len=44 ack",
			"XRC READ_REQUEST psn=2 dma=10", "XRC FETCH_ADD psn=3 add=0x9");
	send_all(p, B);
	capture_and_deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS READ len=10",
			   "wr=3 SUCCESS FETCH_ADD len=8");
	expect_tshark_agrees();
}
