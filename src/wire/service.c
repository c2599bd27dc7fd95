/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses before the private data: version, IP version, source port, source, destination. */
#include "wire/service.h"

#include "base/bytes.h"

#define VERSION 0
#define IPV4_AT 12 /* in the 16 bytes of an address */

static void store_address(uint8_t p[16], const struct vb_gid *address, bool is_ipv4)
{
	memset(p, 0, 16);
	if (is_ipv4)
		memcpy(p + IPV4_AT, address->raw + IPV4_AT, 4);
	else
		memcpy(p, address->raw, 16);
}

static struct vb_gid load_address(const uint8_t p[16], bool is_ipv4)
{
	struct vb_gid address;

	if (is_ipv4)
		return vb_gid_from_ipv4(load32(p + IPV4_AT));
	memcpy(address.raw, p, sizeof(address.raw));
	return address;
}

void vb_service_ip_store(uint8_t p[VB_SERVICE_IP_SIZE], const struct vb_service_ip *ip)
{
	bool is_ipv4 = vb_gid_is_ipv4(&ip->destination);

	p[0] = VERSION;
	p[1] = is_ipv4 ? 4 << 4 : 6 << 4;
	store16(p + 2, ip->source_port);
	store_address(p + 4, &ip->source, is_ipv4);
	store_address(p + 20, &ip->destination, is_ipv4);
}

bool vb_service_ip_parse(const uint8_t p[VB_SERVICE_IP_SIZE], struct vb_service_ip *ip)
{
	uint8_t ip_version = p[1] >> 4;

	if (p[0] != VERSION || (ip_version != 4 && ip_version != 6))
		return false;
	ip->source_port = load16(p + 2);
	ip->source = load_address(p + 4, ip_version == 4);
	ip->destination = load_address(p + 20, ip_version == 4);
	return vb_gid_is_ipv4(&ip->source) == vb_gid_is_ipv4(&ip->destination);
}
