/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter for packets that come from addresses of this host. There, any user can send from any
 * address, but only from that user's own ports. So a packet that comes by the wire from this host
 * must come from a port of this process, or of another process of the same user. Port members may
 * announce their ports (vb_own_ports_add()); for other ports, the kernel is asked which user's
 * socket has them. One thread at a time uses the filter.
 */
#ifndef VB_HOST_REGISTRY_OWN_PORTS_H
#define VB_HOST_REGISTRY_OWN_PORTS_H

#include "base/err.h"
#include "wire/flow.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_PORT_WORDS (65536u / 64)

struct vb_own_ports;

/*
 * `port`, one of our own, shows which user the kernel takes us for. If the kernel cannot report
 * that, nothing is refused. The caller owns the result.
 */
VB_MUST_USE vb_err vb_own_ports_create(uint16_t port, struct vb_own_ports **ports_out);
void vb_own_ports_destroy(struct vb_own_ports *ports);

/* Adds a port of our user until it is removed: the kernel is not asked about it. */
void vb_own_ports_add(struct vb_own_ports *ports, uint16_t port);
void vb_own_ports_remove(struct vb_own_ports *ports, uint16_t port);

/* The ports that need no question. */
const uint64_t *vb_own_ports_trusted(const struct vb_own_ports *ports);
/*
 * For all other ports: whether the sender is a process of another user on this host. `interface` is
 * where the packet came in. Takes a moment if the kernel was not asked lately.
 */
bool vb_own_ports_is_stranger(struct vb_own_ports *ports, const struct vb_gid *source,
			      uint32_t interface, uint16_t port, uint64_t now_ns);

/* To be called now and then: the kernel's answers are forgotten after a tenth of a second. */
void vb_own_ports_expire(struct vb_own_ports *ports, uint64_t now_ns);

static inline bool vb_own_ports_has(const uint64_t *trusted, uint16_t port)
{
	return trusted[port / 64] >> port % 64 & 1;
}

#endif
