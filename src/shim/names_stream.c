/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that open streams. A stream on a node is a stream on its descriptor; contents are
 * read-only.
 */
#include "shim/handle.h"
#include "shim/next.h"

#include <errno.h>
#include <string.h>

static int flags_of(const char *mode)
{
	int flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;

	if (*mode == 'w')
		flags |= O_CREAT | O_TRUNC;
	if (*mode == 'a')
		flags |= O_CREAT | O_APPEND;
	if (strchr(mode, 'x'))
		flags |= O_EXCL;
	return strchr(mode, 'e') ? flags | O_CLOEXEC : flags;
}

static FILE *open_stream(const char *path, const char *mode)
{
	int fd = openat(AT_FDCWD, path, flags_of(mode), 0666);
	FILE *stream = NULL;
	int error;

	if (fd < 0)
		return NULL;
	stream = fdopen(fd, mode);
	if (!stream) {
		error = errno;
		close(fd);
		errno = error;
	}
	return stream;
}

VB_EXPORT FILE *fopen(const char *path, const char *mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->fopen(path, mode);
	return open_stream(path, mode);
}

VB_EXPORT FILE *fopen64(const char *path, const char *mode)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->fopen64(path, mode);
	return open_stream(path, mode);
}

/* The stream stays the same object: it is reopened on the file behind our descriptor. */
static FILE *reopen_stream(const char *path, const char *mode, FILE *stream)
{
	int fd = openat(AT_FDCWD, path, flags_of(mode) | O_CLOEXEC, 0666), error;
	char own_path[64];

	if (fd < 0) {
		error = errno;
		fclose(stream); /* as freopen() does when it fails */
		errno = error;
		return NULL;
	}
	snprintf(own_path, sizeof(own_path), "/proc/self/fd/%d", fd);
	stream = vb_next()->freopen(own_path, mode, stream);
	error = errno;
	close(fd);
	errno = error;
	return stream;
}

VB_EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->freopen(path, mode, stream);
	return reopen_stream(path, mode, stream);
}

VB_EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->freopen64(path, mode, stream);
	return reopen_stream(path, mode, stream);
}
