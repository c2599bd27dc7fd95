/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access() and its relatives, and the functions that query extended attributes by path, for paths
 * that may lead into the tree (shim/tree.h). Files of the tree can only be read; its devices can
 * also be written.
 */
#include "shim/next.h"
#include "shim/route.h"

#include <errno.h>

static int check_access(const struct vb_tree_node *node, int mode, int flags)
{
	enum vb_tree_kind kind = vb_tree_kind(node);

	if (mode & ~(R_OK | W_OK | X_OK) ||
	    flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return EINVAL;
	if ((mode & W_OK) && kind != VB_TREE_DEVICE && kind != VB_TREE_LINK)
		return EACCES;
	if ((mode & X_OK) && kind != VB_TREE_FOLDER && kind != VB_TREE_LINK)
		return EACCES;
	return 0;
}

/* For paths that may lead into the tree. */
static int access_by_route(int folder_fd, const char *path, int mode, int flags)
{
	struct vb_route route;
	int result = -1, error;

	vb_route_init(&route, folder_fd, path, !(flags & AT_SYMLINK_NOFOLLOW));
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		result = vb_next()->faccessat(folder_fd, path, mode, flags);
		break;
	case VB_ROUTE_NODE:
		error = check_access(&route.node, mode, flags);
		result = error ? -1 : 0;
		if (error)
			errno = error;
		break;
	case VB_ROUTE_OUT:
		result = vb_next()->faccessat(AT_FDCWD, route.path, mode, flags);
		break;
	case VB_ROUTE_ERROR:
		errno = route.error;
		break;
	}
	vb_route_fini(&route);
	return result;
}

VB_EXPORT int access(const char *path, int mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->access(path, mode);
	return access_by_route(AT_FDCWD, path, mode, 0);
}

VB_EXPORT int faccessat(int folder_fd, const char *path, int mode, int flags)
{
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->faccessat(folder_fd, path, mode, flags);
	return access_by_route(folder_fd, path, mode, flags);
}

VB_EXPORT int euidaccess(const char *path, int mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->euidaccess(path, mode);
	return access_by_route(AT_FDCWD, path, mode, AT_EACCESS);
}

VB_EXPORT int eaccess(const char *path, int mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->eaccess(path, mode);
	return access_by_route(AT_FDCWD, path, mode, AT_EACCESS);
}

/* --- extended attributes ---------------------------------------------------------------------- */

/*
 * The path to pass on, which may be that of the route. NULL with errno on errors, and for nodes of
 * the tree, which have no attributes.
 */
static const char *resolve_for_xattr(struct vb_route *route, const char *path,
				     bool follows_last_link)
{
	vb_route_init(route, AT_FDCWD, path, follows_last_link);
	vb_route_fini(route); /* the end and the path stay valid */
	if (route->end == VB_ROUTE_ELSEWHERE)
		return path;
	if (route->end == VB_ROUTE_OUT)
		return route->path;
	errno = route->end == VB_ROUTE_NODE ? ENOTSUP : route->error;
	return NULL;
}

VB_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->getxattr(path, name, value, size);
	path = resolve_for_xattr(&route, path, true);
	return path ? vb_next()->getxattr(path, name, value, size) : -1;
}

VB_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->lgetxattr(path, name, value, size);
	path = resolve_for_xattr(&route, path, false);
	return path ? vb_next()->lgetxattr(path, name, value, size) : -1;
}

VB_EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->listxattr(path, list, size);
	path = resolve_for_xattr(&route, path, true);
	return path ? vb_next()->listxattr(path, list, size) : -1;
}

VB_EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->llistxattr(path, list, size);
	path = resolve_for_xattr(&route, path, false);
	return path ? vb_next()->llistxattr(path, list, size) : -1;
}
