/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables are not written down but computed by the CRC itself, from messages of one bit. */
#include "wire/icrc_memo.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/header.h"
#include "wire/icrc.h"

#define KIND_SIZE 8 /* the part of the BTH in front of its last word */
#define KIND_MASK 0xff000000u /* its byte with FECN and BECN */
#define IPV4_START_SIZE (8 + VB_IPV4_SIZE + VB_UDP_SIZE + KIND_SIZE)
#define IPV4_ID_OFFSET (8 + 4)

/* What the register becomes when 4 bytes of 0 go through it. */
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

static void remember(struct vb_icrc_memo *memo, const struct vb_flow *flow,
		     uint32_t udp_payload_length, uint64_t kind)
{
	uint8_t start[VB_ICRC_PREFIX_MAX + KIND_SIZE];
	uint32_t length = vb_icrc_prefix(start, flow, udp_payload_length, 0);

	store64(start + length, kind);
	memo->flow = *flow;
	memo->kind = kind;
	memo->udp_payload_length = udp_payload_length;
	memo->crc = vb_crc32(0, start, length + KIND_SIZE);
}

static uint32_t ip_id_part(const struct vb_icrc_memo *memo, uint16_t ip_id)
{
	return memo->ip_id_parts[0][ip_id & 0xff] ^ memo->ip_id_parts[1][ip_id >> 8];
}

uint32_t vb_icrc_memo_begin(struct vb_icrc_memo *memo, const struct vb_flow *flow,
			    uint32_t udp_payload_length, uint16_t ip_id, const uint8_t bth[12])
{
	uint64_t kind = load64(bth) | KIND_MASK;
	uint32_t crc;
	uint32_t reg;
	uint32_t sum = 0;

	if (memo->kind != kind || memo->udp_payload_length != udp_payload_length ||
	    !is_same_flow(&memo->flow, flow))
		remember(memo, flow, udp_payload_length, kind);
	crc = memo->crc;
	if (ip_id && vb_flow_is_ipv4(flow))
		crc ^= ip_id_part(memo, ip_id);
	reg = ~crc ^ vb_icrc_load(bth + KIND_SIZE);
	for (uint32_t place = 0; place < 4; place++)
		sum ^= memo->word_parts[place][reg >> 8 * place & 0xff];
	return ~sum;
}
