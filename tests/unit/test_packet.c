/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole packets: every opcode stored and parsed with random fields, every truncation, random bytes
 * against a second statement of what is refused, and the words that describe packets. Packets are
 * parsed from buffers of exactly their size, so that the sanitizer detects a read beyond the end.
 */
#include "base/bytes.h"
#include "base/prng.h"
#include "harness.h"
#include "wire/packet.h"

#include <stdlib.h>
#include <string.h>

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
			.destination = { (uint32_t)vb_prng_below(prng, 1 << 24) },
			.ack_request = vb_prng_below(prng, 2),
			.psn = { (uint32_t)vb_prng_below(prng, 1 << 24) },
		},
		.traits = traits,
		.header_length = vb_opcode_header_length(opcode),
		.imm = (uint32_t)vb_prng_next(prng),
		.invalidate_key = (uint32_t)vb_prng_next(prng),
		.srqn = (uint32_t)vb_prng_below(prng, 1 << 24),
	};

	if (traits & VB_HAS_PAYLOAD)
		packet.payload_length = (uint32_t)vb_prng_below(prng, 40);
	packet.bth.pad = -packet.payload_length & 3;
	if (traits & VB_HAS_RETH)
		packet.reth = (struct vb_reth){ vb_prng_next(prng), (uint32_t)vb_prng_next(prng),
						(uint32_t)vb_prng_next(prng) };
	if (traits & VB_HAS_ATOMICETH)
		packet.atomic = (struct vb_atomiceth){ vb_prng_next(prng),
						       (uint32_t)vb_prng_next(prng),
						       vb_prng_next(prng), vb_prng_next(prng) };
	if (traits & VB_HAS_DETH)
		packet.deth = (struct vb_deth){ (uint32_t)vb_prng_next(prng),
						{ (uint32_t)vb_prng_below(prng, 1 << 24) } };
	if (traits & VB_HAS_AETH) {
		packet.aeth = (struct vb_aeth){ (uint8_t)vb_prng_next(prng),
						(uint32_t)vb_prng_below(prng, 1 << 24) };
		packet.atomic_result = vb_prng_next(prng);
	}
	return packet;
}

static void expect_same_bth(const struct vb_bth *a, const struct vb_bth *b)
{
	EXPECT_EQ(a->opcode, b->opcode);
	EXPECT_EQ(a->solicited, b->solicited);
	EXPECT_EQ(a->migrated, b->migrated);
	EXPECT_EQ(a->pad, b->pad);
	EXPECT_EQ(a->version, b->version);
	EXPECT_EQ(a->pkey, b->pkey);
	EXPECT_EQ(a->fecn, b->fecn);
	EXPECT_EQ(a->becn, b->becn);
	EXPECT_EQ(a->destination.v, b->destination.v);
	EXPECT_EQ(a->ack_request, b->ack_request);
	EXPECT_EQ(a->psn.v, b->psn.v);
}

static void expect_same_packet(const struct vb_packet *a, const struct vb_packet *b)
{
	uint32_t traits = a->traits;

	expect_same_bth(&a->bth, &b->bth);
	EXPECT_EQ(a->traits, b->traits);
	EXPECT_EQ(a->header_length, b->header_length);
	EXPECT_EQ(a->payload_length, b->payload_length);
	EXPECT(!(traits & VB_HAS_IMM) || a->imm == b->imm);
	EXPECT(!(traits & VB_HAS_IETH) || a->invalidate_key == b->invalidate_key);
	EXPECT(!(traits & VB_HAS_XRCETH) || a->srqn == b->srqn);
	EXPECT(!(traits & VB_HAS_DETH) ||
	       (a->deth.qkey == b->deth.qkey && a->deth.source.v == b->deth.source.v));
	EXPECT(!(traits & VB_HAS_RETH) ||
	       (a->reth.address == b->reth.address && a->reth.rkey == b->reth.rkey &&
		a->reth.length == b->reth.length));
	EXPECT(!(traits & VB_HAS_ATOMICETH) ||
	       (a->atomic.address == b->atomic.address && a->atomic.rkey == b->atomic.rkey &&
		a->atomic.swap_or_add == b->atomic.swap_or_add &&
		a->atomic.compare == b->atomic.compare));
	EXPECT(!(traits & VB_HAS_AETH) ||
	       (a->aeth.syndrome == b->aeth.syndrome && a->aeth.msn == b->aeth.msn));
	EXPECT(!(traits & VB_HAS_ATOMICACKETH) || a->atomic_result == b->atomic_result);
}

