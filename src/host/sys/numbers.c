/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/sys/numbers.h"

#include "link/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

bool vb_numbers_open(struct vb_numbers *numbers, const char *path)
{
	numbers->fd = vb_sys_result(
		syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	numbers->has_failed = false;
	numbers->at = numbers->end = 0;
	return numbers->fd >= 0;
}

static bool refill(struct vb_numbers *numbers)
{
	numbers->at = 0;
	numbers->end = syscall(SYS_getdents64, numbers->fd, numbers->bytes, sizeof(numbers->bytes));
	numbers->has_failed = numbers->end < 0;
	return numbers->end > 0;
}

bool vb_numbers_next(struct vb_numbers *numbers, int *number_out)
{
	while (numbers->at < numbers->end || refill(numbers)) {
		const struct dirent64 *entry = (const void *)(numbers->bytes + numbers->at);

		numbers->at += entry->d_reclen;
		if (entry->d_name[0] == '.')
			continue;
		*number_out = atoi(entry->d_name);
		return true;
	}
	return false;
}

void vb_numbers_close(struct vb_numbers *numbers)
{
	vb_sys_close(numbers->fd);
}
