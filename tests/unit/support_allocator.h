/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator that fails on request, and counts. A test that uses it is linked with
 * vb_heap_alloc() and vb_heap_free() wrapped: its file with the ending .link does this.
 */
#ifndef VB_TESTS_SUPPORT_ALLOCATOR_H
#define VB_TESTS_SUPPORT_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

/* the call to vb_heap_alloc() that will fail, counted from now on; 0: none */
extern uint32_t fails_at;
extern bool has_failed;
extern int64_t live_count; /* blocks that were allocated and not freed */

#endif
