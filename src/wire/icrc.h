/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2 (CA17-22). It covers 8 bytes of ones, then the IP and UDP headers and
 * the BTH, with the fields that routers may change replaced by ones (TOS and TTL or traffic class,
 * flow label and hop limit; both checksums; the BTH's byte with FECN and BECN), and everything
 * after them up to the ICRC itself. It is sent with its lowest byte first.
 */
#ifndef VB_WIRE_ICRC_H
#define VB_WIRE_ICRC_H

#include "wire/flow.h"

#include <stdbool.h>
#include <stdint.h>

/* 8 bytes of ones, the masked IPv6 or IPv4 header, the masked UDP header. */
#define VB_ICRC_PREFIX_MAX (8 + VB_IPV6_SIZE + VB_UDP_SIZE)

/* Writes the masked prefix; the UDP payload's length includes the ICRC. Returns 36 or 56. */
uint32_t vb_icrc_prefix(uint8_t prefix[VB_ICRC_PREFIX_MAX], const struct vb_flow *flow,
			uint32_t udp_payload_length, uint16_t ip_id);

/*
 * Computes the CRC over the prefix and the masked BTH at `bth` (12 bytes; not changed). The rest of
 * the packet is added with vb_crc32() or vb_dma_crc32(). vb_icrc_store() writes the result to the
 * wire.
 */
uint32_t vb_icrc_begin(const struct vb_flow *flow, uint32_t udp_payload_length, uint16_t ip_id,
		       const uint8_t bth[12]);

static inline void vb_icrc_store(uint8_t p[4], uint32_t crc)
{
	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}

static inline uint32_t vb_icrc_load(const uint8_t p[4])
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/*
 * A receiver on a UDP socket does not see the IPv4 ID. Given computed xor received for ID `assumed`
 * and the packet's UDP payload length, finds the ID that makes the ICRC right, if there is one. 16
 * bits of the check's strength remain. False if no ID does.
 */
bool vb_icrc_solve_ip_id(uint32_t difference, uint32_t udp_payload_length, uint16_t assumed,
			 uint16_t *ip_id);

#endif
