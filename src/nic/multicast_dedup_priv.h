/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Duplicates of multicast datagrams. Multicast from a sender on this host may arrive twice: over a
 * shared-memory link, and over the wire, from which the kernel gives every port member here a copy.
 * Datagrams that arrived over a link are remembered until the wire brings them again. So no process
 * ever has to know which port member gets what from which sender: what was not on the link is taken
 * from the wire.
 */
#ifndef VB_NIC_MULTICAST_DEDUP_PRIV_H
#define VB_NIC_MULTICAST_DEDUP_PRIV_H

#include "framing/frame.h"

struct vb_multicast_dedup;

/* NULL: no memory. The caller ends it with vb_multicast_dedup_destroy(), which accepts NULL. */
struct vb_multicast_dedup *vb_multicast_dedup_create(void);
void vb_multicast_dedup_destroy(struct vb_multicast_dedup *dedup);

/* A datagram arrived over a shared-memory link. */
void vb_multicast_dedup_expect(struct vb_multicast_dedup *dedup, const struct vb_flow *flow,
			       const struct vb_packet *packet);
/*
 * A datagram arrived over the wire. True if it had already arrived over a link; it is then
 * forgotten.
 */
bool vb_multicast_dedup_forget_if_expected(struct vb_multicast_dedup *dedup,
					   const struct vb_flow *flow,
					   const struct vb_packet *packet);

#endif
