/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending for a port: a slot's spans go to the kernel from where they are. Only a slot with very
 * many spans is gathered first.
 */
#include "support_engine_port.h"

#include <poll.h>
#include <string.h>

void engine_port_init(struct engine_port *port, struct vb_nic *nic, struct vb_udp *udp)
{
	port->nic = nic;
	port->udp = udp;
	port->lost_slots = 0;
	port->unreachable = 0;
}

/* --- in --------------------------------------------------------------------------------------- */

static struct vb_gid gid_of(const struct vb_udp_address *address)
{
	struct vb_gid gid;

	memcpy(gid.raw, address->ip, sizeof(gid.raw));
	return gid;
}

static struct vb_frame frame_of(const struct vb_udp_datagram *datagram)
{
	return (struct vb_frame){
		.path.ip = {
			.source = gid_of(&datagram->source),
			.destination = gid_of(&datagram->destination),
			.source_port = datagram->source_port,
			.traffic_class = datagram->traffic_class,
			.hop_limit = datagram->hop_limit,
		},
		.ip_id = datagram->segment_index,
		.head = { datagram->data, datagram->length },
	};
}

static bool take_in(struct engine_port *port, uint64_t now_ns)
{
	uint32_t count = vb_udp_receive(port->udp, port->datagrams, PORT_FRAMES);

	for (uint32_t i = 0; i < count; i++)
		port->frames[i] = frame_of(&port->datagrams[i]);
	if (count)
		vb_nic_receive(port->nic, now_ns, port->frames, count);
	return count;
}

/* --- out -------------------------------------------------------------------------------------- */

static struct vb_udp_address address_of_gid(const struct vb_gid *gid)
{
	struct vb_udp_address address = { .scope = 0 };

	memcpy(address.ip, gid->raw, sizeof(address.ip));
	return address;
}

/* The engine knows the ports of the link, and the ICRC covers one of them. */
static uint32_t source_index_of(const struct vb_udp *udp, uint16_t port)
{
	uint32_t index = 0;

	while (vb_udp_source_port(udp, index) != port)
		index++;
	return index;
}

static struct vb_udp_message begin_message(const struct engine_port *port,
					   const struct vb_slot *slot)
{
	return (struct vb_udp_message){
		.destination = address_of_gid(&slot->path.ip.destination),
		.source = address_of_gid(&slot->path.ip.source),
		.source_index = source_index_of(port->udp, slot->path.ip.source_port),
		.traffic_class = slot->path.ip.traffic_class,
		.hop_limit = slot->path.ip.hop_limit,
	};
}

static struct iovec iovec_of(const void *bytes, size_t length)
{
	return (struct iovec){ (void *)(uintptr_t)bytes, length };
}

/* Makes iovecs of the slot's bytes. Returns their count, or 0 if application memory was missing. */
static uint32_t fill_iovecs(struct engine_port *port, const struct vb_slot *slot,
			    struct iovec *iovecs)
{
	uint8_t *gathered = port->gathered[slot - port->slots];
	uint32_t count = 0;

	if (slot->span_count + 2u > PORT_IOVECS_PER_SLOT) {
		iovecs[0] = iovec_of(gathered, slot->length);
		return vb_slot_gather(slot, gathered);
	}
	iovecs[count++] = iovec_of(slot->head, slot->head_length);
	for (uint32_t i = 0; i < slot->span_count; i++)
		iovecs[count++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)slot->spans[i].address,
			.iov_len = slot->spans[i].length,
		};
	if (slot->tail_length)
		iovecs[count++] = iovec_of(slot->tail, slot->tail_length);
	return count;
}

/*
 * Returns how many messages the slots make. The position of a segment in its batch is part of its
 * ICRC: after a slot that cannot be sent, the rest of its batch cannot be sent either.
 */
static uint32_t fill_messages(struct engine_port *port, uint32_t slot_count)
{
	struct iovec *iovecs = port->iovecs;
	uint32_t count = 0;
	bool is_broken = false;

	for (uint32_t i = 0; i < slot_count; i++) {
		const struct vb_slot *slot = &port->slots[i];
		struct vb_udp_message *message;
		uint32_t added = 0;

		is_broken = is_broken && slot->continues;
		if (!is_broken)
			added = fill_iovecs(port, slot, iovecs);
		if (!added) {
			is_broken = true;
			port->lost_slots++;
			continue;
		}
		if (!slot->continues) {
			port->messages[count] = begin_message(port, slot);
			port->messages[count].iovecs = iovecs;
			port->slots_of[count++] = 0;
		}
		message = &port->messages[count - 1];
		if (slot->continues && !message->segment_length)
			message->segment_length = (uint16_t)port->slots[i - 1].length;
		message->iovec_count += added;
		port->slots_of[count - 1]++;
		iovecs += added;
	}
	return count;
}

/*
 * A slot for which the link has no room is lost: its spans end with the next call into the engine.
 */
static bool send_out(struct engine_port *port, uint64_t now_ns)
{
	uint32_t slot_count = vb_nic_transmit(port->nic, now_ns, port->slots, PORT_SLOTS);
	uint32_t count = fill_messages(port, slot_count);
	uint32_t taken = count ? vb_udp_send(port->udp, port->messages, count) : 0;

	while (taken < count)
		port->lost_slots += port->slots_of[taken++];
	return slot_count;
}

bool engine_port_turn(struct engine_port *port, uint64_t now_ns)
{
	bool has_moved = take_in(port, now_ns);

	if (vb_nic_deadline(port->nic) <= now_ns) {
		vb_nic_fire_timers(port->nic, now_ns);
		has_moved = true;
	}
	while (vb_nic_has_work(port->nic) && send_out(port, now_ns))
		has_moved = true;
	return has_moved;
}

static void take_errors(struct engine_port *port)
{
	struct vb_udp_address gone[8];

	port->unreachable += vb_udp_take_unreachable(port->udp, gone, 8);
}

void engine_port_wait(struct engine_port *port, uint64_t now_ns, uint64_t timeout_ns)
{
	struct pollfd wait = { .fd = vb_udp_fd(port->udp), .events = POLLIN };
	uint64_t deadline_ns = vb_nic_deadline(port->nic);
	uint64_t until_deadline_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	uint64_t wait_ns = until_deadline_ns < timeout_ns ? until_deadline_ns : timeout_ns;
	struct timespec wait_time = { (time_t)(wait_ns / 1000000000),
				      (long)(wait_ns % 1000000000) };

	if (ppoll(&wait, 1, &wait_time, NULL) == 1)
		take_errors(port); /* or the descriptor stays readable forever */
}
