/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of each packet's path: a shared-memory link, another process, or the wire. Slots that
 * continue each other become one message, which the kernel segments again. When the kernel has no
 * room, the rest of the batch is lost, as on any wire: the transports repeat it.
 */
#include "host/port/port_priv.h"

#include "host/local/local_peer.h"
#include "host/registry/port_member.h"
#include "nic/nic.h"

#include <sys/syscall.h>
#include <unistd.h>

#define DATAGRAM_TRIES 32u
#define SHORT_MAX 128u /* bytes; copying them costs next to nothing */

static uint32_t source_index_of(struct vb_port *port, uint16_t source_port)
{
	uint32_t index = 0;

	if (source_port == port->last_port)
		return port->last_index;
	while (index + 1 < vb_udp_source_count(port->udp) &&
	       vb_udp_source_port(port->udp, index) != source_port)
		index++;
	port->last_port = source_port;
	port->last_index = index;
	return index;
}

static struct iovec *add_part(struct iovec *next, const void *bytes, size_t length)
{
	*next = (struct iovec){ (void *)(uintptr_t)bytes, length };
	return next + (length != 0);
}

static struct iovec *add_slot(struct iovec *next, const struct vb_slot *slot)
{
	next = add_part(next, slot->head, slot->head_length);
	for (uint32_t i = 0; i < slot->span_count; i++)
		next = add_part(next, (const void *)(uintptr_t)slot->spans[i].address,
				slot->spans[i].length);
	return add_part(next, slot->tail, slot->tail_length);
}

/*
 * Short packets of a message lie in one piece after the first: the kernel takes one piece faster
 * than several.
 */
static bool join_first(struct iovec *last, struct vb_slot *first, const struct vb_slot *slot)
{
	if (slot->span_count || slot->tail_length || slot->head_length > SHORT_MAX ||
	    last->iov_base != first->head ||
	    last->iov_len + slot->head_length > sizeof(first->head))
		return false;
	memcpy(first->head + last->iov_len, slot->head, slot->head_length);
	last->iov_len += slot->head_length;
	return true;
}

/* The link knows the destination: it reported this path itself. */
static void begin_connected_tx(struct vb_udp_message *message, const struct vb_slot *slot,
			       const struct iovec *iovecs)
{
	*message = (struct vb_udp_message){
		.source_index = slot->number_index,
		.is_connected_tx = true,
		.ip_id = slot->ip_id,
		.iovecs = iovecs,
	};
}

static void begin_message(struct vb_port *port, struct vb_udp_message *message,
			  const struct vb_slot *slot, const struct iovec *iovecs)
{
	if (slot->is_numbered) {
		begin_connected_tx(message, slot, iovecs);
		return;
	}
	*message = (struct vb_udp_message){
		.source_index = source_index_of(port, slot->flow.source_port),
		.traffic_class = slot->flow.traffic_class,
		.hop_limit = slot->flow.hop_limit,
		.iovecs = iovecs,
	};
	memcpy(message->destination.ip, slot->flow.destination.raw,
	       sizeof(message->destination.ip));
	memcpy(message->source.ip, slot->flow.source.raw, sizeof(message->source.ip));
}

/* No connected transmit socket is for a group. */
static bool is_multicast(const struct vb_slot *slot)
{
	return !slot->is_numbered && vb_gid_is_multicast(&slot->flow.destination);
}

static bool is_host_gid(const struct vb_port *port, const struct vb_gid *gid)
{
	return port->host_gid && vb_gid_equal(gid, port->host_gid);
}

/* The kernel sends nothing from a GID that is no address, and has no route from ::1 to a group. */
static bool is_for_host(const struct vb_port *port, const struct vb_slot *slot)
{
	static const struct vb_gid loopback = { .raw = { [15] = 1 } };
	const struct vb_flow *flow = &slot->flow;

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
	return is_own(port, &slot->flow.destination) &&
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
 * True if the packet is not for the wire: it is on a shared-memory link, or lost there, or
 * deferred.
 */
static bool send_by_shm_link(struct vb_port *port, const struct vb_slot *slot)
{
	uint32_t number;

	if (slot->shm_link) {
		(void)vb_local_peer_send(port->peers, vb_local_peer_of_shm_link(slot->shm_link),
					 slot);
		return true;
	}
	if (!is_datagram(slot) || !is_for_local_peer(port, slot, &number))
		return false;
	port->late[port->late_count++] = (struct vb_port_late){ slot, number };
	return true;
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
		.flow = slot->flow,
		.ip_id = slot->ip_id,
		.head = { slot->head, slot->head_length },
		.rest = rest,
	};

	for (uint32_t i = 0; i < slot->span_count; i++)
		rest[frame.rest_count++] =
			(struct vb_bytes){ (const uint8_t *)(uintptr_t)slot->spans[i].address,
					   slot->spans[i].length };
	rest[frame.rest_count++] = (struct vb_bytes){ slot->tail, slot->tail_length };
	if (vb_gid_is_multicast(&slot->flow.destination))
		hand_to_all(port, slot, &frame);
	else
		vb_port_member_hand_over(port->member, vb_port_owner_of(port, &frame), &frame, 1);
}

