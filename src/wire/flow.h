/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layers below the transport headers of a RoCEv2 packet: the addresses and the few fields of
 * IPv4, IPv6 and UDP that the adapter chooses. An IPv4 address is a GID of the form ::ffff:a.b.c.d
 * (IBA A17.4.1.1).
 */
#ifndef VB_WIRE_FLOW_H
#define VB_WIRE_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VB_ROCE_PORT 4791 /* CA17-20 */
#define VB_IPV4_SIZE 20
#define VB_IPV6_SIZE 40
#define VB_UDP_SIZE 8
#define VB_GRH_SIZE 40

struct vb_gid {
	uint8_t raw[16];
};

struct vb_flow {
	struct vb_gid source;
	struct vb_gid destination;
	uint32_t flow_label; /* IPv6 only, 20 bits */
	uint16_t source_port; /* UDP; spreads flows over paths */
	uint8_t traffic_class; /* DSCP and the two ECN bits */
	uint8_t hop_limit;
};

/* Every packet is compared with its QP's peer. A compiler may leave memcmp() to the C library. */
static inline bool vb_gid_equal(const struct vb_gid *a, const struct vb_gid *b)
{
	uint64_t halves[2], others[2];

	memcpy(halves, a, sizeof(halves));
	memcpy(others, b, sizeof(others));
	return !((halves[0] ^ others[0]) | (halves[1] ^ others[1]));
}

/* Whether all fields are equal. */
static inline bool vb_flow_equal(const struct vb_flow *a, const struct vb_flow *b)
{
	uint64_t words[5], others[5];
	uint64_t difference = 0;

	_Static_assert(sizeof(*a) == sizeof(words), "a flow has no padding");
	memcpy(words, a, sizeof(words));
	memcpy(others, b, sizeof(others));
	for (uint32_t i = 0; i < 5; i++)
		difference |= words[i] ^ others[i];
	return !difference;
}

/* Distinguishes pairs of addresses, except one in 2^32. */
static inline uint32_t vb_gid_mark(const struct vb_gid *source, const struct vb_gid *destination)
{
	uint64_t from[2], to[2];

	memcpy(from, source, sizeof(from));
	memcpy(to, destination, sizeof(to));
	return (uint32_t)(((from[0] ^ (from[1] << 21 | from[1] >> 43)) * 0x9e3779b97f4a7c15ull +
			   (to[0] ^ (to[1] << 21 | to[1] >> 43)) * 0xd1342543de82ef95ull) >>
			  32);
}

bool vb_gid_is_zero(const struct vb_gid *gid);
bool vb_gid_is_ipv4(const struct vb_gid *gid);
bool vb_gid_is_multicast(const struct vb_gid *gid); /* ff00::/8 or ::ffff:224.0.0.0/4 */
struct vb_gid vb_gid_from_ipv4(uint32_t address); /* in the CPU's byte order */

/* "10.0.0.1" or "fe80::1". */
void vb_gid_describe(const struct vb_gid *gid, char text[48]);

static inline uint32_t vb_flow_mark(const struct vb_flow *flow)
{
	return vb_gid_mark(&flow->source, &flow->destination);
}

/* A flow is carried by IPv4 when its destination is an IPv4 GID. */
static inline bool vb_flow_is_ipv4(const struct vb_flow *flow)
{
	return vb_gid_is_ipv4(&flow->destination);
}

/*
 * The UDP source port for a pair of QPs: 0xc000 and up, equal for equal arguments (IBA A17.3.2.1).
 */
uint16_t vb_flow_source_port(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn);

/*
 * Stores IPv4 or IPv6 and UDP headers for a UDP payload of that length, as they stand on the wire:
 * DF set, the given ID (IPv4), correct header checksum (IBA A17.3.1); UDP checksum 0 over both, as
 * the ICRC protects the packet (IBA A17.3.2.4). Returns 28 or 48.
 */
uint32_t vb_flow_store_ip_udp(uint8_t *p, const struct vb_flow *flow, uint32_t udp_payload_length,
			      uint16_t ip_id);

/*
 * Stores the 40 bytes that a UD receive gets before its data: the IPv6 header as a GRH, or 20 bytes
 * of 0 and a valid IPv4 header (IBA A17.4.5.2). `udp_payload_length` is that of the packet.
 */
void vb_flow_store_grh(uint8_t p[VB_GRH_SIZE], const struct vb_flow *flow,
		       uint32_t udp_payload_length);

/*
 * The reverse of vb_flow_store_ip_udp: reads an IP packet that begins at p. Returns the offset of
 * the UDP payload and sets *flow, *payload_length, *ip_id; 0 if it is not a well-formed UDP packet
 * to VB_ROCE_PORT.
 */
uint32_t vb_flow_parse_ip_udp(const uint8_t *p, uint32_t length, struct vb_flow *flow,
			      uint32_t *payload_length, uint16_t *ip_id);

#endif
