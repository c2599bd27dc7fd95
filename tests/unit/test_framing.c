/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Framing without an engine: which slots form a batch, the IPv4 IDs that they get, and their ICRCs,
 * which are compared with ICRCs over the gathered bytes. This program has its own vb_dma_*, which
 * fail where a test says that memory is gone.
 */
#include "harness.h"

#include "base/crc.h"
#include "base/dma.h"
#include "framing/framing.h"
#include "framing/slot.h"
#include "wire/icrc.h"

#include <string.h>

enum { SLOTS = 80, LONG = 1024, SHORT = 8, PEER = 0x120034 };

static struct vb_framing framing;
static struct vb_framing sender; /* of what `framing` receives */
static struct vb_slot slots[SLOTS];
static uint8_t memory[VB_PAYLOAD_MAX];
static bool is_memory_gone;

bool vb_dma_read(void *to, vb_dma_addr from, size_t length)
{
	if (is_memory_gone)
		return false;
	memcpy(to, (const void *)(uintptr_t)from, length);
	return true;
}

bool vb_dma_crc32(uint32_t *crc, vb_dma_addr from, size_t length)
{
	if (is_memory_gone)
		return false;
	*crc = vb_crc32(*crc, (const void *)(uintptr_t)from, length);
	return true;
}

static struct vb_flow ipv4_flow(void)
{
	return (struct vb_flow){
		.source = vb_gid_from_ipv4(0x0a000001),
		.destination = vb_gid_from_ipv4(0x0a000002),
		.source_port = 0xc001,
		.hop_limit = 64,
	};
}

static struct vb_flow ipv6_flow(void)
{
	return (struct vb_flow){
		.source = { .raw = { 0xfd, [15] = 1 } },
		.destination = { .raw = { 0xfd, [15] = 2 } },
		.source_port = 0xc001,
		.hop_limit = 64,
	};
}

static void init(enum vb_icrc_mode mode, uint32_t batch_segments_max)
{
	struct vb_framing_config config = {
		.icrc_mode = mode,
		.batch_segments_max = batch_segments_max,
		.batch_qpn_mask = 0xff0000,
	};

	vb_framing_init(&framing, &config);
	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + 1);
}

/* What a slot is made of, besides the flow. */
struct content {
	uint32_t length;
	uint32_t qpn;
	uint16_t link;
};

/* Builds a SEND with that payload, long ones as spans. False if it could not be finished. */
static bool finish(struct vb_framing *by, struct vb_slot *slot, const struct vb_flow *flow,
		   struct content content)
{
	struct vb_path path = { .ip = *flow, .link = content.link };
	struct vb_packet packet = {
		.bth = { .opcode = VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_ONLY),
			 .pkey = 0xffff,
			 .destination = { content.qpn },
			 .psn = { content.length } },
		.payload_length = content.length,
	};

	vb_slot_begin(slot, &path, &packet);
	if (content.length < LONG)
		vb_slot_add_bytes(slot, memory, content.length);
	else
		EXPECT(vb_slot_add_memory(slot, (uintptr_t)memory, content.length, false));
	return vb_framing_finish(by, slot, packet.bth.pad);
}

static void add(uint32_t index, const struct vb_flow *flow, uint32_t length)
{
	EXPECT(finish(&framing, &slots[index], flow, (struct content){ length, PEER, 0 }));
}

/* Whether the ICRC at the end of the slot is the one of its bytes and that ID. */
static bool has_icrc_for(const struct vb_slot *slot, uint16_t ip_id)
{
	uint8_t bytes[VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX + VB_SLOT_TAIL_MAX];
	uint32_t end = slot->length - VB_ICRC_SIZE;
	uint32_t crc;

	EXPECT(vb_slot_gather(slot, bytes));
	crc = vb_icrc_begin(&slot->path.ip, slot->length, ip_id, bytes);
	crc = vb_crc32(crc, bytes + VB_BTH_SIZE, end - VB_BTH_SIZE);
	return vb_icrc_load(bytes + end) == crc;
}

