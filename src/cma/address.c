/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses. The kernel decides which local address leads to a destination: a UDP socket
 * connected to the destination reveals it without sending a packet.
 */
#include "cma/address.h"

#include "link/sys.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const struct sockaddr_in *ipv4_of(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)(const void *)address;
}

static const struct sockaddr_in6 *ipv6_of(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)(const void *)address;
}

socklen_t vb_cma_address_length(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

bool vb_cma_address_is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ipv4_of(address)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&ipv6_of(address)->sin6_addr);
}

bool vb_cma_address_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(ipv4_of(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&ipv6_of(address)->sin6_addr);
}

bool vb_cma_address_is_multicast(const struct sockaddr *address)
{
	struct vb_gid gid = vb_cma_address_gid(address);

	return vb_gid_is_multicast(&gid);
}

bool vb_cma_address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	struct vb_gid gid_a = vb_cma_address_gid(a);
	struct vb_gid gid_b = vb_cma_address_gid(b);

	return a->sa_family == b->sa_family && vb_gid_equal(&gid_a, &gid_b) &&
	       vb_cma_address_scope(a) == vb_cma_address_scope(b);
}

uint16_t vb_cma_address_port(const struct sockaddr *address)
{
	return ntohs(address->sa_family == AF_INET ? ipv4_of(address)->sin_port
						   : ipv6_of(address)->sin6_port);
}

void vb_cma_address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
}

uint32_t vb_cma_address_scope(const struct sockaddr *address)
{
	if (address->sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&ipv6_of(address)->sin6_addr))
		return 0;
	return ipv6_of(address)->sin6_scope_id;
}

struct vb_gid vb_cma_address_gid(const struct sockaddr *address)
{
	struct vb_gid gid;

	if (address->sa_family == AF_INET)
		return vb_gid_from_ipv4(ntohl(ipv4_of(address)->sin_addr.s_addr));
	memcpy(gid.raw, &ipv6_of(address)->sin6_addr, sizeof(gid.raw));
	return gid;
}

void vb_cma_address_any(struct sockaddr_storage *address, int family)
{
	memset(address, 0, sizeof(*address));
	address->ss_family = (sa_family_t)family;
}

void vb_cma_address_from_gid(struct sockaddr_storage *address, const struct vb_gid *gid,
			     uint16_t port, uint32_t scope)
{
	bool is_ipv4 = vb_gid_is_ipv4(gid);

	vb_cma_address_any(address, is_ipv4 ? AF_INET : AF_INET6);
	if (is_ipv4) {
		memcpy(&((struct sockaddr_in *)(void *)address)->sin_addr, gid->raw + 12, 4);
	} else {
		struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)(void *)address;

		memcpy(&ipv6->sin6_addr, gid->raw, sizeof(gid->raw));
		if (IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr))
			ipv6->sin6_scope_id = scope;
	}
	vb_cma_address_set_port((struct sockaddr *)address, port);
}

void vb_cma_address_loopback(struct sockaddr_storage *address, int family, uint16_t port)
{
	vb_cma_address_any(address, family);
	if (family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_addr = in6addr_loopback;
	vb_cma_address_set_port((struct sockaddr *)address, port);
}

/* --- what the kernel knows -------------------------------------------------------------------- */

/*
 * Opens a UDP socket bound to an address, with a port of the kernel's choice. Returns the
 * descriptor or a negative errno.
 */
static int open_bound(const struct sockaddr *address)
{
	struct sockaddr_storage name = { 0 };
	int fd = vb_sys_socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return fd;
	memcpy(&name, address, vb_cma_address_length(address));
	vb_cma_address_set_port((struct sockaddr *)&name, 0);
	error = vb_sys_bind(fd, &name, vb_cma_address_length(address));
	if (!error)
		return fd;
	vb_sys_close(fd);
	return error;
}

int vb_cma_address_check_local(const struct sockaddr *address)
{
	int fd = open_bound(address);

	if (fd >= 0)
		vb_sys_close(fd);
	return fd < 0 ? -fd : 0;
}

int vb_cma_address_route(const struct sockaddr *source, const struct sockaddr *destination,
			 struct sockaddr_storage *source_out)
{
	struct sockaddr_storage any, target = { 0 };
	socklen_t length = sizeof(*source_out);
	int fd, error;

	vb_cma_address_any(&any, destination->sa_family);
	fd = open_bound(source ? source : (struct sockaddr *)&any);
	if (fd < 0)
		return -fd;
	memcpy(&target, destination, vb_cma_address_length(destination));
	vb_cma_address_set_port((struct sockaddr *)&target, VB_ROCE_PORT); /* any port but 0 */
	error = vb_sys_connect(fd, &target, vb_cma_address_length(destination));
	memset(source_out, 0, sizeof(*source_out));
	if (!error)
		error = vb_sys_getsockname(fd, source_out, &length);
	vb_sys_close(fd);
	return -error;
}

const char *vb_cma_address_describe(const struct sockaddr *address, char text[VB_CMA_ADDRESS_TEXT])
{
	struct vb_gid gid;
	char host[48];

	if (!vb_cma_address_length(address)) {
		snprintf(text, VB_CMA_ADDRESS_TEXT, "an address of family %u", address->sa_family);
		return text;
	}
	gid = vb_cma_address_gid(address);
	vb_gid_describe(&gid, host);
	snprintf(text, VB_CMA_ADDRESS_TEXT, "%s port %u", host, vb_cma_address_port(address));
	return text;
}
