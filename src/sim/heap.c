/* SPDX-License-Identifier: BSD-2-Clause */
/* base/heap.h with calloc() and free(), so that sanitizers know each block. */
#include "base/heap.h"

#include <stdlib.h>

void *vb_heap_alloc(size_t count, size_t size)
{
	return calloc(count, size);
}

void vb_heap_free(void *memory)
{
	free(memory);
}
