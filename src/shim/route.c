/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Following a path, component by component. The system folders above the tree (/sys, /sys/class
 * and so on) are assumed to be plain folders, so ".." out of the tree is handled as text. The
 * kernel follows everything else in them.
 */
#include "shim/route.h"

#include "shim/handle.h"
#include "shim/next.h"
#include "shim/tree_entry_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as in the kernel */

static char working_folder[PATH_MAX];
static _Atomic bool has_working_folder;

/* --- certainly not in the tree --- */

/*
 * True if the path matches the root up to its end, or up to a "//" or "/." that may hide the rest.
 */
static bool may_lead_to(const char *path, const char *root)
{
	while (*root && *path == *root) {
		path++;
		root++;
	}
	if (!*root)
		return !*path || *path == '/';
	return path[-1] == '/' && (*path == '/' || *path == '.');
}

static bool is_past_absolute(const char *path)
{
	for (uint32_t i = 0; i < VB_TREE_ROOT_COUNT; i++)
		if (may_lead_to(path, vb_tree_roots[i].path))
			return false;
	return true;
}

/*
 * From one of the folders above the tree, a relative path leads into it only through one of their
 * names.
 */
static bool is_past_relative(const char *path)
{
	static const char *const names[] = {
		"sys",	   "class",   "infiniband", "infiniband_verbs",
		"devices", "virtual", "verbatim",   "dev",
	};
	size_t length;

	if (!strchr("scidv", *path))
		return true;
	length = strcspn(path, "/");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(path, names[i], length) && !names[i][length])
			return false;
	return true;
}

bool vb_route_is_elsewhere(int folder_fd, const char *path)
{
	if (vb_next_is_null(path) || !*path)
		return true;
	if (*path == '/')
		return is_past_absolute(path);
	if (folder_fd == AT_FDCWD ? vb_route_working_folder() != NULL : vb_handle_may_have_any())
		return false;
	return is_past_relative(path);
}

/* --- the start of a relative path --- */

const char *vb_route_working_folder(void)
{
	return atomic_load_explicit(&has_working_folder, memory_order_acquire) ? working_folder
									       : NULL;
}

void vb_route_set_working_folder(const char *path)
{
	if (path)
		snprintf(working_folder, sizeof(working_folder), "%s", path);
	atomic_store_explicit(&has_working_folder, path != NULL, memory_order_release);
}

/*
 * The folder's path; false if the kernel does not report it or the folder does not lead to the
 * tree.
 */
static bool find_folder(int folder_fd, char path[PATH_MAX])
{
	const char *working = vb_route_working_folder();
	char link[64];
	long length;

	if (folder_fd == AT_FDCWD && working) {
		snprintf(path, PATH_MAX, "%s", working);
		return true;
	}
	if (folder_fd == AT_FDCWD)
		return syscall(SYS_getcwd, path, PATH_MAX) > 0 &&
		       vb_tree_place(path) != VB_TREE_OUTSIDE;
	if (vb_handle_path(folder_fd, path))
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", folder_fd);
	length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
	if (length <= 0)
		return false;
	path[length] = 0;
	return vb_tree_place(path) != VB_TREE_OUTSIDE;
}

__attribute__((constructor)) static void learn_working_folder(void)
{
	const char *wanted = getenv("PWD"); /* NOLINT(concurrency-mt-unsafe): no threads yet */
	char actual[PATH_MAX];
	struct vb_route route;

	if (!wanted || *wanted != '/' || is_past_absolute(wanted))
		return;
	vb_route_init(&route, AT_FDCWD, wanted, true);
	if (route.end == VB_ROUTE_NODE && syscall(SYS_getcwd, actual, sizeof(actual)) > 0 &&
	    !strcmp(actual, vb_tree_ground(route.path)))
		vb_route_set_working_folder(route.path);
	vb_route_fini(&route);
}

/* --- following -------------------------------------------------------------------------------- */

struct walk {
	struct vb_route *route; /* its path is the part walked so far */
	char rest[PATH_MAX]; /* the part still to walk */
	bool was_inside;
	uint32_t link_count;
};

static void stop(struct walk *walk, enum vb_route_end end, int error)
{
	walk->route->end = end;
	walk->route->error = error;
}

static void load_tree(struct walk *walk)
{
	if (!walk->was_inside)
		vb_tree_init(&walk->route->tree);
	walk->was_inside = true;
}

/* Removes the next component from the rest. Returns its length; 0 at the end. */
static size_t take(struct walk *walk, char name[NAME_MAX + 1])
{
	size_t skip = strspn(walk->rest, "/"), length = strcspn(walk->rest + skip, "/");

	if (length > NAME_MAX) {
		stop(walk, VB_ROUTE_ERROR, ENAMETOOLONG);
		return 0;
	}
	memcpy(name, walk->rest + skip, length);
	name[length] = 0;
	memmove(walk->rest, walk->rest + skip + length, strlen(walk->rest + skip + length) + 1);
	return length;
}

