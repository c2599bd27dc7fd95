/* SPDX-License-Identifier: BSD-2-Clause */
/* The search for the shim's table, and writing to it. */
#include "link/fd_table.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint64_t *table; /* NULL if there is no shim */
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void find_table(void)
{
	table = dlsym(RTLD_DEFAULT, VB_FD_TABLE_NAME);
}

uint64_t vb_fd_table_identity(int fd)
{
	int errno_before = errno;
	struct stat status;

	if (syscall(SYS_fstat, fd, &status)) {
		errno = errno_before;
		return 0;
	}
	return (status.st_ino * 0x9e3779b97f4a7c15ull ^ status.st_dev) | 1;
}

static void set(int fd, uint64_t identity)
{
	pthread_once(&table_once, find_table);
	if (table && fd >= 0 && fd < VB_FD_TABLE_COUNT)
		atomic_store_explicit(&table[fd], identity, memory_order_relaxed);
}

int vb_fd_table_protect(int fd)
{
	if (fd >= 0)
		set(fd, vb_fd_table_identity(fd));
	return fd;
}

void vb_fd_table_release(int fd)
{
	set(fd, 0);
}
