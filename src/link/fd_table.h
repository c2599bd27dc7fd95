/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protection of descriptors that are ours and not the program's. Programs close all descriptors
 * that they do not know, as daemons do when they start; hardware adapters have none to lose. The
 * preload shim has a table of our descriptors, the same for all our libraries in a process, and
 * does not let the program close or replace them. Without the shim nothing is protected. An entry
 * names the file it means, so that an entry that was not released in time is not mistaken for
 * another file.
 */
#ifndef VB_LINK_FD_TABLE_H
#define VB_LINK_FD_TABLE_H

#include <stdint.h>

#define VB_FD_TABLE_COUNT 16384 /* larger ones are not protected */
/*
 * The table's name in the shim: an array of identities, 0 for descriptors that are not protected.
 */
#define VB_FD_TABLE_NAME "vb_shim_descriptors"

/*
 * The identity of the file, or 0 if there is none. Files without an inode of their own (eventfd,
 * epoll) all have the same one.
 */
uint64_t vb_fd_table_identity(int fd);

/* Returns the same descriptor, or the negative errno that was passed in. */
int vb_fd_table_protect(int fd);
/* To be called before it is closed. */
void vb_fd_table_release(int fd);

#endif
