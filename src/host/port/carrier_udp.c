/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of the UDP carrier, and its frames on their way in. */
#include "host/port/carrier_udp_priv.h"

#include "base/heap.h"
#include "base/list.h"
#include "host/registry/own_ports.h"
#include "nic/nic.h"
#include "nic/qp1_packet.h"

#define UNREACHABLE_BATCH 16u

static struct vb_carrier_udp *wire_of(struct vb_carrier *carrier)
{
	return VB_CONTAINER(carrier, struct vb_carrier_udp, carrier);
}

/*
 * Stores each member by itself. An initializer would clear the frame as a whole, by an instruction
 * that takes as long as the rest of the function.
 */
static void fill_frame(struct vb_frame *frame, const struct vb_udp_datagram *datagram)
{
	struct vb_flow *flow = &frame->path.ip;

	memcpy(flow->source.raw, datagram->source.ip, sizeof(flow->source.raw));
	memcpy(flow->destination.raw, datagram->destination.ip, sizeof(flow->destination.raw));
	flow->flow_label = 0;
	flow->source_port = datagram->source_port;
	flow->traffic_class = datagram->traffic_class;
	flow->hop_limit = datagram->hop_limit;
	frame->path.link = 0;
	frame->path.kind = VB_PATH_IP;
	frame->late_flow = NULL;
	frame->flow_mark = 0;
	frame->piggyback_ack.is_there = false;
	frame->ip_id = datagram->segment_index;
	frame->train = (struct vb_train){ 0 };
	frame->references = NULL;
	frame->head = (struct vb_bytes){ datagram->data, datagram->length };
	frame->rest = NULL;
	frame->rest_count = 0;
}

/*
 * Packets that no process takes are ours: our engine refuses them, for the reason that it finds. A
 * damaged QPN may name a process that does not exist. Returns how many frames there are now.
 */
VB_NOINLINE static uint32_t hand_over(struct vb_carrier_udp *wire, struct vb_frame *frames,
				      uint32_t count)
{
	if (wire->handed_count && !vb_port_member_hand_over(wire->member, wire->handed_to,
							    wire->handed, wire->handed_count)) {
		memcpy(frames + count, wire->handed, wire->handed_count * sizeof(*frames));
		count += wire->handed_count;
	}
	wire->handed_count = 0;
	return count;
}

/*
 * Drops what other users of this host send before it is examined: they can also send from our
 * addresses. Returns the size of the remaining batch.
 */
static uint32_t drop_strangers(struct vb_carrier_udp *wire, uint64_t now_ns, uint32_t count)
{
	const uint64_t *trusted = vb_own_ports_trusted(wire->own_ports);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_udp_datagram *datagram = &wire->datagrams[i];
		struct vb_gid source;

		if (!vb_own_ports_has(trusted, datagram->source_port)) {
			source = vb_carrier_udp_gid_of(&datagram->source);
			if (vb_own_ports_is_stranger(wire->own_ports, &source,
						     datagram->destination.scope,
						     datagram->source_port, now_ns)) {
				vb_nic_drop_mad(wire->nic, VB_DROP_STRANGER);
				continue;
			}
		}
		if (kept != i)
			wire->datagrams[kept] = *datagram;
		kept++;
	}
	return kept;
}

/* Collects packets for one other process, so that they go in one message. */
static uint32_t hand_over_later(struct vb_carrier_udp *wire, uint32_t owner,
				struct vb_frame *frames, uint32_t count)
{
	struct vb_frame frame = frames[count]; /* hand_over() may need its place */

	if (wire->handed_count == VB_PORT_MEMBER_BATCH || owner != wire->handed_to)
		count = hand_over(wire, frames, count);
	wire->handed_to = owner;
	wire->handed[wire->handed_count++] = frame;
	return count;
}

static uint32_t receive_from_sockets(struct vb_carrier_udp *wire, uint64_t now_ns,
				     struct vb_frame *frames, uint32_t capacity)
{
	uint32_t received = vb_udp_receive(wire->udp, wire->datagrams, capacity);
	uint32_t kept = drop_strangers(wire, now_ns, received);
	uint32_t count = 0;

	for (uint32_t i = 0; i < kept; i++) {
		uint32_t owner;

		fill_frame(&frames[count], &wire->datagrams[i]);
		owner = vb_port_member_of_frame(wire->member, &frames[count]);
		if (owner == vb_port_member_number(wire->member))
			count++;
		else
			count = hand_over_later(wire, owner, frames, count);
	}
	if (wire->handed_count)
		count = hand_over(wire, frames, count);
	wire->carrier.has_more = received && !count;
	return count;
}

