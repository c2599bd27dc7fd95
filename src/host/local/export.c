/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of export blocks, and the mapping of those of other processes. */
#include "host/local/export.h"

#include "host/sys/limit.h"
#include "host/sys/sealed.h"
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
	int fd = vb_sealed_open("verbatim-export", sizeof(*block));

	if (fd < 0)
		return vb_limit_err(fd);
	block = vb_sealed_map(fd, sizeof(*block), PROT_READ | PROT_WRITE);
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
	return vb_sealed_map(fd, sizeof(struct vb_export), PROT_READ);
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
