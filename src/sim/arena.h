/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application memory of one simulated machine, at a fixed address. A shadow holds what the
 * bytes must be: the checker compares the two everywhere except in ranges that an operation under
 * way may write. Blocks are allocated with a gap between them, so that a write past a block is
 * detected.
 */
#ifndef VB_SIM_ARENA_H
#define VB_SIM_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#define VB_ARENA_VANISHED_MAX 8
#define VB_ARENA_ATTACHED_MAX 32

struct vb_arena_block {
	uint64_t address;
	uint32_t length;
};

struct vb_arena {
	uint64_t base;
	uint32_t length;
	bool is_retired; /* its machine restarted: no longer checked */
	uint8_t *bytes;
	uint8_t *shadow;
	uint8_t *open; /* per byte: the number of operations under way that may write it */
	struct vb_arena_block *blocks; /* sorted by address */
	uint32_t block_count;
	uint32_t block_capacity;
	struct vb_arena_block vanished[VB_ARENA_VANISHED_MAX];
	uint32_t vanished_count;
};

/*
 * Creates memory filled from the seed. vb_dma_* access it from now until it is destroyed: an arena
 * is found by its address alone, as memory is.
 */
struct vb_arena *vb_arena_create(uint64_t base, uint32_t length, uint64_t seed);
void vb_arena_destroy(struct vb_arena *arena);

/* The arena that holds the whole range, or NULL; also NULL for vanished memory. */
struct vb_arena *vb_arena_find(uint64_t address, uint64_t length);

bool vb_arena_holds(const struct vb_arena *arena, uint64_t address, uint64_t length);
uint8_t *vb_arena_bytes(const struct vb_arena *arena, uint64_t address);

/*
 * Allocates a block inside [low, high); 0 if there is no room. Length 0 gives an address that is no
 * block.
 */
uint64_t vb_arena_allocate(struct vb_arena *arena, uint64_t low, uint64_t high, uint32_t length,
			   uint32_t align);
void vb_arena_release(struct vb_arena *arena, uint64_t address);

/* Writes as the program itself: sets the bytes and their shadow. */
void vb_arena_fill(struct vb_arena *arena, uint64_t address, uint64_t key, uint64_t offset,
		   uint32_t length);
void vb_arena_store(struct vb_arena *arena, uint64_t address, const void *from, uint32_t length);

/* From open to close the range may change. */
void vb_arena_open(struct vb_arena *arena, uint64_t address, uint32_t length);
void vb_arena_close(struct vb_arena *arena, uint64_t address, uint32_t length);

/* Makes the current contents of the range the expected ones. */
void vb_arena_accept(struct vb_arena *arena, uint64_t address, uint32_t length);

/*
 * True if bytes and shadow agree in the range, open or not; otherwise *wrong is the first address
 * that differs.
 */
bool vb_arena_is_untouched(const struct vb_arena *arena, uint64_t address, uint32_t length,
			   uint64_t *wrong);

/*
 * True if bytes and shadow agree everywhere outside open ranges; otherwise *wrong is the first
 * address that differs.
 */
bool vb_arena_check(const struct vb_arena *arena, uint64_t *wrong);

/* From now on vb_dma_* fail in this range. False if there is no room to record it. */
bool vb_arena_vanish(struct vb_arena *arena, uint64_t address, uint32_t length);

#endif
