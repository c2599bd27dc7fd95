/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP and UDP headers, and the addresses in them. The UDP checksum is 0 over both IP versions:
 * RoCEv2 has the ICRC instead, and a sender of spans of application memory could not compute the
 * checksum here anyway.
 */
#include "wire/flow.h"

#include "base/bytes.h"

#include <stdio.h>

#define IP_PROTOCOL_UDP 17
#define IPV4_DONT_FRAGMENT 0x4000
#define IPV4_FRAGMENT_MASK 0x3fff /* "more fragments" and the offset */
#define FLOW_LABEL_MASK 0xfffffu

static const uint8_t ipv4_gid_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool vb_gid_is_zero(const struct vb_gid *gid)
{
	return (load64(gid->raw) | load64(gid->raw + 8)) == 0;
}

bool vb_gid_is_ipv4(const struct vb_gid *gid)
{
	return load64(gid->raw) == 0 && load32(gid->raw + 8) == 0xffff;
}

bool vb_gid_is_multicast(const struct vb_gid *gid)
{
	if (vb_gid_is_ipv4(gid))
		return gid->raw[12] >> 4 == 0xe;
	return gid->raw[0] == 0xff;
}

struct vb_gid vb_gid_from_ipv4(uint32_t address)
{
	struct vb_gid gid;

	memcpy(gid.raw, ipv4_gid_prefix, sizeof(ipv4_gid_prefix));
	store32(gid.raw + 12, address);
	return gid;
}

/*
 * The longest run of two or more zero groups of an IPv6 address, the first of equal ones (RFC 5952,
 * 4.2); a length of 0 if there is none.
 */
static uint32_t longest_zero_run(const struct vb_gid *gid, uint32_t *start)
{
	uint32_t longest = 1;
	uint32_t run = 0;

	for (uint32_t i = 0; i < 8; i++) {
		run = load16(gid->raw + 2 * i) ? 0 : run + 1;
		if (run > longest) {
			longest = run;
			*start = i + 1 - run;
		}
	}
	return longest > 1 ? longest : 0;
}

void vb_gid_describe(const struct vb_gid *gid, char text[48])
{
	const uint8_t *raw = gid->raw;
	uint32_t zeros_start = 0;
	uint32_t zeros_length;
	int length = 0;

	if (vb_gid_is_ipv4(gid)) {
		snprintf(text, 48, "%u.%u.%u.%u", raw[12], raw[13], raw[14], raw[15]);
		return;
	}
	zeros_length = longest_zero_run(gid, &zeros_start);
	for (uint32_t i = 0; i < 8; i++) {
		if (zeros_length && i == zeros_start) {
			length += snprintf(text + length, 48 - (size_t)length, "::");
			i += zeros_length - 1;
			continue;
		}
		if (i && !(zeros_length && i == zeros_start + zeros_length))
			text[length++] = ':';
		length += snprintf(text + length, 48 - (size_t)length, "%x", load16(raw + 2 * i));
	}
}

uint16_t vb_flow_source_port(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn)
{
	/* Multiplication by an odd number mixes only upwards: the port is taken from the top. */
	uint64_t mixed = (uint64_t)local_qpn << 40 ^ (uint64_t)remote_qpn << 16 ^ flow_label;

	mixed ^= mixed >> 31;
	mixed *= 0xd1342543de82ef95u;
	mixed ^= mixed >> 29;
	mixed *= 0xd1342543de82ef95u;
	return (uint16_t)(0xc000 | mixed >> 50);
}

/* The Internet checksum over an IPv4 header without options; 0 if the stored one is right. */
static uint16_t ipv4_checksum(const uint8_t p[VB_IPV4_SIZE])
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < VB_IPV4_SIZE; i += 2)
		sum += load16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void store_ipv4(uint8_t p[VB_IPV4_SIZE], const struct vb_flow *flow,
		       uint32_t udp_payload_length, uint16_t ip_id)
{
	p[0] = 0x45;
	p[1] = flow->traffic_class;
	store16(p + 2, (uint16_t)(VB_IPV4_SIZE + VB_UDP_SIZE + udp_payload_length));
	store16(p + 4, ip_id);
	store16(p + 6, IPV4_DONT_FRAGMENT);
	p[8] = flow->hop_limit;
	p[9] = IP_PROTOCOL_UDP;
	store16(p + 10, 0);
	memcpy(p + 12, flow->source.raw + 12, 4);
	memcpy(p + 16, flow->destination.raw + 12, 4);
	store16(p + 10, ipv4_checksum(p));
}

static void store_ipv6(uint8_t p[VB_IPV6_SIZE], const struct vb_flow *flow,
		       uint32_t udp_payload_length)
{
	store32(p, 6u << 28 | (uint32_t)flow->traffic_class << 20 |
			   (flow->flow_label & FLOW_LABEL_MASK));
	store16(p + 4, (uint16_t)(VB_UDP_SIZE + udp_payload_length));
	p[6] = IP_PROTOCOL_UDP;
	p[7] = flow->hop_limit;
	memcpy(p + 8, flow->source.raw, 16);
	memcpy(p + 24, flow->destination.raw, 16);
}

