/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame becomes a record: its length, its piggybacked ACK, its bytes. A stream has no addresses.
 * A sender keeps the rest of a record that the pipe has not taken, and tells the engine that the
 * link has no room meanwhile. A receiver collects bytes until a record is complete.
 */
#include "support_pipe.h"

#include "base/bytes.h"
#include "base/list.h"
#include "base/prng.h"
#include "harness.h"
#include "nic/nic.h"
#include "nic/peer_memory.h"

#include <stdlib.h>
#include <string.h>

enum {
	LINKS = 8,
	RING = 3000, /* bytes: less than the longest frame */
	BYTES_MAX = 9622,
};

struct record_head {
	uint32_t length;
	struct vb_piggyback_ack piggyback_ack;
};

enum { RECORD_MAX = sizeof(struct record_head) + BYTES_MAX };

/* One direction of a pipe, with what its two ends keep. */
struct way {
	uint8_t unsent[RECORD_MAX]; /* the rest of a record */
	uint32_t unsent_first, unsent_end;
	uint8_t ring[RING];
	uint32_t written, read;
	uint8_t collected[RECORD_MAX];
	uint32_t collected_count;
	bool is_in_pieces;
};

struct pipe {
	bool is_open;
	struct way ways[2];
};

struct pipes_end {
	struct vb_carrier carrier;
	struct pipes *pipes;
	struct vb_nic *nic;
	uint32_t index; /* it writes to this way, and reads from the other */
};

struct pipes {
	struct pipe pipe[LINKS + 1];
	struct pipes_end ends[2];
	struct vb_prng dice;
	uint64_t torn, pieced;
};

static struct pipes_end *end_of(struct vb_carrier *carrier)
{
	return VB_CONTAINER(carrier, struct pipes_end, carrier);
}

static uint32_t some(struct pipes *pipes, uint32_t most)
{
	return (uint32_t)vb_prng_below(&pipes->dice, most + 1);
}

/* Pushes as much as the pipe takes this time. */
static void push(struct pipes_end *end, uint32_t link)
{
	struct way *way = &end->pipes->pipe[link].ways[end->index];
	uint32_t left = way->unsent_end - way->unsent_first;
	uint32_t count = some(end->pipes, min32(left, RING - (way->written - way->read)));

	way->is_in_pieces |= count && count < left;
	for (uint32_t i = 0; i < count; i++)
		way->ring[way->written++ % RING] = way->unsent[way->unsent_first++];
	vb_nic_set_link_room(end->nic, link, way->unsent_first == way->unsent_end);
}

static void start_record(struct way *way, const struct vb_slot *slot)
{
	struct record_head head = { slot->length, slot->piggyback_ack };

	memcpy(way->unsent, &head, sizeof(head));
	EXPECT(vb_slot_gather(slot, way->unsent + sizeof(head)));
	way->unsent_first = 0;
	way->unsent_end = (uint32_t)sizeof(head) + slot->length;
}

static uint32_t send_frames(struct vb_carrier *carrier, struct vb_slot *slots, uint32_t count)
{
	struct pipes_end *end = end_of(carrier);

	for (uint32_t i = 0; i < count; i++) {
		struct pipe *pipe = &end->pipes->pipe[slots[i].path.link];
		struct way *way = &pipe->ways[end->index];

		if (!pipe->is_open)
			continue; /* lost */
		EXPECT_EQ(way->unsent_first, way->unsent_end); /* the engine knows the room */
		start_record(way, &slots[i]);
		push(end, slots[i].path.link);
	}
	return count;
}

static void flush(struct vb_carrier *carrier)
{
	struct pipes_end *end = end_of(carrier);

	for (uint32_t link = 1; link <= LINKS; link++)
		if (end->pipes->pipe[link].is_open)
			push(end, link);
}

