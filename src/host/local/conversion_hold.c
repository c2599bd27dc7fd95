/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holding off the other threads of the program while memory is moved. The kernel write-protects the
 * pages for us (userfaultfd): a thread that stores to one, in its own code or in a system call,
 * waits until the memory has moved, and then stores to its new place. Not every user may do that;
 * then memory moves only in programs with one thread.
 */
#include "host/local/conversion_priv.h"

#include "host/sys/numbers.h"
#include "link/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define DESCRIPTORS_MAX 256u /* asking for one takes 0.4 us */
#define PAGE_BATCH 512u
#define PAGEMAP_PROTECTED (1ull << 57)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* --- writers that cannot be held off --- */

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* /proc/self/mem: writing to it stores to memory by another way than the process's mappings. */
static bool is_process_memory(int fd)
{
	char name[32], path[PATH_MAX + 1];
	long length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof(path) - 1);
	if (length < 0)
		return false;
	path[length] = 0;
	return !strncmp(path, "/proc/", 6) && ends_with(path, "/mem");
}

/*
 * True if a system call for this descriptor may have fixed pages before they were protected, and
 * write to them afterwards: direct I/O, and the kernel's cryptography.
 */
static bool fixes_pages(int fd)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFL);
	int domain = 0;
	socklen_t size = sizeof(domain);

	if (flags < 0)
		return false; /* closed meanwhile */
	if (!vb_sys_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size))
		return domain == AF_ALG;
	return flags & O_DIRECT || is_process_memory(fd);
}

bool vb_hold_is_possible(void)
{
	struct vb_numbers descriptors;
	bool is_possible = vb_numbers_open(&descriptors, "/proc/self/fd");
	uint32_t count = 0;
	int fd;

	if (!is_possible)
		return false;
	while (is_possible && vb_numbers_next(&descriptors, &fd))
		is_possible = ++count <= DESCRIPTORS_MAX && !fixes_pages(fd);
	vb_numbers_close(&descriptors);
	return is_possible && !descriptors.has_failed;
}

/* --- protection --- */

static int open_userfaultfd(void)
{
	int fd = vb_sys_result(syscall(SYS_userfaultfd, O_CLOEXEC));
	int device;

	if (fd >= 0)
		return fd;
	/* Its access rights say which users may hold off system calls, too. */
	device = vb_sys_result(
		syscall(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC));
	if (device < 0)
		return device;
	fd = vb_sys_result(syscall(SYS_ioctl, device, USERFAULTFD_IOC_NEW, O_CLOEXEC));
	vb_sys_close(device);
	return fd;
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

bool vb_hold_begin(struct vb_hold *hold, uint64_t begin, uint64_t end)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register range = {
		.range = { begin, end - begin },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	*hold = (struct vb_hold){ .fd = open_userfaultfd(), .begin = begin, .end = end };
	if (hold->fd < 0)
		return false;
	if (control(hold->fd, UFFDIO_API, &api) && control(hold->fd, UFFDIO_REGISTER, &range) &&
	    !syscall(SYS_madvise, begin, end - begin, MADV_POPULATE_READ) &&
	    set_protection(hold, true) && is_all_protected(hold))
		return true;
	vb_hold_end(hold);
	return false;
}

void vb_hold_end(struct vb_hold *hold)
{
	(void)set_protection(hold, false); /* fails for memory that has moved */
	vb_sys_close(hold->fd); /* wakes all threads that wait */
}
