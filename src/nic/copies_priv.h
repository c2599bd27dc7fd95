/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast from a sender on this host may come twice: by a line, and by the wire, of which the kernel gives every member here a copy. Those that
 * came by a line are remembered until the wire brings them again, so that nobody has to know who gets what from whom, at no moment: what was not on
 * the line is taken from the wire.
 */
#ifndef VB_NIC_COPIES_PRIV_H
#define VB_NIC_COPIES_PRIV_H

#include "nic/frame.h"

struct vb_copies;

/* NULL: no memory. The caller ends it with vb_copies_destroy(), which NULL is fine for. */
struct vb_copies *vb_copies_create(void);
void vb_copies_destroy(struct vb_copies *copies);

/* A datagram came by a line. */
void vb_copies_expect(struct vb_copies *copies, const struct vb_flow *flow,
		      const struct vb_packet *packet);
/* One came by the wire: true, once, if it had come by a line. */
bool vb_copies_take(struct vb_copies *copies, const struct vb_flow *flow,
		    const struct vb_packet *packet);

#endif
