/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC's masked beginning, and the search for an IPv4 ID that makes an ICRC right. The search
 * is not trial and error: a CRC is the message as a polynomial over GF(2), times x^32, modulo the
 * CRC's polynomial. Two messages that differ only in the ID have CRCs whose difference is
 * (difference of the IDs) * x^n, with n given by the distance of the ID to the end. x has an
 * inverse, so multiplying by x^-n gives the difference of the IDs.
 */
#include "wire/icrc.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "base/err.h"
#include "wire/header.h"

#define ROUTE_SIZE 8 /* stands for InfiniBand's local route header: all ones */
#define IPV4_PREFIX_SIZE (ROUTE_SIZE + VB_IPV4_SIZE + VB_UDP_SIZE)
#define IPV4_ID_END (ROUTE_SIZE + 6) /* where the prefix continues after the ID */
#define BTH_MASKED_BYTE 4 /* FECN, BECN and six reserved bits */

static void store_udp(uint8_t p[VB_UDP_SIZE], const struct vb_flow *flow,
		      uint32_t udp_payload_length)
{
	store32(p, (uint32_t)flow->source_port << 16 | VB_ROCE_PORT);
	store32(p + 4, (VB_UDP_SIZE + udp_payload_length) << 16 | 0xffff);
}

/*
 * In large words: the CRC reads 16 bytes at a time, and a load waits when its bytes come from
 * several stores.
 */
static uint32_t store_ipv4_prefix(uint8_t *p, const struct vb_flow *flow,
				  uint32_t udp_payload_length, uint16_t ip_id)
{
	uint32_t udp_length = VB_UDP_SIZE + udp_payload_length;
	uint32_t ip_length = (VB_IPV4_SIZE + udp_length) & 0xffff;

	store64(p, UINT64_MAX);
	/* Version, TOS masked, length; ID, "don't fragment"; TTL masked, UDP, checksum masked. */
	store64(p + 8, (uint64_t)(0x45ff0000 | ip_length) << 32 | (uint32_t)ip_id << 16 | 0x4000);
	store64(p + 16, (uint64_t)0xff11ffff << 32 | load32(flow->source.raw + 12));
	store64(p + 24, (uint64_t)load32(flow->destination.raw + 12) << 32 |
				(uint32_t)flow->source_port << 16 | VB_ROCE_PORT);
	store32(p + 32, udp_length << 16 | 0xffff);
	return IPV4_PREFIX_SIZE;
}

static uint32_t store_ipv6_prefix(uint8_t *p, const struct vb_flow *flow,
				  uint32_t udp_payload_length)
{
	memset(p, 0xff, ROUTE_SIZE);
	p += ROUTE_SIZE;
	/* Version, traffic class and flow label masked; payload length, UDP, hop limit masked. */
	store32(p, 0x6fffffff);
	store32(p + 4, (VB_UDP_SIZE + udp_payload_length) << 16 | 0x11ff);
	memcpy(p + 8, flow->source.raw, 16);
	memcpy(p + 24, flow->destination.raw, 16);
	store_udp(p + VB_IPV6_SIZE, flow, udp_payload_length);
	return ROUTE_SIZE + VB_IPV6_SIZE + VB_UDP_SIZE;
}

uint32_t vb_icrc_prefix(uint8_t prefix[VB_ICRC_PREFIX_MAX], const struct vb_flow *flow,
			uint32_t udp_payload_length, uint16_t ip_id)
{
	if (vb_flow_is_ipv4(flow))
		return store_ipv4_prefix(prefix, flow, udp_payload_length, ip_id);
	return store_ipv6_prefix(prefix, flow, udp_payload_length);
}

uint32_t vb_icrc_begin(const struct vb_flow *flow, uint32_t udp_payload_length, uint16_t ip_id,
		       const uint8_t bth[VB_BTH_SIZE])
{
	uint8_t masked[VB_ICRC_PREFIX_MAX + VB_BTH_SIZE];
	uint32_t length = vb_icrc_prefix(masked, flow, udp_payload_length, ip_id);

	memcpy(masked + length, bth, VB_BTH_SIZE);
	masked[length + BTH_MASKED_BYTE] = 0xff;
	return vb_crc32(0, masked, length + VB_BTH_SIZE);
}

/*
 * x^-8, x^-16, x^-32, … modulo the CRC's polynomial: each the square of the one before. As
 * everywhere in a reflected CRC, the highest bit is the coefficient of x^0.
 */
static const uint32_t inverse_powers[] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d,
	0x5139de12, 0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
	0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5, 0x9ea0056d,
};

/* The product of two polynomials modulo the CRC's. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int i = 0; i < 32; i++) {
		product ^= b & -(a >> 31);
		a <<= 1;
		b = b >> 1 ^ (0xedb88320 & -(b & 1)); /* times x */
	}
	return product;
}

VB_COLD bool vb_icrc_solve_ip_id(uint32_t difference, uint32_t udp_payload_length, uint16_t assumed,
				 uint16_t *ip_id)
{
	uint32_t shift_bytes;

	if (udp_payload_length < VB_ICRC_SIZE || udp_payload_length > UINT16_MAX)
		return false;
	/*
	 * The rest of the prefix, the part of the payload that the ICRC covers, and the factor
	 * x^32.
	 */
	shift_bytes = IPV4_PREFIX_SIZE - IPV4_ID_END + (udp_payload_length - VB_ICRC_SIZE) + 4;
	for (uint32_t i = 0; shift_bytes >> i; i++)
		if (shift_bytes >> i & 1)
			difference = multiply(difference, inverse_powers[i]);
	/* The coefficients of x^16 and above would change bytes before the ID. */
	if (difference & 0xffff)
		return false;
	*ip_id = assumed ^ __builtin_bswap16((uint16_t)(difference >> 16));
	return true;
}