static uint32_t udp_payload_length(const struct vb_packet *packet)
{
	return packet->header_length + packet->payload_length + packet->bth.pad + VB_ICRC_SIZE;
}

/* Parses a copy of `head_length` bytes that ends where the heap's red zone begins. */
static enum vb_parse_result parse_copy(const uint8_t *bytes, uint32_t head_length, uint32_t length,
				       struct vb_packet *packet)
{
	uint8_t *copy = malloc(head_length);
	enum vb_parse_result result;

	memcpy(copy, bytes, head_length);
	result = vb_packet_parse(copy, head_length, length, packet);
	free(copy);
	return result;
}

TEST(every_packet_is_parsed_as_it_was_stored)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 10);
	for (int i = 0; i < 256 * 100; i++) {
		uint8_t opcode = (uint8_t)i;
		struct vb_packet packet = random_packet(&prng, opcode);
		struct vb_packet parsed;
		uint8_t bytes[VB_PACKET_HEADERS_MAX];

		if (!packet.traits)
			continue;
		EXPECT_EQ(vb_packet_store_headers(bytes, &packet), packet.header_length);
		memset(&parsed, 0xa5, sizeof(parsed));
		EXPECT_EQ(parse_copy(bytes, packet.header_length, udp_payload_length(&packet),
				     &parsed),
			  VB_PARSED);
		expect_same_packet(&packet, &parsed);
	}
}

TEST(storing_writes_no_byte_behind_the_headers)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 11);
	for (int i = 0; i < 256; i++) {
		struct vb_packet packet = random_packet(&prng, (uint8_t)i);
		uint8_t *bytes;

		if (!packet.traits)
			continue;
		bytes = malloc(packet.header_length);
		vb_packet_store_headers(bytes, &packet);
		free(bytes);
	}
}

/* The result for a prefix of a good packet, when the link reports that this was all. */
static enum vb_parse_result expected_of_truncation(const struct vb_packet *packet, uint32_t length)
{
	if (length < packet->header_length + packet->bth.pad + VB_ICRC_SIZE)
		return VB_PARSE_TOO_SHORT;
	return length % 4 ? VB_PARSE_LENGTH : VB_PARSED;
}

TEST(every_truncation_is_refused_or_is_a_shorter_packet)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 12);
	for (int i = 0; i < 256 * 4; i++) {
		struct vb_packet packet = random_packet(&prng, (uint8_t)i);
		uint8_t bytes[256] = { 0 };

		if (!packet.traits)
			continue;
		vb_packet_store_headers(bytes, &packet);
		for (uint32_t length = 0; length <= udp_payload_length(&packet); length++) {
			struct vb_packet parsed;

			EXPECT_EQ(parse_copy(bytes, length, length, &parsed),
				  expected_of_truncation(&packet, length));
		}
	}
}

TEST(headers_that_are_not_all_there_are_not_read)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 13);
	for (int i = 0; i < 256; i++) {
		struct vb_packet packet = random_packet(&prng, (uint8_t)i);
		uint8_t bytes[VB_PACKET_HEADERS_MAX];
		struct vb_packet parsed;

		if (!packet.traits)
			continue;
		vb_packet_store_headers(bytes, &packet);
		for (uint32_t head = 0; head < packet.header_length; head++)
			EXPECT_EQ(parse_copy(bytes, head, udp_payload_length(&packet), &parsed),
				  VB_PARSE_TOO_SHORT);
	}
}

static enum vb_parse_result parse_with(uint8_t opcode, uint8_t flags, uint32_t length)
{
	uint8_t bytes[VB_PACKET_HEADERS_MAX] = { opcode, flags };
	struct vb_packet packet;

	return vb_packet_parse(bytes, sizeof(bytes), length, &packet);
}

