/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of the program that we hold open for local peers, in the keeper's table
 * (host/local/keeper.h). Such a file travels to a local peer in an envelope: a socket that holds it
 * as a message, and that may be in any process's table. The peer's keeper opens the envelope,
 * because the peer's program may have locks on the same file.
 */
#ifndef VB_HOST_LOCAL_KEPT_H
#define VB_HOST_LOCAL_KEPT_H

#include "host/sys/mapping.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_kept {
	uint32_t keeper; /* 0: no file is kept */
	int fd; /* in the keeper's table */
};

/*
 * Opens the file of a mapping again, if the path still leads to that file. The program's own
 * descriptors are not duplicated: when the program closes them, their locks must not stay held.
 */
bool vb_kept_open(const char *path, const struct vb_mapping *mapping, struct vb_kept *kept_out);
void vb_kept_close(struct vb_kept *kept);

/* Returns an envelope, which the caller closes with vb_fd_close(); or a negative errno. */
int vb_kept_seal(const struct vb_kept *kept);
/*
 * Maps the file in an envelope, for reading and writing; NULL if there is no such file. The caller
 * ends the mapping with munmap().
 */
void *vb_kept_map_sealed(int envelope, size_t length, uint64_t offset);

#endif
