/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of this process that is a shared mapping of a file (memfd, shm, hugetlbfs or any other):
 * other processes can also map it, if they are given the file.
 */
#ifndef VB_HOST_LOCAL_SHARED_H
#define VB_HOST_LOCAL_SHARED_H

#include "host/local/kept.h"

#include <stdbool.h>
#include <stdint.h>

/* A mapping and its file. */
struct vb_shared {
	/* Ours, of a file that no program has: the caller uses vb_fd_close(); or -1 … */
	int fd;
	struct vb_kept kept; /* … if the file is the program's: vb_kept_close() */
	uint64_t address; /* of the whole mapping */
	uint64_t length;
	uint64_t offset; /* in the file */
};

/*
 * Finds the mapping that contains a range. False if it is not a writable shared mapping, or its
 * file cannot be found.
 */
bool vb_shared_find(uint64_t address, uint64_t length, struct vb_shared *shared_out);

#endif
