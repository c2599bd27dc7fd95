/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of this process that is a shared mapping of a file (memfd, shm, hugetlbfs or any other): others can map it too, if they are given the
 * file.
 */
#ifndef VB_HOST_SHARED_H
#define VB_HOST_SHARED_H

#include "host/kept.h"

#include <stdbool.h>
#include <stdint.h>

/* A mapping and its file. */
struct vb_shared {
	int fd; /* ours, of a file that no program has: the caller closes it with vb_fd_close(); or -1 … */
	struct vb_kept kept; /* … and the file is one of the program's: vb_kept_close() */
	uint64_t address; /* of the whole mapping */
	uint64_t length;
	uint64_t offset; /* in the file */
};

/* The mapping that a range lies in. False if it is not a shared one that can be written, or its file cannot be found. */
bool vb_shared_find(uint64_t address, uint64_t length, struct vb_shared *shared_out);

#endif
