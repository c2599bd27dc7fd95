/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holding off the other threads of the program while memory is moved. The kernel write-protects the
 * pages for us (userfaultfd): a thread that stores to one, in its own code or in a system call,
 * waits until the memory has moved, and then stores to its new place. Not every user may do that;
 * then memory moves only in programs with one thread.
 */
#include "host/local/conversion_priv.h"

#include "host/sys/numbers.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define DESCRIPTORS_MAX 128u /* asking for one takes 1 us */
#define PAGE_BATCH 512u
#define PAGEMAP_PROTECTED (1ull << 57)
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* --- writers that cannot be held off --- */

/*
 * A system call may have fixed pages before they were protected, and let a device, another process
 * or the kernel write to them afterwards. That depends on what its descriptor is. What is not known
 * to copy into the caller's mappings is refused.
 */

static bool is_one_of(unsigned long value, const unsigned long *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (values[i] == value)
			return true;
	return false;
}

/* File systems that copy from their cache, unless a file is open for direct I/O. */
static bool is_cached(int fd)
{
	static const unsigned long kinds[] = {
		EXT4_SUPER_MAGIC,    XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,     TMPFS_MAGIC,
		HUGETLBFS_MAGIC,     RAMFS_MAGIC,     SYSFS_MAGIC,	     CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, NSFS_MAGIC,      OVERLAYFS_SUPER_MAGIC,
	};
	struct statfs status;

	return !syscall(SYS_fstatfs, fd, &status) &&
	       is_one_of((unsigned long)status.f_type, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

/* What a descriptor leads to, by name: files of /proc but for memory, and objects of the kernel. */
static bool has_harmless_name(int fd)
{
	static const char *const kinds[] = { "anon_inode:[eventfd]", "anon_inode:[eventpoll]",
					     "anon_inode:[timerfd]", "anon_inode:[signalfd]",
					     "anon_inode:[pidfd]",   "anon_inode:[userfaultfd]",
					     "anon_inode:inotify" };
	char name[48], path[256];
	long length;

	snprintf(name, sizeof(name), "/proc/thread-self/fd/%d", fd);
	length = syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof(path) - 1);
	if (length < 0)
		return false;
	path[length] = 0;
	if (!strncmp(path, "/proc/", 6))
		return length < 4 || strcmp(path + length - 4, "/mem") != 0;
	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(path, kinds[i]))
			return true;
	return false;
}

/* TLS in the kernel decrypts into the reader's pages. */
static bool is_ordinary_socket(int fd)
{
	int domain = 0;
	char protocol[16] = "";
	socklen_t size = sizeof(domain), protocol_size = sizeof(protocol);

	if (vb_sys_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size))
		return false;
	if (domain == AF_INET || domain == AF_INET6)
		return vb_sys_getsockopt(fd, IPPROTO_TCP, TCP_ULP, protocol, &protocol_size) ||
		       !protocol_size || !protocol[0];
	return domain == AF_UNIX || domain == AF_NETLINK;
}

/* /dev/null, /dev/zero, /dev/urandom and the like; terminals. */
static bool is_plain_device(dev_t device)
{
	static const unsigned long kinds[] = { 1, 4, 5, 136, 137, 138, 139, 140, 141, 142, 143 };

	return is_one_of(major(device), kinds, sizeof(kinds) / sizeof(kinds[0]));
}

static bool is_harmless(int fd)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFL);
	struct stat status;

	if (flags < 0 || flags & O_PATH)
		return true; /* closed meanwhile; or not for reading */
	if (flags & O_DIRECT || fstat(fd, &status))
		return false;
	if (S_ISSOCK(status.st_mode))
		return is_ordinary_socket(fd);
	if (S_ISFIFO(status.st_mode) || S_ISDIR(status.st_mode))
		return true;
	if (S_ISCHR(status.st_mode))
		return is_plain_device(status.st_rdev);
	return (S_ISREG(status.st_mode) && is_cached(fd)) || has_harmless_name(fd);
}

