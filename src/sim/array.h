/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow. Running out of memory ends a simulation: it can prove nothing then. */
#ifndef VB_SIM_ARRAY_H
#define VB_SIM_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes room for one more element after `count`: returns the array, or a larger one with the same
 * contents. New elements are 0.
 */
void *vb_array_reserve(void *array, uint32_t count, uint32_t *capacity, size_t element_size);

#endif
