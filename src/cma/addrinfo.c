/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names to addresses: getaddrinfo() of the C library, plus what it does not know about RDMA: port
 * space, QP type, and the source address that leads to a destination. Errors are numbers of
 * getaddrinfo(), as the manual page specifies. malloc() makes all of a result: programs, libfabric
 * among them, replace its addresses by their own before they free it.
 */
#include "cma/cma_priv.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

static const struct rdma_addrinfo no_hints = { 0 };

VB_CMA_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}

static struct sockaddr *copy_of(const struct sockaddr *address, socklen_t length)
{
	struct sockaddr *copy = malloc(length);

	if (copy)
		memcpy(copy, address, length);
	return copy;
}

/* Sets one of the two ends. */
static int set_end(struct sockaddr **end, socklen_t *end_length, const struct sockaddr *address,
		   socklen_t length)
{
	*end = copy_of(address, length);
	*end_length = length;
	return *end ? 0 : EAI_MEMORY;
}

/* --- port space and type ---------------------------------------------------------------------- */

static bool is_datagram(int type)
{
	return type == IBV_QPT_UD;
}

static int type_of(const struct rdma_addrinfo *hints)
{
	if (hints->ai_qp_type)
		return hints->ai_qp_type;
	return hints->ai_port_space == RDMA_PS_UDP || hints->ai_port_space == RDMA_PS_IPOIB
		       ? IBV_QPT_UD
		       : IBV_QPT_RC;
}

static int space_of(const struct rdma_addrinfo *hints)
{
	if (hints->ai_port_space)
		return hints->ai_port_space;
	return is_datagram(type_of(hints)) ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static int check_hints(const struct rdma_addrinfo *hints)
{
	if (hints->ai_flags & ~FLAGS)
		return EAI_BADFLAGS;
	if (hints->ai_family && hints->ai_family != AF_INET && hints->ai_family != AF_INET6)
		return EAI_FAMILY;
	if (hints->ai_qp_type &&
	    is_datagram(hints->ai_qp_type) !=
		    (space_of(hints) == RDMA_PS_UDP || space_of(hints) == RDMA_PS_IPOIB) &&
	    space_of(hints) != RDMA_PS_IB)
		return EAI_SOCKTYPE;
	return 0;
}

/* --- looking up ------------------------------------------------------------------------------- */

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct addrinfo **found)
{
	struct addrinfo wanted = {
		.ai_family = hints->ai_family,
		.ai_socktype = is_datagram(type_of(hints)) ? SOCK_DGRAM : SOCK_STREAM,
		.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			    (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
	};

	return getaddrinfo(node, service, &wanted, found);
}

/* Uses the first result, which is the best. */
static int set_by_name(struct rdma_addrinfo *info, const char *node, const char *service,
		       const struct rdma_addrinfo *hints)
{
	bool is_passive = hints->ai_flags & RAI_PASSIVE;
	struct addrinfo *found;
	int error = look_up(node, service, hints, &found);

	if (error)
		return error;
	info->ai_family = found->ai_family;
	error = set_end(is_passive ? &info->ai_src_addr : &info->ai_dst_addr,
			is_passive ? &info->ai_src_len : &info->ai_dst_len, found->ai_addr,
			found->ai_addrlen);
	freeaddrinfo(found);
	return error;
}

/* Takes from the hints what the name did not provide. */
static int set_by_hints(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	int error = 0;

	if (!info->ai_src_addr && hints->ai_src_len)
		error = set_end(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr,
				hints->ai_src_len);
	if (!error && !info->ai_dst_addr && hints->ai_dst_len)
		error = set_end(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr,
				hints->ai_dst_len);
	if (!info->ai_family && info->ai_src_addr)
		info->ai_family = info->ai_src_addr->sa_family;
	if (!info->ai_family && info->ai_dst_addr)
		info->ai_family = info->ai_dst_addr->sa_family;
	return error;
}

/*
 * Sets the local address that leads to the destination. It may stay unknown: resolving finds it
 * later.
 */
static int set_source(struct rdma_addrinfo *info)
{
	struct sockaddr_storage source;

	if (info->ai_src_addr || !info->ai_dst_addr ||
	    info->ai_flags & (RAI_PASSIVE | RAI_NOROUTE) ||
	    !vb_cma_address_length(info->ai_dst_addr) || vb_cma_address_is_any(info->ai_dst_addr) ||
	    vb_cma_address_route(NULL, info->ai_dst_addr, &source))
		return 0;
	vb_cma_address_set_port((struct sockaddr *)&source, 0);
	return set_end(&info->ai_src_addr, &info->ai_src_len, (struct sockaddr *)&source,
		       vb_cma_address_length((struct sockaddr *)&source));
}

VB_CMA_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
				   const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *info;
	int error;

	if (!res || (!node && !service && !hints))
		return vb_cma_return(vb_cma_refuse(EINVAL, "rdma_getaddrinfo: nothing to look up"));
	if (!hints)
		hints = &no_hints;
	error = check_hints(hints);
	if (error)
		return error;
	info = calloc(1, sizeof(*info));
	if (!info)
		return EAI_MEMORY;
	info->ai_flags = hints->ai_flags;
	info->ai_qp_type = type_of(hints);
	info->ai_port_space = space_of(hints);
	if (node || service)
		error = set_by_name(info, node, service, hints);
	if (!error)
		error = set_by_hints(info, hints);
	if (!error)
		error = set_source(info);
	if (error) {
		rdma_freeaddrinfo(info);
		return error;
	}
	*res = info;
	return 0;
}
