/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel reports about this process's memory, and about the files that converted memory is
 * in.
 */
#ifndef VB_TESTS_SUPPORT_MAPPING_H
#define VB_TESTS_SUPPORT_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	unsigned long begin, end, inode;
	char rights[8];
};

/* Reads all mappings, up to `max`; returns how many. */
size_t read_mappings(struct mapping *mappings, size_t max);
/* The mapping that contains an address, which must exist. */
struct mapping mapping_at(const void *address);

bool is_shared(const void *address);
bool is_anonymous(const void *address);

/* Counts descriptors of this process with converted memory, and the bytes in their files. */
uint32_t count_files(uint64_t *bytes_out);

bool has_sanitizer(void);

#endif
