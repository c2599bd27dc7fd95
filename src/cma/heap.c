/* SPDX-License-Identifier: BSD-2-Clause */
/* The heap of librdmacm: that of libibverbs, so that a process has one heap for both libraries. */
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
