/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of the ICRC memo. They are not written out but computed by the CRC itself, from messages
 * of one bit.
 */
#include "wire/icrc_memo.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "base/err.h"
#include "wire/header.h"
#include "wire/icrc.h"

#define HASH_SHIFT 60
#define FEW_BYTES 12u
#define KIND_SIZE 8 /* the part of the BTH before its last word */
#define KIND_MASK 0xff000000u /* its byte with FECN and BECN */
#define IPV4_START_SIZE (8 + VB_IPV4_SIZE + VB_UDP_SIZE + KIND_SIZE)
#define IPV4_ID_OFFSET (8 + 4)

_Static_assert(VB_ICRC_MEMO_ENTRIES == 1u << (64 - HASH_SHIFT), "every hash has its entry");

/* Computes the CRC register after 4 bytes of 0. */
static uint32_t shift_word(uint32_t reg)
{
	static const uint8_t zeros[4];

	return ~vb_crc32(~reg, zeros, sizeof(zeros));
}

void vb_icrc_memo_init(struct vb_icrc_memo *memo)
{
	uint8_t start[IPV4_START_SIZE] = { 0 };
	uint32_t of_zero = vb_crc32(0, start, sizeof(start));

	*memo = (struct vb_icrc_memo){ 0 };
	for (uint32_t place = 0; place < 2; place++) {
		for (uint32_t value = 0; value < 256; value++) {
			store16(start + IPV4_ID_OFFSET, (uint16_t)(value << 8 * place));
			memo->ip_id_parts[place][value] = vb_crc32(0, start, sizeof(start)) ^
							  of_zero;
		}
	}
	for (uint32_t place = 0; place < 4; place++)
		for (uint32_t value = 0; value < 256; value++)
			memo->word_parts[place][value] = shift_word(value << 8 * place);
}

/* The fields of a flow that the ICRC covers. */
static bool is_same_flow(const struct vb_flow *a, const struct vb_flow *b)
{
	return vb_gid_equal(&a->source, &b->source) &&
	       vb_gid_equal(&a->destination, &b->destination) && a->source_port == b->source_port;
}

static struct vb_icrc_memo_entry *entry_of(struct vb_icrc_memo *memo, uint32_t udp_payload_length,
					   uint64_t kind)
{
	uint64_t hash = (kind ^ udp_payload_length) * 0x9e3779b97f4a7c15u;

	return &memo->entries[hash >> HASH_SHIFT];
}

VB_COLD static void remember(struct vb_icrc_memo_entry *entry, const struct vb_flow *flow,
			     uint32_t udp_payload_length, uint64_t kind)
{
	uint8_t start[VB_ICRC_PREFIX_MAX + KIND_SIZE];
	uint32_t length = vb_icrc_prefix(start, flow, udp_payload_length, 0);

	store64(start + length, kind);
	entry->flow = *flow;
	entry->kind = kind;
	entry->udp_payload_length = udp_payload_length;
	entry->crc = vb_crc32(0, start, length + KIND_SIZE);
}

static uint32_t ip_id_part(const struct vb_icrc_memo *memo, uint16_t ip_id)
{
	return memo->ip_id_parts[0][ip_id & 0xff] ^ memo->ip_id_parts[1][ip_id >> 8];
}

/* The register after 4 bytes of 0, by table. */
static uint32_t pass_word(const struct vb_icrc_memo *memo, uint32_t reg)
{
	return memo->word_parts[0][reg & 0xff] ^ memo->word_parts[1][reg >> 8 & 0xff] ^
	       memo->word_parts[2][reg >> 16 & 0xff] ^ memo->word_parts[3][reg >> 24];
}

uint32_t vb_icrc_memo_add(const struct vb_icrc_memo *memo, uint32_t crc, const uint8_t *bytes,
			  uint32_t length)
{
	uint32_t reg = ~crc;

	if (length > FEW_BYTES || length % 4)
		return vb_crc32(crc, bytes, length);
	for (uint32_t at = 0; at < length; at += 4)
		reg = pass_word(memo, reg ^ vb_icrc_load(bytes + at));
	return ~reg;
}

uint32_t vb_icrc_memo_begin(struct vb_icrc_memo *memo, const struct vb_flow *flow,
			    uint32_t udp_payload_length, uint16_t ip_id, const uint8_t bth[12])
{
	uint64_t kind = load64(bth) | KIND_MASK;
	struct vb_icrc_memo_entry *entry = entry_of(memo, udp_payload_length, kind);
	uint32_t crc;

	if (entry->kind != kind || entry->udp_payload_length != udp_payload_length ||
	    !is_same_flow(&entry->flow, flow))
		remember(entry, flow, udp_payload_length, kind);
	crc = entry->crc;
	if (ip_id && vb_flow_is_ipv4(flow))
		crc ^= ip_id_part(memo, ip_id);
	return ~pass_word(memo, ~crc ^ vb_icrc_load(bth + KIND_SIZE));
}