/* Collects bytes, but not beyond the record that is begun. True: the record is complete. */
static bool collect(struct pipes *pipes, struct way *way)
{
	uint32_t count = some(pipes, way->written - way->read);
	struct record_head head;

	for (;; count--) {
		uint32_t have = way->collected_count;

		if (have >= sizeof(head)) {
			memcpy(&head, way->collected, sizeof(head));
			if (have == sizeof(head) + head.length)
				return true;
		}
		if (!count)
			return false;
		way->collected[way->collected_count++] = way->ring[way->read++ % RING];
	}
}

static struct vb_frame frame_of(const struct way *way, uint32_t link)
{
	struct record_head head;

	memcpy(&head, way->collected, sizeof(head));
	return (struct vb_frame){
		.path = { .kind = VB_PATH_STREAM, .link = (uint16_t)link },
		.piggyback_ack = head.piggyback_ack,
		.head = { way->collected + sizeof(head), head.length },
	};
}

static uint32_t receive(struct vb_carrier *carrier, uint64_t now_ns, enum vb_carrier_effort effort,
			struct vb_frame *frames, uint32_t capacity)
{
	struct pipes_end *end = end_of(carrier);
	uint32_t count = 0;

	(void)now_ns, (void)effort;
	for (uint32_t link = 1; link <= LINKS && count < capacity; link++) {
		struct pipe *pipe = &end->pipes->pipe[link];

		if (pipe->is_open && collect(end->pipes, &pipe->ways[!end->index]))
			frames[count++] = frame_of(&pipe->ways[!end->index], link);
	}
	return count;
}

static void release(struct vb_carrier *carrier)
{
	struct pipes_end *end = end_of(carrier);

	for (uint32_t link = 1; link <= LINKS; link++) {
		struct way *way = &end->pipes->pipe[link].ways[!end->index];
		struct record_head head;

		memcpy(&head, way->collected, sizeof(head));
		if (way->collected_count < sizeof(head) ||
		    way->collected_count < sizeof(head) + head.length)
			continue;
		end->pipes->pieced += way->is_in_pieces;
		way->is_in_pieces = false;
		way->collected_count = 0;
	}
}

static uint32_t no_fds(struct vb_carrier *carrier, struct pollfd fds[VB_CARRIER_FDS_MAX])
{
	(void)carrier, (void)fds;
	return 0;
}

static void on_wake(struct vb_carrier *carrier)
{
	(void)carrier;
}

static const struct vb_carrier_type type = {
	.name = "pipe",
	.frame_length_max = BYTES_MAX,
	.send = send_frames,
	.flush = flush,
	.receive = receive,
	.release = release,
	.fds = no_fds,
	.on_wake = on_wake,
};

struct pipes *pipes_create(uint64_t seed, struct vb_nic *const nics[2],
			   struct vb_carrier *ends_out[2])
{
	struct pipes *pipes = calloc(1, sizeof(*pipes));

	EXPECT(pipes);
	vb_prng_init(&pipes->dice, seed);
	for (uint32_t i = 0; i < 2; i++) {
		pipes->ends[i] = (struct pipes_end){ { .type = &type }, pipes, nics[i], i };
		ends_out[i] = &pipes->ends[i].carrier;
	}
	return pipes;
}

void pipes_destroy(struct pipes *pipes)
{
	free(pipes);
}

void pipes_open(struct pipes *pipes, uint32_t link)
{
	memset(&pipes->pipe[link], 0, sizeof(pipes->pipe[link]));
	pipes->pipe[link].is_open = true;
	for (uint32_t i = 0; i < 2; i++)
		vb_nic_set_link_room(pipes->ends[i].nic, link, 1);
}

void pipes_close(struct pipes *pipes, uint32_t link)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct way *way = &pipes->pipe[link].ways[i];

		pipes->torn += way->collected_count || way->unsent_first != way->unsent_end;
	}
	pipes->pipe[link].is_open = false;
}

uint64_t pipes_torn(const struct pipes *pipes)
{
	return pipes->torn;
}

uint64_t pipes_pieced(const struct pipes *pipes)
{
	return pipes->pieced;
}
