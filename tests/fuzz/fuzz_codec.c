/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that read packets from the wire, on arbitrary bytes: transport packets, single
 * headers, IP and UDP. What was parsed must, stored and parsed again, be the same; describing never
 * writes beyond its buffer; an ICRC with a memo is that without; the IPv4 ID that is found for a
 * wrong ICRC makes it right. Also the blocks of a capture. The first byte chooses one of these.
 */
#include "fuzz.h"
#include "support_input.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/capture.h"
#include "wire/flow.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/icrc_memo.h"
#include "wire/packet.h"
#include "wire/syndrome.h"

#include <string.h>

enum { TEXT_MAX = 512, BYTES_MAX = 4096 };

static bool is_same_bth(const struct vb_bth *a, const struct vb_bth *b)
{
	return a->opcode == b->opcode && a->solicited == b->solicited &&
	       a->migrated == b->migrated && a->pad == b->pad && a->version == b->version &&
	       a->pkey == b->pkey && a->fecn == b->fecn && a->becn == b->becn &&
	       a->destination.v == b->destination.v && a->ack_request == b->ack_request &&
	       vb_psn_equal(a->psn, b->psn);
}

static bool is_same_packet(const struct vb_packet *a, const struct vb_packet *b)
{
	uint32_t traits = a->traits;

	if (!is_same_bth(&a->bth, &b->bth) || traits != b->traits ||
	    a->header_length != b->header_length || a->payload_length != b->payload_length)
		return false;
	if (traits & VB_HAS_DETH &&
	    (a->deth.qkey != b->deth.qkey || a->deth.source.v != b->deth.source.v))
		return false;
	if (traits & VB_HAS_RETH &&
	    (a->reth.address != b->reth.address || a->reth.rkey != b->reth.rkey ||
	     a->reth.length != b->reth.length))
		return false;
	if (traits & VB_HAS_ATOMICETH &&
	    (a->atomic.address != b->atomic.address || a->atomic.rkey != b->atomic.rkey ||
	     a->atomic.swap_or_add != b->atomic.swap_or_add ||
	     a->atomic.compare != b->atomic.compare))
		return false;
	if (traits & VB_HAS_AETH &&
	    (a->aeth.syndrome != b->aeth.syndrome || a->aeth.msn != b->aeth.msn))
		return false;
	if (traits & VB_HAS_ATOMICACKETH && a->atomic_result != b->atomic_result)
		return false;
	return (!(traits & VB_HAS_IMM) || a->imm == b->imm) &&
	       (!(traits & VB_HAS_IETH) || a->invalidate_key == b->invalidate_key) &&
	       (!(traits & VB_HAS_XRCETH) || a->srqn == b->srqn);
}

/* Describes into a buffer of exactly that size, for the sanitizer to watch. */
static void describe(const struct vb_packet *packet, uint32_t size)
{
	char *text = malloc(size ? size : 1);
	int length = vb_packet_describe(packet, text, size);

	REQUIRE(length > 0 && length < TEXT_MAX);
	REQUIRE(!size || strlen(text) == ((uint32_t)length < size ? (uint32_t)length : size - 1));
	free(text);
}

/* The link claims `claimed` more bytes behind those that are there. */
static void fuzz_packet(const uint8_t *bytes, uint32_t length, uint32_t claimed, uint32_t text_size)
{
	struct vb_packet packet;
	struct vb_packet again;
	uint8_t stored[VB_PACKET_HEADERS_MAX];

	if (vb_packet_parse(bytes, length, length + claimed, &packet) != VB_PARSED)
		return;
	REQUIRE(packet.header_length <= length);
	REQUIRE(packet.header_length + packet.payload_length + packet.bth.pad + VB_ICRC_SIZE ==
		length + claimed);
	REQUIRE(packet.header_length == vb_opcode_header_length(packet.bth.opcode));
	REQUIRE(vb_packet_store_headers(stored, &packet) == packet.header_length);
	REQUIRE(vb_packet_parse(stored, packet.header_length, length + claimed, &again) ==
		VB_PARSED);
	REQUIRE(is_same_packet(&packet, &again));
	describe(&packet, text_size);
}

