/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one exit, and the choice of each packet's path behind it: a link, another process of this
 * host, or the wire. What the wire has no room for is held, and the engine is told that the wire
 * has no room.
 */
#include "host/port/port_priv.h"

#include "host/local/local_peer.h"
#include "host/registry/port_member.h"
#include "nic/nic.h"
#include "nic/peer_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#define DATAGRAM_TRIES 32u
#define HELD_RETRY_NS 20000u

/* No connected transmit socket is for a group. */
static bool is_multicast(const struct vb_slot *slot)
{
	return !slot->is_numbered && vb_gid_is_multicast(&slot->path.ip.destination);
}

static bool is_host_gid(const struct vb_port *port, const struct vb_gid *gid)
{
	return port->host_gid && vb_gid_equal(gid, port->host_gid);
}

/* The kernel sends nothing from a GID that is no address, and has no route from ::1 to a group. */
static bool is_for_host(const struct vb_port *port, const struct vb_slot *slot)
{
	static const struct vb_gid loopback = { .raw = { [15] = 1 } };
	const struct vb_flow *flow = &slot->path.ip;

	return is_host_gid(port, &flow->destination) ||
	       (vb_gid_is_multicast(&flow->destination) &&
		(is_host_gid(port, &flow->source) || vb_gid_equal(&flow->source, &loopback)));
}

static bool is_datagram(const struct vb_slot *slot)
{
	return vb_opcode_service(vb_bth_load(slot->head).opcode) == VB_SERVICE_UD;
}

static bool is_own(struct vb_port *port, const struct vb_gid *gid)
{
	if (vb_gid_equal(gid, &port->asked_address))
		return port->is_own_address;
	port->asked_address = *gid;
	port->is_own_address = vb_nic_has_gid(port->nic, gid);
	return port->is_own_address;
}

/* Whether a datagram goes to a local peer. The first ones take the wire while we meet the peer. */
static bool is_for_local_peer(struct vb_port *port, const struct vb_slot *slot,
			      uint32_t *number_out)
{
	vb_qpn qpn = vb_bth_load(slot->head).destination;
	uint32_t number = vb_port_member_of_qpn(qpn);

	if (!port->peers || qpn.v <= 1 || number >= VB_PORT_MEMBER_COUNT)
		return false;
	*number_out = number;
	return is_own(port, &slot->path.ip.destination) &&
	       vb_local_peer_request_link(port->peers, number) == VB_LOCAL_PEER_OPEN;
}

/* Datagrams have no window: a sender that is faster than its peer waits for the peer a little. */
VB_NOINLINE static void send_datagram(struct vb_port *port, uint32_t number,
				      const struct vb_slot *slot)
{
	for (uint32_t i = 0; i < DATAGRAM_TRIES; i++) {
		if (vb_local_peer_send(port->peers, number, slot))
			return;
		vb_local_peers_flush(port->peers);
		syscall(SYS_sched_yield);
	}
}

/*
 * Sends the deferred datagrams after the packets that the engine has put on links, which are as
 * many as it knew of room for.
 */
static void send_late(struct vb_port *port)
{
	for (uint32_t i = 0; i < port->late_count; i++)
		send_datagram(port, port->late[i].number, port->late[i].slot);
	port->late_count = 0;
}

/*
 * Each process knows only its own groups. Processes that we have not met yet get the packet by
 * mail, which holds few.
 */
static void hand_to_all(struct vb_port *port, const struct vb_slot *slot,
			const struct vb_frame *frame)
{
	if (port->peers) /* meeting ourselves takes no wait */
		(void)vb_local_peer_request_link(port->peers, vb_port_member_number(port->member));
	for (uint32_t number = 0; number < VB_PORT_MEMBER_COUNT; number++) {
		if (port->peers && vb_local_peer_is_open(port->peers, number))
			send_datagram(port, number, slot);
		else if (vb_port_member_hand_over(port->member, number, frame, 1) && port->peers)
			(void)vb_local_peer_request_link(port->peers, number);
	}
}

