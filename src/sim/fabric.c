/* SPDX-License-Identifier: BSD-2-Clause */
/* Cables. They keep the order of packets, unless a fault changes it. */
#include "sim/fabric.h"

#include "base/err.h"
#include "sim/dice.h"

/* a CRC-32 finds every error of this few bits in packets of this length */
#define CORRUPT_BITS_MAX 3

struct vb_fabric_packet *vb_fabric_gather(struct vb_fabric *fabric, uint32_t from,
					  const struct vb_slot *slot)
{
	struct vb_fabric_packet *packet = calloc(1, sizeof(*packet) + slot->length);

	VB_CHECK(packet);
	packet->flow = slot->path.ip;
	packet->ip_id = slot->ip_id;
	packet->from = from;
	packet->length = slot->length;
	if (vb_slot_gather(slot, packet->bytes))
		return packet;
	fabric->unreadable++;
	free(packet);
	return NULL;
}

static struct vb_fabric_packet *copy(const struct vb_fabric_packet *packet, uint32_t to)
{
	struct vb_fabric_packet *twin = calloc(1, sizeof(*twin) + packet->length);

	VB_CHECK(twin);
	memcpy(twin, packet, sizeof(*twin) + packet->length);
	twin->to = to;
	return twin;
}

static void corrupt(struct vb_fabric *fabric, struct vb_fabric_packet *packet)
{
	uint32_t bits = (uint32_t)vb_dice_between(&fabric->prng, 1, CORRUPT_BITS_MAX);

	for (uint32_t i = 0; i < bits; i++) {
		uint64_t bit = vb_prng_below(&fabric->prng, (uint64_t)packet->length * 8);

		packet->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void truncate(struct vb_fabric *fabric, struct vb_fabric_packet *packet)
{
	packet->length = (uint32_t)vb_prng_below(&fabric->prng, packet->length);
}

static uint64_t extra_delay(struct vb_fabric *fabric, enum vb_packet_fate fate)
{
	switch (fate) {
	case VB_FATE_REORDERED:
		return vb_dice_between(&fabric->prng, 1, 4 * fabric->latency_ns + 1000);
	case VB_FATE_DELAYED:
		return vb_dice_between(&fabric->prng, 1, VB_FAULT_DELAY_MAX_NS - 1);
	case VB_FATE_DELIVERED:
	case VB_FATE_DUPLICATED:
	case VB_FATE_CORRUPTED:
	case VB_FATE_TRUNCATED:
	case VB_FATE_LOST:
	case VB_FATE_PARTITIONED:
	case VB_FATE_LINK_DOWN:
	case VB_FATE_NOBODY:
	case VB_FATE_COUNT:
		break;
	}
	return 0;
}

static bool does_arrive(enum vb_packet_fate fate)
{
	return fate == VB_FATE_DELIVERED || fate == VB_FATE_DUPLICATED ||
	       fate == VB_FATE_REORDERED || fate == VB_FATE_DELAYED || fate == VB_FATE_CORRUPTED ||
	       fate == VB_FATE_TRUNCATED;
}

static void arrive(struct vb_fabric *fabric, uint64_t time_ns, struct vb_fabric_packet *packet)
{
	vb_agenda_add(fabric->agenda, time_ns, fabric->agenda_kind, packet->to, packet);
}

static void send_to(struct vb_fabric *fabric, uint64_t now_ns, uint64_t leaves_ns,
		    const struct vb_fabric_packet *packet, uint32_t to)
{
	enum vb_packet_fate fate =
		fabric->is_dead[to] ? VB_FATE_NOBODY
				    : vb_fault_decide(&fabric->faults, &fabric->prng, now_ns,
						      fabric->packets_sent, packet->from, to);
	uint64_t arrives_ns = leaves_ns + fabric->latency_ns + extra_delay(fabric, fate);
	struct vb_fabric_packet *sent;

	fabric->packets_sent++;
	fabric->fates[fate]++;
	vb_trace_on_packet(fabric->trace, now_ns, packet->from, to, fate, &packet->flow,
			   packet->ip_id, packet->bytes, packet->length);
	if (!does_arrive(fate))
		return;
	sent = copy(packet, to);
	if (fate == VB_FATE_CORRUPTED)
		corrupt(fabric, sent);
	if (fate == VB_FATE_TRUNCATED)
		truncate(fabric, sent);
	if (fate == VB_FATE_DUPLICATED)
		arrive(fabric,
		       arrives_ns + vb_prng_below(&fabric->prng, 3 * fabric->latency_ns + 1),
		       copy(packet, to));
	arrive(fabric, arrives_ns, sent);
}

static bool is_address_of(const struct vb_fabric *fabric, uint32_t node, const struct vb_gid *gid)
{
	return vb_gid_equal(&fabric->gids[node][0], gid) ||
	       vb_gid_equal(&fabric->gids[node][1], gid);
}

void vb_fabric_send(struct vb_fabric *fabric, uint64_t now_ns, uint32_t from,
		    const struct vb_slot *slot)
{
	struct vb_fabric_packet *packet = vb_fabric_gather(fabric, from, slot);
	bool is_multicast = vb_gid_is_multicast(&slot->path.ip.destination);
	bool is_known = is_multicast;
	uint64_t *free_ns = &fabric->link_free_ns[from];

	if (!packet)
		return;
	if (*free_ns < now_ns)
		*free_ns = now_ns;
	*free_ns += (uint64_t)packet->length * fabric->picoseconds_per_byte / 1000;
	for (uint32_t to = 0; to < fabric->node_count; to++) {
		if (is_multicast || is_address_of(fabric, to, &packet->flow.destination)) {
			send_to(fabric, now_ns, *free_ns, packet, to);
			is_known = true;
		}
	}
	if (!is_known) {
		fabric->fates[VB_FATE_NOBODY]++;
		vb_trace_on_packet(fabric->trace, now_ns, from, VB_TRACE_NOBODY, VB_FATE_NOBODY,
				   &packet->flow, packet->ip_id, packet->bytes, packet->length);
	}
	free(packet);
}

struct vb_frame vb_fabric_frame(struct vb_fabric *fabric, const struct vb_fabric_packet *packet,
				struct vb_bytes parts[VB_FABRIC_PARTS_MAX])
{
	struct vb_frame frame = { .path.ip = packet->flow,
				  .ip_id = packet->ip_id,
				  .path.link = packet->shm_link,
				  .flow_mark = vb_flow_mark(&packet->flow),
				  .piggyback_ack = packet->piggyback_ack,
				  .train = packet->train,
				  .references = (const uint8_t *)packet->references,
				  .rest = parts };
	uint32_t at = packet->length, cut;

	if (packet->length > VB_PACKET_HEADERS_MAX && vb_dice_chance(&fabric->prng, 1, 3))
		at = (uint32_t)vb_dice_between(&fabric->prng, VB_PACKET_HEADERS_MAX,
					       packet->length);
	frame.head = (struct vb_bytes){ packet->bytes, at };
	while (at < packet->length) {
		cut = packet->length - at;
		if (frame.rest_count < VB_FABRIC_PARTS_MAX - 1)
			cut = (uint32_t)vb_dice_between(&fabric->prng, 1, cut);
		parts[frame.rest_count++] = (struct vb_bytes){ packet->bytes + at, cut };
		at += cut;
	}
	return frame;
}
