/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The destination of a path that a program names. Nearly all paths lead elsewhere than into the
 * tree: their first bytes show that, without system calls, memory or locks. All others are followed
 * as the kernel would, through the links of the tree.
 */
#ifndef VB_SHIM_ROUTE_H
#define VB_SHIM_ROUTE_H

#include "shim/tree.h"

#include <limits.h>

enum vb_route_end {
	VB_ROUTE_ELSEWHERE, /* not ours: the next function gets what the program passed */
	VB_ROUTE_NODE, /* a node of the tree */
	VB_ROUTE_OUT, /* through the tree and out again: the next function gets the route's path */
	VB_ROUTE_ERROR,
};

struct vb_route {
	enum vb_route_end end;
	int error; /* a positive errno */
	char path[PATH_MAX]; /* absolute; for a node: plain */
	struct vb_tree_node node;
	struct vb_tree tree; /* the node borrows from it */
};

/*
 * True if the path certainly does not lead into the tree. False: vb_route_init() finds out. A path
 * may be NULL.
 */
bool vb_route_is_elsewhere(int folder_fd, const char *path);

/* vb_route_fini() must follow, whatever the end is. Leaves errno unchanged. */
void vb_route_init(struct vb_route *route, int folder_fd, const char *path, bool follows_last_link);
void vb_route_fini(struct vb_route *route);

/*
 * The working folder, if the program chose one in the tree; the kernel is then in the system folder
 * that holds it (vb_tree_ground()). NULL if it did not. A program that is started there learns it
 * from its PWD.
 */
const char *vb_route_working_folder(void);
/* NULL: the program left the tree. */
void vb_route_set_working_folder(const char *path);

#endif
