/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that stand for nodes of the tree. Each is an anonymous file of the kernel (memfd) that has the node's path
 * in its name: a real descriptor, which can be read, polled, duplicated, inherited and closed like any other, and tells
 * itself which node it is. That of a file holds its contents as they were when it was opened; that of a folder is empty,
 * and only the functions of this library make a folder of it. That of a device is empty, too: commands that a program
 * writes to it fail, since there is no driver in the kernel that would understand them. Nothing has to be remembered, and nothing stays behind.
 */
#ifndef VB_SHIM_HANDLE_H
#define VB_SHIM_HANDLE_H

#include "shim/route.h"

/* Opens a node as open() would: a descriptor, or -1 with errno. */
int vb_handle_open(const struct vb_route *route, int flags);

/* Has this process ever opened one? While it has not, none of its descriptors needs a closer look. */
bool vb_handle_exist(void);
/* False if the descriptor is not one of ours. errno stays what it was. */
bool vb_handle_path(int fd, char path[PATH_MAX]);

#endif