/* Sends the copies as late as send_late() does. */
VB_NOINLINE static void send_copies(struct vb_port *port, uint32_t slot_count)
{
	for (uint32_t i = 0; i < slot_count; i++) {
		const struct vb_slot *slot = &port->slots[i];

		if (!slot->shm_link && vb_gid_is_multicast(&slot->flow.destination) &&
		    !is_for_host(port, slot))
			vb_local_peers_send_copies(port->peers, slot);
	}
}

static uint32_t make_messages(struct vb_port *port, uint32_t slot_count, bool *is_any_multicast)
{
	struct iovec *next = port->iovecs;
	struct vb_slot *first = NULL; /* first slot of a message */
	uint32_t count = 0;
	bool is_begun = false; /* the last slot is in a message */

	for (uint32_t i = 0; i < slot_count; i++) {
		struct vb_slot *slot = &port->slots[i];
		bool follows = slot->continues && is_begun;

		is_begun = false;
		/*
		 * A packet that continues a message takes the message's path; datagrams are for
		 * different QPs.
		 */
		if (!follows || is_datagram(slot)) {
			if (send_by_shm_link(port, slot))
				continue;
			if (is_for_host(port, slot)) {
				hand_over_slot(port, slot);
				continue;
			}
		}
		if (follows) {
			port->messages[count - 1].segment_length = (uint16_t)first->length;
		} else {
			/*
			 * This may continue what went by a link: local peers find its ID from the
			 * ICRC.
			 */
			first = slot;
			begin_message(port, &port->messages[count++], slot, next);
			*is_any_multicast |= is_multicast(slot);
		}
		is_begun = true;
		if (!follows || !join_first(next - 1, first, slot))
			next = add_slot(next, slot);
		port->messages[count - 1].iovec_count =
			(uint32_t)(next - port->messages[count - 1].iovecs);
	}
	return count;
}

/* The engine must know the IP IDs that packets will have when it computes their ICRCs. */
VB_COLD static void number_flow(struct vb_port *port, uint32_t source_index)
{
	uint16_t next_ip_id;
	const struct vb_udp_route *route =
		vb_udp_connected_tx(port->udp, source_index, &next_ip_id);
	struct vb_flow flow;

	if (!route) {
		vb_nic_number_flow(port->nic, source_index, NULL, 0);
		return;
	}
	flow = (struct vb_flow){
		.source = vb_port_gid_of(&route->source),
		.destination = vb_port_gid_of(&route->destination),
		.source_port = vb_udp_source_port(port->udp, source_index),
		.traffic_class = route->traffic_class,
		.hop_limit = route->hop_limit,
	};
	vb_nic_number_flow(port->nic, source_index, &flow, next_ip_id);
}

/* Shows the tap all slots and lets the fault point lose some. Returns the number of the others. */
VB_COLD static uint32_t observe(struct vb_port *port, uint64_t now_ns, uint32_t slot_count)
{
	const struct vb_fault_point *faults = port->fault_point;
	uint32_t kept = 0;

	if (port->tap)
		port->tap->on_sent(port->tap->owner, now_ns, port->slots, slot_count);
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

/* A packet of the engine that goes alone needs none of the other paths. */
static bool send_alone(struct vb_port *port, uint32_t slot_count)
{
	const struct vb_slot *slot = &port->slots[0];

	if (slot_count != 1 || !slot->shm_link)
		return false;
	(void)vb_local_peer_send(port->peers, vb_local_peer_of_shm_link(slot->shm_link), slot);
	vb_local_peers_flush(port->peers);
	return true;
}

VB_NOINLINE static uint32_t send_by_all_paths(struct vb_port *port, uint32_t slot_count)
{
	bool is_any_multicast = false;
	uint32_t message_count = make_messages(port, slot_count, &is_any_multicast);

	send_late(port);
	if (port->peers && is_any_multicast)
		send_copies(port, slot_count);
	if (port->peers)
		vb_local_peers_flush(port->peers);
	if (!message_count)
		return 0;
	vb_udp_send(port->udp, port->messages, message_count);
	if (vb_udp_take_connected_tx_change(port->udp))
		for (uint32_t i = 0; i < vb_udp_source_count(port->udp); i++)
			number_flow(port, i);
	return message_count;
}

uint32_t vb_port_send_slots(struct vb_port *port, uint64_t now_ns, uint32_t slot_count)
{
	if (port->is_observed)
		slot_count = observe(port, now_ns, slot_count);
	return send_alone(port, slot_count) ? 0 : send_by_all_paths(port, slot_count);
}
