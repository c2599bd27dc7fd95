/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vb_dma_* on the memory of simulated machines. An access outside every arena, or in a range that
 * vanished, fails like an access to memory that a program has unmapped.
 */
#include "base/dma.h"

#include "base/crc.h"
#include "sim/arena.h"

#include <string.h>

static uint8_t *peer_memory(vb_dma_addr address, size_t length)
{
	struct vb_arena *arena = vb_arena_find(address, length);

	return arena ? vb_arena_bytes(arena, address) : NULL;
}

bool vb_dma_read(void *to, vb_dma_addr from, size_t length)
{
	const uint8_t *at = peer_memory(from, length);

	if (at)
		memcpy(to, at, length);
	return at;
}

bool vb_dma_write(vb_dma_addr to, const void *from, size_t length)
{
	uint8_t *at = peer_memory(to, length);

	if (at)
		memcpy(at, from, length);
	return at;
}

bool vb_dma_crc32(uint32_t *crc, vb_dma_addr from, size_t length)
{
	const uint8_t *at = peer_memory(from, length);

	if (at)
		*crc = vb_crc32(*crc, at, length);
	return at;
}

bool vb_dma_crc32c(uint32_t *crc, vb_dma_addr from, size_t length)
{
	const uint8_t *at = peer_memory(from, length);

	if (at)
		*crc = vb_crc32c(*crc, at, length);
	return at;
}

bool vb_dma_compare_swap(vb_dma_addr address, uint64_t compare, uint64_t swap, uint64_t *old)
{
	uint8_t *at = address % 8 == 0 ? peer_memory(address, 8) : NULL;

	if (!at)
		return false;
	memcpy(old, at, 8);
	if (*old == compare)
		memcpy(at, &swap, 8);
	return true;
}

bool vb_dma_fetch_add(vb_dma_addr address, uint64_t add, uint64_t *old)
{
	uint8_t *at = address % 8 == 0 ? peer_memory(address, 8) : NULL;
	uint64_t sum;

	if (!at)
		return false;
	memcpy(old, at, 8);
	sum = *old + add;
	memcpy(at, &sum, 8);
	return true;
}

bool vb_dma_atomic_store(vb_dma_addr address, const uint8_t bytes[8])
{
	uint8_t *at = address % 8 == 0 ? peer_memory(address, 8) : NULL;

	if (at)
		memcpy(at, bytes, 8);
	return at;
}
