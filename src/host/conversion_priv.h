/* SPDX-License-Identifier: BSD-2-Clause */
/* What must be known before memory is converted. */
#ifndef VB_HOST_CONVERSION_PRIV_H
#define VB_HOST_CONVERSION_PRIV_H

#include <stdbool.h>
#include <stdint.h>

/* The program has one thread, which is the caller. */
bool vb_conversion_is_alone(void);

/* Whole pages may be converted, and everything that the kernel knows of them is known to us. With all signals blocked. */
bool vb_conversion_is_permitted(uint64_t begin, uint64_t end);

uint64_t vb_conversion_page_size(void);

/* In a forked child. */
void vb_conversion_forget_helpers(void);

#endif
