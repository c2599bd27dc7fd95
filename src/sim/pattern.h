/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of messages and buffers. A key and its offset determine every byte, so that a receiver
 * can be checked without a copy of the sent data.
 */
#ifndef VB_SIM_PATTERN_H
#define VB_SIM_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

void vb_pattern_fill(uint8_t *to, uint64_t key, uint64_t offset, uint64_t length);

/* True if equal; otherwise *wrong is the first offset (from `at`) that differs. */
bool vb_pattern_equal(const uint8_t *at, uint64_t key, uint64_t offset, uint64_t length,
		      uint64_t *wrong);

#endif
