/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and recognising descriptors of the tree. This uses system calls, because open(), fstat()
 * and others are functions of this library.
 */
#include "shim/handle.h"

#include "host/sys/quiet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_PREFIX "verbatim:"
#define MEMFD_NAME_MAX 249
#define LINK_PREFIX "/memfd:" NAME_PREFIX
#define LINK_SUFFIX " (deleted)"
/*
 * The mode of our memfds. Few other files without links have it, so fstat() rules out nearly all
 * other descriptors.
 */
#define RIGHTS 0444

static _Atomic bool may_have_any;

/* --- opening ---------------------------------------------------------------------------------- */

/* Answers in the kernel's order. */
static int check_flags(enum vb_tree_kind kind, int flags)
{
	bool is_for_writing = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY; /* the kernel ignores the others */
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return EEXIST;
	if ((flags & O_CREAT) && kind == VB_TREE_FOLDER)
		return EISDIR;
	if ((flags & O_DIRECTORY) && kind != VB_TREE_FOLDER)
		return ENOTDIR;
	if (kind == VB_TREE_LINK && !(flags & O_PATH))
		return ELOOP; /* O_NOFOLLOW, otherwise the link would have been followed */
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return EOPNOTSUPP;
	if (flags & O_PATH || kind == VB_TREE_DEVICE)
		return 0;
	if (is_for_writing)
		return kind == VB_TREE_FOLDER ? EISDIR : EACCES;
	return 0;
}

/*
 * If the file size limit (RLIMIT_FSIZE) is too small, the open fails with EFBIG. Without vb_quiet,
 * SIGXFSZ would kill the program.
 */
static int write_text(int fd, const char *text, size_t length)
{
	struct vb_quiet quiet;
	long written;
	int error;

	vb_quiet_begin(&quiet);
	written = syscall(SYS_write, fd, text, length);
	error = written < 0 ? errno : 0;
	vb_quiet_end(&quiet, error);
	return error || written == (long)length ? error : EFBIG;
}

static int fill_and_seal(int fd, const char *text, size_t length)
{
	int error = write_text(fd, text, length);

	if (error)
		return error;
	if (syscall(SYS_lseek, fd, 0, SEEK_SET) != 0 || syscall(SYS_fchmod, fd, RIGHTS) ||
	    syscall(SYS_fcntl, fd, F_ADD_SEALS,
		    F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK))
		return errno;
	return 0;
}

static int make_memfd(const char *path, const char *text, size_t length, int flags)
{
	char name[MEMFD_NAME_MAX + 1];
	int error, fd;

	if (snprintf(name, sizeof(name), NAME_PREFIX "%s", path) >= (int)sizeof(name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = (int)syscall(SYS_memfd_create, name,
			  MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
	if (fd < 0)
		return -1;
	error = fill_and_seal(fd, text, length);
	if (error) {
		syscall(SYS_close, fd);
		errno = error;
		return -1;
	}
	atomic_store_explicit(&may_have_any, true, memory_order_release);
	return fd;
}

int vb_handle_open(const struct vb_route *route, int flags)
{
	enum vb_tree_kind kind = vb_tree_kind(&route->node);
	int error = check_flags(kind, flags), length = 0;
	char text[VB_TREE_TEXT_MAX];

	if (error) {
		errno = error;
		return -1;
	}
	if (kind == VB_TREE_FILE)
		length = vb_tree_read(&route->node, text);
	if (length < 0) {
		errno = -length;
		return -1;
	}
	return make_memfd(route->path, text, (size_t)length, flags);
}

/* --- recognising ------------------------------------------------------------------------------ */

bool vb_handle_may_have_any(void)
{
	return atomic_load_explicit(&may_have_any, memory_order_acquire);
}

static bool may_be_ours(int fd)
{
	struct stat status;

	if (syscall(SYS_fstat, fd, &status) || !S_ISREG(status.st_mode) || status.st_nlink)
		return false;
	return (status.st_mode & 07777) == RIGHTS;
}

static bool may_have_ours(const char *entries, long length)
{
	for (long at = 0; at < length;) {
		const struct dirent64 *entry = (const void *)(entries + at);

		if (may_be_ours(atoi(entry->d_name)))
			return true;
		at += entry->d_reclen;
	}
	return false;
}

/* A program that has just been started may have inherited some. */
__attribute__((constructor)) static void find_inherited(void)
{
	int errno_before = errno;
	int folder = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd",
				  O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	_Alignas(struct dirent64) char entries[2048];
	bool is_found = false;
	long length;

	while (folder >= 0 && !is_found &&
	       (length = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
		is_found = may_have_ours(entries, length);
	if (folder >= 0)
		syscall(SYS_close, folder);
	if (is_found)
		atomic_store_explicit(&may_have_any, true, memory_order_release);
	errno = errno_before;
}

static bool parse_link(const char *link, size_t length, char path[PATH_MAX])
{
	const size_t prefix = sizeof(LINK_PREFIX) - 1, suffix = sizeof(LINK_SUFFIX) - 1;

	if (length < prefix + suffix || memcmp(link, LINK_PREFIX, prefix) ||
	    memcmp(link + length - suffix, LINK_SUFFIX, suffix))
		return false;
	length -= prefix + suffix;
	memcpy(path, link + prefix, length);
	path[length] = 0;
	return true;
}

bool vb_handle_path(int fd, char path[PATH_MAX])
{
	char name[64], link[MEMFD_NAME_MAX + 64];
	int errno_before = errno;
	long length = -1;

	if (fd < 0 || !vb_handle_may_have_any())
		return false;
	if (may_be_ours(fd)) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		length = syscall(SYS_readlinkat, AT_FDCWD, name, link, sizeof(link));
	}
	errno = errno_before;
	return length > 0 && parse_link(link, (size_t)length, path);
}