uint32_t vb_flow_store_ip_udp(uint8_t *p, const struct vb_flow *flow, uint32_t udp_payload_length,
			      uint16_t ip_id)
{
	uint32_t ip_length;

	if (vb_flow_is_ipv4(flow)) {
		store_ipv4(p, flow, udp_payload_length, ip_id);
		ip_length = VB_IPV4_SIZE;
	} else {
		store_ipv6(p, flow, udp_payload_length);
		ip_length = VB_IPV6_SIZE;
	}
	p += ip_length;
	store16(p, flow->source_port);
	store16(p + 2, VB_ROCE_PORT);
	store16(p + 4, (uint16_t)(VB_UDP_SIZE + udp_payload_length));
	store16(p + 6, 0);
	return ip_length + VB_UDP_SIZE;
}

void vb_flow_store_grh(uint8_t p[VB_GRH_SIZE], const struct vb_flow *flow,
		       uint32_t udp_payload_length)
{
	if (vb_flow_is_ipv4(flow)) {
		memset(p, 0, VB_GRH_SIZE - VB_IPV4_SIZE);
		store_ipv4(p + VB_GRH_SIZE - VB_IPV4_SIZE, flow, udp_payload_length, 0);
	} else {
		store_ipv6(p, flow, udp_payload_length);
	}
}

/*
 * Returns the length of the IP header, and the length of what follows it; 0 if the packet is not
 * for us.
 */
static uint32_t parse_ipv4(const uint8_t *p, uint32_t length, struct vb_flow *flow,
			   uint32_t *ip_payload_length, uint16_t *ip_id)
{
	uint32_t total_length;

	/* The ICRC has no place for options (CA17-3); fragments (CA17-8) are not reassembled. */
	if (length < VB_IPV4_SIZE || p[0] != 0x45 || (load16(p + 6) & IPV4_FRAGMENT_MASK))
		return 0;
	total_length = load16(p + 2);
	if (total_length < VB_IPV4_SIZE || total_length > length || p[9] != IP_PROTOCOL_UDP ||
	    ipv4_checksum(p) != 0)
		return 0;
	*flow = (struct vb_flow){
		.source = vb_gid_from_ipv4(load32(p + 12)),
		.destination = vb_gid_from_ipv4(load32(p + 16)),
		.traffic_class = p[1],
		.hop_limit = p[8],
	};
	*ip_id = load16(p + 4);
	*ip_payload_length = total_length - VB_IPV4_SIZE;
	return VB_IPV4_SIZE;
}

static uint32_t parse_ipv6(const uint8_t *p, uint32_t length, struct vb_flow *flow,
			   uint32_t *ip_payload_length, uint16_t *ip_id)
{
	if (length < VB_IPV6_SIZE || p[6] != IP_PROTOCOL_UDP ||
	    load16(p + 4) > length - VB_IPV6_SIZE)
		return 0;
	*flow = (struct vb_flow){
		.flow_label = load32(p) & FLOW_LABEL_MASK,
		.traffic_class = (uint8_t)(load32(p) >> 20),
		.hop_limit = p[7],
	};
	memcpy(flow->source.raw, p + 8, 16);
	memcpy(flow->destination.raw, p + 24, 16);
	/* Such an address would stand for IPv4 here; the wire must not carry one. */
	if (vb_gid_is_ipv4(&flow->source) || vb_gid_is_ipv4(&flow->destination))
		return 0;
	*ip_id = 0;
	*ip_payload_length = load16(p + 4);
	return VB_IPV6_SIZE;
}

uint32_t vb_flow_parse_ip_udp(const uint8_t *p, uint32_t length, struct vb_flow *flow,
			      uint32_t *payload_length, uint16_t *ip_id)
{
	uint32_t ip_payload_length = 0;
	uint32_t ip_length = 0;
	struct vb_flow parsed;
	uint16_t id = 0;

	if (length && p[0] >> 4 == 4)
		ip_length = parse_ipv4(p, length, &parsed, &ip_payload_length, &id);
	else if (length && p[0] >> 4 == 6)
		ip_length = parse_ipv6(p, length, &parsed, &ip_payload_length, &id);
	if (!ip_length || ip_payload_length < VB_UDP_SIZE)
		return 0;
	p += ip_length;
	/* The UDP checksum is not checked: the ICRC covers more. */
	if (load16(p + 2) != VB_ROCE_PORT || load16(p + 4) != ip_payload_length)
		return 0;
	parsed.source_port = load16(p);
	*flow = parsed;
	*payload_length = ip_payload_length - VB_UDP_SIZE;
	*ip_id = id;
	return ip_length + VB_UDP_SIZE;
}