TEST(refusals_are_told_apart)
{
	EXPECT_EQ(parse_with(0x04, 0x00, 16), VB_PARSED);
	EXPECT_EQ(parse_with(0x04, 0x00, 15), VB_PARSE_TOO_SHORT);
	EXPECT_EQ(parse_with(0x04, 0x01, 16), VB_PARSE_VERSION);
	EXPECT_EQ(parse_with(0x04, 0x08, 16), VB_PARSE_VERSION);
	EXPECT_EQ(parse_with(0x15, 0x00, 16), VB_PARSE_OPCODE);
	EXPECT_EQ(parse_with(0x44, 0x00, 16), VB_PARSE_OPCODE); /* RD */
	EXPECT_EQ(parse_with(0xff, 0x00, 16), VB_PARSE_OPCODE);
	EXPECT_EQ(parse_with(0x04, 0x00, 17), VB_PARSE_LENGTH);
	EXPECT_EQ(parse_with(0x04, 0x30, 19), VB_PARSE_LENGTH);
	EXPECT_EQ(parse_with(0x04, 0x30, 20), VB_PARSED);
	EXPECT_EQ(parse_with(0x04, 0x10, 16), VB_PARSE_TOO_SHORT); /* a pad, but no place for it */
	EXPECT_EQ(parse_with(0x11, 0x00, 20), VB_PARSED);
	EXPECT_EQ(parse_with(0x11, 0x00, 24), VB_PARSE_LENGTH); /* an ACK with a payload */
	EXPECT_EQ(parse_with(0x0c, 0x00, 36), VB_PARSE_LENGTH); /* a READ request with one */
	EXPECT_EQ(parse_with(0x13, 0x30, 48), VB_PARSE_LENGTH); /* an atomic with one */
	EXPECT_EQ(parse_with(0x1d, 0x00, 40), VB_PARSED);
	EXPECT_EQ(parse_with(VB_OPCODE_CNP, 0x00, 32), VB_PARSED);
}

/* The rules once more, in the order of their names, independent of the order in the code. */
static enum vb_parse_result judge(const uint8_t *bytes, uint32_t head_length, uint32_t length)
{
	uint32_t needed;
	uint32_t pad;

	if (head_length < 12 || length < 16)
		return VB_PARSE_TOO_SHORT;
	if (bytes[1] & 0x0f)
		return VB_PARSE_VERSION;
	if (!(vb_opcode_traits(bytes[0]) & VB_IS_KNOWN))
		return VB_PARSE_OPCODE;
	needed = vb_opcode_header_length(bytes[0]);
	pad = bytes[1] >> 4 & 3;
	if (head_length < needed || length < needed + pad + 4)
		return VB_PARSE_TOO_SHORT;
	if (length % 4)
		return VB_PARSE_LENGTH;
	if (length != needed + 4 && !(vb_opcode_traits(bytes[0]) & VB_HAS_PAYLOAD))
		return VB_PARSE_LENGTH;
	return VB_PARSED;
}

TEST(random_bytes_are_judged_by_the_rules)
{
	uint32_t counts[VB_PARSE_LENGTH + 1] = { 0 };
	struct vb_prng prng;

	vb_prng_init(&prng, 14);
	for (int round = 0; round < 300000; round++) {
		uint32_t length = (uint32_t)vb_prng_below(&prng, 90);
		uint32_t head_length = min32(length, (uint32_t)vb_prng_below(&prng, 400));
		uint8_t bytes[96];
		struct vb_packet packet;
		enum vb_parse_result result;

		for (uint32_t i = 0; i < 12; i++)
			bytes[i] = (uint8_t)vb_prng_next(&prng);
		if (vb_prng_below(&prng, 8))
			bytes[1] &= 0xf0;
		result = parse_copy(bytes, head_length, length, &packet);
		EXPECT_EQ(result, judge(bytes, head_length, length));
		if (result == VB_PARSED)
			EXPECT_EQ(udp_payload_length(&packet), length);
		counts[result]++;
	}
	for (int i = 0; i <= VB_PARSE_LENGTH; i++)
		EXPECT(counts[i] > 1000);
}

static void expect_text(const struct vb_packet *packet, const char *expected)
{
	char text[256];

	EXPECT_EQ(vb_packet_describe(packet, text, sizeof(text)), strlen(expected));
	EXPECT_STR(text, expected);
}

