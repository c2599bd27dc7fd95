/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that open files by path, and those that _FORTIFY_SOURCE puts in their place. */
#include "shim/handle.h"
#include "shim/next.h"

#include <errno.h>
#include <stdarg.h>

/* True if there is a third argument. */
static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* For paths that may lead into the tree. */
static int open_route(int folder_fd, const char *path, int flags, mode_t mode)
{
	bool follows = !(flags & O_NOFOLLOW) && !((flags & O_CREAT) && (flags & O_EXCL));
	struct vb_route route;
	int fd = -1;

	vb_route_init(&route, folder_fd, path, follows);
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		fd = vb_next()->openat(folder_fd, path, flags, mode);
		break;
	case VB_ROUTE_NODE:
		fd = vb_handle_open(&route, flags);
		break;
	case VB_ROUTE_OUT:
		fd = vb_next()->openat(AT_FDCWD, route.path, flags, mode);
		break;
	case VB_ROUTE_ERROR:
		/* sysfs does not permit creating files. */
		errno = route.error == ENOENT && (flags & O_CREAT) ? EACCES : route.error;
		break;
	}
	vb_route_fini(&route);
	return fd;
}

static mode_t read_mode(int flags, va_list args)
{
	return has_mode(flags) ? va_arg(args, mode_t) : 0;
}

VB_EXPORT int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = read_mode(flags, args);
	va_end(args);
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->open(path, flags, mode);
	return open_route(AT_FDCWD, path, flags, mode);
}

VB_EXPORT int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = read_mode(flags, args);
	va_end(args);
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->open64(path, flags, mode);
	return open_route(AT_FDCWD, path, flags, mode);
}

VB_EXPORT int openat(int folder_fd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = read_mode(flags, args);
	va_end(args);
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->openat(folder_fd, path, flags, mode);
	return open_route(folder_fd, path, flags, mode);
}

VB_EXPORT int openat64(int folder_fd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = read_mode(flags, args);
	va_end(args);
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->openat64(folder_fd, path, flags, mode);
	return open_route(folder_fd, path, flags, mode);
}

VB_EXPORT int creat(const char *path, mode_t mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->creat(path, mode);
	return open_route(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

VB_EXPORT int creat64(const char *path, mode_t mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->creat64(path, mode);
	return open_route(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* These have no mode. If one is needed, that is a mistake that the plain functions forgive. */
VB_EXPORT int __open_2(const char *path, int flags)
{
	return open(path, flags, 0);
}

VB_EXPORT int __open64_2(const char *path, int flags)
{
	return open64(path, flags, 0);
}

VB_EXPORT int __openat_2(int folder_fd, const char *path, int flags)
{
	return openat(folder_fd, path, flags, 0);
}

VB_EXPORT int __openat64_2(int folder_fd, const char *path, int flags)
{
	return openat64(folder_fd, path, flags, 0);
}
