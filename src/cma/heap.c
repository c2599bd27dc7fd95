/* SPDX-License-Identifier: BSD-2-Clause */
/* One heap for both libraries of a process: libibverbs'. */
#include "base/heap.h"

#include "host/gsi.h"

void *vb_heap_alloc(size_t count, size_t size)
{
	return vb_gsi_alloc(count, size);
}

void vb_heap_free(void *memory)
{
	vb_gsi_free(memory);
}
