/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast between local peers. A multicast packet is always sent by the wire, for other hosts and
 * for peers here without a link to the sender; the kernel gives a copy to every port member on this
 * host. A peer with a link also gets a copy by the link, earlier: its engine then recognizes the
 * one from the wire (nic/multicast_dedup_priv.h). So nothing depends on which peer has a link at
 * which moment.
 *
 * Groups belong to an interface, and only peers in a group get its packets. An adapter publishes
 * its groups as bits, several groups to a bit: a peer that gets a packet by mistake is not in the
 * group, and drops it.
 */
#include "host/local/local_peer_priv.h"

#include "base/bytes.h"
#include "nic/nic.h"
#include "wire/opcode.h"

static uint32_t bit_of(const struct vb_gid *group)
{
	uint64_t hash = (load64(group->raw) ^ load64(group->raw + 8)) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(hash >> 32) % VB_EXPORT_GROUP_BITS;
}

static void show(struct vb_local_peers *peers, uint32_t bit)
{
	_Atomic uint64_t *word;
	uint64_t mask = 1ull << bit % 64;
	uint64_t others;

	if (!peers->block)
		return;
	word = &peers->block->head.group_bits[bit / 64];
	others = atomic_load_explicit(word, memory_order_relaxed) & ~mask;
	atomic_store_explicit(word, peers->group_counts[bit] ? others | mask : others,
			      memory_order_relaxed);
}

void vb_local_peers_publish_groups(struct vb_local_peers *peers)
{
	peers->block->head.ifindex = peers->ifindex;
	for (uint32_t bit = 0; bit < VB_EXPORT_GROUP_BITS; bit++)
		show(peers, bit);
}

void vb_local_peers_on_joined(struct vb_local_peers *peers, const struct vb_gid *group)
{
	peers->group_counts[bit_of(group)]++;
	show(peers, bit_of(group));
}

void vb_local_peers_on_left(struct vb_local_peers *peers, const struct vb_gid *group)
{
	peers->group_counts[bit_of(group)]--;
	show(peers, bit_of(group));
}

static bool has_group_bit(const struct vb_local_peers *peers, const struct vb_local_peer *peer,
			  uint32_t bit)
{
	const struct vb_export_head *head = &peer->block->head;

	return head->ifindex == peers->ifindex &&
	       atomic_load_explicit(&head->group_bits[bit / 64], memory_order_relaxed) &
		       1ull << bit % 64;
}

void vb_local_peers_send_copies(struct vb_local_peers *peers, const struct vb_slot *slot)
{
	uint32_t bit = bit_of(&slot->path.ip.destination);

	for (uint32_t i = 0; i < peers->readable_count; i++) {
		uint32_t number = peers->readable[i];
		struct vb_local_peer *peer = &peers->table[number];

		if (peer->state == VB_LOCAL_PEER_OPEN && has_group_bit(peers, peer, bit) &&
		    vb_local_peer_room(peer))
			(void)vb_local_peer_send(peers, number, slot);
	}
}

/* If the sender's address is one of ours, its adapter is a port member on this host. */
void vb_local_peers_request_link_to_sender(struct vb_local_peers *peers,
					   const struct vb_frame *frame)
{
	uint32_t number;

	if (frame->head.length < VB_BTH_SIZE + VB_DETH_SIZE ||
	    vb_opcode_service(vb_bth_load(frame->head.data).opcode) != VB_SERVICE_UD)
		return;
	number = vb_port_member_of_qpn(vb_deth_load(frame->head.data + VB_BTH_SIZE).source);
	if (number < VB_PORT_MEMBER_COUNT && !vb_local_peer_is_open(peers, number) &&
	    vb_nic_has_gid(peers->nic, &frame->path.ip.source))
		(void)vb_local_peer_request_link(peers, number);
}
