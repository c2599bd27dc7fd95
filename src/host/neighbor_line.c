/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets on shared-memory links. A record holds the mark of a packet's flow, a piggybacked ACK,
 * the packet's bytes, and then the flow itself. Most readers need only the mark of the flow, so a
 * short packet moves one cache line from one CPU to the other.
 */
#include "host/neighbor_priv.h"

#include "link/fd.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROOM_FOR_THE_DEAD 64u /* packets: what is sent to a dead peer vanishes */

#define ROOM_LOW 16u /* packets: with more, the engine needs no update */
#define RECORD_OVERHEAD (uint32_t)(sizeof(struct vb_shm_link_head) + sizeof(struct vb_flow))

_Static_assert(RECORD_OVERHEAD + VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX + VB_SLOT_TAIL_MAX <=
		       VB_RING_RECORD_MAX,
	       "every packet fits a record");

bool vb_neighbor_is_open(const struct vb_neighbors *neighbors, uint32_t number)
{
	return number < VB_MEMBER_COUNT && neighbors->table[number].state == VB_NEIGHBOR_OPEN;
}

/* --- receiving --- */

static void load_head(const uint8_t *bytes, struct vb_frame *frame)
{
	struct vb_shm_link_head head;

	memcpy(&head, bytes, sizeof(head));
	frame->flow_mark = head.flow_mark;
	frame->rider.is_there = head.rider_psn != VB_NO_RIDER;
	frame->rider.psn = (vb_psn){ head.rider_psn & VB_PSN_MASK };
	frame->rider.aeth =
		(struct vb_aeth){ (uint8_t)(head.rider_aeth >> 24), head.rider_aeth & 0xffffff };
}

static uint32_t receive_from(struct vb_neighbor *neighbor, uint16_t shm_link,
			     struct vb_frame *frames, uint32_t capacity)
{
	uint32_t count = 0;
	uint32_t length;
	const uint8_t *bytes;

	while (count < capacity && (bytes = vb_ring_take(&neighbor->in, &length))) {
		struct vb_frame *frame = &frames[count];

		neighbor->is_taken = true;
		if (length < RECORD_OVERHEAD)
			continue;
		length -= RECORD_OVERHEAD;
		frame->shm_link = shm_link;
		frame->ip_id = 0;
		load_head(bytes, frame);
		bytes += sizeof(struct vb_shm_link_head);
		frame->head = (struct vb_bytes){ bytes, length };
		frame->rest_count = 0;
		frame->late_flow = bytes + length;
		count++;
	}
	return count;
}

uint32_t vb_neighbors_receive(struct vb_neighbors *neighbors, struct vb_frame *frames,
			      uint32_t capacity)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < neighbors->open_count && count < capacity; i++) {
		uint32_t place = neighbors->next + i;
		struct vb_neighbor *neighbor;
		uint32_t number;

		if (place >= neighbors->open_count)
			place -= neighbors->open_count;
		number = neighbors->open[place];
		neighbor = &neighbors->table[number];
		if (vb_ring_has_news(&neighbor->in))
			count += receive_from(neighbor, (uint16_t)vb_neighbor_shm_link(number),
					      frames + count, capacity - count);
	}
	if (!count)
		return 0;
	if (count == capacity) /* the other peers come first the next time */
		neighbors->next = (neighbors->next + 1) % neighbors->open_count;
	neighbors->counts.received += count;
	return count;
}

uint32_t vb_neighbors_packets_max(const struct vb_neighbors *neighbors)
{
	return neighbors->open_count * (VB_RING_SIZE / VB_RING_ALIGN);
}

static void answer_writer(struct vb_neighbors *neighbors, struct vb_neighbor *neighbor)
{
	_Atomic uint32_t *wants_room = &neighbor->in_memory->wants_room;

	neighbor->answered = neighbor->in.next;
	/* Pairs with the fence of a writer that goes to sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(wants_room, memory_order_relaxed) &&
	    atomic_exchange_explicit(wants_room, 0, memory_order_relaxed))
		vb_neighbor_wake(neighbors, neighbor);
}

void vb_neighbors_release(struct vb_neighbors *neighbors)
{
	for (uint32_t i = 0; i < neighbors->open_count; i++) {
		struct vb_neighbor *neighbor = &neighbors->table[neighbors->open[i]];

		if (!neighbor->is_taken)
			continue;
		neighbor->is_taken = false;
		vb_ring_release(&neighbor->in);
		/*
		 * A writer that has found no room since the last answer has more than this in the
		 * ring.
		 */
		if (neighbor->in.next - neighbor->answered >= VB_RING_SIZE / 4)
			answer_writer(neighbors, neighbor);
	}
}

