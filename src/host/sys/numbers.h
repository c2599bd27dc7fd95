/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numeric names in a folder of /proc, such as threads and descriptors. They are read by raw
 * system calls, as in mapping.h.
 */
#ifndef VB_HOST_SYS_NUMBERS_H
#define VB_HOST_SYS_NUMBERS_H

#include <stdbool.h>

struct vb_numbers {
	int fd;
	bool has_failed; /* there may be more, unseen */
	long at, end;
	_Alignas(8) char bytes[4096];
};

/* False: there is no such folder. */
bool vb_numbers_open(struct vb_numbers *numbers, const char *path);
/* False at the end, or if it has failed. */
bool vb_numbers_next(struct vb_numbers *numbers, int *number_out);
void vb_numbers_close(struct vb_numbers *numbers);

#endif
