/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots to UDP messages. Slots that continue each other become one message, which the kernel
 * segments again. The bytes of such a message are copied into one piece first. The kernel copies
 * each piece of a message by itself, and takes one long piece much faster than the headers,
 * payloads and ICRCs of sixty packets: MTU 1024 gains a half and more by it, and MTU 4096 a tenth
 * (docs/PERFORMANCE.md).
 */
#include "host/port/carrier_udp_priv.h"

#include "base/list.h"
#include "host/sys/log.h"
#include "nic/nic.h"

_Static_assert(VB_SOURCE_PORTS_MAX <= VB_NUMBERED_FLOWS_MAX,
	       "each source port can have a flow whose IDs are known");

static uint32_t source_index_of(struct vb_carrier_udp *wire, uint16_t source_port)
{
	uint32_t index = 0;

	if (source_port == wire->last_port)
		return wire->last_index;
	while (index + 1 < vb_udp_source_count(wire->udp) &&
	       vb_udp_source_port(wire->udp, index) != source_port)
		index++;
	wire->last_port = source_port;
	wire->last_index = index;
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
 * Stands for a slot whose memory is gone: the kernel refuses an address of its own, and the link
 * then sends the other packets of the message one by one. The slot's own spans would not
 * do: there may be too many of them, and the program may map new memory there meanwhile.
 */
static struct iovec *add_hole(struct iovec *next, const struct vb_slot *slot)
{
	return add_part(next, (const void *)(UINTPTR_MAX - VB_CARRIER_UDP_FRAME_MAX), slot->length);
}

/* Adds a slot of a message of several: a copy, right behind that of the slot before. */
static struct iovec *add_copy(struct vb_carrier_udp *wire, struct iovec *next,
			      const struct vb_slot *slot, bool is_first)
{
	uint8_t *to = wire->joined + wire->joined_length;

	VB_CHECK(wire->joined_length + slot->length <= sizeof(wire->joined));
	if (!vb_slot_gather(slot, to))
		return add_hole(next, slot);
	wire->joined_length += slot->length;
	if (is_first || (uint8_t *)next[-1].iov_base + next[-1].iov_len != to)
		return add_part(next, to, slot->length);
	next[-1].iov_len += slot->length;
	return next;
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

static void begin_message(struct vb_carrier_udp *wire, struct vb_udp_message *message,
			  const struct vb_slot *slot, const struct iovec *iovecs)
{
	if (slot->is_numbered) {
		begin_connected_tx(message, slot, iovecs);
		return;
	}
	*message = (struct vb_udp_message){
		.source_index = source_index_of(wire, slot->path.ip.source_port),
		.traffic_class = slot->path.ip.traffic_class,
		.hop_limit = slot->path.ip.hop_limit,
		.iovecs = iovecs,
	};
	memcpy(message->destination.ip, slot->path.ip.destination.raw,
	       sizeof(message->destination.ip));
	memcpy(message->source.ip, slot->path.ip.source.raw, sizeof(message->source.ip));
}

/* A packet that continues a message takes the message's path. Returns the number of messages. */
static uint32_t make_messages(struct vb_carrier_udp *wire, const struct vb_slot *slots,
			      uint32_t slot_count)
{
	struct iovec *next = wire->iovecs;
	const struct vb_slot *first = NULL; /* first slot of a message */
	uint32_t count = 0;

	wire->joined_length = 0;
	for (uint32_t i = 0; i < slot_count; i++) {
		const struct vb_slot *slot = &slots[i];
		bool follows = slot->continues && first;
		bool is_followed = i + 1 < slot_count && slots[i + 1].continues;

		if (follows) {
			wire->messages[count - 1].segment_length = (uint16_t)first->length;
		} else {
			/*
			 * This may continue what took another path: local peers find its ID from
			 * the ICRC.
			 */
			first = slot;
			wire->first_slots[count] = i;
			begin_message(wire, &wire->messages[count++], slot, next);
		}
		next = follows || is_followed ? add_copy(wire, next, slot, !follows)
					      : add_slot(next, slot);
		wire->messages[count - 1].iovec_count =
			(uint32_t)(next - wire->messages[count - 1].iovecs);
	}
	wire->first_slots[count] = slot_count;
	return count;
}

/* Framing must know the IP IDs that packets will have when it computes their ICRCs. */
VB_COLD static void number_flow(struct vb_carrier_udp *wire, uint32_t source_index)
{
	uint16_t next_ip_id;
	const struct vb_udp_route *route =
		vb_udp_connected_tx(wire->udp, source_index, &next_ip_id);
	struct vb_flow flow;

	if (!route) {
		vb_framing_number_flow(vb_nic_framing(wire->nic), source_index, NULL, 0);
		return;
	}
	flow = (struct vb_flow){
		.source = vb_carrier_udp_gid_of(&route->source),
		.destination = vb_carrier_udp_gid_of(&route->destination),
		.source_port = vb_udp_source_port(wire->udp, source_index),
		.traffic_class = route->traffic_class,
		.hop_limit = route->hop_limit,
	};
	vb_framing_number_flow(vb_nic_framing(wire->nic), source_index, &flow, next_ip_id);
}

/* Logs it once: the program will notice by time-outs. */
static void log_drops(struct vb_carrier_udp *wire)
{
	if (wire->has_logged_drops || !vb_udp_counters(wire->udp)[VB_UDP_TX_DROP_PORT_HELD])
		return;
	wire->has_logged_drops = true;
	vb_log_about(
		VB_LOG_WARN, VB_LOG_ABOUT(.phase = "send"),
		"packets to other hosts are dropped: UDP port %d was held by others when the first of this user's programs came",
		VB_ROCE_PORT);
}

uint32_t vb_carrier_udp_send(struct vb_carrier *carrier, struct vb_slot *slots, uint32_t count)
{
	struct vb_carrier_udp *wire = VB_CONTAINER(carrier, struct vb_carrier_udp, carrier);
	uint32_t message_count = make_messages(wire, slots, count);
	uint32_t taken = vb_udp_send(wire->udp, wire->messages, message_count);

	if (vb_udp_take_connected_tx_change(wire->udp))
		for (uint32_t i = 0; i < vb_udp_source_count(wire->udp); i++)
			number_flow(wire, i);
	log_drops(wire);
	if (wire->looks >= VB_CARRIER_UDP_LOOKS_WITHOUT_MEMBERS / 2)
		/* look on the next one: no answer can have come yet */
		wire->looks = VB_CARRIER_UDP_LOOKS_WITHOUT_MEMBERS;
	/*
	 * Only sending a message shows whether its interface segments. This message is lost to
	 * peers that check its ICRC.
	 */
	if (vb_udp_segments_max(wire->udp) == 1)
		vb_framing_stop_batching(vb_nic_framing(wire->nic));
	return wire->first_slots[taken];
}