/* --- sending --- */

static void store_head(uint8_t *to, const struct vb_slot *slot)
{
	const struct vb_rider *rider = &slot->rider;
	struct vb_shm_link_head head = { vb_flow_mark(&slot->flow), VB_NO_RIDER, 0 };

	if (rider->is_there) {
		head.rider_psn = rider->psn.v;
		head.rider_aeth = (uint32_t)rider->aeth.syndrome << 24 | rider->aeth.msn;
	}
	memcpy(to, &head, sizeof(head));
}

static bool put(struct vb_neighbor *neighbor, const struct vb_slot *slot)
{
	uint32_t length = RECORD_OVERHEAD + slot->length;
	uint8_t *to = vb_ring_reserve(&neighbor->out, length);

	if (!to)
		return false;
	/*
	 * Written backwards: the reader polls the first cache line, and would take it from us again
	 * before it is full.
	 */
	memcpy(to + sizeof(struct vb_shm_link_head) + slot->length, &slot->flow,
	       sizeof(slot->flow));
	if (!vb_slot_gather(slot, to + sizeof(struct vb_shm_link_head)))
		return false;
	store_head(to, slot);
	vb_ring_commit(&neighbor->out, length);
	return true;
}

bool vb_neighbor_send(struct vb_neighbors *neighbors, uint32_t number, const struct vb_slot *slot)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];
	bool is_sent = neighbor->state == VB_NEIGHBOR_OPEN && put(neighbor, slot);

	if (!neighbor->is_touched)
		neighbors->touched[neighbors->touched_count++] = (uint8_t)number;
	neighbor->is_touched = true;
	neighbor->has_less_room |= !slot->shm_link;
	if (is_sent)
		neighbors->counts.sent++;
	else
		neighbors->counts.lost++;
	return is_sent;
}

void vb_neighbor_wake(struct vb_neighbors *neighbors, struct vb_neighbor *neighbor)
{
	uint64_t one = 1;

	neighbors->counts.wakes++;
	if (vb_fd_is_ours(neighbor->wake_fd))
		syscall(SYS_write, neighbor->wake_fd, &one, sizeof(one));
}

/*
 * Wakes a peer once each time one of its threads begins or ends a sleep: until then, the peer has
 * yet to look.
 */
static void wake_sleeper(struct vb_neighbors *neighbors, struct vb_neighbor *neighbor)
{
	const struct vb_export_head *head = &neighbor->block->head;
	uint32_t sequence;

	/* Pairs with the fence of a thread that goes to sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&head->sleeper_count, memory_order_relaxed))
		return;
	sequence = atomic_load_explicit(&head->sleep_sequence, memory_order_relaxed);
	if (sequence == neighbor->woken)
		return;
	neighbor->woken = sequence;
	vb_neighbor_wake(neighbors, neighbor);
}

static uint32_t room_of(struct vb_neighbor *neighbor)
{
	if (neighbor->state != VB_NEIGHBOR_OPEN || vb_export_is_dead(neighbor->block))
		return ROOM_FOR_THE_DEAD;
	return vb_ring_room(&neighbor->out);
}

void vb_neighbor_update_room(struct vb_neighbors *neighbors, uint32_t number)
{
	vb_nic_set_shm_room(neighbors->nic, vb_neighbor_shm_link(number),
			    room_of(&neighbors->table[number]));
}

void vb_neighbors_flush(struct vb_neighbors *neighbors)
{
	while (neighbors->touched_count) {
		uint32_t number = neighbors->touched[--neighbors->touched_count];
		struct vb_neighbor *neighbor = &neighbors->table[number];

		neighbor->is_touched = false;
		if (neighbor->state == VB_NEIGHBOR_OPEN)
			wake_sleeper(neighbors, neighbor);
		if (neighbor->has_less_room ||
		    vb_nic_shm_room(neighbors->nic, vb_neighbor_shm_link(number)) < ROOM_LOW)
			vb_neighbor_update_room(neighbors, number);
		neighbor->has_less_room = false;
	}
	if (!vb_nic_has_qps_without_room(neighbors->nic))
		return;
	for (uint32_t i = 0; i < VB_MEMBER_COUNT; i++)
		if (neighbors->table[i].is_known)
			vb_neighbor_update_room(neighbors, i);
}