static void expect_first(uint32_t index)
{
	EXPECT(!slots[index].continues);
	EXPECT_EQ(slots[index].ip_id, 0);
	EXPECT(has_icrc_for(&slots[index], 0));
}

static void expect_segment(uint32_t index, uint16_t ip_id)
{
	EXPECT(slots[index].continues);
	EXPECT_EQ(slots[index].ip_id, ip_id);
	EXPECT(has_icrc_for(&slots[index], ip_id));
}

/* --- batches --- */

TEST(slots_of_one_flow_form_a_batch_whose_ids_count_up_under_the_icrc)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	for (uint32_t i = 0; i < 4; i++)
		add(i, &flow, LONG);
	expect_first(0);
	for (uint16_t i = 1; i < 4; i++)
		expect_segment(i, i);
}

TEST(a_shorter_slot_is_the_last_of_its_batch)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	add(0, &flow, LONG);
	add(1, &flow, SHORT);
	add(2, &flow, SHORT);
	expect_segment(1, 1);
	expect_first(2);
}

TEST(a_longer_slot_begins_a_batch)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	add(0, &flow, SHORT);
	add(1, &flow, LONG);
	expect_first(1);
}

TEST(a_batch_has_no_more_segments_than_the_link_takes)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 3);
	for (uint32_t i = 0; i < 5; i++)
		add(i, &flow, SHORT);
	expect_segment(2, 2);
	expect_first(3);
	expect_segment(4, 1);
}

TEST(a_batch_is_no_longer_than_an_ip_datagram)
{
	struct vb_flow flow = ipv4_flow();
	uint32_t length = 0;
	uint32_t count = 0;

	init(VB_ICRC_STRICT, 64);
	for (uint32_t i = 0; i < 20; i++) {
		add(i, &flow, VB_PAYLOAD_MAX);
		length = slots[i].continues ? length + slots[i].length : slots[i].length;
		count += !slots[i].continues;
		EXPECT(length + VB_IPV6_SIZE + VB_UDP_SIZE <= 65535);
	}
	EXPECT_EQ(count, 2);
}

TEST(another_flow_begins_a_batch)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	add(0, &flow, SHORT);
	flow.traffic_class = 4;
	add(1, &flow, SHORT);
	expect_first(1);
}

TEST(a_destination_that_the_receiver_steers_elsewhere_begins_a_batch)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	add(0, &flow, SHORT);
	EXPECT(finish(&framing, &slots[1], &flow, (struct content){ SHORT, 0x12ffff, 0 }));
	EXPECT(finish(&framing, &slots[2], &flow, (struct content){ SHORT, 0x130034, 0 }));
	expect_segment(1, 1);
	expect_first(2);
}

TEST(the_slot_after_the_end_of_a_batch_begins_one)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	add(0, &flow, SHORT);
	vb_framing_end_batch(&framing);
	add(1, &flow, SHORT);
	expect_first(1);
}

TEST(a_slot_for_a_shared_memory_link_ends_the_batch_and_has_no_icrc)
{
	static const uint32_t lengths[] = { SHORT, LONG };
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	for (uint32_t i = 0; i < 2; i++) {
		static uint8_t bytes[2 * LONG];
		static const uint8_t zeros[VB_ICRC_SIZE];

		add(0, &flow, LONG);
		EXPECT(finish(&framing, &slots[1], &flow, (struct content){ lengths[i], PEER, 3 }));
		add(2, &flow, LONG);
		EXPECT(!slots[1].continues && !slots[1].is_numbered && !slots[1].ip_id);
		EXPECT(vb_slot_gather(&slots[1], bytes));
		EXPECT_MEM(bytes + slots[1].length - VB_ICRC_SIZE, zeros, VB_ICRC_SIZE);
		expect_first(2);
		vb_framing_end_batch(&framing);
	}
}

