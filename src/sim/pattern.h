/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of messages and buffers: every byte is decided by a key and its offset, so that a receiver can be
 * checked without a copy of what was sent.
 */
#ifndef VB_SIM_PATTERN_H
#define VB_SIM_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

void vb_pattern_fill(uint8_t *to, uint64_t key, uint64_t offset, uint64_t length);

/* True if equal; else *wrong is the first offset (from `at`) that is not. */
bool vb_pattern_equal(const uint8_t *at, uint64_t key, uint64_t offset, uint64_t length,
		      uint64_t *wrong);

#endif
