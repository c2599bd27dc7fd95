/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Golden packets: every opcode and every syndrome that the wire layer stores, over IPv4 and IPv6,
 * with all kinds of padding, as tshark reads them. The last tests lie, to show that a lie is found.
 */
#include "base/bytes.h"
#include "base/crc.h"
#include "base/prng.h"
#include "harness.h"
#include "support_golden.h"
#include "wire/icrc.h"
#include "wire/syndrome.h"

#include <string.h>

#define PAYLOAD_MAX 4096
#define PACKET_MAX (VB_PACKET_HEADERS_MAX + PAYLOAD_MAX + 4 + VB_ICRC_SIZE)

static struct vb_flow flow_over(bool is_ipv4)
{
	struct vb_flow flow = {
		.source = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 0x01 } },
		.destination = { { 0xfe, 0x80, [8] = 0x12, 0x34, [15] = 0x02 } },
		.flow_label = 0x54321,
		.source_port = 0xc0de,
		.traffic_class = 0x6a,
		.hop_limit = 63,
	};

	if (is_ipv4) {
		flow.source = vb_gid_from_ipv4(0xc0a80101);
		flow.destination = vb_gid_from_ipv4(0xc0a801fe);
	}
	return flow;
}

static struct vb_packet random_packet(struct vb_prng *prng, uint8_t opcode)
{
	uint32_t traits = vb_opcode_traits(opcode);
	struct vb_packet packet = {
		.bth = {
			.opcode = opcode,
			.solicited = vb_prng_below(prng, 2),
			.migrated = vb_prng_below(prng, 2),
			.pkey = (uint16_t)vb_prng_next(prng),
			.fecn = vb_prng_below(prng, 2),
			.becn = vb_prng_below(prng, 2),
			.destination = { 2 + (uint32_t)vb_prng_below(prng, (1 << 24) - 3) },
			.ack_request = vb_prng_below(prng, 2),
			.psn = { (uint32_t)vb_prng_below(prng, 1 << 24) },
		},
		.imm = (uint32_t)vb_prng_next(prng),
		.invalidate_key = (uint32_t)vb_prng_next(prng),
		.srqn = (uint32_t)vb_prng_below(prng, 1 << 24),
	};

	if (traits & VB_HAS_RETH)
		packet.reth = (struct vb_reth){ vb_prng_next(prng), (uint32_t)vb_prng_next(prng),
						(uint32_t)vb_prng_next(prng) };
	if (traits & VB_HAS_ATOMICETH)
		packet.atomic = (struct vb_atomiceth){ vb_prng_next(prng),
						       (uint32_t)vb_prng_next(prng),
						       vb_prng_next(prng), vb_prng_next(prng) };
	if (traits & VB_HAS_DETH)
		packet.deth = (struct vb_deth){ (uint32_t)vb_prng_next(prng),
						{ 2 + (uint32_t)vb_prng_below(prng, 1 << 20) } };
	if (traits & VB_HAS_AETH) {
		packet.aeth = (struct vb_aeth){ (uint8_t)vb_prng_below(prng, 32),
						(uint32_t)vb_prng_below(prng, 1 << 24) };
		packet.atomic_result = vb_prng_next(prng);
	}
	return packet;
}

/* Makes the bytes from the BTH to the ICRC; returns their number. */
static uint32_t build(uint8_t *bytes, struct vb_packet *packet, const struct vb_flow *flow,
		      uint16_t ip_id, uint32_t payload_length)
{
	uint32_t length;
	uint32_t crc;

	packet->payload_length = payload_length;
	packet->bth.pad = -payload_length & 3;
	length = vb_packet_store_headers(bytes, packet);
	for (uint32_t i = 0; i < payload_length; i++)
		bytes[length++] = (uint8_t)(0x80 + i);
	memset(bytes + length, 0, packet->bth.pad);
	length += packet->bth.pad;
	crc = vb_icrc_begin(flow, length + VB_ICRC_SIZE, ip_id, bytes);
	crc = vb_crc32(crc, bytes + VB_BTH_SIZE, length - VB_BTH_SIZE);
	vb_icrc_store(bytes + length, crc);
	return length + VB_ICRC_SIZE;
}

static void add(struct golden *golden, struct vb_packet packet, bool is_ipv4,
		uint32_t payload_length)
{
	struct vb_flow flow = flow_over(is_ipv4);
	uint16_t ip_id = is_ipv4 ? (uint16_t)(packet.bth.psn.v >> 3) : 0;
	uint8_t bytes[PACKET_MAX];
	uint32_t length = build(bytes, &packet, &flow, ip_id, payload_length);

	golden_add(golden, &flow, ip_id, &packet, bytes, length);
}

