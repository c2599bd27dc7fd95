/* SPDX-License-Identifier: BSD-2-Clause */
/* IP and UDP headers: their bytes, and what is refused. The GRH, GIDs and source ports. */
#include "base/bytes.h"
#include "base/prng.h"
#include "harness.h"
#include "wire/flow.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD_LENGTH 40
#define PACKET_MAX (VB_IPV6_SIZE + VB_UDP_SIZE + PAYLOAD_LENGTH)

static const struct vb_flow flow4 = {
	.source = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
	.destination = { { [10] = 0xff, 0xff, 10, 0, 0, 2 } },
	.source_port = 0xc123,
	.traffic_class = 0x6a,
	.hop_limit = 64,
};

static const struct vb_flow flow6 = {
	.source = { { 0xfe, 0x80, [15] = 1 } },
	.destination = { { 0xfe, 0x80, [14] = 0x12, 0x34 } },
	.flow_label = 0x98765,
	.source_port = 0xc123,
	.traffic_class = 0x6a,
	.hop_limit = 64,
};

TEST(ipv4_headers_are_as_they_stand_on_the_wire)
{
	/* clang-format off */
	static const uint8_t expected[] = {
		0x45, 0x6a, 0, 68, 0xbe, 0xef, 0x40, 0, 64, 17, 0x67, 0x4d,
		10, 0, 0, 1, 10, 0, 0, 2,
		0xc1, 0x23, 0x12, 0xb7, 0, 48, 0, 0,
	};
	/* clang-format on */
	uint8_t bytes[PACKET_MAX];

	EXPECT_EQ(vb_flow_store_ip_udp(bytes, &flow4, PAYLOAD_LENGTH, 0xbeef), sizeof(expected));
	EXPECT_MEM(bytes, expected, sizeof(expected));
}

TEST(ipv6_headers_are_as_they_stand_on_the_wire)
{
	/* clang-format off */
	static const uint8_t expected[] = {
		0x66, 0xa9, 0x87, 0x65, 0, 48, 17, 64,
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34,
		0xc1, 0x23, 0x12, 0xb7, 0, 48, 0, 0,
	};
	/* clang-format on */
	uint8_t bytes[PACKET_MAX];

	EXPECT_EQ(vb_flow_store_ip_udp(bytes, &flow6, PAYLOAD_LENGTH, 0xbeef), sizeof(expected));
	EXPECT_MEM(bytes, expected, sizeof(expected));
}

/*
 * One's complement addition of the header's words, with carries added immediately: RFC 1071 by the
 * letter.
 */
static uint16_t checksum_by_the_letter(const uint8_t *header)
{
	uint16_t sum = 0;

	for (int i = 0; i < 20; i += 2) {
		uint16_t word = i == 10 ? 0 : load16(header + i);

		sum = (uint16_t)(sum + word);
		if (sum < word)
			sum++;
	}
	return (uint16_t)~sum;
}

static struct vb_flow random_flow(struct vb_prng *prng, bool is_ipv4)
{
	struct vb_flow flow = {
		.source = vb_gid_from_ipv4((uint32_t)vb_prng_next(prng)),
		.destination = vb_gid_from_ipv4((uint32_t)vb_prng_next(prng)),
		.source_port = (uint16_t)vb_prng_next(prng),
		.traffic_class = (uint8_t)vb_prng_next(prng),
		.hop_limit = (uint8_t)vb_prng_next(prng),
	};

	if (!is_ipv4) {
		for (int i = 0; i < 16; i++) {
			flow.source.raw[i] = (uint8_t)vb_prng_next(prng);
			flow.destination.raw[i] = (uint8_t)vb_prng_next(prng);
		}
		flow.flow_label = (uint32_t)vb_prng_below(prng, 1 << 20);
	}
	return flow;
}

static void expect_same_flow(const struct vb_flow *a, const struct vb_flow *b)
{
	EXPECT(vb_gid_equal(&a->source, &b->source));
	EXPECT(vb_gid_equal(&a->destination, &b->destination));
	EXPECT_EQ(a->flow_label, b->flow_label);
	EXPECT_EQ(a->source_port, b->source_port);
	EXPECT_EQ(a->traffic_class, b->traffic_class);
	EXPECT_EQ(a->hop_limit, b->hop_limit);
}

