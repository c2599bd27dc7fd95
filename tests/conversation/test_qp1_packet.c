/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1: a management datagram goes out as a UD packet that the other side parses, and nothing else
 * is accepted as one.
 */
#include "support_pair.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "nic/qp1_packet.h"
#include "wire/icrc.h"

#include <string.h>

static struct vb_slot slot;

static struct vb_flow flow_to_b(const struct pair *p)
{
	return (struct vb_flow){ .source = p->node[A].gid,
				 .destination = p->node[B].gid,
				 .hop_limit = 64 };
}

static void fill(uint8_t bytes[VB_MAD_SIZE])
{
	for (uint32_t i = 0; i < VB_MAD_SIZE; i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
}

/* Builds A's datagram of these bytes in `slot`. */
static void build(struct pair *p)
{
	struct vb_flow flow = flow_to_b(p);
	uint8_t bytes[VB_MAD_SIZE];

	fill(bytes);
	vb_nic_build_mad(p->node[A].nic, &flow, VB_MAD_QPN, bytes, &slot);
}

static struct vb_frame frame(void)
{
	return (struct vb_frame){ .path.ip = slot.path.ip,
				  .ip_id = slot.ip_id,
				  .head = { slot.head, slot.head_length } };
}

static bool receive(struct pair *p, uint8_t bytes[VB_MAD_SIZE])
{
	struct vb_frame received = frame();
	vb_qpn source = { 0 };
	bool is_received = vb_nic_receive_mad(p->node[B].nic, &received, bytes, &source);

	if (is_received)
		EXPECT_EQ(source.v, 1);
	return is_received;
}

static void expect_transport(struct setup setup)
{
	struct pair *p = pair_connect(&setup);
	uint8_t bytes[VB_MAD_SIZE], expected[VB_MAD_SIZE];
	struct vb_packet packet;
	struct vb_frame sent;

	build(p);
	sent = frame();
	EXPECT(vb_nic_is_for_qp1(&sent));
	EXPECT_EQ(slot.length, slot.head_length);
	EXPECT_EQ(vb_packet_parse(slot.head, slot.head_length, slot.length, &packet), VB_PARSED);
	EXPECT_EQ(packet.bth.pkey, VB_PKEY_DEFAULT);
	EXPECT_EQ(packet.deth.qkey, VB_MAD_QKEY);
	EXPECT_EQ(packet.payload_length, VB_MAD_SIZE);
	EXPECT(receive(p, bytes));
	fill(expected);
	EXPECT_MEM(bytes, expected, sizeof(bytes));
}

TEST(a_datagram_arrives_as_it_was_sent_over_ipv4)
{
	expect_transport(setup_of(VB_QP_UD, 1024));
}

TEST(a_datagram_arrives_as_it_was_sent_over_ipv6)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);

	setup.is_ipv6 = true;
	expect_transport(setup);
}

TEST(each_datagram_is_a_message_of_its_own_with_the_next_psn)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	struct pair *p;
	uint32_t psn;

	setup.batch_segments_max = 64;
	p = pair_connect(&setup);
	build(p);
	psn = vb_bth_load(slot.head).psn.v;
	for (uint32_t i = 1; i < 3; i++) {
		uint8_t bytes[VB_MAD_SIZE];

		build(p);
		EXPECT(!slot.continues);
		EXPECT_EQ(slot.ip_id, 0);
		EXPECT_EQ(vb_bth_load(slot.head).psn.v, psn + i);
		EXPECT(receive(p, bytes));
	}
}

/* --- what is refused -------------------------------------------------------------------------- */

static void sign(void)
{
	uint32_t length = slot.head_length;
	uint32_t crc = vb_icrc_begin(&slot.path.ip, length, slot.ip_id, slot.head);

	vb_icrc_store(slot.head + length - VB_ICRC_SIZE,
		      vb_crc32(crc, slot.head + VB_BTH_SIZE, length - VB_ICRC_SIZE - VB_BTH_SIZE));
}

static void expect_refused(struct pair *p, enum vb_drop reason)
{
	uint8_t bytes[VB_MAD_SIZE];

	EXPECT(!receive(p, bytes));
	EXPECT_EQ(vb_nic_counters(p->node[B].nic)->drops[reason], 1);
}

static void expect_count(struct pair *p, enum vb_counter counter)
{
	EXPECT_EQ(vb_nic_counters(p->node[B].nic)->counts[counter], 1);
}

TEST(a_datagram_with_another_qkey_is_refused)
{
	struct pair *p = pair_connect_ud(1024);

	build(p);
	store32(slot.head + VB_BTH_SIZE, VB_MAD_QKEY + 1);
	sign();
	expect_refused(p, VB_DROP_QKEY);
	expect_count(p, VB_COUNTER_QKEY_VIOLATIONS);
}

TEST(a_datagram_with_another_pkey_is_refused)
{
	struct pair *p = pair_connect_ud(1024);

	build(p);
	store16(slot.head + 2, 0x8001);
	sign();
	expect_refused(p, VB_DROP_PKEY);
	expect_count(p, VB_COUNTER_PKEY_VIOLATIONS);
}

TEST(a_datagram_of_another_length_is_refused)
{
	struct pair *p = pair_connect_ud(1024);

	build(p);
	slot.head_length = (uint16_t)(slot.head_length - 4);
	sign();
	expect_refused(p, VB_DROP_LENGTH);
}

TEST(a_packet_of_another_service_is_refused)
{
	struct pair *p = pair_connect_ud(1024);

	build(p);
	slot.head[0] = VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_ONLY);
	sign();
	expect_refused(p, VB_DROP_QP_TYPE);
}

TEST(a_datagram_with_a_wrong_icrc_is_refused)
{
	struct pair *p = pair_connect_ud(1024);

	build(p);
	slot.head[100] ^= 1;
	expect_refused(p, VB_DROP_ICRC);
}
