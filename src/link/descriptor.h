/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that are ours and not the program's. Programs close all that they do not know, such as daemons when they
 * start, and adapters of hardware have none to lose. The preload shim has a table of ours, the same for all our
 * libraries in a process, and does not let the program close or replace what is in it. Without the shim nothing is
 * protected. An entry says which file it means: one that was not released in time is not taken for another's.
 */
#ifndef VB_LINK_DESCRIPTOR_H
#define VB_LINK_DESCRIPTOR_H

#include <stdint.h>

#define VB_DESCRIPTOR_COUNT 16384 /* larger ones are not protected */
/* The table's name in the shim: an array of identities, 0 for descriptors that are not protected. */
#define VB_DESCRIPTOR_TABLE "vb_shim_descriptors"

/* Which file it is, never 0; files without an inode of their own (eventfd, epoll) are all alike. 0 if there is none. */
uint64_t vb_descriptor_identity(int fd);

/* Returns the same descriptor, or the negative errno that it was given. */
int vb_descriptor_protect(int fd);
/* Before it is closed. */
void vb_descriptor_release(int fd);

#endif
