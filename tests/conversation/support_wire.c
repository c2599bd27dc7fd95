/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire between the two adapters: pulling, comparing, delivering, and packets made from words. */
#include "support_pair.h"
#include "support_words.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/icrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_held(struct held *held)
{
	struct vb_packet packet;
	enum vb_parse_result result =
		vb_packet_parse(held->bytes, held->length, held->length, &packet);

	if (result != VB_PARSED)
		FAIL("a packet that was sent does not parse (%d)", result);
	EXPECT(packet.bth.migrated);
	vb_packet_describe(&packet, held->text, sizeof(held->text));
}

/* The next packet of that side; false if there is none. */
static bool take_packet(struct pair *p, enum side side, struct held *held)
{
	static struct vb_slot slot;

	/* UC and UD complete with the call after the one that sent: an owner goes on while there is work. */
	while (vb_nic_transmit(p->node[side].nic, p->now_ns, &slot, 1) == 0)
		if (!vb_nic_has_work(p->node[side].nic))
			return false;
	EXPECT(slot.length <= sizeof(held->bytes));
	held->from = side;
	held->flow = slot.flow;
	held->ip_id = slot.ip_id;
	held->length = slot.length;
	EXPECT(vb_slot_gather(&slot, held->bytes));
	describe_held(held);
	return true;
}

bool pair_has_packet(struct pair *p, enum side side)
{
	if (!p->has_early[side])
		p->has_early[side] = take_packet(p, side, &p->early[side]);
	return p->has_early[side];
}

/* One packet into the flight; false if there is none. */
static bool pull(struct pair *p, enum side side)
{
	EXPECT(p->held_count < HELD_MAX);
	if (!pair_has_packet(p, side))
		return false;
	p->held[p->held_count++] = p->early[side];
	p->has_early[side] = false;
	return true;
}

void pair_expect_sent(const char *file, int line, struct pair *p, enum side side,
		      const char *const *expected)
{
	for (; *expected; expected++) {
		if (!pull(p, side))
			test_fail(file, line, "%c sends nothing more, expected \"%s\"", "AB"[side],
				  *expected);
		if (!words_match(p->held[p->held_count - 1].text, *expected))
			test_fail(file, line, "%c sent     \"%s\"\n        expected   \"%s\"",
				  "AB"[side], p -> held[p->held_count - 1].text, *expected);
	}
	if (pull(p, side))
		test_fail(file, line, "%c also sent \"%s\"", "AB"[side],
			  p -> held[p->held_count - 1].text);
}

void send_all(struct pair *p, enum side side)
{
	while (pull(p, side))
		;
}

/* The headers and the payload in pieces, as a link may hand them over. */
static void receive_frames(struct pair *p, enum side to, const struct held *const *packets,
			   uint32_t count)
{
	struct vb_frame frames[HELD_MAX];
	struct vb_bytes rest[HELD_MAX][2];

	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct held *held = packets[i];
		uint32_t first = min32(held->length, VB_PACKET_HEADERS_MAX);
		uint32_t second = (held->length - first) / 2;

		rest[i][0] = (struct vb_bytes){ held->bytes + first, second };
		rest[i][1] = (struct vb_bytes){ held->bytes + first + second,
						held->length - first - second };
		frames[i] = (struct vb_frame){
			.flow = held->flow,
			.ip_id = held->ip_id,
			.head = { held->bytes, first },
			.rest = held->length > first ? rest[i] : NULL,
			.rest_count = held->length > first ? 2 : 0,
		};
	}
	vb_nic_receive(p->node[to].nic, p->now_ns, frames, count);
}

static void deliver_from(struct pair *p, enum side from)
{
	const struct held *packets[HELD_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->held_count; i++)
		if (p->held[i].from == from)
			packets[count++] = &p->held[i];
	receive_frames(p, !from, packets, count);
}

void deliver(struct pair *p)
{
	deliver_from(p, A);
	deliver_from(p, B);
	p->held_count = 0;
}

void deliver_nth(struct pair *p, uint32_t index)
{
	const struct held *held = &p->held[index];

	EXPECT(index < p->held_count);
	receive_frames(p, !held->from, &held, 1);
}

void deliver_one_by_one(struct pair *p)
{
	for (uint32_t i = 0; i < p->held_count; i++)
		deliver_nth(p, i);
	p->held_count = 0;
}

void lose(struct pair *p)
{
	p->held_count = 0;
}

