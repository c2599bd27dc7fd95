/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding and listing nodes by walking through the table; tree_entry.c holds its contents. */
#include "shim/tree.h"

#include "shim/tree_entry_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define VERBS_MAJOR 231 /* as in the kernel */
#define VERBS_FIRST_MINOR 192
#define MISC_MAJOR 10
#define RDMA_CM_MINOR 58

/* --- the devices ------------------------------------------------------------------------------ */

static struct vb_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

/* libibverbs reports errors in the settings; `ls` and `cat` should not repeat them. */
static void load_config(void)
{
	vb_log_mute();
	vb_config_load(&config);
}

void vb_tree_init(struct vb_tree *tree)
{
	pthread_once(&config_once, load_config);
	if (vb_device_list(&config, &tree->devices, &tree->count))
		*tree = (struct vb_tree){ 0 };
}

void vb_tree_fini(struct vb_tree *tree)
{
	vb_device_list_free(tree->devices);
}

/* --- places ----------------------------------------------------------------------------------- */

/* The rest of the path after the prefix: "" or "/…"; NULL if the path is not below it. */
static const char *rest_below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(path, prefix, length) || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

static const struct vb_tree_root *root_of(const char *path)
{
	for (uint32_t i = 0; i < VB_TREE_ROOT_COUNT; i++)
		if (rest_below(path, vb_tree_roots[i].path))
			return &vb_tree_roots[i];
	return NULL;
}

enum vb_tree_place vb_tree_place(const char *path)
{
	if (root_of(path))
		return VB_TREE_INSIDE;
	if (!strcmp(path, "/"))
		return VB_TREE_ABOVE;
	for (uint32_t i = 0; i < VB_TREE_ROOT_COUNT; i++)
		if (rest_below(vb_tree_roots[i].path, path))
			return VB_TREE_ABOVE;
	return VB_TREE_OUTSIDE;
}

const char *vb_tree_ground(const char *path)
{
	const struct vb_tree_root *root = root_of(path);

	return root ? root->ground : "/";
}

/* --- children --------------------------------------------------------------------------------- */

static uint32_t count_of(const struct vb_tree *tree, const struct vb_tree_node *folder,
			 const struct vb_tree_entry *entry)
{
	switch (entry->naming) {
	case VB_TREE_BY_NAME:
	case VB_TREE_BY_INTERFACE:
		return 1;
	case VB_TREE_BY_DEVICE:
	case VB_TREE_BY_VERBS:
		return folder->device ? 1 : tree->count;
	case VB_TREE_BY_GID:
		return VB_GID_COUNT;
	case VB_TREE_BY_COUNTER:
	case VB_TREE_BY_HW_COUNTER:
		return vb_tree_counter_count(entry->naming);
	}
	return 0;
}

static void name_node(const struct vb_tree_node *node, char name[VB_TREE_NAME_MAX])
{
	switch (node->entry->naming) {
	case VB_TREE_BY_NAME:
		snprintf(name, VB_TREE_NAME_MAX, "%s", node->entry->name);
		break;
	case VB_TREE_BY_DEVICE:
		snprintf(name, VB_TREE_NAME_MAX, "%s", node->device->name);
		break;
	case VB_TREE_BY_VERBS:
		snprintf(name, VB_TREE_NAME_MAX, "uverbs%u", node->device->ifindex);
		break;
	case VB_TREE_BY_INTERFACE:
		snprintf(name, VB_TREE_NAME_MAX, "%s", node->device->ifname);
		break;
	case VB_TREE_BY_GID:
		snprintf(name, VB_TREE_NAME_MAX, "%u", node->number);
		break;
	case VB_TREE_BY_COUNTER:
	case VB_TREE_BY_HW_COUNTER:
		vb_tree_counter_name(node, name);
		break;
	}
}

/*
 * Entries that choose a device make it the node's device; all others inherit the folder's device.
 */
static const struct vb_device *device_of(const struct vb_tree *tree,
					 const struct vb_tree_node *folder,
					 const struct vb_tree_entry *entry, uint32_t number)
{
	bool chooses = entry->naming == VB_TREE_BY_DEVICE || entry->naming == VB_TREE_BY_VERBS;

	return chooses && !folder->device ? &tree->devices[number] : folder->device;
}

bool vb_tree_child(const struct vb_tree *tree, const struct vb_tree_node *folder, uint32_t position,
		   struct vb_tree_node *child_out, char name_out[VB_TREE_NAME_MAX])
{
	const struct vb_tree_entry *entry = folder->entry->children;

	for (; entry->kind != VB_TREE_END; entry++) {
		uint32_t count = count_of(tree, folder, entry);

		if (position >= count) {
			position -= count;
			continue;
		}
		*child_out = (struct vb_tree_node){
			.entry = entry,
			.device = device_of(tree, folder, entry, position),
			.number = position,
		};
		name_node(child_out, name_out);
		return true;
	}
	return false;
}

static bool find_child(const struct vb_tree *tree, const struct vb_tree_node *folder,
		       const char *name, size_t length, struct vb_tree_node *child_out)
{
	char child_name[VB_TREE_NAME_MAX];

	if (vb_tree_kind(folder) != VB_TREE_FOLDER)
		return false;
	for (uint32_t i = 0; vb_tree_child(tree, folder, i, child_out, child_name); i++)
		if (strlen(child_name) == length && !memcmp(child_name, name, length))
			return true;
	return false;
}

bool vb_tree_find(const struct vb_tree *tree, const char *path, struct vb_tree_node *node_out)
{
	const struct vb_tree_root *root = root_of(path);
	struct vb_tree_node node, child;

	if (!root)
		return false;
	node = (struct vb_tree_node){ .entry = &root->folder };
	path = rest_below(path, root->path);
	while (*path) {
		size_t length = strcspn(++path, "/");

		if (!find_child(tree, &node, path, length, &child))
			return false;
		node = child;
		path += length;
	}
	*node_out = node;
	return true;
}

/* --- one node --------------------------------------------------------------------------------- */

enum vb_tree_kind vb_tree_kind(const struct vb_tree_node *node)
{
	return node->entry->kind;
}

int vb_tree_read(const struct vb_tree_node *node, char text[VB_TREE_TEXT_MAX])
{
	return node->entry->show(node, text, VB_TREE_TEXT_MAX);
}

uint64_t vb_tree_device_number(const struct vb_tree_node *node)
{
	if (!node->device)
		return (uint64_t)MISC_MAJOR << 32 | RDMA_CM_MINOR;
	return (uint64_t)VERBS_MAJOR << 32 | (VERBS_FIRST_MINOR + node->device->ifindex);
}

uint64_t vb_tree_inode(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3ull;
	return hash;
}
