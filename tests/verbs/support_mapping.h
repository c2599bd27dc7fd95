/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says of this process's memory, and of the files that memory was converted to. */
#ifndef VB_TESTS_SUPPORT_MAPPING_H
#define VB_TESTS_SUPPORT_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	unsigned long begin, end, inode;
	char rights[8];
};

/* All of them, up to `max`; returns how many. */
size_t read_mappings(struct mapping *mappings, size_t max);
/* The one that an address lies in, which there must be. */
struct mapping mapping_at(const void *address);

bool is_shared(const void *address);
bool is_anonymous(const void *address);

/* Descriptors of this process with memory that was converted, and the bytes in their files. */
uint32_t count_files(uint64_t *bytes_out);

bool has_sanitizer(void);

#endif
