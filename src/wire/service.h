/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP addresses and ports in the messages of the connection manager (IBA annex A11). A port of a
 * port space is a service ID, and the private data of a REQ or SIDR_REQ for one begins with the
 * addresses of both ends. An IPv4 address is a GID of the form ::ffff:a.b.c.d here, but 12 bytes of
 * 0 and 4 of address on the wire.
 */
#ifndef VB_WIRE_SERVICE_H
#define VB_WIRE_SERVICE_H

#include "wire/flow.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_SERVICE_IP_SIZE 36 /* of the addresses before the program's private data */

/* Port spaces, as programs name them. */
#define VB_SERVICE_SPACE_IPOIB 0x0002
#define VB_SERVICE_SPACE_TCP 0x0106
#define VB_SERVICE_SPACE_UDP 0x0111
#define VB_SERVICE_SPACE_IB 0x013f

struct vb_service_ip {
	uint16_t source_port;
	struct vb_gid source; /* of the same family as the destination */
	struct vb_gid destination; /* its port is in the service ID */
};

static inline uint64_t vb_service_id(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

/* True if the private data of a request for this service begins with addresses. */
static inline bool vb_service_is_ip(uint64_t service)
{
	return service >> 24 == 1;
}

static inline uint16_t vb_service_port(uint64_t service)
{
	return (uint16_t)service;
}

void vb_service_ip_store(uint8_t p[VB_SERVICE_IP_SIZE], const struct vb_service_ip *ip);

/*
 * False if the version is another one, or if it is neither IPv4 nor IPv6. Writes *ip only if it is
 * valid.
 */
bool vb_service_ip_parse(const uint8_t p[VB_SERVICE_IP_SIZE], struct vb_service_ip *ip);

#endif
