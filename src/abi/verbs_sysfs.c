/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The location of sysfs, and reading small files from it. Direct system calls read the files: an
 * interposed open() or read() (librspreload has such) must not see them.
 */
#include "abi/export_priv.h"
#include "abi/returns.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static char sysfs_path[IBV_SYSFS_PATH_MAX] = "/sys";
static pthread_once_t sysfs_once = PTHREAD_ONCE_INIT;

static void find_sysfs(void)
{
	const char *path = secure_getenv("SYSFS_PATH");
	size_t length;

	if (!path)
		return;
	length = strlen(path);
	while (length > 0 && path[length - 1] == '/')
		length--;
	if (length >= sizeof(sysfs_path))
		return;
	memcpy(sysfs_path, path, length);
	sysfs_path[length] = '\0';
}

VB_ABI_EXPORT const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_once, find_sysfs);
	return sysfs_path;
}

/* Reads until the end or until the buffer is full. Returns the count, or -1 with errno. */
static ssize_t read_whole(int fd, char *buffer, size_t size)
{
	size_t filled = 0;

	while (filled < size) {
		ssize_t count = syscall(SYS_read, fd, buffer + filled, size - filled);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -1;
		if (count == 0)
			break;
		filled += (size_t)count;
	}
	return (ssize_t)filled;
}

/* Reads the text of a file without its line end. Returns the length, or -1 with errno. */
static int read_text(const char *path, char *buffer, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	ssize_t length;
	int error;

	if (fd < 0)
		return -1;
	length = read_whole(fd, buffer, size);
	error = errno;
	syscall(SYS_close, fd);
	if (length < 0)
		return vb_abi_return_minus_one(error);
	if (length > 0 && buffer[length - 1] == '\n')
		length--;
	if ((size_t)length >= size)
		return vb_abi_return_minus_one(EOVERFLOW); /* no room for the terminating null */
	buffer[length] = '\0';
	return (int)length;
}

VB_ABI_EXPORT int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer,
				      size_t size)
{
	char path[2 * IBV_SYSFS_PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/%s", directory, file);

	if (length < 0 || (size_t)length >= sizeof(path))
		return vb_abi_return_minus_one(ENAMETOOLONG);
	return read_text(path, buffer, size);
}

/* For providers, whose devices do not exist here. */
VB_ABI_EXPORT int ibv_read_ibdev_sysfs_file(char *buffer, size_t size,
					    struct verbs_sysfs_dev *device, const char *format, ...)
{
	(void)buffer;
	(void)size;
	(void)device;
	(void)format;
	return vb_abi_return_minus_one(ENOENT);
}
