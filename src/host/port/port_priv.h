/* SPDX-License-Identifier: BSD-2-Clause */
/* The internals of a port: port.c drives, port_receive.c receives, port_send.c sends. */
#ifndef VB_HOST_PORT_PORT_PRIV_H
#define VB_HOST_PORT_PORT_PRIV_H

#include "host/port/port.h"
#include "host/port/tap.h"
#include "host/registry/port_member.h"
#include "link/udp.h"
#include "nic/frame.h"
#include "nic/nic.h"

#define VB_PORT_BATCH 64u
#define VB_PORT_PARTS_MAX (VB_SGE_MAX + 2) /* of a slot */

/* A deferred datagram for a local peer. */
struct vb_port_late {
	const struct vb_slot *slot;
	uint32_t number;
};

struct vb_port {
	struct vb_nic *nic;
	struct vb_udp *udp;
	struct vb_port_member *member;
	struct vb_local_peers *peers;
	struct vb_qp1 *qp1;
	const struct vb_gid *host_gid;
	struct vb_own_ports *own_ports;
	struct vb_slot slots[VB_PORT_BATCH];
	struct iovec iovecs[VB_PORT_BATCH * VB_PORT_PARTS_MAX];
	struct vb_udp_message messages[VB_PORT_BATCH];
	struct vb_port_late late[VB_PORT_BATCH];
	uint32_t late_count;
	struct vb_udp_datagram datagrams[VB_PORT_BATCH];
	struct vb_frame frames[VB_PORT_BATCH];
	struct vb_frame handed[VB_PORT_MEMBER_BATCH]; /* for one other process, or from others */
	uint32_t handed_count;
	uint32_t handed_to;
	bool has_logged_drops;
	/* source port of the last packet, and its index among the link's sources */
	uint16_t last_port;
	uint32_t last_index;
	/* the time of the last glance, by a clock that stands still for a moment */
	uint64_t glanced_ns;
	uint64_t elsewhere_ns; /* when to look beyond the shared-memory links */
	bool has_shm_links; /* the last packet came by a shared-memory link */
	uint64_t direct_parts; /* parts executed by the engine when it was last asked to send */
	struct vb_gid asked_address; /* the last address that a datagram went to … */
	bool is_own_address; /* … and whether it is one of ours */
	uint32_t glances; /* since we last looked for packets from other processes */
	bool is_observed; /* it has a tap or a fault point */
	const struct vb_tap *tap; /* or NULL */
	const struct vb_fault_point *fault_point; /* or NULL */
	struct vb_executed executed[VB_TAP_EXECUTED_MAX]; /* for the tap */
	uint32_t glances_without_qp1; /* the same for their mail to QP 1 */
};

static inline struct vb_gid vb_port_gid_of(const struct vb_udp_address *address)
{
	struct vb_gid gid;

	memcpy(gid.raw, address->ip, sizeof(gid.raw));
	return gid;
}

/*
 * The number of the packet's owner. If it is unknown, our own: the engine has a reason to refuse
 * the packet.
 */
uint32_t vb_port_owner_of(const struct vb_port *port, const struct vb_frame *frame);

/*
 * port_send.c, the one exit: sends the first `slot_count` of port->slots, on the path that each of
 * them takes. Returns the number of messages for the wire.
 */
uint32_t vb_port_send_slots(struct vb_port *port, uint64_t now_ns, uint32_t slot_count);

/*
 * port_receive.c: receives up to a batch from each of these. True if there was any frame, also one
 * that was dropped.
 */
bool vb_port_receive_from_shm_links(struct vb_port *port, uint64_t now_ns);
bool vb_port_receive_from_wire(struct vb_port *port, uint64_t now_ns);
bool vb_port_receive_from_members(struct vb_port *port, uint64_t now_ns);

#endif