static void expect_agreement(struct golden *golden)
{
	const char *disagreement = golden_disagreement(golden);

	if (disagreement)
		FAIL("%s", disagreement);
	golden_destroy(golden);
}

static void add_opcode(struct golden *golden, struct vb_prng *prng, uint8_t opcode, bool is_ipv4)
{
	static const uint32_t payload_lengths[] = { 16, 1, 2, 3, 4, 5, 255, 1024, 4096 };

	if (opcode == VB_OPCODE_CNP || !(vb_opcode_traits(opcode) & VB_HAS_PAYLOAD)) {
		add(golden, random_packet(prng, opcode), is_ipv4, opcode == VB_OPCODE_CNP ? 16 : 0);
		return;
	}
	add(golden, random_packet(prng, opcode), is_ipv4, 0);
	for (uint32_t i = 0; i < sizeof(payload_lengths) / sizeof(payload_lengths[0]); i++)
		add(golden, random_packet(prng, opcode), is_ipv4, payload_lengths[i]);
}

TEST(tshark_reads_every_opcode_as_it_was_meant)
{
	struct golden *golden;
	struct vb_prng prng;

	if (!golden_has_tshark())
		SKIP("tshark is not installed");
	vb_prng_init(&prng, 1);
	golden = golden_create();
	for (int i = 0; i < 512; i++)
		if (vb_opcode_traits((uint8_t)i))
			add_opcode(golden, &prng, (uint8_t)i, i < 256);
	expect_agreement(golden);
}

TEST(tshark_reads_every_syndrome_as_it_was_meant)
{
	static const uint8_t opcodes[] = { 0x0d, 0x0f, 0x10, 0x11, 0x12 };
	struct golden *golden;
	struct vb_prng prng;

	if (!golden_has_tshark())
		SKIP("tshark is not installed");
	vb_prng_init(&prng, 2);
	golden = golden_create();
	for (uint32_t i = 0; i < 128 * sizeof(opcodes); i++) {
		struct vb_packet packet = random_packet(&prng, opcodes[i / 128]);

		packet.aeth.syndrome = i % 128;
		if (vb_syndrome_kind(packet.aeth.syndrome) != VB_SYNDROME_RESERVED)
			add(golden, packet, i & 1, 0);
	}
	expect_agreement(golden);
}

/* --- lies ------------------------------------------------------------------------------------- */

/* A WRITE_ONLY_IMM whose bytes differ from what is claimed. */
static void expect_lie_found(uint32_t offset, const char *expected)
{
	struct vb_flow flow = flow_over(true);
	struct vb_packet packet;
	struct golden *golden;
	struct vb_prng prng;
	const char *disagreement;
	uint8_t bytes[PACKET_MAX];
	uint32_t length;

	if (!golden_has_tshark())
		SKIP("tshark is not installed");
	vb_prng_init(&prng, 3);
	packet = random_packet(&prng, VB_OP_WRITE_ONLY_IMM);
	golden = golden_create();
	length = build(bytes, &packet, &flow, 1, 8);
	bytes[offset] ^= 1;
	golden_add(golden, &flow, 1, &packet, bytes, length);
	disagreement = golden_disagreement(golden);
	if (!disagreement || !strstr(disagreement, expected))
		FAIL("not found: %s (but: %s)", expected, disagreement ? disagreement : "nothing");
	golden_destroy(golden);
}

TEST(a_wrong_psn_is_found)
{
	expect_lie_found(11, "infiniband.bth.psn");
}

TEST(a_wrong_immediate_is_found)
{
	expect_lie_found(28, "infiniband.immdt");
}

TEST(a_byte_that_the_icrc_does_not_cover_right_is_found)
{
	expect_lie_found(32, "the ICRC is");
}

TEST(a_packet_cut_short_is_found)
{
	struct vb_flow flow = flow_over(true);
	struct golden *golden;
	struct vb_prng prng;
	struct vb_packet packet;
	uint8_t bytes[PACKET_MAX];

	if (!golden_has_tshark())
		SKIP("tshark is not installed");
	vb_prng_init(&prng, 4);
	packet = random_packet(&prng, VB_OP_WRITE_ONLY);
	golden = golden_create();
	build(bytes, &packet, &flow, 1, 0);
	golden_add(golden, &flow, 1, &packet, bytes, VB_BTH_SIZE + 7);
	EXPECT(strstr(golden_disagreement(golden), "malformed: packet 1"));
	golden_destroy(golden);
}
