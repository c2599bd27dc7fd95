/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames on their way in. They come by shared-memory links, by the wire, and by mail from other
 * processes that got them from the wire. Those of other processes are handed over to them; all
 * others pass enter().
 */
#include "host/port/port_priv.h"

#include "host/port/state.h"
#include "host/local/local_peer.h"
#include "host/qp1/qp1.h"
#include "host/registry/own_ports.h"
#include "host/registry/port_member.h"
#include "link/udp.h"
#include "nic/nic.h"
#include "nic/qp1_packet.h"

static void fill_frame(struct vb_frame *frame, const struct vb_udp_datagram *datagram)
{
	*frame = (struct vb_frame){
		.flow = {
			.source_port = datagram->source_port,
			.traffic_class = datagram->traffic_class,
			.hop_limit = datagram->hop_limit,
		},
		.ip_id = datagram->segment_index,
		.head = { datagram->data, datagram->length },
	};
	memcpy(frame->flow.source.raw, datagram->source.ip, sizeof(frame->flow.source.raw));
	memcpy(frame->flow.destination.raw, datagram->destination.ip,
	       sizeof(frame->flow.destination.raw));
}

uint32_t vb_port_owner_of(const struct vb_port *port, const struct vb_frame *frame)
{
	vb_qpn qpn;
	uint32_t owner;

	if (frame->head.length < VB_BTH_SIZE)
		return vb_port_member_number(port->member);
	qpn = vb_bth_load(frame->head.data).destination;
	owner = vb_port_member_of_qpn(qpn);
	return owner < VB_PORT_MEMBER_COUNT && qpn.v > 1 ? owner
							 : vb_port_member_number(port->member);
}

/* Lets the fault point lose frames and shows the tap the others. Returns their number. */
VB_COLD static uint32_t observe(struct vb_port *port, uint64_t now_ns, struct vb_frame *frames,
				uint32_t count)
{
	const struct vb_fault_point *faults = port->fault_point;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!faults || !faults->loses_received(faults->owner, &frames[i]))
			frames[kept++] = frames[i];
	if (port->tap && kept)
		port->tap->on_received(port->tap->owner, now_ns, frames, kept);
	return kept;
}

/* Gives QP 1 its packets. Returns how many are left for the engine. */
static uint32_t take_mads(struct vb_port *port, uint64_t now_ns, struct vb_frame *frames,
			  uint32_t count)
{
	uint32_t rest = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (vb_nic_is_for_qp1(&frames[i]))
			vb_qp1_receive(port->qp1, now_ns, &frames[i]);
		else if (rest++ != i)
			frames[rest - 1] = frames[i];
	}
	return rest;
}

/*
 * The one entrance: every frame for this adapter passes here, whichever path brought it. All frames
 * of a call came by one kind of path. Those of QP 1 never come by a shared-memory link.
 */
static void enter(struct vb_port *port, uint64_t now_ns, struct vb_frame *frames, uint32_t count)
{
	if (port->is_observed)
		count = observe(port, now_ns, frames, count);
	if (count && !frames[0].shm_link)
		count = take_mads(port, now_ns, frames, count);
	if (count)
		vb_nic_receive(port->nic, now_ns, frames, count);
}

/*
 * Packets that no process takes are refused by our engine, for the reason that it finds: a damaged
 * QPN may name a process that does not exist.
 */
VB_NOINLINE static void hand_over(struct vb_port *port, uint64_t now_ns)
{
	if (port->handed_count && !vb_port_member_hand_over(port->member, port->handed_to,
							    port->handed, port->handed_count))
		enter(port, now_ns, port->handed, port->handed_count);
	port->handed_count = 0;
}

/* Collects packets for one process, so that they go in one message. */
static void hand_over_later(struct vb_port *port, uint64_t now_ns, uint32_t owner,
			    const struct vb_frame *frame)
{
	if (port->handed_count == VB_PORT_MEMBER_BATCH || owner != port->handed_to)
		hand_over(port, now_ns);
	port->handed_to = owner;
	port->handed[port->handed_count++] = *frame;
}

