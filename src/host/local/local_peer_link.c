/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets on shared-memory links. A record holds the mark of a packet's flow, a piggybacked ACK,
 * the packet's bytes, and then the flow itself. Most readers need only the mark of the flow, so a
 * short packet moves one cache line from one CPU to the other. A train's record has references
 * before its headers, and the reader copies its data from the writer's memory.
 */
#include "host/local/local_peer_priv.h"

#include "link/fd.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEAD_PEER_ROOM 64u /* packets: what is sent to a dead peer vanishes */

#define ROOM_LOW 16u /* packets: with more, the engine needs no update */
#define RECORD_OVERHEAD (uint32_t)(sizeof(struct vb_shm_link_head) + sizeof(struct vb_flow))

_Static_assert(sizeof(struct vb_train) + VB_SGE_MAX * sizeof(struct vb_reference) +
			       VB_PACKET_HEADERS_MAX + VB_SLOT_TAIL_MAX <=
		       VB_LOCAL_PEER_FRAME_MAX,
	       "every train fits a record");
_Static_assert(RECORD_OVERHEAD + VB_LOCAL_PEER_FRAME_MAX <= VB_RING_RECORD_MAX,
	       "every frame fits a record");

bool vb_local_peer_is_open(const struct vb_local_peers *peers, uint32_t number)
{
	return number < VB_PORT_MEMBER_COUNT && peers->table[number].state == VB_LOCAL_PEER_OPEN;
}

/* --- receiving --- */

/* The first word of the ACK has flags of the link above its PSN. */
static uint32_t load_flags(const struct vb_shm_link_head *head)
{
	uint32_t word;

	memcpy(&word, head->piggyback_ack, sizeof(word));
	return word;
}

static void add_flags(struct vb_shm_link_head *head, uint32_t flags)
{
	uint32_t word = load_flags(head) | flags;

	memcpy(head->piggyback_ack, &word, sizeof(word));
}

/* Returns whether it is the head of a train. */
static bool load_head(const uint8_t *bytes, struct vb_frame *frame)
{
	struct vb_shm_link_head head;

	memcpy(&head, bytes, sizeof(head));
	frame->flow_mark = head.flow_mark;
	frame->piggyback_ack = vb_piggyback_ack_load(head.piggyback_ack);
	return load_flags(&head) & VB_IS_TRAIN;
}

/* What follows the head: the packet's bytes, and its flow. */
static void load_packet(const uint8_t *bytes, uint32_t length, struct vb_frame *frame)
{
	frame->head = (struct vb_bytes){ bytes, length };
	frame->rest_count = 0;
	frame->late_flow = bytes + length;
}

/* The same with a train before it. False if the record is too short for what it claims. */
VB_NOINLINE static bool load_train(const uint8_t *bytes, uint32_t length, struct vb_frame *frame)
{
	uint32_t size = (uint32_t)sizeof(frame->train);

	if (length < size)
		return false;
	memcpy(&frame->train, bytes, size);
	frame->references = bytes + size;
	size += frame->train.reference_count * (uint32_t)sizeof(struct vb_reference);
	if (length < size || !frame->train.packet_count)
		return false;
	load_packet(bytes + size, length - size, frame);
	return true;
}

/*
 * Receives at most one train, as the last frame: the writer should learn that its data was taken
 * before the next train is copied.
 */
static uint32_t receive_from(struct vb_local_peer *peer, uint16_t shm_link, struct vb_frame *frames,
			     uint32_t capacity)
{
	uint32_t count = 0;
	uint32_t length;
	const uint8_t *bytes;

	while (count < capacity && (bytes = vb_ring_take(&peer->in, &length))) {
		struct vb_frame *frame = &frames[count];
		bool is_train;

		peer->is_taken = true;
		if (length < RECORD_OVERHEAD)
			continue;
		length -= RECORD_OVERHEAD;
		frame->path.link = shm_link;
		frame->path.kind = VB_PATH_IP;
		frame->ip_id = 0;
		frame->train.packet_count = 0;
		is_train = load_head(bytes, frame);
		bytes += sizeof(struct vb_shm_link_head);
		if (is_train) {
			if (!load_train(bytes, length, frame))
				continue;
			return count + 1;
		}
		load_packet(bytes, length, frame);
		count++;
	}
	return count;
}

uint32_t vb_local_peers_receive(struct vb_local_peers *peers, struct vb_frame *frames,
				uint32_t capacity)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < peers->readable_count && count < capacity; i++) {
		uint32_t place = peers->next + i;
		struct vb_local_peer *peer;
		uint32_t number;

		if (place >= peers->readable_count)
			place -= peers->readable_count;
		number = peers->readable[place];
		peer = &peers->table[number];
		if (vb_ring_has_news(&peer->in))
			count += receive_from(peer, (uint16_t)vb_local_peer_shm_link(number),
					      frames + count, capacity - count);
	}
	if (!count)
		return 0;
	if (count == capacity) /* the other peers come first the next time */
		peers->next = (peers->next + 1) % peers->readable_count;
	peers->counts.received += count;
	return count;
}

uint32_t vb_local_peers_packets_max(const struct vb_local_peers *peers)
{
	return peers->readable_count * (VB_RING_SIZE / VB_RING_ALIGN);
}

