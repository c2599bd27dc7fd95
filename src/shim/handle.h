/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors for nodes of the tree. Each is an anonymous file of the kernel (memfd) with the
 * node's path in its name: a real descriptor, which can be read, polled, duplicated, inherited and
 * closed like any other, and which identifies its node in this process and its forked children.
 * The descriptor of a file holds its contents
 * as they were at the open; that of a folder is empty, and only the functions of this library make
 * a folder of it. That of a device is also empty: commands that a program writes to it fail, since
 * no driver in the kernel would understand them. Nothing has to be remembered, and nothing stays
 * behind.
 */
#ifndef VB_SHIM_HANDLE_H
#define VB_SHIM_HANDLE_H

#include "shim/route.h"

/* Opens a node as open() would. Returns a descriptor, or -1 with errno. */
int vb_handle_open(const struct vb_route *route, int flags);

/*
 * True if this process may have such a descriptor: it has ever opened one, or was started with one.
 * Until then none of its descriptors needs a closer look. One that another process sends to it is
 * not noticed.
 */
bool vb_handle_may_have_any(void);
/* False if the descriptor does not belong to the tree. Leaves errno unchanged. */
bool vb_handle_path(int fd, char path[PATH_MAX]);

#endif