TEST(without_batches_every_slot_has_the_id_0_under_its_icrc)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	vb_framing_stop_batching(&framing);
	for (uint32_t i = 0; i < 3; i++) {
		add(i, &flow, SHORT);
		expect_first(i);
	}
}

/* --- numbered flows --- */

static void expect_number(uint32_t index, uint8_t number_index, uint16_t ip_id)
{
	EXPECT(slots[index].is_numbered);
	EXPECT_EQ(slots[index].number_index, number_index);
	EXPECT_EQ(slots[index].ip_id, ip_id);
	EXPECT(has_icrc_for(&slots[index], ip_id));
}

TEST(datagrams_of_a_numbered_flow_count_up_and_wrap)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 0);
	vb_framing_number_flow(&framing, 5, &flow, 65535);
	for (uint32_t i = 0; i < 3; i++)
		add(i, &flow, SHORT);
	expect_number(0, 5, 65535);
	expect_number(1, 5, 0);
	expect_number(2, 5, 1);
}

TEST(each_batch_of_a_numbered_flow_takes_one_id_and_its_segments_count_on_from_it)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 3);
	vb_framing_number_flow(&framing, 2, &flow, 100);
	for (uint32_t i = 0; i < 4; i++)
		add(i, &flow, SHORT);
	expect_number(0, 2, 100);
	expect_number(1, 2, 101);
	expect_number(2, 2, 102);
	expect_number(3, 2, 101);
	EXPECT(slots[2].continues && !slots[3].continues);
}

TEST(flow_labels_do_not_distinguish_numbered_flows_but_all_else_does)
{
	struct vb_flow flow = ipv4_flow();
	struct vb_flow others[] = { flow, flow, flow, flow, flow };

	init(VB_ICRC_STRICT, 0);
	vb_framing_number_flow(&framing, 0, &flow, 7);
	others[0].source.raw[15]++;
	others[1].destination.raw[15]++;
	others[2].source_port++;
	others[3].traffic_class++;
	others[4].hop_limit++;
	for (uint32_t i = 0; i < 5; i++) {
		add(i, &others[i], SHORT);
		EXPECT(!slots[i].is_numbered);
		expect_first(i);
	}
	flow.flow_label = 9;
	add(5, &flow, SHORT);
	expect_number(5, 0, 7);
}

TEST(a_flow_is_numbered_until_its_place_is_emptied)
{
	struct vb_flow flow = ipv4_flow();
	struct vb_flow other = flow;

	other.source_port++;
	init(VB_ICRC_STRICT, 64);
	vb_framing_number_flow(&framing, 0, &flow, 7);
	vb_framing_number_flow(&framing, VB_NUMBERED_FLOWS_MAX - 1, &other, 8);
	vb_framing_number_flow(&framing, 0, NULL, 0);
	add(0, &flow, SHORT);
	EXPECT(!slots[0].is_numbered);
	add(1, &other, SHORT);
	expect_number(1, VB_NUMBERED_FLOWS_MAX - 1, 8);
	vb_framing_number_flow(&framing, VB_NUMBERED_FLOWS_MAX - 1, NULL, 0);
	add(2, &other, SHORT);
	EXPECT(!slots[2].is_numbered);
	expect_first(2);
}

/* --- memory that is gone --- */

static void expect_failure(uint32_t index, const struct vb_flow *flow, uint16_t link)
{
	is_memory_gone = true;
	EXPECT(!finish(&framing, &slots[index], flow, (struct content){ LONG, PEER, link }));
	is_memory_gone = false;
}

TEST(a_slot_whose_memory_is_gone_uses_up_no_id)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 0);
	vb_framing_number_flow(&framing, 1, &flow, 0);
	add(0, &flow, LONG);
	expect_failure(1, &flow, 0);
	add(1, &flow, LONG);
	expect_number(0, 1, 0);
	expect_number(1, 1, 1);
}

