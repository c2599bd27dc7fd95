/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing arrays: double by calloc, because pure code has no realloc. */
#include "sim/array.h"

#include "base/err.h"

#include <string.h>

void *vb_array_reserve(void *array, uint32_t count, uint32_t *capacity, size_t element_size)
{
	uint32_t larger_capacity;
	void *larger;

	if (count < *capacity)
		return array;
	larger_capacity = *capacity ? *capacity * 2 : 16;
	larger = calloc(larger_capacity, element_size);
	VB_CHECK(larger);
	if (array)
		memcpy(larger, array, count * element_size);
	free(array);
	*capacity = larger_capacity;
	return larger;
}
