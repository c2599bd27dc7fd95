/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that programs look for below /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband, and the device folders that the first two have links to. A tree is the list of
 * devices at one moment; its nodes exist only while they are looked at, and borrow from the tree.
 * Paths here are absolute and plain: no "//", ".", ".." or links.
 */
#ifndef VB_SHIM_TREE_H
#define VB_SHIM_TREE_H

#include "host/device/device.h"

#include <stddef.h>

#define VB_TREE_NAME_MAX 128 /* of a node, with its terminating null */
#define VB_TREE_TEXT_MAX 512 /* contents of a file or target of a link, with the terminating null */

enum vb_tree_kind {
	VB_TREE_END, /* ends a table */
	VB_TREE_FOLDER,
	VB_TREE_FILE,
	VB_TREE_LINK,
	VB_TREE_DEVICE, /* a character device */
};

enum vb_tree_place {
	VB_TREE_OUTSIDE,
	VB_TREE_ABOVE, /* a system folder on the path to the tree, such as /sys */
	VB_TREE_INSIDE,
};

struct vb_tree {
	struct vb_device *devices;
	uint32_t count;
};

struct vb_tree_entry;

struct vb_tree_node {
	const struct vb_tree_entry *entry;
	const struct vb_device *device; /* NULL above the devices */
	uint32_t number; /* of a numbered entry */
};

/* Without memory or an answer of the kernel, the tree has no devices. */
void vb_tree_init(struct vb_tree *tree);
void vb_tree_fini(struct vb_tree *tree);

/* The place of a path, whether or not such a node exists. */
enum vb_tree_place vb_tree_place(const char *path);
/* The system folder that holds the part of the tree in which this path is. */
const char *vb_tree_ground(const char *path);
bool vb_tree_find(const struct vb_tree *tree, const char *path, struct vb_tree_node *node_out);

enum vb_tree_kind vb_tree_kind(const struct vb_tree_node *node);
/*
 * Reads the contents of a file or the target of a link. Returns the length, or the negative errno
 * that reading it gives.
 */
int vb_tree_read(const struct vb_tree_node *node, char text[VB_TREE_TEXT_MAX]);
/* Major and minor number of a character device. */
uint64_t vb_tree_device_number(const struct vb_tree_node *node);

/* A number unique to the node. */
uint64_t vb_tree_inode(const char *path);

/* The children of a folder, counted from 0. False after the last. */
bool vb_tree_child(const struct vb_tree *tree, const struct vb_tree_node *folder, uint32_t position,
		   struct vb_tree_node *child_out, char name_out[VB_TREE_NAME_MAX]);

#endif