TEST(a_segment_whose_memory_is_gone_ends_its_batch_and_leaves_the_ids_alone)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 64);
	vb_framing_number_flow(&framing, 1, &flow, 50);
	add(0, &flow, LONG);
	expect_failure(1, &flow, 0);
	add(1, &flow, LONG);
	EXPECT(!slots[1].continues);
	expect_number(1, 1, 51);
}

TEST(memory_that_is_gone_is_noticed_without_an_icrc)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_OFF, 64);
	expect_failure(0, &flow, 0);
	init(VB_ICRC_STRICT, 64);
	expect_failure(0, &flow, 3);
}

/* --- the ICRC --- */

TEST(the_icrc_is_right_for_every_length_of_pad_and_both_ip_versions)
{
	struct vb_flow flows[] = { ipv4_flow(), ipv6_flow() };

	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t length = 0; length <= LONG + 5;
		     length += length == 9 ? LONG - 9 : 1) {
			init(VB_ICRC_STRICT, 64);
			add(0, &flows[i], length);
			expect_first(0);
		}
}

TEST(no_icrc_is_computed_where_it_is_off)
{
	struct vb_flow flow = ipv4_flow();
	static const uint8_t zeros[VB_ICRC_SIZE];

	init(VB_ICRC_OFF, 64);
	add(0, &flow, SHORT);
	EXPECT_MEM(slots[0].head + slots[0].length - VB_ICRC_SIZE, zeros, VB_ICRC_SIZE);
	add(1, &flow, LONG);
	EXPECT_MEM(slots[1].tail, zeros, VB_ICRC_SIZE);
}

/*
 * Whether framing takes a packet of that flow which was sent with `sent_id` and whose link reports
 * `reported_id`. The packet is in pieces of up to 30 bytes.
 */
static bool takes(const struct vb_flow *flow, uint16_t sent_id, uint16_t reported_id,
		  uint8_t damage)
{
	static uint8_t bytes[VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX];
	struct vb_bytes rest[8];
	struct vb_frame frame = { .path.ip = *flow, .ip_id = reported_id, .rest = rest };
	struct vb_framing_config config = { .icrc_mode = VB_ICRC_STRICT };
	static struct vb_slot slot;

	vb_framing_init(&sender, &config);
	vb_framing_number_flow(&sender, 0, flow, sent_id);
	EXPECT(finish(&sender, &slot, flow, (struct content){ 101, PEER, 0 }));
	EXPECT(vb_slot_gather(&slot, bytes));
	bytes[40] ^= damage;
	frame.head = (struct vb_bytes){ bytes, 30 };
	for (uint32_t at = 30; at < slot.length; at += 30)
		rest[frame.rest_count++] = (struct vb_bytes){ bytes + at, slot.length - at < 30
										  ? slot.length - at
										  : 30 };
	return vb_framing_is_undamaged(&framing, &frame, slot.length);
}

TEST(strict_takes_a_packet_for_the_reported_id_only)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_STRICT, 0);
	EXPECT(takes(&flow, 7, 7, 0));
	EXPECT(!takes(&flow, 7, 8, 0));
	EXPECT(!takes(&flow, 7, 7, 1));
}

TEST(solved_takes_a_packet_for_any_id_but_not_a_damaged_one)
{
	static const uint16_t ids[] = { 7, 54321, 54322, 54322, 65535, 0, 1, 0, 0 };
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_SOLVED, 0);
	for (uint32_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		EXPECT(takes(&flow, ids[i], 0, 0));
		EXPECT(!takes(&flow, ids[i], 0, 0x10));
	}
}

TEST(solved_takes_the_segments_of_a_numbered_batch)
{
	struct vb_flow flow = ipv4_flow();

	init(VB_ICRC_SOLVED, 0);
	for (uint16_t segment = 0; segment < 5; segment++)
		EXPECT(takes(&flow, (uint16_t)(65533 + segment), segment, 0));
	EXPECT(takes(&flow, 65534, 0, 0));
}

