/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap: memory from our own mappings. With sanitizers, memory from the C library: they know
 * each of its blocks, and none of ours.
 */
#include "base/heap.h"

#include "host/memory/blocks.h"

#include <stdlib.h>

#ifdef VB_TESTING
static void *alloc(size_t length)
{
	return calloc(1, length);
}

static void release(void *memory)
{
	free(memory);
}
#else
static void *alloc(size_t length)
{
	return vb_blocks_alloc(length);
}

static void release(void *memory)
{
	vb_blocks_free(memory);
}
#endif

void *vb_heap_alloc(size_t count, size_t size)
{
	size_t length;

	return __builtin_mul_overflow(count, size, &length) ? NULL : alloc(length);
}

void vb_heap_free(void *memory)
{
	release(memory);
}