/* Hands a packet to its owner on this host, which may be ourselves. */
VB_COLD static void hand_over_slot(struct vb_port *port, const struct vb_slot *slot)
{
	struct vb_bytes rest[VB_SGE_MAX + 1];
	struct vb_frame frame = {
		.path.ip = slot->path.ip,
		.ip_id = slot->ip_id,
		.head = { slot->head, slot->head_length },
		.rest = rest,
	};

	for (uint32_t i = 0; i < slot->span_count; i++)
		rest[frame.rest_count++] =
			(struct vb_bytes){ (const uint8_t *)(uintptr_t)slot->spans[i].address,
					   slot->spans[i].length };
	rest[frame.rest_count++] = (struct vb_bytes){ slot->tail, slot->tail_length };
	if (vb_gid_is_multicast(&slot->path.ip.destination))
		hand_to_all(port, slot, &frame);
	else
		vb_port_member_hand_over(port->member,
					 vb_port_member_of_frame(port->member, &frame), &frame, 1);
}

/* Sends the copies as late as send_late() does. */
VB_NOINLINE static void send_copies(struct vb_port *port, uint32_t slot_count)
{
	for (uint32_t i = 0; i < slot_count; i++) {
		const struct vb_slot *slot = &port->slots[i];

		if (!slot->path.link && vb_gid_is_multicast(&slot->path.ip.destination) &&
		    !is_for_host(port, slot))
			vb_local_peers_send_copies(port->peers, slot);
	}
}

/* Shows the tap all slots and lets the fault point lose some. Returns the number of the others. */
VB_COLD static uint32_t observe(struct vb_port *port, uint64_t now_ns, uint32_t slot_count)
{
	const struct vb_fault_point *faults = port->fault_point;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < port->tap_count; i++)
		port->taps[i]->on_sent(port->taps[i]->owner, now_ns, port->slots, slot_count);
	vb_port_end_old_taps(port, now_ns);
	for (uint32_t i = 0; i < slot_count; i++) {
		struct vb_slot *slot = &port->slots[i];

		if (faults && faults->loses_sent(faults->owner, slot))
			continue;
		if (kept != i)
			port->slots[kept] = *slot;
		kept++;
	}
	return kept;
}

/* --- the wire, and what it has no room for --- */

/* Tells the engine whether there is room on the wire, which has no number. */
static void set_wire_room(struct vb_port *port, bool has_room)
{
	vb_nic_set_link_room(port->nic, 0, has_room ? VB_ROOM_UNLIMITED : 0);
}

/*
 * Keeps copies: the memory that slots point to is only valid until the next call into the engine.
 * A packet whose memory is gone by now is lost, and so is the rest of its batch: its ICRCs are for
 * the places behind that packet.
 */
VB_COLD static void hold(struct vb_port *port, uint64_t now_ns, const struct vb_slot *slots,
			 uint32_t count)
{
	bool is_broken = false;

	if (!vb_port_has_held(port))
		port->held_first = port->held_end = 0;
	for (uint32_t i = 0; i < count && port->held_end < VB_PORT_BATCH; i++) {
		if (is_broken && slots[i].continues)
			continue;
		port->held[port->held_end] = slots[i];
		is_broken = !vb_slot_settle(&port->held[port->held_end]);
		port->held_end += !is_broken;
	}
	if (!vb_port_has_held(port))
		return; /* there is nothing to offer again, which is what finds out about room */
	port->held_retry_ns = now_ns + HELD_RETRY_NS;
	set_wire_room(port, false);
}

/* Only QP 1, which has no window, sends while packets are held; what does not fit is lost. */
static void send_or_hold(struct vb_port *port, uint64_t now_ns, struct vb_slot *slots,
			 uint32_t count)
{
	uint32_t taken = 0;

	if (!vb_port_has_held(port))
		taken = port->wire->type->send(port->wire, slots, count);
	if (taken < count)
		hold(port, now_ns, slots + taken, count - taken);
}

/* Offers held packets up to `end`; false: some of them are still held. */
static bool offer_held(struct vb_port *port, uint32_t end)
{
	port->held_first += port->wire->type->send(port->wire, &port->held[port->held_first],
						   end - port->held_first);
	return port->held_first == end;
}

/* The end of the first batch. */
static uint32_t first_held_end(const struct vb_port *port)
{
	uint32_t end = port->held_first + 1;

	while (end < port->held_end && port->held[end].continues)
		end++;
	return end;
}