bool vb_port_receive_from_shm_links(struct vb_port *port, uint64_t now_ns)
{
	uint32_t count = 0;

	if (port->peers)
		count = vb_local_peers_receive(port->peers, port->frames, VB_PORT_BATCH);
	if (!count)
		return false;
	port->has_shm_links = true;
	enter(port, now_ns, port->frames, count);
	vb_local_peers_release(port->peers);
	return true;
}

static bool is_multicast(const struct vb_udp_datagram *datagram)
{
	struct vb_gid gid = vb_port_gid_of(&datagram->destination);

	return vb_gid_is_multicast(&gid);
}

/*
 * Senders on this host put a packet on their links before they send it by the wire. So all those
 * packets are on the links now, and the engine must have them before the wire's copies, to
 * recognize the copies. A sender that goes on writing does not hold us up.
 */
VB_NOINLINE static void prepare_for_multicast(struct vb_port *port, uint64_t now_ns, uint32_t count)
{
	uint32_t batches = vb_local_peers_packets_max(port->peers) / VB_PORT_BATCH;
	struct vb_frame frame;

	for (uint32_t i = 0; i < batches && vb_port_receive_from_shm_links(port, now_ns); i++)
		;
	for (uint32_t i = 0; i < count; i++) {
		fill_frame(&frame, &port->datagrams[i]);
		vb_local_peers_request_link_to_sender(port->peers, &frame);
	}
}

/*
 * Drops what other users of this host send before it is examined: they can also send from our
 * addresses. Returns the size of the remaining batch.
 */
static uint32_t drop_strangers(struct vb_port *port, uint64_t now_ns, uint32_t count)
{
	const uint64_t *trusted = vb_own_ports_trusted(port->own_ports);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_udp_datagram *datagram = &port->datagrams[i];
		struct vb_gid source;

		if (!vb_own_ports_has(trusted, datagram->source_port)) {
			source = vb_port_gid_of(&datagram->source);
			if (vb_own_ports_is_stranger(port->own_ports, &source,
						     datagram->destination.scope,
						     datagram->source_port, now_ns)) {
				vb_nic_drop_mad(port->nic, VB_DROP_STRANGER);
				continue;
			}
		}
		if (kept != i)
			port->datagrams[kept] = *datagram;
		kept++;
	}
	return kept;
}

bool vb_port_receive_from_wire(struct vb_port *port, uint64_t now_ns)
{
	uint32_t received = vb_udp_receive(port->udp, port->datagrams, VB_PORT_BATCH);
	uint32_t count = drop_strangers(port, now_ns, received);
	uint32_t ours = 0;

	if (count)
		port->has_shm_links = false;
	if (count && port->peers && is_multicast(&port->datagrams[0]))
		prepare_for_multicast(port, now_ns, count);
	for (uint32_t i = 0; i < count; i++) {
		struct vb_frame *frame = &port->frames[ours];
		uint32_t owner;

		fill_frame(frame, &port->datagrams[i]);
		owner = vb_port_owner_of(port, frame);
		if (owner == vb_port_member_number(port->member))
			ours++;
		else
			hand_over_later(port, now_ns, owner, frame);
	}
	if (port->handed_count)
		hand_over(port, now_ns);
	if (ours)
		enter(port, now_ns, port->frames, ours);
	return received;
}

bool vb_port_receive_from_members(struct vb_port *port, uint64_t now_ns)
{
	uint32_t count = vb_port_member_take(port->member, port->handed);

	port->glances = 0;
	vb_udp_allow_connected_rx(port->udp, vb_port_member_is_alone(port->member));
	if (port->peers)
		vb_local_peers_offer_again(port->peers);
	if (vb_port_member_is_asked(port->member))
		vb_state_report(port->nic, port->peers, port->member);
	if (count)
		enter(port, now_ns, port->handed, count);
	return count;
}