static void go_up(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash == path ? path + 1 : slash) = 0;
}

static bool go_down(char *path, const char *name)
{
	size_t length = strlen(path);
	int added = snprintf(path + length, PATH_MAX - length, "%s%s", length > 1 ? "/" : "", name);

	return length + (size_t)added < PATH_MAX;
}

/* Puts the link's target before the rest. */
static void follow(struct walk *walk)
{
	char target[VB_TREE_TEXT_MAX + PATH_MAX];
	int length = vb_tree_read(&walk->route->node, target);

	if (length < 0 || ++walk->link_count > LINKS_MAX) {
		stop(walk, VB_ROUTE_ERROR, length < 0 ? -length : ELOOP);
		return;
	}
	snprintf(target + length, sizeof(target) - (size_t)length, "%s", walk->rest);
	if (strlen(target) >= PATH_MAX) {
		stop(walk, VB_ROUTE_ERROR, ENAMETOOLONG);
		return;
	}
	strcpy(walk->rest, target);
	go_up(walk->route->path);
}

/* Called when the path has just entered the tree. */
static void enter(struct walk *walk, bool follows_last_link)
{
	struct vb_route *route = walk->route;
	bool is_last = !walk->rest[0];

	load_tree(walk);
	if (!vb_tree_find(&route->tree, route->path, &route->node))
		stop(walk, VB_ROUTE_ERROR, ENOENT);
	else if (vb_tree_kind(&route->node) == VB_TREE_LINK && (!is_last || follows_last_link))
		follow(walk);
	else if (vb_tree_kind(&route->node) != VB_TREE_FOLDER && !is_last)
		stop(walk, VB_ROUTE_ERROR, ENOTDIR);
}

/* Leaves the rest of the path to the kernel. */
static void leave(struct walk *walk)
{
	struct vb_route *route = walk->route;
	size_t length = strlen(route->path);

	if (!walk->was_inside) {
		stop(walk, VB_ROUTE_ELSEWHERE, 0);
		return;
	}
	if (length + strlen(walk->rest) >= PATH_MAX) {
		stop(walk, VB_ROUTE_ERROR, ENAMETOOLONG);
		return;
	}
	strcpy(route->path + length, walk->rest);
	stop(walk, VB_ROUTE_OUT, 0);
}

static void arrive(struct walk *walk)
{
	if (vb_tree_place(walk->route->path) == VB_TREE_INSIDE)
		stop(walk, VB_ROUTE_NODE, 0);
	else
		leave(walk);
}

/* Continues until stop() was called. */
static void follow_path(struct walk *walk, bool follows_last_link)
{
	struct vb_route *route = walk->route;
	char name[NAME_MAX + 1];

	route->error = -1;
	while (route->error < 0) {
		if (!take(walk, name)) {
			if (route->error < 0)
				arrive(walk);
			return;
		}
		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, ".."))
			go_up(route->path);
		else if (!go_down(route->path, name))
			stop(walk, VB_ROUTE_ERROR, ENAMETOOLONG);
		if (route->error >= 0)
			return;
		if (vb_tree_place(route->path) == VB_TREE_INSIDE)
			enter(walk, follows_last_link);
		else if (vb_tree_place(route->path) == VB_TREE_OUTSIDE)
			leave(walk);
	}
}

/* Sets the start of the walk from the folder. A folder of the tree counts as inside. */
static bool begin(struct walk *walk, int folder_fd, const char *path)
{
	struct vb_route *route = walk->route;

	if (vb_route_is_elsewhere(folder_fd, path) || strlen(path) >= PATH_MAX)
		return false;
	strcpy(walk->rest, path);
	if (*path == '/') {
		strcpy(route->path, "/");
		return true;
	}
	if (!find_folder(folder_fd, route->path))
		return false;
	if (vb_tree_place(route->path) == VB_TREE_INSIDE) {
		load_tree(walk);
		if (!vb_tree_find(&route->tree, route->path, &route->node))
			stop(walk, VB_ROUTE_ERROR, ENOENT);
	}
	return true;
}

void vb_route_init(struct vb_route *route, int folder_fd, const char *path, bool follows_last_link)
{
	struct walk walk;
	int errno_before = errno;

	walk.route = route;
	walk.was_inside = false;
	walk.link_count = 0;
	route->tree = (struct vb_tree){ 0 };
	route->end = VB_ROUTE_ELSEWHERE;
	if (begin(&walk, folder_fd, path) && route->end == VB_ROUTE_ELSEWHERE)
		follow_path(&walk, follows_last_link);
	errno = errno_before;
}

void vb_route_fini(struct vb_route *route)
{
	int errno_before = errno;

	vb_tree_fini(&route->tree);
	errno = errno_before;
}