static void fuzz_headers(const uint8_t *bytes, uint32_t length)
{
	uint8_t padded[VB_ATOMICETH_SIZE] = { 0 };
	uint8_t stored[VB_ATOMICETH_SIZE];
	struct vb_bth bth;
	struct vb_deth deth;
	struct vb_reth reth;
	struct vb_atomiceth atomic;
	struct vb_aeth aeth;
	char text[TEXT_MAX];

	memcpy(padded, bytes, min32(length, sizeof(padded)));
	bth = vb_bth_load(padded);
	vb_bth_store(stored, &bth);
	padded[4] &= 0xc0; /* reserved bits are sent as 0 */
	padded[8] &= 0x80;
	REQUIRE(!memcmp(stored, padded, VB_BTH_SIZE));
	reth = vb_reth_load(padded);
	vb_reth_store(stored, &reth);
	REQUIRE(!memcmp(stored, padded, VB_RETH_SIZE));
	atomic = vb_atomiceth_load(padded);
	vb_atomiceth_store(stored, &atomic);
	REQUIRE(!memcmp(stored, padded, VB_ATOMICETH_SIZE));
	aeth = vb_aeth_load(padded);
	vb_aeth_store(stored, &aeth);
	REQUIRE(!memcmp(stored, padded, VB_AETH_SIZE));
	padded[4] = 0;
	deth = vb_deth_load(padded);
	vb_deth_store(stored, &deth);
	REQUIRE(!memcmp(stored, padded, VB_DETH_SIZE));
	REQUIRE(vb_syndrome_describe(aeth.syndrome, text, sizeof(text)) > 0);
	REQUIRE(vb_opcode_describe(padded[0]) != NULL);
	REQUIRE(vb_rnr_timer_ns(aeth.syndrome & 0x1f) > 0);
	if (vb_syndrome_code(aeth.syndrome) != VB_CREDIT_CODE_INVALID)
		REQUIRE(vb_credit_code(vb_credit_count(vb_syndrome_code(aeth.syndrome))) ==
			vb_syndrome_code(aeth.syndrome));
}

static bool is_same_flow(const struct vb_flow *a, const struct vb_flow *b)
{
	return vb_gid_equal(&a->source, &b->source) &&
	       vb_gid_equal(&a->destination, &b->destination) && a->flow_label == b->flow_label &&
	       a->source_port == b->source_port && a->traffic_class == b->traffic_class &&
	       a->hop_limit == b->hop_limit;
}

static void fuzz_ip(const uint8_t *bytes, uint32_t length)
{
	struct vb_flow flow;
	struct vb_flow again;
	uint8_t stored[VB_IPV6_SIZE + VB_UDP_SIZE];
	uint8_t grh[VB_GRH_SIZE];
	uint8_t *rebuilt;
	char text[48];
	uint32_t payload_length;
	uint32_t payload_again;
	uint32_t offset;
	uint32_t size;
	uint16_t ip_id;
	uint16_t id_again;

	offset = vb_flow_parse_ip_udp(bytes, length, &flow, &payload_length, &ip_id);
	if (!offset)
		return;
	REQUIRE(offset <= length && payload_length <= length - offset);
	vb_gid_describe(&flow.source, text);
	vb_gid_describe(&flow.destination, text);
	vb_flow_store_grh(grh, &flow, payload_length);
	size = vb_flow_store_ip_udp(stored, &flow, payload_length, ip_id);
	REQUIRE(size <= sizeof(stored));
	rebuilt = calloc(1, size + payload_length);
	memcpy(rebuilt, stored, size);
	REQUIRE(vb_flow_parse_ip_udp(rebuilt, size + payload_length, &again, &payload_again,
				     &id_again) == size);
	REQUIRE(is_same_flow(&flow, &again) && payload_again == payload_length);
	REQUIRE(id_again == ip_id || !vb_flow_is_ipv4(&flow));
	free(rebuilt);
}

static struct vb_flow input_flow(struct input *input)
{
	struct vb_flow flow = { .traffic_class = input_8(input), .hop_limit = input_8(input) };