void corrupt_nth(struct pair *p, uint32_t index)
{
	EXPECT(index < p->held_count);
	p->held[index].bytes[p->held[index].length - VB_ICRC_SIZE - 1] ^= 0x10;
}

void settle(struct pair *p)
{
	uint32_t rounds = 0;

	do {
		EXPECT(rounds++ < 10000);
		deliver(p);
		while (p->held_count < HELD_MAX / 2 && pull(p, A))
			;
		while (p->held_count < HELD_MAX - 1 && pull(p, B))
			;
	} while (p->held_count);
}

/* Packets from words */

struct made {
	struct vb_packet packet;
	struct vb_gid source;
	uint16_t ip_id;
	bool is_icrc_bad;
	bool has_dma;
	bool has_pad;
};

/* The opcode at the start of the line, and where the rest begins. */
static uint8_t opcode_of(const char *line, const char **rest)
{
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		const char *name = vb_opcode_describe((uint8_t)opcode);
		size_t length = strlen(name);

		if (vb_opcode_traits((uint8_t)opcode) && strncmp(line, name, length) == 0 &&
		    (line[length] == ' ' || !line[length])) {
			*rest = line + length;
			return (uint8_t)opcode;
		}
	}
	FAIL("no opcode in \"%s\"", line);
}

static struct made made_default(struct pair *p, enum side to, uint8_t opcode)
{
	struct node *target = &p->node[to];
	struct made made = { .source = p->node[!to].gid };
	struct vb_packet *packet = &made.packet;
	uint32_t traits = vb_opcode_traits(opcode);

	packet->bth.opcode = opcode;
	packet->bth.migrated = true;
	packet->bth.pkey = VB_PKEY_DEFAULT;
	packet->bth.destination = vb_qp_number(target->qp);
	packet->srqn = target->srq ? vb_srq_number(target->srq) : 0;
	if (traits & VB_HAS_RETH) {
		packet->reth.address = target->iova + TARGET;
		packet->reth.rkey = key_of(p, to);
	} else if (traits & VB_HAS_ATOMICETH) {
		packet->atomic.address = target->iova + TARGET;
		packet->atomic.rkey = key_of(p, to);
	} else if (traits & VB_HAS_DETH) {
		packet->deth.qkey = QKEY;
		packet->deth.source = vb_qp_number(p->node[!to].qp);
	} else if (traits & VB_HAS_AETH) {
		packet->aeth.syndrome = VB_SYNDROME_ACK | VB_CREDIT_CODE_INVALID;
	}
	return made;
}

static uint8_t rnr_syndrome(const char *milliseconds)
{
	uint64_t ns = (uint64_t)(strtod(milliseconds, NULL) * 1e6 + 0.5);

	for (uint32_t code = 0; code < 32; code++)
		if (vb_rnr_timer_ns((uint8_t)code) == ns)
			return (uint8_t)(VB_SYNDROME_RNR_NAK | code);
	FAIL("no RNR timer code means %s ms", milliseconds);
}

static uint8_t nak_syndrome(const char *words)
{
	for (uint32_t nak = VB_NAK_SEQUENCE; nak <= VB_NAK_INVALID_RD; nak++) {
		char text[40];

		vb_syndrome_describe((uint8_t)(VB_SYNDROME_NAK | nak), text, sizeof(text));
		if (strncmp(text, words, strlen(text)) == 0)
			return (uint8_t)(VB_SYNDROME_NAK | nak);
	}
	FAIL("no such NAK: \"%s\"", words);
}

