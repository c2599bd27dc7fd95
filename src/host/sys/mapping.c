/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of the list of mappings. Each mapping is one line; with flags, it is that line and
 * several more, and the flags come last.
 */
#include "host/sys/mapping.h"

#include "link/sys.h"

#include <fcntl.h>
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

/* Truncates a line that is too long; false at the end. */
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

/* Parsed by hand: sscanf() takes longer than the kernel needs to write the line. */
static bool parse_number(const char **text, unsigned base, char end, uint64_t *number_out)
{
	const char *begin = *text;
	uint64_t number = 0;

	for (;; (*text)++) {
		unsigned c = (unsigned char)**text;
		unsigned digit = c - '0' < 10 ? c - '0' : c - 'a' < 6 ? c - 'a' + 10 : base;

		if (digit >= base)
			break;
		number = number * base + digit;
	}
	if (*text == begin || **text != end)
		return false;
	(*text)++;
	*number_out = number;
	return true;
}

static bool parse_rights(const char **text, char rights[8])
{
	size_t length = strcspn(*text, " ");

	if (length != 4 || !(*text)[length])
		return false;
	memcpy(rights, *text, length);
	rights[length] = 0;
	*text += length + 1;
	return true;
}

static bool parse(const char *line, struct vb_mapping *mapping)
{
	uint64_t major_number, minor_number, inode;

	if (!parse_number(&line, 16, '-', &mapping->begin) ||
	    !parse_number(&line, 16, ' ', &mapping->end) || !parse_rights(&line, mapping->rights) ||
	    !parse_number(&line, 16, ' ', &mapping->offset) ||
	    !parse_number(&line, 16, ':', &major_number) ||
	    !parse_number(&line, 16, ' ', &minor_number) || !parse_number(&line, 10, ' ', &inode))
		return false;
	mapping->device = makedev((unsigned)major_number, (unsigned)minor_number);
	mapping->inode = inode;
	mapping->path = line + strspn(line, " ");
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