	flow.source_port = input_16(input);
	flow.flow_label = input_32(input) & 0xfffff;
	flow.source = vb_gid_from_ipv4(input_32(input));
	flow.destination = vb_gid_from_ipv4(input_32(input));
	if (input_bool(input)) {
		flow.source.raw[0] = 0xfe;
		flow.destination.raw[0] = input_8(input) | 1;
	}
	return flow;
}

/* The ICRC of a packet without and with a memo; then an ID that was guessed wrong. */
static void fuzz_icrc(struct input *input)
{
	struct vb_flow flow = input_flow(input);
	uint16_t ip_id = input_16(input);
	uint16_t assumed = input_16(input);
	uint32_t damage = input_bool(input) ? input_32(input) : 0;
	uint32_t length = (uint32_t)(input->size < BYTES_MAX ? input->size : BYTES_MAX);
	const uint8_t *bytes = input->data;
	uint32_t whole;
	uint32_t remembered;
	struct vb_icrc_memo memo;
	uint32_t guessed;
	uint16_t solved;

	if (length < VB_BTH_SIZE)
		return;
	whole = vb_icrc_begin(&flow, length + VB_ICRC_SIZE, ip_id, bytes);
	whole = vb_crc32(whole, bytes + VB_BTH_SIZE, length - VB_BTH_SIZE);
	vb_icrc_memo_init(&memo);
	vb_icrc_memo_begin(&memo, &flow, length + VB_ICRC_SIZE, assumed, bytes);
	remembered = vb_icrc_memo_begin(&memo, &flow, length + VB_ICRC_SIZE, ip_id, bytes);
	remembered = vb_crc32(remembered, bytes + VB_BTH_SIZE, length - VB_BTH_SIZE);
	REQUIRE(whole == remembered);
	if (!vb_flow_is_ipv4(&flow))
		return;
	guessed = vb_icrc_begin(&flow, length + VB_ICRC_SIZE, assumed, bytes);
	guessed = vb_crc32(guessed, bytes + VB_BTH_SIZE, length - VB_BTH_SIZE);
	if (!vb_icrc_solve_ip_id(guessed ^ whole ^ damage, length + VB_ICRC_SIZE, assumed,
				 &solved)) {
		REQUIRE(damage != 0);
		return;
	}
	REQUIRE(damage || solved == ip_id);
	guessed = vb_icrc_begin(&flow, length + VB_ICRC_SIZE, solved, bytes);
	guessed = vb_crc32(guessed, bytes + VB_BTH_SIZE, length - VB_BTH_SIZE);
	REQUIRE(guessed == (whole ^ damage));
}

static void fuzz_capture(const uint8_t *bytes, uint32_t length, uint64_t time_ns)
{
	uint8_t header[VB_CAPTURE_HEADER_SIZE];
	uint8_t *block = malloc(length + VB_CAPTURE_BLOCK_OVERHEAD);
	uint32_t stored;

	REQUIRE(vb_capture_store_header(header) <= sizeof(header));
	stored = vb_capture_store_packet(block, time_ns, bytes, length);
	REQUIRE(stored % 4 == 0 && stored <= length + VB_CAPTURE_BLOCK_OVERHEAD);
	free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size < BYTES_MAX ? size : BYTES_MAX };
	uint32_t choice = input_below(&input, 5);
	uint32_t more = input_8(&input);
	uint64_t time_ns;

	switch (choice) {
	case 0:
		fuzz_packet(input.data, (uint32_t)input.size, 0, more);
		break;
	case 1:
		fuzz_packet(input.data, (uint32_t)input.size, more, TEXT_MAX);
		fuzz_headers(input.data, (uint32_t)input.size);
		break;
	case 2:
		fuzz_ip(input.data, (uint32_t)input.size);
		break;
	case 3:
		fuzz_icrc(&input);
		break;
	case 4:
		time_ns = input_64(&input);
		fuzz_capture(input.data, (uint32_t)input.size, time_ns);
		break;
	}
	return 0;
}