/* Builds a short SEND with that ID and returns its ICRC, which is at the end of the head. */
static uint8_t *icrc_with(const struct vb_flow *flow, uint16_t ip_id, struct vb_slot *slot)
{
	struct vb_framing_config config = { .icrc_mode = VB_ICRC_STRICT };

	vb_framing_init(&sender, &config);
	vb_framing_number_flow(&sender, 0, flow, ip_id);
	EXPECT(finish(&sender, slot, flow, (struct content){ SHORT, PEER, 0 }));
	return slot->head + slot->length - VB_ICRC_SIZE;
}

TEST(no_id_explains_damage_of_a_packet_that_has_none)
{
	struct vb_flow ipv4 = ipv4_flow();
	struct vb_flow ipv6 = ipv6_flow();
	uint32_t difference = vb_icrc_load(icrc_with(&ipv4, 0, &slots[0])) ^
			      vb_icrc_load(icrc_with(&ipv4, 7, &slots[1]));
	uint8_t *icrc = icrc_with(&ipv6, 0, &slots[2]);
	struct vb_frame frame = { .path.ip = ipv6, .head = { slots[2].head, slots[2].length } };

	init(VB_ICRC_SOLVED, 0);
	EXPECT(vb_framing_is_undamaged(&framing, &frame, slots[2].length));
	vb_icrc_store(icrc, vb_icrc_load(icrc) ^ difference);
	EXPECT(!vb_framing_is_undamaged(&framing, &frame, slots[2].length));
}

TEST(what_has_no_icrc_is_not_checked)
{
	struct vb_flow flow = ipv4_flow();
	uint8_t bytes[VB_BTH_SIZE + VB_ICRC_SIZE] = { 0 };
	struct vb_frame frame = { .path.ip = flow, .head = { bytes, sizeof(bytes) } };

	init(VB_ICRC_OFF, 0);
	EXPECT(takes(&flow, 7, 8, 1));
	init(VB_ICRC_STRICT, 0);
	EXPECT(!vb_framing_is_undamaged(&framing, &frame, sizeof(bytes)));
	frame.path.link = 3;
	EXPECT(vb_framing_is_undamaged(&framing, &frame, sizeof(bytes)));
}

/* --- piggybacked ACKs --- */

TEST(a_piggybacked_ack_survives_being_stored)
{
	struct vb_piggyback_ack ack = { true, { 0xabcdef }, { 0x61, 0x123456 } }, loaded;
	uint8_t bytes[VB_PIGGYBACK_ACK_SIZE];

	vb_piggyback_ack_store(bytes, &ack);
	loaded = vb_piggyback_ack_load(bytes);
	EXPECT(loaded.is_there);
	EXPECT_EQ(loaded.psn.v, 0xabcdef);
	EXPECT_EQ(loaded.aeth.syndrome, 0x61);
	EXPECT_EQ(loaded.aeth.msn, 0x123456);
	ack.is_there = false;
	vb_piggyback_ack_store(bytes, &ack);
	EXPECT(!vb_piggyback_ack_load(bytes).is_there);
}

TEST(any_bytes_of_a_peer_are_an_ack_of_24_bits_or_none)
{
	uint32_t word = ~VB_NO_PIGGYBACK_ACK;
	uint8_t bytes[VB_PIGGYBACK_ACK_SIZE];
	struct vb_piggyback_ack loaded;

	memset(bytes, 0xff, sizeof(bytes));
	EXPECT(!vb_piggyback_ack_load(bytes).is_there);
	memcpy(bytes, &word, sizeof(word));
	loaded = vb_piggyback_ack_load(bytes);
	EXPECT(loaded.is_there);
	EXPECT(loaded.psn.v <= VB_PSN_MASK);
	EXPECT_EQ(loaded.aeth.msn, 0xffffff);
}