static uint32_t receive(struct vb_carrier *carrier, uint64_t now_ns, enum vb_carrier_effort effort,
			struct vb_frame *frames, uint32_t capacity)
{
	struct vb_carrier_udp *wire = wire_of(carrier);
	uint32_t count;

	wire->looks += effort;
	if (effort == VB_CARRIER_SEARCH)
		vb_udp_read_others_next(wire->udp);
	if (wire->looks <= VB_CARRIER_UDP_LOOKS_WITHOUT_MEMBERS)
		return receive_from_sockets(wire, now_ns, frames, capacity);
	wire->looks = 0;
	vb_own_ports_expire(wire->own_ports, now_ns);
	count = receive_from_sockets(wire, now_ns, frames, capacity - VB_PORT_MEMBER_BATCH);
	count += vb_port_member_take(wire->member, frames + count);
	vb_port_member_read_all(wire->member, wire->udp);
	vb_udp_allow_connected_rx(wire->udp, vb_port_member_is_alone(wire->member));
	return count;
}

/* The sockets' buffers are used again by the next receive(). */
static void release(struct vb_carrier *carrier)
{
	(void)carrier;
}

/* The kernel wakes receivers. */
static void flush(struct vb_carrier *carrier)
{
	(void)carrier;
}

static uint32_t fds_of(struct vb_carrier *carrier, struct pollfd fds[VB_CARRIER_FDS_MAX])
{
	struct vb_carrier_udp *wire = wire_of(carrier);

	fds[0] = (struct pollfd){ .fd = vb_udp_fd(wire->udp), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = vb_port_member_fd(wire->member), .events = POLLIN };
	return 2;
}

static void on_wake(struct vb_carrier *carrier)
{
	wire_of(carrier)->looks = VB_CARRIER_UDP_LOOKS_WITHOUT_MEMBERS;
}

static uint32_t take_unreachable(struct vb_carrier *carrier, struct vb_gid *addresses,
				 uint32_t capacity)
{
	struct vb_udp_address unreachable[UNREACHABLE_BATCH];
	uint32_t count = vb_udp_take_unreachable(wire_of(carrier)->udp, unreachable,
						 capacity < UNREACHABLE_BATCH ? capacity
									      : UNREACHABLE_BATCH);

	for (uint32_t i = 0; i < count; i++)
		addresses[i] = vb_carrier_udp_gid_of(&unreachable[i]);
	return count;
}

static void claim_mads(struct vb_carrier *carrier)
{
	struct vb_carrier_udp *wire = wire_of(carrier);

	vb_port_member_steer(wire->udp, vb_port_member_number(wire->member));
}

static const struct vb_carrier_type type = {
	.name = "wire",
	.frame_length_max = VB_UDP_MESSAGE_MAX,
	.send = vb_carrier_udp_send,
	.flush = flush,
	.receive = receive,
	.release = release,
	.fds = fds_of,
	.on_wake = on_wake,
	.take_unreachable = take_unreachable,
	.claim_mads = claim_mads,
};

vb_err vb_carrier_udp_create(struct vb_nic *nic, struct vb_udp *udp, struct vb_port_member *member,
			     struct vb_carrier_udp **wire_out)
{
	struct vb_carrier_udp *wire = vb_heap_alloc(1, sizeof(*wire));

	if (!wire)
		return VB_ENOMEM;
	if (vb_own_ports_create(vb_udp_source_port(udp, 0), &wire->own_ports) != VB_OK) {
		vb_heap_free(wire);
		return VB_ENOMEM;
	}
	for (uint32_t i = 0; i < vb_udp_source_count(udp); i++)
		vb_own_ports_add(wire->own_ports, vb_udp_source_port(udp, i));
	wire->carrier.type = &type;
	wire->nic = nic;
	wire->udp = udp;
	wire->member = member;
	for (uint32_t i = 0; i < VB_NUMBERED_FLOWS_MAX; i++) /* set by an earlier link */
		vb_framing_number_flow(vb_nic_framing(nic), i, NULL, 0);
	*wire_out = wire;
	return VB_OK;
}

void vb_carrier_udp_destroy(struct vb_carrier_udp *wire)
{
	vb_own_ports_destroy(wire->own_ports);
	vb_heap_free(wire);
}

struct vb_carrier *vb_carrier_udp_base(struct vb_carrier_udp *wire)
{
	return &wire->carrier;
}
