/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All memory that is ours. The functions are fixed at link time: src/host/memory/heap.c takes
 * memory from mappings of our own, src/cma/heap.c from those of libibverbs, src/sim/heap.c from the
 * C library. In a program's process nothing of ours lies in the program's heap: the program may
 * register any page of its heap, and then the page is converted (docs/adr/0004) while our threads
 * run.
 */
#ifndef VB_BASE_HEAP_H
#define VB_BASE_HEAP_H

#include <stddef.h>

/* Zeroed, aligned for any type; NULL if there is no memory. */
void *vb_heap_alloc(size_t count, size_t size);
/* Accepts NULL. */
void vb_heap_free(void *memory);

#endif
