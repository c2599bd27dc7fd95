/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of ours that are large and mostly never touched. Where the program has asked for all its
 * future memory to be locked (mlockall()), the kernel would make each of them entirely resident, or
 * refuse it if the limit is small. These mappings are not locked.
 */
#ifndef VB_HOST_MEMORY_EXPANSE_H
#define VB_HOST_MEMORY_EXPANSE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Maps a file, shared, from that offset on; or, with -1, private zeroed memory. NULL if the kernel
 * refuses. The caller ends the mapping with munmap().
 */
void *vb_expanse_map(int fd, size_t length, int protection, uint64_t offset);

#endif