TEST(what_is_stored_is_parsed_again)
{
	struct vb_prng prng;
	uint8_t *bytes = calloc(1, 65536);

	vb_prng_init(&prng, 2);
	for (int round = 0; round < 20000; round++) {
		bool is_ipv4 = round & 1;
		struct vb_flow flow = random_flow(&prng, is_ipv4);
		uint32_t length = (uint32_t)vb_prng_below(&prng, 4200);
		uint16_t id = (uint16_t)vb_prng_next(&prng);
		uint32_t size = vb_flow_store_ip_udp(bytes, &flow, length, id);
		struct vb_flow parsed;
		uint32_t parsed_length;
		uint16_t parsed_id;

		EXPECT_EQ(size, is_ipv4 ? 28 : 48);
		if (is_ipv4)
			EXPECT_EQ(load16(bytes + 10), checksum_by_the_letter(bytes));
		/* Links may add padding behind the packet. */
		EXPECT_EQ(vb_flow_parse_ip_udp(bytes, size + length + (round & 2), &parsed,
					       &parsed_length, &parsed_id),
			  size);
		expect_same_flow(&flow, &parsed);
		EXPECT_EQ(parsed_length, length);
		EXPECT_EQ(parsed_id, is_ipv4 ? id : 0);
	}
	free(bytes);
}

/* Parses a copy that ends where the heap's red zone begins. */
static uint32_t parse_copy(const uint8_t *bytes, uint32_t length)
{
	uint8_t *copy = malloc(length);
	struct vb_flow flow;
	uint32_t payload_length;
	uint32_t offset;
	uint16_t id;

	memcpy(copy, bytes, length);
	offset = vb_flow_parse_ip_udp(copy, length, &flow, &payload_length, &id);
	free(copy);
	return offset;
}

TEST(every_truncation_is_refused)
{
	uint8_t bytes[PACKET_MAX] = { 0 };

	vb_flow_store_ip_udp(bytes, &flow4, PAYLOAD_LENGTH, 1);
	for (uint32_t length = 0; length < 28 + PAYLOAD_LENGTH; length++)
		EXPECT_EQ(parse_copy(bytes, length), 0);
	EXPECT_EQ(parse_copy(bytes, 28 + PAYLOAD_LENGTH), 28);

	vb_flow_store_ip_udp(bytes, &flow6, PAYLOAD_LENGTH, 1);
	for (uint32_t length = 0; length < 48 + PAYLOAD_LENGTH; length++)
		EXPECT_EQ(parse_copy(bytes, length), 0);
	EXPECT_EQ(parse_copy(bytes, 48 + PAYLOAD_LENGTH), 48);
}

/* Stores the IPv4 packet, changes one 16-bit word, corrects the checksum, and parses. */
static uint32_t parse_ipv4_with(uint32_t offset, uint16_t word)
{
	uint8_t bytes[28 + PAYLOAD_LENGTH] = { 0 };

	vb_flow_store_ip_udp(bytes, &flow4, PAYLOAD_LENGTH, 1);
	store16(bytes + offset, word);
	store16(bytes + 10, checksum_by_the_letter(bytes));
	return parse_copy(bytes, sizeof(bytes));
}

static uint32_t parse_ipv6_with(uint32_t offset, uint16_t word)
{
	uint8_t bytes[48 + PAYLOAD_LENGTH] = { 0 };

	vb_flow_store_ip_udp(bytes, &flow6, PAYLOAD_LENGTH, 1);
	store16(bytes + offset, word);
	return parse_copy(bytes, sizeof(bytes));
}

