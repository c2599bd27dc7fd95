/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire between the two adapters: pulling, comparing and delivering. */
#include "support_pair.h"

#include "base/bytes.h"
#include "wire/icrc.h"

#include <stdio.h>
#include <string.h>

static void describe_train(struct held *held)
{
	size_t length = strlen(held->text);
	uint32_t data = 0;

	for (uint32_t i = 0; i < held->train.reference_count; i++)
		data += held->references[i].length;
	snprintf(held->text + length, sizeof(held->text) - length, " packets=%u data=%u",
		 held->train.packet_count, data);
}

static void describe_held(struct held *held)
{
	struct vb_packet packet;
	enum vb_parse_result result =
		vb_packet_parse(held->bytes, held->length, held->length, &packet);

	if (result != VB_PARSED)
		FAIL("a packet that was sent does not parse (%d)", result);
	EXPECT(packet.bth.migrated);
	vb_packet_describe(&packet, held->text, sizeof(held->text));
	if (held->train.packet_count)
		describe_train(held);
}

/* Takes the next packet of that side; false if there is none. */
static bool take_packet(struct pair *p, enum side side, struct held *held)
{
	static struct vb_slot slot;

	/*
	 * UC and UD complete in the call after the one that sent: an owner thread continues while
	 * there is work.
	 */
	while (vb_nic_transmit(p->node[side].nic, p->now_ns, &slot, 1) == 0)
		if (!vb_nic_has_work(p->node[side].nic))
			return false;
	EXPECT(slot.length <= sizeof(held->bytes));
	held->from = side;
	held->flow = slot.path.ip;
	held->ip_id = slot.ip_id;
	held->shm_link = slot.path.link;
	held->length = slot.length;
	held->train = slot.train;
	memcpy(held->references, slot.references, sizeof(held->references));
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

/* Pulls one packet into the flight; false if there is none. */
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

/* Delivers the headers and the payload in pieces, as a link may hand them over. */
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
			.path.ip = held->flow,
			.flow_mark = vb_flow_mark(&held->flow),
			.ip_id = held->ip_id,
			.path.link = held->shm_link,
			.train = held->train,
			.references = (const uint8_t *)held->references,
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

void inject(struct pair *p, enum side to, const char *line)
{
	static struct made_packet made;
	static struct held held;
	const struct held *packet = &held;
	struct node *target = &p->node[to];
	struct packet_usual usual = {
		.source = p->node[!to].gid,
		.destination = target->gid,
		.source_port = 0xc001,
		.qpn = vb_qp_number(target->qp),
		.address = target->iova + TARGET,
		.rkey = key_of(p, to),
		.qkey = QKEY,
		.source_qpn = vb_qp_number(p->node[!to].qp),
		.srqn = target->srq ? vb_srq_number(target->srq) : 0,
	};

	packet_from_words(line, &usual, &made);
	held.from = !to;
	held.flow = made.flow;
	held.ip_id = made.ip_id;
	held.length = made.length;
	memcpy(held.bytes, made.bytes, made.length);
	receive_frames(p, to, &packet, 1);
}