/* The first batch goes alone: a carrier prepares all that it is offered, room or not. */
bool vb_port_send_held(struct vb_port *port, uint64_t now_ns)
{
	if (!vb_port_has_held(port))
		return true;
	if (now_ns < port->held_retry_ns)
		return false;
	if (offer_held(port, first_held_end(port)) && vb_port_has_held(port))
		(void)offer_held(port, port->held_end);
	port->wire->type->flush(port->wire);
	if (vb_port_has_held(port)) {
		port->held_retry_ns = now_ns + HELD_RETRY_NS;
		return false;
	}
	set_wire_room(port, true);
	return true;
}

/* --- all paths --- */

enum path {
	PATH_LINK,
	PATH_WIRE,
	PATH_LATER, /* a link, after the engine's own packets */
	PATH_HOST, /* another process, by mail */
	PATH_COUNT
};

/* A packet that continues the one before takes its path, except that datagrams have own QPs. */
static enum path path_of(struct vb_port *port, const struct vb_slot *slot, enum path before)
{
	uint32_t number;

	if (slot->path.link)
		return PATH_LINK;
	if (slot->continues && before == PATH_WIRE && !is_datagram(slot))
		return PATH_WIRE;
	if (port->peers && is_datagram(slot) && is_for_local_peer(port, slot, &number)) {
		port->late[port->late_count++] = (struct vb_port_late){ slot, number };
		return PATH_LATER;
	}
	return port->member && is_for_host(port, slot) ? PATH_HOST : PATH_WIRE;
}

/* Where the slots end that take the same path as the one at `index`. */
static uint32_t end_of_run(const uint8_t *paths, uint32_t index, uint32_t count)
{
	uint8_t path = paths[index];

	while (index < count && paths[index] == path)
		index++;
	return index;
}

static void send_by_links(struct vb_port *port, const uint8_t *paths, uint32_t count)
{
	for (uint32_t i = 0, end; i < count; i = end) {
		end = end_of_run(paths, i, count);
		if (paths[i] == PATH_LINK)
			(void)port->links->type->send(port->links, &port->slots[i], end - i);
	}
}

static void hand_over_slots(struct vb_port *port, const uint8_t *paths, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (paths[i] == PATH_HOST)
			hand_over_slot(port, &port->slots[i]);
}

static void send_by_wire(struct vb_port *port, uint64_t now_ns, const uint8_t *paths,
			 uint32_t count)
{
	for (uint32_t i = 0, end; i < count; i = end) {
		end = end_of_run(paths, i, count);
		if (paths[i] == PATH_WIRE)
			send_or_hold(port, now_ns, &port->slots[i], end - i);
	}
	port->wire->type->flush(port->wire);
}

/*
 * The wire comes last. Local peers have their copies of multicast by then and recognize what comes
 * by the wire (prepare_for_multicast() in port_receive.c).
 */
VB_NOINLINE static void send_by_all_paths(struct vb_port *port, uint64_t now_ns, uint32_t count)
{
	uint8_t paths[VB_PORT_BATCH];
	uint32_t counts[PATH_COUNT] = { 0 };
	bool is_any_multicast = false;

	for (uint32_t i = 0; i < count; i++) {
		enum path path =
			path_of(port, &port->slots[i], i ? (enum path)paths[i - 1] : PATH_LATER);

		paths[i] = (uint8_t)path;
		counts[path]++;
		is_any_multicast |= path == PATH_WIRE && is_multicast(&port->slots[i]);
	}
	if (counts[PATH_LINK])
		send_by_links(port, paths, count);
	if (counts[PATH_HOST])
		hand_over_slots(port, paths, count);
	send_late(port);
	if (port->peers && is_any_multicast)
		send_copies(port, count);
	if (port->links)
		port->links->type->flush(port->links);
	if (counts[PATH_WIRE])
		send_by_wire(port, now_ns, paths, count);
}

/* A packet of the engine that goes alone on a link needs none of the other paths. */
static bool send_alone(struct vb_port *port, uint32_t count)
{
	struct vb_slot *slot = &port->slots[0];

	if (count != 1 || !slot->path.link)
		return false;
	(void)port->links->type->send(port->links, slot, 1);
	port->links->type->flush(port->links);
	return true;
}

void vb_port_send_slots(struct vb_port *port, uint64_t now_ns, uint32_t slot_count)
{
	if (port->is_observed)
		slot_count = observe(port, now_ns, slot_count);
	if (!send_alone(port, slot_count))
		send_by_all_paths(port, now_ns, slot_count);
}
