/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a small file without the C library's open() and read(). */
#include "host/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns how many bytes there were, up to `size`, or -1. */
static long read_all(long fd, char *text, size_t size)
{
	size_t length = 0;

	while (length < size) {
		long got = syscall(SYS_read, fd, text + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	return (long)length;
}

bool vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			  0);
	int errno_of_read;
	long length;

	if (fd < 0)
		return false;
	length = read_all(fd, text, size);
	errno_of_read = errno;
	syscall(SYS_close, fd);
	errno = errno_of_read;
	if (length < 0)
		return false;
	if (is_cut_out)
		*is_cut_out = (size_t)length == size;
	text[(size_t)length == size ? size - 1 : (size_t)length] = 0;
	return true;
}
