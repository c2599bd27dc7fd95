/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The making of export blocks, and the mapping of those of other processes. Sizes are sealed: a
 * file that shrinks would cause a SIGBUS in a process that maps it.
 */
#include "host/local/export.h"

#include "host/memory/expanse.h"
#include "host/sys/limit.h"
#include "host/sys/quiet.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

/* The kernel marks the first word of a robust mutex. */
_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the mark is the first word");

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int vb_export_open_memory(const char *name, size_t length)
{
	int fd = vb_fd_own(
		vb_sys_result(syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING)));
	int error;

	if (fd < 0)
		return fd;
	error = vb_quiet_ftruncate(fd, length);
	if (!error)
		error = vb_sys_result(syscall(SYS_fcntl, fd, F_ADD_SEALS, SIZE_SEALS));
	if (!error)
		return fd;
	vb_fd_close(fd);
	return error;
}

void *vb_export_map_memory(int fd, size_t length, int protection)
{
	struct stat status;
	long seals = syscall(SYS_fcntl, fd, F_GET_SEALS);

	if (fstat(fd, &status) || (size_t)status.st_size != length || seals < 0 ||
	    (seals & SIZE_SEALS) != SIZE_SEALS)
		return NULL;
	return vb_expanse_map(fd, length, protection, 0);
}

static void init_mark(pthread_mutex_t *mark)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mark, &attr);
	pthread_mutexattr_destroy(&attr);
}

vb_err vb_export_create(struct vb_export **block_out, int *fd_out)
{
	struct vb_export *block;
	int fd = vb_export_open_memory("verbatim-export", sizeof(*block));

	if (fd < 0)
		return vb_limit_err(fd);
	block = vb_export_map_memory(fd, sizeof(*block), PROT_READ | PROT_WRITE);
	if (!block || getrandom(&block->head.incarnation, sizeof(block->head.incarnation), 0) !=
			      sizeof(block->head.incarnation)) {
		vb_export_unmap(block);
		vb_fd_close(fd);
		return VB_ENOMEM;
	}
	block->head.address = (uintptr_t)block;
	init_mark(&block->head.mark);
	/* Kernels before 5.1 do not know this seal; then peers could write, which they never do. */
	(void)syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	*block_out = block;
	*fd_out = fd;
	return VB_OK;
}

const struct vb_export *vb_export_map(int fd)
{
	return vb_export_map_memory(fd, sizeof(struct vb_export), PROT_READ);
}

void vb_export_unmap(const struct vb_export *block)
{
	if (block)
		vb_sys_munmap((void *)(uintptr_t)block, sizeof(*block));
}

static uint32_t holder_of(const struct vb_export *block)
{
	return atomic_load_explicit(vb_export_mark(block), memory_order_relaxed) & FUTEX_TID_MASK;
}

void vb_export_hold_mark(struct vb_export *block)
{
	if (!holder_of(block))
		pthread_mutex_lock(&block->head.mark);
}

/*
 * Only by the holder: the mutex is in that thread's robust list. If another thread held it, the
 * mark ends when that thread ends.
 */
void vb_export_drop_mark(struct vb_export *block)
{
	if (holder_of(block) == (uint32_t)syscall(SYS_gettid))
		pthread_mutex_unlock(&block->head.mark);
}

bool vb_export_is_dead(const struct vb_export *block)
{
	return atomic_load_explicit(vb_export_mark(block), memory_order_acquire) & FUTEX_OWNER_DIED;
}
