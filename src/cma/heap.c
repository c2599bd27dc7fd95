/* SPDX-License-Identifier: BSD-2-Clause */
/* The heap of librdmacm: that of libibverbs, so that a process has one heap for both libraries. */
#include "base/heap.h"

#include "host/qp1/qp1_user.h"

void *vb_heap_alloc(size_t count, size_t size)
{
	return vb_abi_heap_alloc(count, size);
}

void vb_heap_free(void *memory)
{
	vb_abi_heap_free(memory);
}
