/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of our descriptors, indexed by number. A row belongs to the thread that has the
 * descriptor, so it needs no lock: a number passes from one thread to another through the kernel.
 * Several rows are read together only in a forked child, which has one thread.
 */
#include "link/fd.h"

#include "base/err.h"
#include "link/fd_table.h"
#include "link/sys.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>

#define ROWS 8192 /* higher descriptors are not tracked */
#define HIGH_MAX 4096 /* the kernel's own table grows with the highest number */

static struct row {
	_Atomic uint64_t identity; /* 0: not ours */
	_Atomic bool is_known_to_program;
} rows[ROWS];

static _Thread_local bool was_refused;

static uint64_t identity_of(int fd)
{
	return atomic_load_explicit(&rows[fd].identity, memory_order_relaxed);
}

static void set_identity(int fd, uint64_t identity)
{
	atomic_store_explicit(&rows[fd].identity, identity, memory_order_relaxed);
}

/* The start of the last quarter of the process's descriptor limit. */
static int high_number(void)
{
	struct rlimit limit;
	rlim_t end = HIGH_MAX;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < end)
		end = limit.rlim_cur;
	return (int)(end - end / 4);
}

static void remember(int fd, bool is_known_to_program)
{
	if (fd < 0 || fd >= ROWS)
		return;
	atomic_store_explicit(&rows[fd].is_known_to_program, is_known_to_program,
			      memory_order_relaxed);
	set_identity(fd, vb_fd_table_identity(fd));
	vb_fd_table_protect(fd);
}

/*
 * A number that the program has closed is not used again while its owner, which does not know, has
 * it.
 */
static int copy_high(int fd)
{
	int high = high_number() - 1;

	do {
		int copy = vb_sys_result(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, high + 1));

		if (copy < 0 || copy >= ROWS || !identity_of(copy))
			return copy;
		vb_sys_close(copy);
		high = copy;
	} while (true);
}

bool vb_fd_was_refused(void)
{
	return was_refused;
}

void vb_fd_forget_refusal(void)
{
	was_refused = false;
}

int vb_fd_own(int fd)
{
	int high;

	was_refused |= fd == -EMFILE || fd == -ENFILE;
	if (fd < 0)
		return fd;
	high = copy_high(fd);
	if (high >= 0) {
		/*
		 * A program that closes all numbers may have closed this one already, and opened
		 * its own file there.
		 */
		if (vb_fd_table_identity(fd) == vb_fd_table_identity(high))
			vb_sys_close(fd);
		fd = high;
	}
	remember(fd, false);
	return fd;
}

void vb_fd_own_in_place(int fd)
{
	remember(fd, true);
}

VB_COLD bool vb_fd_is_ours(int fd)
{
	uint64_t identity = fd < 0 ? 0 : vb_fd_table_identity(fd);

	return identity && (fd >= ROWS || identity_of(fd) == identity);
}

VB_COLD void vb_fd_close(int fd)
{
	bool is_ours = vb_fd_is_ours(fd);

	if (fd < 0)
		return;
	if (fd < ROWS && identity_of(fd)) {
		set_identity(fd, 0);
		vb_fd_table_release(fd);
	}
	if (is_ours)
		vb_sys_close(fd);
}

void vb_fd_close_inherited(void)
{
	for (int fd = 0; fd < ROWS; fd++)
		if (identity_of(fd) &&
		    !atomic_load_explicit(&rows[fd].is_known_to_program, memory_order_relaxed))
			vb_fd_close(fd);
}
