/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC against one that is computed bit by bit over a masked copy of the whole packet, as the
 * specification describes it, and the search for the IPv4 ID against packets whose ID is known.
 */
#include "base/bytes.h"
#include "base/crc.h"
#include "base/prng.h"
#include "harness.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/icrc_memo.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX 65536
#define ROUTE_SIZE 8

/* A whole IP packet with room for the 8 bytes that the ICRC puts in front of it. */
struct whole {
	uint8_t bytes[ROUTE_SIZE + VB_IPV6_SIZE + VB_UDP_SIZE + PAYLOAD_MAX];
	struct vb_flow flow;
	uint16_t ip_id;
	uint32_t ip_udp_length;
	uint32_t payload_length; /* of UDP: from the BTH to the ICRC */
};

static uint8_t *bth_of(struct whole *whole)
{
	return whole->bytes + ROUTE_SIZE + whole->ip_udp_length;
}

static struct vb_flow random_flow(struct vb_prng *prng, bool is_ipv4)
{
	struct vb_flow flow = {
		.source_port = (uint16_t)vb_prng_next(prng),
		.traffic_class = (uint8_t)vb_prng_next(prng),
		.hop_limit = (uint8_t)vb_prng_next(prng),
		.flow_label = (uint32_t)vb_prng_below(prng, 1 << 20),
	};

	for (int i = 0; i < 16; i++) {
		flow.source.raw[i] = (uint8_t)vb_prng_next(prng);
		flow.destination.raw[i] = (uint8_t)vb_prng_next(prng);
	}
	if (is_ipv4) {
		flow.source = vb_gid_from_ipv4(load32(flow.source.raw));
		flow.destination = vb_gid_from_ipv4(load32(flow.destination.raw));
	}
	return flow;
}

static struct whole *random_whole(struct vb_prng *prng, bool is_ipv4, uint32_t payload_length)
{
	struct whole *whole = calloc(1, sizeof(*whole));

	whole->flow = random_flow(prng, is_ipv4);
	whole->ip_id = (uint16_t)vb_prng_next(prng);
	whole->payload_length = payload_length;
	whole->ip_udp_length = vb_flow_store_ip_udp(whole->bytes + ROUTE_SIZE, &whole->flow,
						    payload_length, whole->ip_id);
	for (uint32_t i = 0; i < payload_length; i++)
		bth_of(whole)[i] = (uint8_t)vb_prng_next(prng);
	return whole;
}

static uint32_t crc_bit_by_bit(const uint8_t *bytes, size_t length)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < length * 8; i++) {
		uint32_t bit = (crc ^ bytes[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (bit ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* Masks a copy of the packet in place, by the offsets of the fields. */
static uint32_t icrc_by_the_letter(const struct whole *whole)
{
	struct whole *copy = malloc(sizeof(*copy));
	uint8_t *ip = copy->bytes + ROUTE_SIZE;
	uint32_t crc;

	*copy = *whole;
	memset(copy->bytes, 0xff, ROUTE_SIZE);
	if (ip[0] >> 4 == 4) {
		ip[1] = 0xff; /* TOS */
		ip[8] = 0xff; /* TTL */
		ip[10] = 0xff; /* checksum */
		ip[11] = 0xff;
	} else {
		ip[0] |= 0x0f; /* traffic class, flow label */
		ip[1] = 0xff;
		ip[2] = 0xff;
		ip[3] = 0xff;
		ip[7] = 0xff; /* hop limit */
	}
	bth_of(copy)[-1] = 0xff; /* UDP checksum */
	bth_of(copy)[-2] = 0xff;
	bth_of(copy)[4] = 0xff; /* FECN, BECN */
	crc = crc_bit_by_bit(copy->bytes,
			     ROUTE_SIZE + copy->ip_udp_length + copy->payload_length - 4);
	free(copy);
	return crc;
}

static uint32_t icrc_of(struct whole *whole)
{
	uint32_t crc =
		vb_icrc_begin(&whole->flow, whole->payload_length, whole->ip_id, bth_of(whole));

	return vb_crc32(crc, bth_of(whole) + VB_BTH_SIZE,
			whole->payload_length - VB_BTH_SIZE - VB_ICRC_SIZE);
}

TEST(the_icrc_is_that_of_the_specification)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 3);
	for (int round = 0; round < 2000; round++) {
		uint32_t length = 16 + 4 * (uint32_t)vb_prng_below(&prng, 100);
		struct whole *whole = random_whole(&prng, round & 1, length);

		EXPECT_EQ(icrc_of(whole), icrc_by_the_letter(whole));
		free(whole);
	}
}

#ifdef __x86_64__
#define AVX_STATE (1u << 2) /* the upper halves of the registers of AVX */

/* Which parts of the register file hold data: XGETBV with ECX = 1, if the CPU has it. */
static uint32_t state_in_use(void)
{
	uint32_t eax, ebx, ecx, edx, low, high;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE) ||
	    !__get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) || !(eax & 1u << 2))
		SKIP("this CPU does not tell which registers are in use");
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low;
}

