/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of QP 1, the general services interface. It has no queues and no state: a management datagram (wire/mad.h) becomes a
 * packet, and a packet one, by the rules that hold for other UD packets too. What is in it is not the engine's business.
 */
#ifndef VB_NIC_GSI_H
#define VB_NIC_GSI_H

#include "nic/nic.h"
#include "wire/mad.h"

#include <stdbool.h>

/* Whether a frame is for QP 1. It may be anything. */
bool vb_nic_is_mad(const struct vb_frame *frame);

/* Takes the datagram out of such a frame. False: it was refused, and counted under one drop reason. */
bool vb_nic_receive_mad(struct vb_nic *nic, const struct vb_frame *frame,
			uint8_t bytes[VB_MAD_SIZE], vb_qpn *source_out);

/* Nobody has use for a datagram that was received. */
void vb_nic_drop_mad(struct vb_nic *nic, enum vb_drop reason);

/* The packet of a datagram, from QP 1 to `to`. Of the flow, the UDP source port is chosen here. */
void vb_nic_build_mad(struct vb_nic *nic, const struct vb_flow *flow, vb_qpn to,
		      const uint8_t bytes[VB_MAD_SIZE], struct vb_slot *slot);

#endif
