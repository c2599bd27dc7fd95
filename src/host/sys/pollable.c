/* SPDX-License-Identifier: BSD-2-Clause */
/* Pollables, made of semaphore eventfds. */
#include "host/sys/pollable.h"

#include "link/fd.h"
#include "link/sys.h"

#include <stdint.h>
#include <sys/eventfd.h>

int vb_pollable_open(void)
{
	int fd = vb_sys_result(syscall(SYS_eventfd2, 0, EFD_SEMAPHORE | EFD_CLOEXEC));

	vb_fd_own_in_place(fd);
	return fd;
}

void vb_pollable_close(int fd)
{
	vb_fd_close(fd);
}

void vb_pollable_up(int fd)
{
	uint64_t one = 1;

	if (vb_fd_is_ours(fd))
		syscall(SYS_write, fd, &one, sizeof(one));
}

void vb_pollable_down(int fd)
{
	uint64_t one;

	if (vb_fd_is_ours(fd))
		syscall(SYS_read, fd, &one, sizeof(one));
}
