/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading and writing all headers of a packet, in the order that the opcode's traits give. Both run
 * for every packet, so they access each byte once and skip the fields that the opcode does not
 * carry.
 */
#include "wire/packet.h"

#include "base/bytes.h"

/* Loads the headers after the BTH; the caller has checked that they are there. */
static void load_extensions(const uint8_t *p, uint32_t traits, struct vb_packet *packet)
{
	if (traits & VB_HAS_DETH) {
		packet->deth = vb_deth_load(p);
		p += VB_DETH_SIZE;
	}
	if (traits & VB_HAS_XRCETH) {
		packet->srqn = load24(p + 1);
		p += VB_XRCETH_SIZE;
	}
	if (traits & VB_HAS_RETH) {
		packet->reth = vb_reth_load(p);
		p += VB_RETH_SIZE;
	}
	if (traits & VB_HAS_ATOMICETH) {
		packet->atomic = vb_atomiceth_load(p);
		p += VB_ATOMICETH_SIZE;
	}
	if (traits & VB_HAS_AETH) {
		packet->aeth = vb_aeth_load(p);
		p += VB_AETH_SIZE;
	}
	if (traits & VB_HAS_ATOMICACKETH) {
		packet->atomic_result = load64(p);
		p += VB_ATOMICACKETH_SIZE;
	}
	if (traits & VB_HAS_IMM) {
		packet->imm = load32(p);
		p += VB_IMM_SIZE;
	}
	if (traits & VB_HAS_IETH)
		packet->invalidate_key = load32(p);
}

enum vb_parse_result vb_packet_parse(const uint8_t *head, uint32_t head_length, uint32_t length,
				     struct vb_packet *packet)
{
	uint32_t header_length;
	uint32_t rest_length;
	uint32_t traits;

	if (head_length < VB_BTH_SIZE || length < VB_BTH_SIZE + VB_ICRC_SIZE)
		return VB_PARSE_TOO_SHORT;
	packet->bth = vb_bth_load(head);
	if (packet->bth.version != 0)
		return VB_PARSE_VERSION;
	traits = vb_opcode_traits(packet->bth.opcode);
	if (!traits)
		return VB_PARSE_OPCODE;
	header_length = vb_opcode_header_length(packet->bth.opcode);
	if (head_length < header_length || length < header_length + VB_ICRC_SIZE)
		return VB_PARSE_TOO_SHORT;
	rest_length = length - header_length - VB_ICRC_SIZE;
	if (rest_length < packet->bth.pad)
		return VB_PARSE_TOO_SHORT;
	if (rest_length & 3 || (rest_length && !(traits & VB_HAS_PAYLOAD)))
		return VB_PARSE_LENGTH;
	packet->traits = traits;
	packet->header_length = header_length;
	packet->payload_length = rest_length - packet->bth.pad;
	if (traits & VB_HAS_EXTENSIONS)
		load_extensions(head + VB_BTH_SIZE, traits, packet);
	return VB_PARSED;
}

uint32_t vb_packet_store_headers(uint8_t p[VB_PACKET_HEADERS_MAX], const struct vb_packet *packet)
{
	uint32_t traits = vb_opcode_traits(packet->bth.opcode);
	uint8_t *start = p;

	vb_bth_store(p, &packet->bth);
	if (!(traits & VB_HAS_EXTENSIONS))
		return VB_BTH_SIZE;
	p += VB_BTH_SIZE;
	if (traits & VB_HAS_DETH) {
		vb_deth_store(p, &packet->deth);
		p += VB_DETH_SIZE;
	}
	if (traits & VB_HAS_XRCETH) {
		store32(p, packet->srqn & 0xffffff);
		p += VB_XRCETH_SIZE;
	}
	if (traits & VB_HAS_RETH) {
		vb_reth_store(p, &packet->reth);
		p += VB_RETH_SIZE;
	}
	if (traits & VB_HAS_ATOMICETH) {
		vb_atomiceth_store(p, &packet->atomic);
		p += VB_ATOMICETH_SIZE;
	}
	if (traits & VB_HAS_AETH) {
		vb_aeth_store(p, &packet->aeth);
		p += VB_AETH_SIZE;
	}
	if (traits & VB_HAS_ATOMICACKETH) {
		store64(p, packet->atomic_result);
		p += VB_ATOMICACKETH_SIZE;
	}
	if (traits & VB_HAS_IMM) {
		store32(p, packet->imm);
		p += VB_IMM_SIZE;
	}
	if (traits & VB_HAS_IETH) {
		store32(p, packet->invalidate_key);
		p += VB_IETH_SIZE;
	}
	return (uint32_t)(p - start);
}