/* Instructions of SSE, which the compiler uses everywhere, are slow while they are in use. */
TEST(a_crc_leaves_the_upper_halves_of_vector_registers_clear)
{
	static const uint8_t bytes[4096];
	uint32_t before = state_in_use();

	EXPECT(vb_crc32(0, bytes, sizeof(bytes)) != 0);
	EXPECT_EQ(state_in_use() & AVX_STATE, before & AVX_STATE);
	EXPECT(vb_crc32c(0, bytes, sizeof(bytes)) != 0);
	EXPECT_EQ(state_in_use() & AVX_STATE, before & AVX_STATE);
}
#endif

TEST(the_crc_is_that_of_ethernet)
{
	EXPECT_EQ(vb_crc32(0, "123456789", 9), 0xcbf43926); /* the usual check value */
	EXPECT_EQ(crc_bit_by_bit((const uint8_t *)"123456789", 9), 0xcbf43926);
	EXPECT_EQ(vb_crc32(vb_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

TEST(both_ways_to_the_crc_have_the_same_result)
{
	uint8_t bytes[120];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i + 3 * i);
	for (enum vb_crc_method method = VB_CRC_INSTRUCTIONS; method <= VB_CRC_TABLES; method++) {
		vb_crc_choose(method);
		for (uint32_t begin = 0; begin < 16; begin++)
			for (uint32_t length = 0; begin + length <= sizeof(bytes); length++)
				EXPECT_EQ(vb_crc32(0, bytes + begin, length),
					  crc_bit_by_bit(bytes + begin, length));
		EXPECT_EQ(vb_crc32(vb_crc32(0, bytes, 50), bytes + 50, 70),
			  crc_bit_by_bit(bytes, 120));
	}
}

/* A SEND_FIRST from 10.0.0.1 to 10.0.0.2; scapy 2.5 computes the same ICRC for it. */
TEST(a_known_packet_has_its_known_icrc)
{
	static const uint8_t packet[] = {
		0x00, 0x40, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd,
		0xef, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0xa4, 0x84, 0x12,
	};
	struct vb_flow flow = {
		.source = vb_gid_from_ipv4(0x0a000001),
		.destination = vb_gid_from_ipv4(0x0a000002),
		.source_port = 0xc001,
	};
	uint8_t icrc[4];
	uint32_t crc = vb_icrc_begin(&flow, sizeof(packet), 7, packet);

	crc = vb_crc32(crc, packet + 12, sizeof(packet) - 16);
	vb_icrc_store(icrc, crc);
	EXPECT_MEM(icrc, packet + sizeof(packet) - 4, 4);
	EXPECT_EQ(vb_icrc_load(icrc), crc);
}

/* The packet's ICRC, starting from a beginning that is remembered from earlier packets. */
static uint32_t remembered_icrc_of(struct vb_icrc_memo *memo, struct whole *whole)
{
	uint32_t crc = vb_icrc_memo_begin(memo, &whole->flow, whole->payload_length, whole->ip_id,
					  bth_of(whole));

	return vb_crc32(crc, bth_of(whole) + VB_BTH_SIZE, whole->payload_length - 4 - VB_BTH_SIZE);
}

TEST(a_remembered_beginning_gives_the_same_icrc)
{
	struct vb_icrc_memo memo;
	struct vb_prng prng;

	vb_prng_init(&prng, 4);
	vb_icrc_memo_init(&memo);
	for (int round = 0; round < 200; round++) {
		struct whole *whole = random_whole(&prng, round & 1, 64 + round % 3 * 4);

		EXPECT_EQ(remembered_icrc_of(&memo, whole), icrc_of(whole));
		EXPECT_EQ(remembered_icrc_of(&memo, whole), icrc_of(whole));
		free(whole);
	}
}

TEST(a_remembered_beginning_is_right_for_any_psn_and_ip_id)
{
	struct vb_icrc_memo memo;
	struct vb_prng prng;
	struct vb_flow flow = { .source_port = 0xc123 };
	uint8_t bth[VB_BTH_SIZE] = { 0x07, 0x40, 0xff, 0xff, 0, 1, 2, 3 };

	flow.source = vb_gid_from_ipv4(0x0a000001);
	flow.destination = vb_gid_from_ipv4(0x0a000002);
	vb_prng_init(&prng, 14);
	vb_icrc_memo_init(&memo);
	for (int round = 0; round < 2000; round++) {
		uint64_t random = vb_prng_next(&prng);
		uint16_t ip_id = (uint16_t)random;

		store32(bth + 8, (uint32_t)(random >> 32));
		bth[4] = (uint8_t)(random >> 16); /* masked */
		flow.traffic_class = (uint8_t)(random >> 24); /* not covered */
		EXPECT_EQ(vb_icrc_memo_begin(&memo, &flow, 1040, ip_id, bth),
			  vb_icrc_begin(&flow, 1040, ip_id, bth));
	}
}

TEST(few_bytes_by_the_tables_give_the_same_crc)
{
	struct vb_icrc_memo memo;
	struct vb_prng prng;
	uint8_t bytes[80];

	vb_prng_init(&prng, 15);
	vb_icrc_memo_init(&memo);
	for (uint32_t length = 0; length <= sizeof(bytes); length++) {
		uint32_t crc = (uint32_t)vb_prng_next(&prng);

		for (uint32_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)vb_prng_next(&prng);
		EXPECT_EQ(vb_icrc_memo_add(&memo, crc, bytes, length),
			  vb_crc32(crc, bytes, length));
	}
}

TEST(a_remembered_beginning_is_forgotten_when_anything_that_is_covered_changes)
{
	struct vb_icrc_memo memo;
	struct vb_flow flow = { .source_port = 0xc123 };
	struct vb_flow other;
	uint8_t bth[VB_BTH_SIZE] = { 0x07, 0x40, 0xff, 0xff, 0, 1, 2, 3, 0, 0, 0, 9 };

	flow.source = vb_gid_from_ipv4(0x0a000001);
	flow.destination = vb_gid_from_ipv4(0x0a000002);
	vb_icrc_memo_init(&memo);
#define EXPECT_SAME(flow, length, bth)                             \
	EXPECT_EQ(vb_icrc_memo_begin(&memo, flow, length, 3, bth), \
		  vb_icrc_begin(flow, length, 3, bth))
	EXPECT_SAME(&flow, 1040, bth);
	EXPECT_SAME(&flow, 1044, bth);
	other = flow;
	other.source_port++;
	EXPECT_SAME(&other, 1044, bth);
	other.source.raw[15]++;
	EXPECT_SAME(&other, 1044, bth);
	other.destination.raw[15]++;
	EXPECT_SAME(&other, 1044, bth);
	bth[0]++;
	EXPECT_SAME(&other, 1044, bth);
	bth[7]++;
	EXPECT_SAME(&other, 1044, bth);
	bth[3]--;
	EXPECT_SAME(&other, 1044, bth);
#undef EXPECT_SAME
}

TEST(what_routers_change_does_not_change_the_icrc)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 5);
	for (int round = 0; round < 100; round++) {
		struct whole *whole = random_whole(&prng, round & 1, 64);
		uint32_t icrc = icrc_of(whole);

		whole->flow.traffic_class ^= 0xff;
		whole->flow.hop_limit--;
		whole->flow.flow_label ^= 0xfffff;
		bth_of(whole)[4] ^= 0xff;
		EXPECT_EQ(icrc_of(whole), icrc);
		bth_of(whole)[5] ^= 1;
		EXPECT(icrc_of(whole) != icrc);
		free(whole);
	}
}