static void answer_writer(struct vb_local_peers *peers, struct vb_local_peer *peer)
{
	_Atomic uint32_t *wants_room = &peer->in_memory->wants_room;

	peer->answered = peer->in.next;
	/* Pairs with the fence of a writer that goes to sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(wants_room, memory_order_relaxed) &&
	    atomic_exchange_explicit(wants_room, 0, memory_order_relaxed))
		vb_local_peer_wake(peers, peer);
}

void vb_local_peers_release(struct vb_local_peers *peers)
{
	for (uint32_t i = 0; i < peers->readable_count; i++) {
		struct vb_local_peer *peer = &peers->table[peers->readable[i]];

		if (!peer->is_taken)
			continue;
		peer->is_taken = false;
		vb_ring_release(&peer->in);
		/*
		 * A writer that has found no room since the last answer has more than this in the
		 * ring.
		 */
		if (peer->in.next - peer->answered >= VB_RING_SIZE / 4)
			answer_writer(peers, peer);
	}
}

/* --- sending --- */

static void store_head(uint8_t *to, const struct vb_slot *slot, uint32_t flags)
{
	struct vb_shm_link_head head = { .flow_mark = vb_flow_mark(&slot->path.ip) };

	vb_piggyback_ack_store(head.piggyback_ack, &slot->piggyback_ack);
	if (flags)
		add_flags(&head, flags);
	memcpy(to, &head, sizeof(head));
}

VB_NOINLINE static bool put_train(struct vb_local_peer *peer, const struct vb_slot *slot)
{
	uint32_t size = slot->train.reference_count * (uint32_t)sizeof(struct vb_reference);
	uint32_t length = RECORD_OVERHEAD + (uint32_t)sizeof(slot->train) + size + slot->length;
	uint8_t *to = vb_ring_reserve(&peer->out, length);

	if (!to)
		return false;
	store_head(to, slot, VB_IS_TRAIN);
	to += sizeof(struct vb_shm_link_head);
	memcpy(to, &slot->train, sizeof(slot->train));
	to += sizeof(slot->train);
	memcpy(to, slot->references, size);
	to += size;
	memcpy(to, slot->head, slot->length);
	memcpy(to + slot->length, &slot->path.ip, sizeof(slot->path.ip));
	vb_ring_commit(&peer->out, length);
	return true;
}

static bool put(struct vb_local_peer *peer, const struct vb_slot *slot)
{
	uint32_t length = RECORD_OVERHEAD + slot->length;
	uint8_t *to;

	if (slot->train.packet_count)
		return put_train(peer, slot);
	to = vb_ring_reserve(&peer->out, length);
	if (!to)
		return false;
	/*
	 * Written backwards: the reader polls the first cache line, and would take it from us again
	 * before it is full.
	 */
	memcpy(to + sizeof(struct vb_shm_link_head) + slot->length, &slot->path.ip,
	       sizeof(slot->path.ip));
	if (!vb_slot_gather(slot, to + sizeof(struct vb_shm_link_head)))
		return false;
	store_head(to, slot, 0);
	vb_ring_commit(&peer->out, length);
	return true;
}

bool vb_local_peer_send(struct vb_local_peers *peers, uint32_t number, const struct vb_slot *slot)
{
	struct vb_local_peer *peer = &peers->table[number];
	bool is_sent = peer->state == VB_LOCAL_PEER_OPEN && put(peer, slot);

	if (!peer->is_touched)
		peers->touched[peers->touched_count++] = (uint8_t)number;
	peer->is_touched = true;
	peer->has_less_room |= !slot->path.link;
	if (is_sent)
		peers->counts.sent++;
	else
		peers->counts.lost++;
	return is_sent;
}

void vb_local_peer_wake(struct vb_local_peers *peers, struct vb_local_peer *peer)
{
	uint64_t one = 1;

	peers->counts.wakes++;
	if (vb_fd_is_ours(peer->wake_fd))
		syscall(SYS_write, peer->wake_fd, &one, sizeof(one));
}

/*
 * Wakes a peer once each time one of its threads begins or ends a sleep: until then, the peer has
 * yet to look.
 */
static void wake_sleeper(struct vb_local_peers *peers, struct vb_local_peer *peer)
{
	const struct vb_export_head *head = &peer->block->head;
	uint32_t sequence;

	/* Pairs with the fence of a thread that goes to sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&head->sleeper_count, memory_order_relaxed))
		return;
	sequence = atomic_load_explicit(&head->sleep_sequence, memory_order_relaxed);
	if (sequence == peer->woken)
		return;
	peer->woken = sequence;
	vb_local_peer_wake(peers, peer);
}

/* In packets of the engine; longer frames find less. */
uint32_t vb_local_peer_room(struct vb_local_peer *peer)
{
	return vb_ring_room(&peer->out, RECORD_OVERHEAD + VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX +
						VB_SLOT_TAIL_MAX);
}

static uint32_t room_of(struct vb_local_peer *peer)
{
	if (peer->state != VB_LOCAL_PEER_OPEN || vb_export_is_dead(peer->block))
		return DEAD_PEER_ROOM;
	return vb_local_peer_room(peer);
}

void vb_local_peer_update_room(struct vb_local_peers *peers, uint32_t number)
{
	vb_nic_set_link_room(peers->nic, vb_local_peer_shm_link(number),
			     room_of(&peers->table[number]));
}

void vb_local_peers_flush(struct vb_local_peers *peers)
{
	while (peers->touched_count) {
		uint32_t number = peers->touched[--peers->touched_count];
		struct vb_local_peer *peer = &peers->table[number];

		peer->is_touched = false;
		if (peer->state == VB_LOCAL_PEER_OPEN)
			wake_sleeper(peers, peer);
		if (peer->has_less_room ||
		    vb_nic_link_room(peers->nic, vb_local_peer_shm_link(number)) < ROOM_LOW)
			vb_local_peer_update_room(peers, number);
		peer->has_less_room = false;
	}
	if (!vb_nic_has_qps_without_room(peers->nic))
		return;
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++)
		if (peers->table[i].is_known)
			vb_local_peer_update_room(peers, i);
}