bool vb_hold_is_possible(void)
{
	struct vb_numbers descriptors;
	bool is_possible = vb_numbers_open(&descriptors, "/proc/thread-self/fd");
	uint32_t count = 0;
	int fd;

	if (!is_possible)
		return false;
	while (is_possible && vb_numbers_next(&descriptors, &fd))
		is_possible = ++count <= DESCRIPTORS_MAX && is_harmless(fd);
	vb_numbers_close(&descriptors);
	return is_possible && !descriptors.has_failed;
}

/* --- protection --- */

static int open_userfaultfd(void)
{
	int fd = vb_sys_result(syscall(SYS_userfaultfd, O_CLOEXEC));
	int device;

	if (fd >= 0)
		return vb_fd_own(fd);
	/* Its access rights say which users may hold off system calls, too. */
	device = vb_sys_result(
		syscall(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC));
	if (device < 0)
		return device;
	fd = vb_sys_result(syscall(SYS_ioctl, device, USERFAULTFD_IOC_NEW, O_CLOEXEC));
	vb_sys_close(device);
	return vb_fd_own(fd);
}

static bool control(int fd, unsigned long what, void *argument)
{
	return syscall(SYS_ioctl, fd, what, argument) >= 0;
}

static bool set_protection(const struct vb_hold *hold, bool is_protected)
{
	struct uffdio_writeprotect change = {
		.range = { hold->begin, hold->end - hold->begin },
		.mode = is_protected ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return control(hold->fd, UFFDIO_WRITEPROTECT, &change);
}

/* A page that was not there before has no protection: the kernel would let a thread make it. */
static bool is_all_protected(const struct vb_hold *hold)
{
	int pagemap = vb_sys_result(
		syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	uint64_t size = vb_conversion_page_size();
	bool is_protected = pagemap >= 0;
	uint64_t words[PAGE_BATCH];

	for (uint64_t at = hold->begin; is_protected && at < hold->end;) {
		uint64_t count = (hold->end - at) / size;
		long wanted;

		count = count < PAGE_BATCH ? count : PAGE_BATCH;
		wanted = (long)(count * sizeof(words[0]));
		is_protected = syscall(SYS_pread64, pagemap, words, wanted,
				       at / size * sizeof(words[0])) == wanted;
		for (uint64_t i = 0; is_protected && i < count; i++)
			is_protected = words[i] & PAGEMAP_PROTECTED;
		at += count * size;
	}
	if (pagemap >= 0)
		vb_sys_close(pagemap);
	return is_protected;
}

static bool watch(const struct vb_hold *hold, uint64_t mode)
{
	struct uffdio_register range = {
		.range = { hold->begin, hold->end - hold->begin },
		.mode = mode,
	};

	return control(hold->fd, UFFDIO_REGISTER, &range);
}

bool vb_hold_begin(struct vb_hold *hold, uint64_t begin, uint64_t end)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	*hold = (struct vb_hold){ .fd = open_userfaultfd(), .begin = begin, .end = end };
	if (hold->fd < 0)
		return false;
	if (control(hold->fd, UFFDIO_API, &api) && watch(hold, UFFDIO_REGISTER_MODE_WP) &&
	    !syscall(SYS_madvise, begin, end - begin, MADV_POPULATE_READ) &&
	    set_protection(hold, true) && is_all_protected(hold))
		return true;
	vb_hold_end(hold);
	return false;
}

bool vb_hold_close(const struct vb_hold *hold)
{
	return watch(hold, UFFDIO_REGISTER_MODE_WP | UFFDIO_REGISTER_MODE_MISSING) &&
	       is_all_protected(hold);
}

/*
 * Closing the descriptor would do all of this, unless a process that was copied meanwhile has it,
 * too. What fails here has moved and is no longer protected.
 */
void vb_hold_end(struct vb_hold *hold)
{
	struct uffdio_range range = { hold->begin, hold->end - hold->begin };

	(void)set_protection(hold, false);
	(void)control(hold->fd, UFFDIO_UNREGISTER, &range);
	(void)control(hold->fd, UFFDIO_WAKE, &range);
	vb_fd_close(hold->fd);
}
