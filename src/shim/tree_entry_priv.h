/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table that defines the tree: one entry for each kind of node, with its children in a separate
 * table.
 */
#ifndef VB_SHIM_TREE_ENTRY_PRIV_H
#define VB_SHIM_TREE_ENTRY_PRIV_H

#include "shim/tree.h"

/* How many nodes an entry produces in its folder, and their names. */
enum vb_tree_naming {
	VB_TREE_BY_NAME, /* one, with the entry's name */
	/* one for each device, or in a device's folder for that device: vb_eth0 */
	VB_TREE_BY_DEVICE,
	VB_TREE_BY_VERBS, /* the same, named uverbs2 */
	VB_TREE_BY_INTERFACE, /* the device's interface: eth0 */
	VB_TREE_BY_GID, /* one for each entry of the GID table: 0, 1 … */
	VB_TREE_BY_COUNTER, /* one for each of tree_counter.c, of counters/ … */
	VB_TREE_BY_HW_COUNTER, /* … and of hw_counters/ */
};

struct vb_tree_entry {
	enum vb_tree_kind kind;
	enum vb_tree_naming naming;
	const char *name;
	const struct vb_tree_entry *children; /* of a folder */
	/* For a file or link: writes the text as snprintf does, or returns a negative errno. */
	int (*show)(const struct vb_tree_node *node, char *text, size_t size);
};

struct vb_tree_root {
	const char *path;
	const char *ground; /* the system folder that holds it */
	struct vb_tree_entry folder;
};

/* tree_counter.c: the counters of a port */
uint32_t vb_tree_counter_count(enum vb_tree_naming naming);
void vb_tree_counter_name(const struct vb_tree_node *node, char name[VB_TREE_NAME_MAX]);
int vb_tree_counter_show(const struct vb_tree_node *node, char *text, size_t size);

#define VB_TREE_ROOT_COUNT 4
extern const struct vb_tree_root vb_tree_roots[VB_TREE_ROOT_COUNT];

#endif