TEST(ipv4_packets_that_are_not_ours_are_refused)
{
	EXPECT_EQ(parse_ipv4_with(0, 0x4500), 28);
	EXPECT_EQ(parse_ipv4_with(0, 0x4600), 0); /* with options */
	EXPECT_EQ(parse_ipv4_with(0, 0x4400), 0);
	EXPECT_EQ(parse_ipv4_with(0, 0x5500), 0);
	EXPECT_EQ(parse_ipv4_with(2, 28 + PAYLOAD_LENGTH + 1), 0);
	EXPECT_EQ(parse_ipv4_with(2, 28 + PAYLOAD_LENGTH - 1), 0); /* the UDP length is larger */
	EXPECT_EQ(parse_ipv4_with(2, 27), 0);
	EXPECT_EQ(parse_ipv4_with(2, 19), 0);
	EXPECT_EQ(parse_ipv4_with(2, 0), 0);
	EXPECT_EQ(parse_ipv4_with(6, 0x0000), 28); /* may be fragmented, but is not */
	EXPECT_EQ(parse_ipv4_with(6, 0x2000), 0); /* more fragments */
	EXPECT_EQ(parse_ipv4_with(6, 0x4001), 0); /* a later fragment */
	EXPECT_EQ(parse_ipv4_with(8, 0x4006), 0); /* TCP */
	EXPECT_EQ(parse_ipv4_with(22, 4790), 0);
	EXPECT_EQ(parse_ipv4_with(24, 48 + 1), 0);
	EXPECT_EQ(parse_ipv4_with(24, 48 - 1), 0);
	EXPECT_EQ(parse_ipv4_with(24, 0), 0);
	EXPECT_EQ(parse_ipv4_with(26, 0x1234), 28); /* the UDP checksum is not checked */
}

TEST(ipv6_packets_that_are_not_ours_are_refused)
{
	EXPECT_EQ(parse_ipv6_with(0, 0x6000), 48);
	EXPECT_EQ(parse_ipv6_with(0, 0x7000), 0);
	EXPECT_EQ(parse_ipv6_with(4, 48 + 1), 0);
	EXPECT_EQ(parse_ipv6_with(4, 48 - 1), 0);
	EXPECT_EQ(parse_ipv6_with(4, 7), 0);
	EXPECT_EQ(parse_ipv6_with(6, 0x0640), 0); /* TCP */
	EXPECT_EQ(parse_ipv6_with(6, 0x2c40), 0); /* a fragment header */
	EXPECT_EQ(parse_ipv6_with(42, 4790), 0);
	EXPECT_EQ(parse_ipv6_with(44, 48 + 1), 0);
}

