/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the list: a line for each mapping; with flags, that line and some more, of which the flags are the last. */
#include "host/mapping.h"

#include "link/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

bool vb_mapping_list_open(struct vb_mapping_list *list, bool with_flags)
{
	const char *path = with_flags ? "/proc/self/smaps" : "/proc/self/maps";

	list->fd = vb_sys_result(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
	list->has_flags = with_flags;
	list->at = list->end = 0;
	return list->fd >= 0;
}

void vb_mapping_list_close(struct vb_mapping_list *list)
{
	vb_sys_close(list->fd);
}

static int next_character(struct vb_mapping_list *list)
{
	long count;

	if (list->at == list->end) {
		count = syscall(SYS_read, list->fd, list->bytes, sizeof(list->bytes));
		if (count <= 0)
			return -1;
		list->at = 0;
		list->end = (size_t)count;
	}
	return (unsigned char)list->bytes[list->at++];
}

/* A line that is too long is cut; false at the end. */
static bool read_line(struct vb_mapping_list *list, char *line, size_t size)
{
	size_t length = 0;
	int c;

	while ((c = next_character(list)) >= 0 && c != '\n')
		if (length + 1 < size)
			line[length++] = (char)c;
	line[length] = 0;
	return c >= 0;
}

static bool parse(const char *line, struct vb_mapping *mapping)
{
	unsigned long begin, end, offset, inode;
	unsigned major_number, minor_number;
	int path = 0;

	if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &begin, &end, mapping->rights, &offset,
		   &major_number, &minor_number, &inode, &path) < 7)
		return false;
	mapping->begin = begin;
	mapping->end = end;
	mapping->offset = offset;
	mapping->device = makedev(major_number, minor_number);
	mapping->inode = inode;
	mapping->path = line + path;
	return true;
}

static bool read_flags(struct vb_mapping_list *list, struct vb_mapping *mapping)
{
	static const char flags[] = "VmFlags:", key[] = "ProtectionKey:";
	const size_t flags_length = sizeof(flags) - 1, key_length = sizeof(key) - 1;

	mapping->has_protection_key = false;
	do {
		if (!read_line(list, list->flags, sizeof(list->flags)))
			return false;
		if (!strncmp(list->flags, key, key_length))
			mapping->has_protection_key = atoi(list->flags + key_length);
	} while (strncmp(list->flags, flags, flags_length));
	mapping->flags = list->flags + flags_length;
	return true;
}

bool vb_mapping_list_next(struct vb_mapping_list *list, struct vb_mapping *mapping)
{
	*mapping = (struct vb_mapping){ 0 };
	return read_line(list, list->line, sizeof(list->line)) && parse(list->line, mapping) &&
	       (!list->has_flags || read_flags(list, mapping));
}
