/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of bytes in memory that two processes share: one writes records, the other reads them, and
 * neither waits for the other. A word before each record commits it; a reader polls only that word.
 * Either process may be killed at any moment, and the reader trusts nothing that it finds: it reads
 * a length once and checks it, and the bytes of a record may change while they are read.
 */
#ifndef VB_LINK_RING_H
#define VB_LINK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_RING_SIZE (256u << 10) /* bytes of data: a power of two */
/* The most bytes that a record holds: the longest frame of any kind, and what goes with it. */
#define VB_RING_RECORD_MAX 9984u
#define VB_RING_ALIGN 64u

/* Precedes the bytes of a record. */
struct vb_ring_record {
	_Atomic uint32_t commit; /* its place in the sequence, once it is complete */
	uint32_t length; /* of its bytes */
};

/*
 * The memory that both processes map; zero at first. The writer's words and the reader's have a
 * cache line each.
 */
struct vb_ring_memory {
	/* the writer's: odd while it accesses the reader's memory */
	_Alignas(64) _Atomic uint32_t busy;
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
	bool is_broken; /* the record found was invalid: nothing more is read */
};

/* The memory belongs to the caller, and is new. */
void vb_ring_writer_init(struct vb_ring_writer *writer, struct vb_ring_memory *memory);
void vb_ring_reader_init(struct vb_ring_reader *reader, struct vb_ring_memory *memory);

/* A lower bound on the number of records of that length, or shorter ones, that fit now. */
uint32_t vb_ring_room(struct vb_ring_writer *writer, uint32_t length);

/*
 * Returns space for a record of that length, or NULL: no room. A reservation that is not committed
 * is given up.
 */
uint8_t *vb_ring_reserve(struct vb_ring_writer *writer, uint32_t length);
/* Publishes the last reserved record to the reader. */
void vb_ring_commit(struct vb_ring_writer *writer, uint32_t length);

/* Returns the next record, of *length_out bytes, or NULL. It stays until vb_ring_release(). */
const uint8_t *vb_ring_take(struct vb_ring_reader *reader, uint32_t *length_out);
/* Frees all taken records for the writer. */
void vb_ring_release(struct vb_ring_reader *reader);

/* Whether there is a record to take. */
bool vb_ring_has_news(const struct vb_ring_reader *reader);

#endif