TEST(a_wrong_ipv4_checksum_is_refused_whichever_bit_is_wrong)
{
	uint8_t bytes[28 + PAYLOAD_LENGTH] = { 0 };

	vb_flow_store_ip_udp(bytes, &flow4, PAYLOAD_LENGTH, 0xbeef);
	for (uint32_t bit = 0; bit < 20 * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		EXPECT_EQ(parse_copy(bytes, sizeof(bytes)), 0);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

TEST(outputs_are_written_only_on_success)
{
	uint8_t bytes[PACKET_MAX] = { 0 };
	struct vb_flow flow = flow6;
	uint32_t length = 77;
	uint16_t id = 88;

	vb_flow_store_ip_udp(bytes, &flow4, PAYLOAD_LENGTH, 1);
	store16(bytes + 22, 4790);
	EXPECT_EQ(vb_flow_parse_ip_udp(bytes, 28 + PAYLOAD_LENGTH, &flow, &length, &id), 0);
	expect_same_flow(&flow, &flow6);
	EXPECT_EQ(length, 77);
	EXPECT_EQ(id, 88);
}

TEST(the_grh_over_ipv4_is_20_zeros_and_a_valid_ipv4_header)
{
	static const uint8_t zeros[20];
	uint8_t grh[VB_GRH_SIZE];
	uint8_t packet[PACKET_MAX];

	memset(grh, 0xa5, sizeof(grh));
	vb_flow_store_grh(grh, &flow4, PAYLOAD_LENGTH);
	vb_flow_store_ip_udp(packet, &flow4, PAYLOAD_LENGTH, 0);
	EXPECT_MEM(grh, zeros, 20);
	EXPECT_MEM(grh + 20, packet, 20);
	EXPECT_EQ(load16(grh + 30), checksum_by_the_letter(grh + 20));
}

TEST(the_grh_over_ipv6_is_the_ipv6_header)
{
	uint8_t grh[VB_GRH_SIZE];
	uint8_t packet[PACKET_MAX];

	memset(grh, 0xa5, sizeof(grh));
	vb_flow_store_grh(grh, &flow6, PAYLOAD_LENGTH);
	vb_flow_store_ip_udp(packet, &flow6, PAYLOAD_LENGTH, 0);
	EXPECT_MEM(grh, packet, 40);
}

static void expect_gid_text(struct vb_gid gid, const char *expected)
{
	char text[48];

	vb_gid_describe(&gid, text);
	EXPECT_STR(text, expected);
}

TEST(gids_are_described_as_addresses)
{
	expect_gid_text(vb_gid_from_ipv4(0x0a0000ff), "10.0.0.255");
	expect_gid_text(vb_gid_from_ipv4(0xffffffff), "255.255.255.255");
	expect_gid_text((struct vb_gid){ { 0 } }, "::");
	expect_gid_text((struct vb_gid){ { [15] = 1 } }, "::1");
	expect_gid_text((struct vb_gid){ { 0xfe, 0x80, [15] = 1 } }, "fe80::1");
	expect_gid_text((struct vb_gid){ { 0xfe, 0x80 } }, "fe80::");
	expect_gid_text(
		(struct vb_gid){ { 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2 } },
		"2001:db8:0:1::2");
	expect_gid_text(
		(struct vb_gid){ { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } },
		"102:304:506:708:90a:b0c:d0e:f10");
	expect_gid_text((struct vb_gid){ { 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0 } },
			"101:0:101:0:101:0:101:0");
	expect_gid_text((struct vb_gid){ { [14] = 1, 1 } }, "::101");
}

TEST(gids_are_told_apart)
{
	struct vb_gid zero = { { 0 } };
	struct vb_gid almost = vb_gid_from_ipv4(1);

	EXPECT(vb_gid_is_zero(&zero));
	EXPECT(!vb_gid_is_ipv4(&zero));
	EXPECT(!vb_gid_is_zero(&almost));
	EXPECT(vb_gid_is_ipv4(&almost));
	almost.raw[9] = 1;
	EXPECT(!vb_gid_is_ipv4(&almost));
	EXPECT(vb_flow_is_ipv4(&flow4));
	EXPECT(!vb_flow_is_ipv4(&flow6));
}

TEST(multicast_gids_are_recognised_in_both_families)
{
	struct vb_gid gid = vb_gid_from_ipv4(0xe0000001);

	EXPECT(vb_gid_is_multicast(&gid));
	gid = vb_gid_from_ipv4(0xefffffff);
	EXPECT(vb_gid_is_multicast(&gid));
	gid = vb_gid_from_ipv4(0xf0000001);
	EXPECT(!vb_gid_is_multicast(&gid));
	gid = vb_gid_from_ipv4(0xdfffffff);
	EXPECT(!vb_gid_is_multicast(&gid));
	gid = (struct vb_gid){ { 0xff, 0x02, [15] = 1 } };
	EXPECT(vb_gid_is_multicast(&gid));
	gid = flow6.destination;
	EXPECT(!vb_gid_is_multicast(&gid));
}

TEST(source_ports_spread_and_stay_in_the_dynamic_range)
{
	static uint8_t is_used[65536];
	uint32_t distinct = 0;

	for (uint32_t qpn = 2; qpn < 2 + 4096; qpn++) {
		uint16_t port = vb_flow_source_port(0, qpn, qpn + 7);

		EXPECT(port >= 0xc000);
		EXPECT_EQ(port, vb_flow_source_port(0, qpn, qpn + 7));
		distinct += !is_used[port]++;
	}
	/* 4096 balls in 16384 urns: 3624 are expected to be hit. */
	EXPECT(distinct > 3500);
	EXPECT(vb_flow_source_port(1, 2, 3) != vb_flow_source_port(2, 2, 3));
	EXPECT(vb_flow_source_port(1, 2, 3) != vb_flow_source_port(1, 3, 2));
}

TEST(an_ipv6_packet_with_an_ipv4_mapped_address_is_refused)
{
	struct vb_flow flow = { .hop_limit = 64, .source_port = 0xc000 };
	uint8_t packet[VB_IPV6_SIZE + VB_UDP_SIZE + 16] = { 0 };
	struct vb_flow parsed;
	uint32_t length;
	uint16_t ip_id;

	flow.source.raw[0] = flow.destination.raw[0] = 0xfe;
	vb_flow_store_ip_udp(packet, &flow, 16, 0);
	EXPECT(vb_flow_parse_ip_udp(packet, sizeof(packet), &parsed, &length, &ip_id));
	packet[24] = 0;
	packet[24 + 10] = packet[24 + 11] = 0xff;
	EXPECT(!vb_flow_parse_ip_udp(packet, sizeof(packet), &parsed, &length, &ip_id));
}