TEST(every_other_bit_changes_the_icrc)
{
	struct vb_prng prng;
	struct whole *whole;
	uint32_t icrc;

	vb_prng_init(&prng, 6);
	whole = random_whole(&prng, true, 64);
	icrc = icrc_of(whole);
	for (uint32_t bit = 0; bit < 60 * 8; bit++) {
		bth_of(whole)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		EXPECT_EQ(icrc_of(whole) == icrc, bit / 8 == 4);
		bth_of(whole)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	whole->flow.source.raw[15] ^= 1;
	EXPECT(icrc_of(whole) != icrc);
	whole->flow.source.raw[15] ^= 1;
	whole->flow.destination.raw[12] ^= 1;
	EXPECT(icrc_of(whole) != icrc);
	whole->flow.destination.raw[12] ^= 1;
	whole->flow.source_port ^= 1;
	EXPECT(icrc_of(whole) != icrc);
	free(whole);
}

static void expect_id_found(struct vb_prng *prng, uint32_t length)
{
	struct whole *whole = random_whole(prng, true, length);
	uint16_t sent_id = whole->ip_id;
	uint32_t received = icrc_of(whole);
	uint16_t found;

	whole->ip_id = (uint16_t)vb_prng_next(prng);
	EXPECT(vb_icrc_solve_ip_id(icrc_of(whole) ^ received, length, whole->ip_id, &found));
	EXPECT_EQ(found, sent_id);
	free(whole);
}

TEST(the_id_of_an_intact_packet_is_found)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 7);
	for (uint32_t length = 16; length < 4400; length += 4)
		expect_id_found(&prng, length);
	for (int round = 0; round < 200; round++)
		expect_id_found(&prng, 16 + (uint32_t)vb_prng_below(&prng, 65536 - 16));
	expect_id_found(&prng, 65535);
	expect_id_found(&prng, 65509); /* the first length that needs the last of the constants */
	expect_id_found(&prng, 65510);
}

