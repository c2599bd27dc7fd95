/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of the program that we hold open for neighbors, in the keeper's table (host/keeper.h). To a neighbor such a file travels in an envelope: a socket in
 * which it lies as a message, and which may lie in anybody's table. The neighbor's keeper opens it, for the neighbor's program may have locks on the same file.
 */
#ifndef VB_HOST_KEPT_H
#define VB_HOST_KEPT_H

#include "host/mapping.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_kept {
	uint32_t keeper; /* 0: nothing is kept */
	int fd; /* in its table */
};

/* The file of a mapping, if that is what is found under the path, opened anew: who closes the program's descriptors must not find their locks still held. */
bool vb_kept_open(const char *path, const struct vb_mapping *mapping, struct vb_kept *kept_out);
void vb_kept_close(struct vb_kept *kept);

/* An envelope, which the caller closes with vb_fd_close(); a negative errno if there is none to be had. */
int vb_kept_seal(const struct vb_kept *kept);
/* Maps what is in an envelope, to be read and written; NULL if it is nothing of that kind. The caller ends it with munmap(). */
void *vb_kept_map_sealed(int envelope, size_t length, uint64_t offset);

#endif