/* One word with a value; true if it was known. */
static bool set_value(struct made *made, const char *word)
{
	struct vb_packet *packet = &made->packet;
	const char *equals = strchr(word, '=');
	uint64_t value = equals ? strtoull(equals + 1, NULL, 0) : 0;
	bool is_atomic = vb_opcode_traits(packet->bth.opcode) & VB_HAS_ATOMICETH;

#define WORD(name) (strncmp(word, name "=", sizeof(name)) == 0)
	if (WORD("psn"))
		packet->bth.psn.v = (uint32_t)value;
	else if (WORD("len"))
		packet->payload_length = (uint32_t)value;
	else if (WORD("va") && is_atomic)
		packet->atomic.address = value;
	else if (WORD("va"))
		packet->reth.address = value;
	else if (WORD("rkey") && is_atomic)
		packet->atomic.rkey = (uint32_t)value;
	else if (WORD("rkey"))
		packet->reth.rkey = (uint32_t)value;
	else if (WORD("dma")) {
		packet->reth.length = (uint32_t)value;
		made->has_dma = true;
	} else if (WORD("add") || WORD("swap"))
		packet->atomic.swap_or_add = value;
	else if (WORD("compare"))
		packet->atomic.compare = value;
	else if (WORD("qkey"))
		packet->deth.qkey = (uint32_t)value;
	else if (WORD("srcqp"))
		packet->deth.source.v = (uint32_t)value;
	else if (WORD("srqn"))
		packet->srqn = (uint32_t)value;
	else if (WORD("imm"))
		packet->imm = (uint32_t)value;
	else if (WORD("inv"))
		packet->invalidate_key = (uint32_t)value;
	else if (WORD("msn"))
		packet->aeth.msn = (uint32_t)value;
	else if (WORD("credits"))
		packet->aeth.syndrome = strcmp(equals, "=none") == 0
						? VB_CREDIT_CODE_INVALID
						: vb_credit_code((uint32_t)value);
	else if (WORD("syndrome"))
		packet->aeth.syndrome = (uint8_t)value;
	else if (WORD("ip-id"))
		made->ip_id = (uint16_t)value;
	else if (WORD("orig"))
		packet->atomic_result = value;
	else if (WORD("dest"))
		packet->bth.destination.v = (uint32_t)value;
	else if (WORD("pkey"))
		packet->bth.pkey = (uint16_t)value;
	else if (WORD("pad")) {
		packet->bth.pad = (uint8_t)value;
		made->has_pad = true;
	} else
		return false;
#undef WORD
	return true;
}

static void set_flag(struct made *made, const char *word)
{
	if (strcmp(word, "ack") == 0)
		made->packet.bth.ack_request = true;
	else if (strcmp(word, "solicited") == 0)
		made->packet.bth.solicited = true;
	else if (strcmp(word, "unmigrated") == 0)
		made->packet.bth.migrated = false;
	else if (strcmp(word, "bad-icrc") == 0)
		made->is_icrc_bad = true;
	else if (strcmp(word, "stranger") == 0)
		made->source.raw[15] ^= 0x40;
	else
		FAIL("what is \"%s\" in a packet?", word);
}

static void set_words(struct made *made, const char *words)
{
	char copy[256], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (strcmp(word, "NAK") == 0) {
			made->packet.aeth.syndrome = nak_syndrome(words + (word - copy));
			return;
		}
		if (strcmp(word, "RNR_NAK") == 0) {
			made->packet.aeth.syndrome = rnr_syndrome(strtok_r(NULL, " ", &rest));
			return;
		}
		if (!set_value(made, word))
			set_flag(made, word);
	}
}

static void store_packet(struct held *held, struct made *made, const struct vb_gid *destination)
{
	struct vb_packet *packet = &made->packet;
	uint32_t length = packet->payload_length;
	uint32_t headers;
	uint32_t crc;

	if (!made->has_pad)
		packet->bth.pad = (uint8_t)(-length & 3);
	if (vb_opcode_traits(packet->bth.opcode) & VB_HAS_RETH && !made->has_dma)
		packet->reth.length = length;
	headers = vb_packet_store_headers(held->bytes, packet);
	memset(held->bytes + headers, INJECTED_BYTE, length);
	memset(held->bytes + headers + length, 0, packet->bth.pad);
	held->length = headers + length + packet->bth.pad + VB_ICRC_SIZE;
	held->ip_id = 0;
	held->flow = (struct vb_flow){
		.source = made->source,
		.destination = *destination,
		.source_port = 0xc001,
		.hop_limit = 64,
	};
	crc = vb_icrc_begin(&held->flow, held->length, held->ip_id, held->bytes);
	crc = vb_crc32(crc, held->bytes + VB_BTH_SIZE, held->length - VB_BTH_SIZE - VB_ICRC_SIZE);
	vb_icrc_store(held->bytes + held->length - VB_ICRC_SIZE, crc ^ made->is_icrc_bad);
	held->ip_id = made->ip_id;
}

void inject(struct pair *p, enum side to, const char *line)
{
	static struct held held;
	const struct held *packet = &held;
	const char *rest;
	uint8_t opcode = opcode_of(line, &rest);
	struct made made = made_default(p, to, opcode);

	set_words(&made, rest);
	held.from = !to;
	store_packet(&held, &made, &p->node[to].gid);
	receive_frames(p, to, &packet, 1);
}
