/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of memory in mappings that hold nothing else, so that an address shows whether it is ours.
 * For any thread, and across fork(). Large blocks have a mapping each; small ones are carved from
 * chunks, and a chunk that is free again goes back to the kernel.
 */
#ifndef VB_HOST_MEMORY_BLOCKS_H
#define VB_HOST_MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed, and aligned for any type. NULL: no memory is left. */
void *vb_blocks_alloc(size_t size);
/* NULL is allowed. */
void vb_blocks_free(void *memory);

/* Whether any of the mappings has bytes in a range; and how many bytes all mappings have. */
bool vb_blocks_overlap(uint64_t address, uint64_t length);
size_t vb_blocks_mapped(void);

#endif
