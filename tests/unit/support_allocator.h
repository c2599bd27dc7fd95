/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator that fails when it is told to, and counts. A test that uses it is linked with vb_heap_alloc() and vb_heap_free() wrapped:
 * its file with the ending .link says so.
 */
#ifndef VB_TESTS_SUPPORT_ALLOCATOR_H
#define VB_TESTS_SUPPORT_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

extern uint32_t
	fails_at; /* the call to vb_heap_alloc() that will fail, counted from here on; 0: none */
extern bool has_failed;
extern int64_t live_count; /* blocks that were given out and not taken back */

#endif
