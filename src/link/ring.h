/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of bytes in memory that two processes share: one writes records, the other reads them, and neither waits for the other. A
 * record is committed by a word in front of it, which is the only thing that a reader polls. Either process may be killed at any moment, and the
 * reader believes nothing that it finds: a length is read once and checked, and the bytes of a record may change while they are
 * looked at.
 */
#ifndef VB_LINK_RING_H
#define VB_LINK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_RING_SIZE (256u << 10) /* bytes of data: a power of two */
#define VB_RING_RECORD_MAX \
	4352u /* bytes that a record holds at most: the longest packet, and its flow */
#define VB_RING_ALIGN 64u

/* What lies in front of the bytes of a record. */
struct vb_ring_record {
	_Atomic uint32_t commit; /* its place in the sequence, when it is complete */
	uint32_t length; /* of its bytes */
};

/* What both processes map; zero at first. The writer's words and the reader's have a cache line each. */
struct vb_ring_memory {
	_Alignas(64) _Atomic uint32_t
		busy; /* the writer's: odd while it acts in the reader's memory */
	_Atomic uint32_t wants_room; /* the writer's: it sleeps until there is room */
	_Alignas(64) _Atomic uint64_t consumed; /* the reader's: bytes, since the beginning */
	_Alignas(64) uint8_t data[VB_RING_SIZE];
};

struct vb_ring_writer {
	struct vb_ring_memory *memory;
	uint64_t produced; /* bytes, since the beginning */
	uint64_t consumed; /* as last seen */
};

struct vb_ring_reader {
	struct vb_ring_memory *memory;
	uint64_t next; /* where the next record begins */
	bool is_broken; /* what was found there makes no sense: nothing more is read */
};

/* The memory is the caller's, and new. */
void vb_ring_writer_init(struct vb_ring_writer *writer, struct vb_ring_memory *memory);
void vb_ring_reader_init(struct vb_ring_reader *reader, struct vb_ring_memory *memory);

/* How many records of the longest kind have room, at least. */
uint32_t vb_ring_room(struct vb_ring_writer *writer);

/* Place for a record of that length, or NULL: no room. Given up if it is not committed. */
uint8_t *vb_ring_reserve(struct vb_ring_writer *writer, uint32_t length);
/* Shows the reader the record that was reserved last. */
void vb_ring_commit(struct vb_ring_writer *writer, uint32_t length);

/* The next record, of *length_out bytes, or NULL. It stays until vb_ring_release(). */
const uint8_t *vb_ring_take(struct vb_ring_reader *reader, uint32_t *length_out);
/* All that was taken is free for the writer. */
void vb_ring_release(struct vb_ring_reader *reader);

/* Whether something is there to be taken. */
bool vb_ring_has_news(const struct vb_ring_reader *reader);

#endif
