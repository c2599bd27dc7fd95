/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose packets are taken that come from addresses of this host. There, any user can send from any address, but only from ports that
 * are his: so what comes by the wire from this host must come from a port of ours, or of a fellow, which is a process of the same user. Who they are, members
 * may tell (vb_own_ports_add()); of other ports the kernel is asked whose socket has them. One thread at a time uses it.
 */
#ifndef VB_HOST_OWN_PORTS_H
#define VB_HOST_OWN_PORTS_H

#include "base/err.h"
#include "wire/flow.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_PORT_WORDS (65536u / 64)

struct vb_own_ports;

/* `port`, one of ours, tells as whom the kernel knows us. If it cannot say that, nothing is refused. The caller owns it. */
VB_MUST_USE vb_err vb_own_ports_create(uint16_t port, struct vb_own_ports **ports_out);
void vb_own_ports_destroy(struct vb_own_ports *ports);

/* A fellow's, for as long as it is not removed: nobody is asked about it. */
void vb_own_ports_add(struct vb_own_ports *ports, uint16_t port);
void vb_own_ports_remove(struct vb_own_ports *ports, uint16_t port);

/* Those that need no question. */
const uint64_t *vb_own_ports_trusted(const struct vb_own_ports *ports);
/* For all others: whether that is a stranger on this host. `interface` is where it came in. Takes a moment, if it was not asked lately. */
bool vb_own_ports_is_stranger(struct vb_own_ports *ports, const struct vb_gid *source,
			      uint32_t interface, uint16_t port, uint64_t now_ns);

/* Now and then: answers of the kernel are forgotten after a tenth of a second. */
void vb_own_ports_grow_old(struct vb_own_ports *ports, uint64_t now_ns);

static inline bool vb_own_ports_has(const uint64_t *trusted, uint16_t port)
{
	return trusted[port / 64] >> port % 64 & 1;
}

#endif
