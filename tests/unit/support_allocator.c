/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_allocator.h"

#include <stddef.h>

uint32_t fails_at;
bool has_failed;
int64_t live_count;

void *__real_vb_heap_alloc(size_t count, size_t size);
void __real_vb_heap_free(void *pointer);
void *__wrap_vb_heap_alloc(size_t count, size_t size);
void __wrap_vb_heap_free(void *pointer);

void *__wrap_vb_heap_alloc(size_t count, size_t size)
{
	if (fails_at && --fails_at == 0) {
		has_failed = true;
		return NULL;
	}
	live_count++;
	return __real_vb_heap_alloc(count, size);
}

void __wrap_vb_heap_free(void *pointer)
{
	if (pointer)
		live_count--;
	__real_vb_heap_free(pointer);
}