TEST(an_id_guessed_right_needs_no_change)
{
	uint16_t found;

	EXPECT(vb_icrc_solve_ip_id(0, 1024, 0x1234, &found));
	EXPECT_EQ(found, 0x1234);
}

TEST(a_corrupt_packet_has_an_id_only_by_a_chance_of_two_to_the_minus_16)
{
	struct vb_prng prng;
	uint32_t found_count = 0;
	uint16_t found;

	vb_prng_init(&prng, 8);
	for (int round = 0; round < 1 << 18; round++)
		found_count += vb_icrc_solve_ip_id((uint32_t)vb_prng_next(&prng),
						   16 + 4 * (uint32_t)vb_prng_below(&prng, 1024), 0,
						   &found);
	EXPECT(found_count <= 16); /* 4 are expected */
}

TEST(a_flipped_bit_is_never_taken_for_another_id)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 9);
	for (int round = 0; round < 2000; round++) {
		uint32_t length = 16 + 4 * (uint32_t)vb_prng_below(&prng, 1040);
		struct whole *whole = random_whole(&prng, true, length);
		uint32_t received = icrc_of(whole);
		uint32_t bit = (uint32_t)vb_prng_below(&prng, (length - 4) * 8);
		uint16_t found;

		if (bit / 8 != 4) {
			bth_of(whole)[bit / 8] ^= (uint8_t)(1u << bit % 8);
			EXPECT(!vb_icrc_solve_ip_id(icrc_of(whole) ^ received, length, whole->ip_id,
						    &found));
		}
		free(whole);
	}
}

TEST(lengths_that_no_packet_has_are_refused)
{
	uint16_t found;

	EXPECT(!vb_icrc_solve_ip_id(0, 0, 0, &found));
	EXPECT(!vb_icrc_solve_ip_id(0, 3, 0, &found));
	EXPECT(!vb_icrc_solve_ip_id(0, 65536, 0, &found));
}
