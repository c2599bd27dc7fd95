/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that follow links. realpath() queries the kernel without the interposed names, so
 * it needs its own answer.
 */
#include "shim/next.h"
#include "shim/route.h"

#include <errno.h>
#include <string.h>

/* --- readlink --------------------------------------------------------------------------------- */

static ssize_t read_link(const struct vb_tree_node *node, char *target, size_t size)
{
	char text[VB_TREE_TEXT_MAX];
	size_t length;

	if (vb_tree_kind(node) != VB_TREE_LINK || !size) {
		errno = EINVAL;
		return -1;
	}
	length = (size_t)vb_tree_read(node, text);
	memcpy(target, text, length < size ? length : size);
	return (ssize_t)(length < size ? length : size);
}

/* For paths that may lead into the tree. */
static ssize_t readlink_route(int folder_fd, const char *path, char *target, size_t size)
{
	struct vb_route route;
	ssize_t length = -1;

	vb_route_init(&route, folder_fd, path, false);
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		length = vb_next()->readlinkat(folder_fd, path, target, size);
		break;
	case VB_ROUTE_NODE:
		length = read_link(&route.node, target, size);
		break;
	case VB_ROUTE_OUT:
		length = vb_next()->readlinkat(AT_FDCWD, route.path, target, size);
		break;
	case VB_ROUTE_ERROR:
		errno = route.error;
		break;
	}
	vb_route_fini(&route);
	return length;
}

VB_EXPORT ssize_t readlink(const char *path, char *target, size_t size)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->readlink(path, target, size);
	return readlink_route(AT_FDCWD, path, target, size);
}

VB_EXPORT ssize_t readlinkat(int folder_fd, const char *path, char *target, size_t size)
{
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->readlinkat(folder_fd, path, target, size);
	return readlink_route(folder_fd, path, target, size);
}

/* The checked forms abort the program if the buffer is smaller than the program claims. */
VB_EXPORT ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlink(path, target, size);
}

VB_EXPORT ssize_t __readlinkat_chk(int folder_fd, const char *path, char *target, size_t size,
				   size_t room)
{
	if (size > room)
		abort();
	return readlinkat(folder_fd, path, target, size);
}

/* --- realpath --------------------------------------------------------------------------------- */

/* For paths that may lead into the tree. */
static char *realpath_route(const char *path, char *resolved)
{
	struct vb_route route;
	char *result = NULL;

	vb_route_init(&route, AT_FDCWD, path, true);
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		result = vb_next()->realpath(path, resolved);
		break;
	case VB_ROUTE_NODE:
		result = resolved ? strcpy(resolved, route.path) : strdup(route.path);
		break;
	case VB_ROUTE_OUT:
		result = vb_next()->realpath(route.path, resolved);
		break;
	case VB_ROUTE_ERROR:
		errno = route.error;
		break;
	}
	vb_route_fini(&route);
	return result;
}

VB_EXPORT char *realpath(const char *path, char *resolved)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->realpath(path, resolved);
	return realpath_route(path, resolved);
}

VB_EXPORT char *canonicalize_file_name(const char *path)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->canonicalize_file_name(path);
	return realpath_route(path, NULL);
}

VB_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath(path, resolved);
}