TEST(sends_are_told_with_their_length)
{
	struct vb_packet packet = { .bth = { .opcode = 0x00 }, .payload_length = 1024 };

	expect_text(&packet, "SEND_FIRST psn=0 len=1024");
	packet = (struct vb_packet){ .bth = { .opcode = 0x02, .psn = { 1 }, .ack_request = true },
				     .payload_length = 476 };
	expect_text(&packet, "SEND_LAST psn=1 len=476 ack");
	packet = (struct vb_packet){ .bth = { .opcode = 0x17, .psn = { 0xffffff } },
				     .invalidate_key = 0xabcd };
	expect_text(&packet, "SEND_ONLY_INV psn=16777215 len=0 inv=0xabcd");
	packet = (struct vb_packet){ .bth = { .opcode = 0x65, .psn = { 2 }, .solicited = true },
				     .payload_length = 5,
				     .imm = 0x2a,
				     .deth = { .qkey = 0x11111111, .source = { 17 } } };
	expect_text(&packet,
		    "UD SEND_ONLY_IMM psn=2 len=5 qkey=0x11111111 srcqp=17 imm=0x2a solicited");
}

TEST(writes_reads_and_atomics_are_told_with_their_target)
{
	struct vb_packet packet = {
		.bth = { .opcode = 0x0b, .psn = { 7 }, .ack_request = true, .solicited = true },
		.payload_length = 8,
		.imm = 0x2a,
		.reth = { .address = 0x1000, .rkey = 0x12345678, .length = 8 },
	};

	expect_text(&packet, "WRITE_ONLY_IMM psn=7 len=8 va=0x1000 rkey=0x12345678 dma=8 imm=0x2a "
			     "ack solicited");
	packet = (struct vb_packet){
		.bth = { .opcode = 0x0c, .psn = { 3 } },
		.reth = { .address = 0xffffffffffffffff, .rkey = 1, .length = 0x80000000 },
	};
	expect_text(&packet, "READ_REQUEST psn=3 va=0xffffffffffffffff rkey=0x1 dma=2147483648");
	packet = (struct vb_packet){
		.bth = { .opcode = 0xb3, .psn = { 4 } },
		.srqn = 9,
		.atomic = { .address = 0x10, .rkey = 2, .swap_or_add = 0x30, .compare = 0x40 },
	};
	expect_text(&packet,
		    "XRC COMPARE_SWAP psn=4 va=0x10 rkey=0x2 swap=0x30 compare=0x40 srqn=9");
	packet.bth.opcode = 0x14;
	expect_text(&packet, "FETCH_ADD psn=4 va=0x10 rkey=0x2 add=0x30");
}

TEST(responses_are_told_with_what_they_acknowledge)
{
	struct vb_packet packet = {
		.bth = { .opcode = 0x11, .psn = { 1 } },
		.aeth = { .syndrome = 0x04, .msn = 1 },
	};

	expect_text(&packet, "ACKNOWLEDGE psn=1 msn=1 credits=4");
	packet.aeth.syndrome = 0x1f;
	expect_text(&packet, "ACKNOWLEDGE psn=1 msn=1 credits=none");
	packet.aeth.syndrome = 0x60;
	expect_text(&packet, "ACKNOWLEDGE psn=1 msn=1 NAK sequence");
	packet.aeth.syndrome = 0x2c;
	expect_text(&packet, "ACKNOWLEDGE psn=1 msn=1 RNR_NAK 0.64 ms");
	packet.aeth.syndrome = 0;
	packet.bth.opcode = 0x12;
	packet.atomic_result = 0x77;
	expect_text(&packet, "ATOMIC_ACKNOWLEDGE psn=1 msn=1 credits=0 orig=0x77");
	packet.bth.opcode = 0x10;
	packet.payload_length = 100;
	expect_text(&packet, "READ_RESPONSE_ONLY psn=1 len=100 msn=1 credits=0");
	packet.bth.opcode = 0x0e;
	expect_text(&packet, "READ_RESPONSE_MIDDLE psn=1 len=100");
	packet.bth.opcode = 0x15;
	expect_text(&packet, "? psn=1");
}

TEST(a_line_that_does_not_fit_is_cut_and_its_whole_length_returned)
{
	struct vb_packet packet = {
		.bth = { .opcode = 0x11, .psn = { 1 }, .ack_request = true, .solicited = true },
		.aeth = { .syndrome = 0x60, .msn = 1 },
	};
	char whole[256];
	int length = vb_packet_describe(&packet, whole, sizeof(whole));

	for (uint32_t size = 0; size <= (uint32_t)length + 1; size++) {
		char *text = malloc(size);

		EXPECT_EQ(vb_packet_describe(&packet, text, size), length);
		if (size) {
			EXPECT_EQ(strlen(text), size - 1);
			EXPECT_MEM(text, whole, size - 1);
		}
		free(text);
	}
}
