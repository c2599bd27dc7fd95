/* SPDX-License-Identifier: BSD-2-Clause */
/* The internals of the UDP carrier: carrier_udp.c receives, carrier_udp_send.c sends. */
#ifndef VB_HOST_PORT_CARRIER_UDP_PRIV_H
#define VB_HOST_PORT_CARRIER_UDP_PRIV_H

#include "host/port/carrier_udp.h"
#include "host/registry/port_member.h"
#include "link/udp.h"

#define VB_CARRIER_UDP_PARTS_MAX (VB_SGE_MAX + 2) /* of a slot */
#define VB_CARRIER_UDP_FRAME_MAX (VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX + VB_SLOT_TAIL_MAX)

struct vb_carrier_udp {
	struct vb_carrier carrier;
	struct vb_nic *nic;
	struct vb_udp *udp;
	struct vb_port_member *member;
	struct vb_own_ports *own_ports;

	/* sending */
	struct iovec iovecs[VB_CARRIER_BATCH * VB_CARRIER_UDP_PARTS_MAX];
	struct vb_udp_message messages[VB_CARRIER_BATCH];
	uint32_t first_slots[VB_CARRIER_BATCH + 1]; /* of each message, and the end */
	uint32_t joined_length; /* bytes of `joined` that are in use */
	/* source port of the last packet, and its index among the link's sources */
	uint16_t last_port;
	uint32_t last_index;
	bool has_logged_drops;

	/* receiving */
	struct vb_udp_datagram datagrams[VB_CARRIER_BATCH];
	struct vb_frame handed[VB_PORT_MEMBER_BATCH]; /* for one other process */
	uint32_t handed_count;
	uint32_t handed_to;
	uint32_t looks; /* efforts since we last looked for packets from other processes */

	/* sending: the packets of messages that have several */
	uint8_t joined[VB_CARRIER_BATCH * VB_CARRIER_UDP_FRAME_MAX];
};

/* Few packets come by way of another process: most looks are for those from the sockets. */
#define VB_CARRIER_UDP_LOOKS_WITHOUT_MEMBERS 32u

uint32_t vb_carrier_udp_send(struct vb_carrier *carrier, struct vb_slot *slots, uint32_t count);

static inline struct vb_gid vb_carrier_udp_gid_of(const struct vb_udp_address *address)
{
	struct vb_gid gid;

	memcpy(gid.raw, address->ip, sizeof(gid.raw));
	return gid;
}

#endif
