/* SPDX-License-Identifier: BSD-2-Clause */
/* The table that the tree is made of: one entry for each kind of node, with its children in a table of their own. */
#ifndef VB_SHIM_TREE_ENTRY_PRIV_H
#define VB_SHIM_TREE_ENTRY_PRIV_H

#include "shim/tree.h"

/* How often there is an entry in its folder, and what it is then called. */
enum vb_tree_naming {
	VB_TREE_BY_NAME, /* once, as it says */
	VB_TREE_BY_DEVICE, /* for each device, or in a device's folder for that one: vb_eth0 */
	VB_TREE_BY_VERBS, /* the same, as uverbs2 */
	VB_TREE_BY_INTERFACE, /* the device's interface: eth0 */
	VB_TREE_BY_GID, /* for each entry of the GID table: 0, 1 … */
};

struct vb_tree_entry {
	enum vb_tree_kind kind;
	enum vb_tree_naming naming;
	const char *name;
	const struct vb_tree_entry *children; /* of a folder */
	/* Of a file or link: as snprintf, or a negative errno. */
	int (*show)(const struct vb_tree_node *node, char *text, size_t size);
};

struct vb_tree_root {
	const char *path;
	const char *ground; /* the folder of the system that it is in */
	struct vb_tree_entry folder;
};

#define VB_TREE_ROOT_COUNT 4
extern const struct vb_tree_root vb_tree_roots[VB_TREE_ROOT_COUNT];

#endif
