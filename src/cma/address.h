/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses (IPv4 and IPv6 only) and the GIDs that stand for them. InfiniBand's own address
 * family has no meaning on Ethernet.
 */
#ifndef VB_CMA_ADDRESS_H
#define VB_CMA_ADDRESS_H

#include "wire/flow.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define VB_CMA_ADDRESS_TEXT 80

/* 0 if the address family is unknown. */
socklen_t vb_cma_address_length(const struct sockaddr *address);
bool vb_cma_address_is_any(const struct sockaddr *address);
bool vb_cma_address_is_loopback(const struct sockaddr *address); /* 127.0.0.0/8 or ::1 */
bool vb_cma_address_is_multicast(const struct sockaddr *address);
bool vb_cma_address_equal(const struct sockaddr *a,
			  const struct sockaddr *b); /* Ignores the port. */
/* In the CPU's byte order. */
uint16_t vb_cma_address_port(const struct sockaddr *address);
void vb_cma_address_set_port(struct sockaddr *address, uint16_t port);
/* The interface of a link-local address; 0 if the address names none. */
uint32_t vb_cma_address_scope(const struct sockaddr *address);

struct vb_gid vb_cma_address_gid(const struct sockaddr *address);
void vb_cma_address_from_gid(struct sockaddr_storage *address, const struct vb_gid *gid,
			     uint16_t port, uint32_t scope);
void vb_cma_address_any(struct sockaddr_storage *address, int family);
/* The loopback address of the family. */
void vb_cma_address_loopback(struct sockaddr_storage *address, int family, uint16_t port);

/* Checks that the address belongs to this host: 0 or EADDRNOTAVAIL. */
int vb_cma_address_check_local(const struct sockaddr *address);

/*
 * Finds the local address from which packets go to a destination. `source` may be a required
 * address, the wildcard address or NULL. Returns 0 or the kernel's error: ENETUNREACH,
 * EHOSTUNREACH, …
 */
int vb_cma_address_route(const struct sockaddr *source, const struct sockaddr *destination,
			 struct sockaddr_storage *source_out);

const char *vb_cma_address_describe(const struct sockaddr *address, char text[VB_CMA_ADDRESS_TEXT]);

#endif
