/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's list of this process's mappings, in ascending order. It is read by raw system calls,
 * because the program may have replaced open() and read().
 */
#ifndef VB_HOST_SYS_MAPPING_H
#define VB_HOST_SYS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VB_MAPPING_LINE_MAX 4500u /* a path of 4096 bytes and what precedes it */

struct vb_mapping {
	uint64_t begin, end;
	uint64_t offset; /* in the file */
	char rights[8]; /* such as "rw-p" */
	dev_t device;
	ino_t inode; /* 0: no file */
	const char *path; /* or a name in brackets, or ""; valid until the next one is read */
	/* as in proc(5) under VmFlags, or NULL; valid until the next one is read */
	const char *flags;
	bool has_protection_key; /* known only with flags */
};

struct vb_mapping_list {
	int fd;
	bool has_flags;
	size_t at, end;
	char bytes[4096];
	char line[VB_MAPPING_LINE_MAX];
	char flags[256];
};

/* With flags, the kernel examines each page before it answers. False if the list is unavailable. */
bool vb_mapping_list_open(struct vb_mapping_list *list, bool with_flags);
/* False at the end. */
bool vb_mapping_list_next(struct vb_mapping_list *list, struct vb_mapping *mapping);
void vb_mapping_list_close(struct vb_mapping_list *list);

#endif
