/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that change and report the working folder. The kernel cannot enter the tree: it
 * enters the system folder above, and the rest of the path is kept here. Shells pass it to the
 * programs that they start in PWD.
 */
#include "shim/handle.h"
#include "shim/next.h"

#include <errno.h>
#include <string.h>

static int enter(const struct vb_route *route)
{
	if (vb_tree_kind(&route->node) != VB_TREE_FOLDER) {
		errno = ENOTDIR;
		return -1;
	}
	if (vb_next()->chdir(vb_tree_ground(route->path)) && vb_next()->chdir("/"))
		return -1;
	vb_route_set_working_folder(route->path);
	return 0;
}

/* The kernel changed the folder: the program is no longer in the tree. */
static int leave(int result)
{
	if (!result)
		vb_route_set_working_folder(NULL);
	return result;
}

/* For paths that may lead into the tree. */
static int chdir_route(const char *path)
{
	struct vb_route route;
	int result = -1;

	vb_route_init(&route, AT_FDCWD, path, true);
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		result = leave(vb_next()->chdir(path));
		break;
	case VB_ROUTE_NODE:
		result = enter(&route);
		break;
	case VB_ROUTE_OUT:
		result = leave(vb_next()->chdir(route.path));
		break;
	case VB_ROUTE_ERROR:
		errno = route.error;
		break;
	}
	vb_route_fini(&route);
	return result;
}

VB_EXPORT int chdir(const char *path)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return leave(vb_next()->chdir(path));
	return chdir_route(path);
}

VB_EXPORT int fchdir(int fd)
{
	char path[PATH_MAX];

	if (vb_handle_may_have_any() && vb_handle_path(fd, path))
		return chdir_route(path);
	return leave(vb_next()->fchdir(fd));
}

/* As in getcwd(): a size of 0 without a buffer means any size. */
static char *copy_working_folder(char *path, size_t size, const char *working)
{
	if (!path && !size)
		return strdup(working);
	if (strlen(working) >= size) {
		errno = path && !size ? EINVAL : ERANGE;
		return NULL;
	}
	if (!path)
		path = malloc(size);
	return path ? strcpy(path, working) : NULL;
}

VB_EXPORT char *getcwd(char *path, size_t size)
{
	const char *working = vb_route_working_folder();

	if (!working)
		return vb_next()->getcwd(path, size);
	return copy_working_folder(path, size, working);
}

VB_EXPORT char *get_current_dir_name(void)
{
	const char *working = vb_route_working_folder();

	return working ? strdup(working) : vb_next()->get_current_dir_name();
}

VB_EXPORT char *__getcwd_chk(char *path, size_t size, size_t room)
{
	if (size > room)
		abort();
	return getcwd(path, size);
}
