/* SPDX-License-Identifier: BSD-2-Clause */
/* Of our own mappings. With sanitizers of the C library: they know each of its blocks, and none of ours. */
#include "base/heap.h"

#include "host/blocks.h"

#include <stdlib.h>

#ifdef VB_TESTING
void *vb_heap_alloc(size_t count, size_t size)
{
	return calloc(count, size);
}

void vb_heap_free(void *memory)
{
	free(memory);
}
#else
void *vb_heap_alloc(size_t count, size_t size)
{
	size_t length;

	return __builtin_mul_overflow(count, size, &length) ? NULL : vb_blocks_take(length);
}

void vb_heap_free(void *memory)
{
	vb_blocks_give(memory);
}
#endif
