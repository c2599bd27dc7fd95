/* SPDX-License-Identifier: BSD-2-Clause */
/* The making and the mapping of sealed memory. */
#include "host/sys/sealed.h"

#include "host/memory/expanse.h"
#include "host/sys/quiet.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int vb_sealed_open(const char *name, size_t length)
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

void *vb_sealed_map(int fd, size_t length, int protection)
{
	struct stat status;
	long seals = syscall(SYS_fcntl, fd, F_GET_SEALS);

	if (fstat(fd, &status) || (size_t)status.st_size != length || seals < 0 ||
	    (seals & SIZE_SEALS) != SIZE_SEALS)
		return NULL;
	return vb_expanse_map(fd, length, protection, 0);
}
