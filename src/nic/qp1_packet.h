/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of QP 1, the general services interface. QP 1 has no queues and no state: a
 * management datagram (wire/mad.h) becomes a packet, and a packet becomes a datagram, by the rules
 * for other UD packets. The engine does not look into the datagram.
 */
#ifndef VB_NIC_QP1_PACKET_H
#define VB_NIC_QP1_PACKET_H

#include "nic/nic.h"
#include "wire/mad.h"

#include <stdbool.h>

/* Whether a frame is for QP 1. The frame may hold anything. */
bool vb_nic_is_for_qp1(const struct vb_frame *frame);

/* Takes the datagram out of such a frame. False: refused, and counted under one drop reason. */
bool vb_nic_receive_mad(struct vb_nic *nic, const struct vb_frame *frame,
			uint8_t bytes[VB_MAD_SIZE], vb_qpn *source_out);

/* Counts a received datagram that no part of the adapter can use. */
void vb_nic_drop_mad(struct vb_nic *nic, enum vb_drop reason);

/*
 * Builds the packet of a datagram from QP 1 to `to`, and chooses the UDP source port of its flow.
 */
void vb_nic_build_mad(struct vb_nic *nic, const struct vb_flow *flow, vb_qpn to,
		      const uint8_t bytes[VB_MAD_SIZE], struct vb_slot *slot);

#endif
