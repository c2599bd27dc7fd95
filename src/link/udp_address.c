/* SPDX-License-Identifier: BSD-2-Clause */
/* The conversion between our addresses and the kernel's socket addresses. */
#include "link/udp_priv.h"

#include <string.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool vb_udp_address_is_ipv4(const struct vb_udp_address *address)
{
	return memcmp(address->ip, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

bool vb_udp_address_is_zero(const struct vb_udp_address *address)
{
	static const uint8_t zero[sizeof(address->ip)];

	return memcmp(address->ip, zero, sizeof(zero)) == 0;
}

bool vb_udp_address_is_multicast(const struct vb_udp_address *address)
{
	return vb_udp_address_is_ipv4(address) ? address->ip[12] >> 4 == 0xe
					       : address->ip[0] == 0xff;
}

/* IPv4's link-local addresses are routed. */
bool vb_udp_address_has_scope(const struct vb_udp_address *address)
{
	return vb_udp_address_is_multicast(address) ||
	       (address->ip[0] == 0xfe && address->ip[1] >> 6 == 2);
}

struct vb_udp_address vb_udp_address_from_ipv4(struct in_addr ip, uint32_t scope)
{
	struct vb_udp_address address = { .scope = scope };

	memcpy(address.ip, mapped_prefix, sizeof(mapped_prefix));
	memcpy(address.ip + sizeof(mapped_prefix), &ip, sizeof(ip));
	return address;
}

socklen_t vb_udp_address_store(const struct vb_udp_address *address, uint16_t port, int family,
			       union vb_udp_name *name)
{
	if (family == AF_INET6) {
		name->v6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6,
			.sin6_port = htons(port),
			.sin6_scope_id = address->scope,
		};
		memcpy(&name->v6.sin6_addr, address->ip, sizeof(address->ip));
		return sizeof(name->v6);
	}
	if (!vb_udp_address_is_ipv4(address))
		return 0;
	name->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	memcpy(&name->v4.sin_addr, address->ip + sizeof(mapped_prefix), sizeof(name->v4.sin_addr));
	return sizeof(name->v4);
}

struct vb_udp_address vb_udp_address_load(const union vb_udp_name *name, uint16_t *port)
{
	struct vb_udp_address address;

	if (name->any.sa_family == AF_INET) {
		*port = ntohs(name->v4.sin_port);
		return vb_udp_address_from_ipv4(name->v4.sin_addr, 0);
	}
	*port = ntohs(name->v6.sin6_port);
	memcpy(address.ip, &name->v6.sin6_addr, sizeof(address.ip));
	address.scope = name->v6.sin6_scope_id;
	return address;
}
