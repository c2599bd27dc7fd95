/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arenas and their process-wide list. The list is needed because vb_dma_* have no context argument:
 * DMA gets only an address. The list is searched in order of creation and never ordered by pointer.
 */
#include "sim/arena.h"

#include "base/err.h"
#include "sim/array.h"
#include "sim/pattern.h"

#include <string.h>

#define GAP 24 /* bytes between two blocks */
#define CHECK_CHUNK 256

static struct vb_arena *attached[VB_ARENA_ATTACHED_MAX];

struct vb_arena *vb_arena_create(uint64_t base, uint32_t length, uint64_t seed)
{
	struct vb_arena *arena = calloc(1, sizeof(*arena));

	VB_CHECK(arena);
	arena->base = base;
	arena->length = length;
	arena->bytes = calloc(1, length);
	arena->shadow = calloc(1, length);
	arena->open = calloc(1, length);
	VB_CHECK(arena->bytes && arena->shadow && arena->open);
	vb_pattern_fill(arena->bytes, seed, 0, length);
	memcpy(arena->shadow, arena->bytes, length);
	for (uint32_t i = 0; i < VB_ARENA_ATTACHED_MAX; i++) {
		if (!attached[i]) {
			attached[i] = arena;
			return arena;
		}
	}
	abort();
}

void vb_arena_destroy(struct vb_arena *arena)
{
	for (uint32_t i = 0; i < VB_ARENA_ATTACHED_MAX; i++) {
		if (attached[i] == arena)
			attached[i] = NULL;
	}
	free(arena->blocks);
	free(arena->open);
	free(arena->shadow);
	free(arena->bytes);
	free(arena);
}

bool vb_arena_holds(const struct vb_arena *arena, uint64_t address, uint64_t length)
{
	return address >= arena->base && length <= arena->length &&
	       address - arena->base <= arena->length - length;
}

uint8_t *vb_arena_bytes(const struct vb_arena *arena, uint64_t address)
{
	VB_CHECK(vb_arena_holds(arena, address, 0));
	return arena->bytes + (address - arena->base);
}

static bool has_vanished(const struct vb_arena *arena, uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < arena->vanished_count; i++) {
		const struct vb_arena_block *gone = &arena->vanished[i];

		if (address < gone->address + gone->length && gone->address < address + length)
			return true;
	}
	return false;
}

struct vb_arena *vb_arena_find(uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < VB_ARENA_ATTACHED_MAX; i++) {
		struct vb_arena *arena = attached[i];

		if (arena && vb_arena_holds(arena, address, length))
			return has_vanished(arena, address, length) ? NULL : arena;
	}
	return NULL;
}

static uint64_t align_up(uint64_t address, uint32_t align)
{
	return (address + align - 1) / align * align;
}

static void insert_block(struct vb_arena *arena, uint32_t index, uint64_t address, uint32_t length)
{
	arena->blocks = vb_array_reserve(arena->blocks, arena->block_count, &arena->block_capacity,
					 sizeof(*arena->blocks));
	memmove(arena->blocks + index + 1, arena->blocks + index,
		(arena->block_count - index) * sizeof(*arena->blocks));
	arena->blocks[index] = (struct vb_arena_block){ address, length };
	arena->block_count++;
}

uint64_t vb_arena_allocate(struct vb_arena *arena, uint64_t low, uint64_t high, uint32_t length,
			   uint32_t align)
{
	uint64_t candidate = align_up(low, align);
	uint32_t i = 0;

	VB_CHECK(vb_arena_holds(arena, low, high - low));
	if (!length)
		return candidate;
	while (i < arena->block_count &&
	       arena->blocks[i].address + arena->blocks[i].length + GAP <= low)
		i++;
	for (; i < arena->block_count; i++) {
		const struct vb_arena_block *block = &arena->blocks[i];

		if (candidate + length + GAP <= block->address)
			break;
		candidate = align_up(block->address + block->length + GAP, align);
	}
	if (candidate + length > high)
		return 0;
	insert_block(arena, i, candidate, length);
	return candidate;
}

void vb_arena_release(struct vb_arena *arena, uint64_t address)
{
	for (uint32_t i = 0; i < arena->block_count; i++) {
		if (arena->blocks[i].address != address)
			continue;
		arena->block_count--;
		memmove(arena->blocks + i, arena->blocks + i + 1,
			(arena->block_count - i) * sizeof(*arena->blocks));
		return;
	}
}

void vb_arena_fill(struct vb_arena *arena, uint64_t address, uint64_t key, uint64_t offset,
		   uint32_t length)
{
	VB_CHECK(vb_arena_holds(arena, address, length));
	vb_pattern_fill(vb_arena_bytes(arena, address), key, offset, length);
	vb_arena_accept(arena, address, length);
}

void vb_arena_store(struct vb_arena *arena, uint64_t address, const void *from, uint32_t length)
{
	VB_CHECK(vb_arena_holds(arena, address, length));
	memcpy(vb_arena_bytes(arena, address), from, length);
	vb_arena_accept(arena, address, length);
}

void vb_arena_open(struct vb_arena *arena, uint64_t address, uint32_t length)
{
	VB_CHECK(vb_arena_holds(arena, address, length));
	for (uint32_t i = 0; i < length; i++)
		arena->open[address - arena->base + i]++;
}

void vb_arena_close(struct vb_arena *arena, uint64_t address, uint32_t length)
{
	VB_CHECK(vb_arena_holds(arena, address, length));
	for (uint32_t i = 0; i < length; i++)
		arena->open[address - arena->base + i]--;
}

void vb_arena_accept(struct vb_arena *arena, uint64_t address, uint32_t length)
{
	VB_CHECK(vb_arena_holds(arena, address, length));
	memcpy(arena->shadow + (address - arena->base), vb_arena_bytes(arena, address), length);
}

bool vb_arena_is_untouched(const struct vb_arena *arena, uint64_t address, uint32_t length,
			   uint64_t *wrong)
{
	uint64_t at = address - arena->base;

	if (memcmp(arena->bytes + at, arena->shadow + at, length) == 0)
		return true;
	while (arena->bytes[at] == arena->shadow[at])
		at++;
	*wrong = arena->base + at;
	return false;
}

bool vb_arena_check(const struct vb_arena *arena, uint64_t *wrong)
{
	for (uint32_t at = 0; at < arena->length; at += CHECK_CHUNK) {
		uint32_t length = arena->length - at < CHECK_CHUNK ? arena->length - at
								   : CHECK_CHUNK;

		if (memcmp(arena->bytes + at, arena->shadow + at, length) == 0)
			continue;
		for (uint32_t i = at; i < at + length; i++) {
			if (arena->bytes[i] != arena->shadow[i] && !arena->open[i]) {
				*wrong = arena->base + i;
				return false;
			}
		}
	}
	return true;
}

bool vb_arena_vanish(struct vb_arena *arena, uint64_t address, uint32_t length)
{
	if (arena->vanished_count == VB_ARENA_VANISHED_MAX)
		return false;
	arena->vanished[arena->vanished_count++] = (struct vb_arena_block){ address, length };
	return true;
}
