/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for the file behind a mapping. The kernel's list of mappings names it by path and
 * inode. A file with a name is opened by the name. A file that has lost its name, or a memfd, which
 * never had one, is found among the descriptors of the process and opened through that. If neither
 * helps, the file is not found.
 */
#include "host/local/shared.h"

#include "host/sys/mapping.h"
#include "host/sys/numbers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Finds the mapping that contains an address. The caller owns the list, which holds the path. */
static bool find_mapping(uint64_t address, struct vb_mapping_list *list, struct vb_mapping *mapping)
{
	bool is_found = false;

	if (!vb_mapping_list_open(list, false))
		return false;
	while (!is_found && vb_mapping_list_next(list, mapping) && mapping->begin <= address)
		is_found = mapping->end > address;
	vb_mapping_list_close(list);
	return is_found;
}

static bool keep_by_name(const struct vb_mapping *mapping, struct vb_kept *kept)
{
	return mapping->path[0] == '/' && vb_kept_open(mapping->path, mapping, kept);
}

static bool is_same_file(int fd, const struct vb_mapping *mapping)
{
	struct stat status;

	return !fstat(fd, &status) && status.st_ino == mapping->inode &&
	       status.st_dev == mapping->device;
}

/* Searches the descriptors of the process: -1 if the file is not there. */
static int find_descriptor(const struct vb_mapping *mapping)
{
	struct vb_numbers descriptors;
	int fd = -1, candidate;

	if (!vb_numbers_open(&descriptors, "/proc/thread-self/fd"))
		return -1;
	while (fd < 0 && vb_numbers_next(&descriptors, &candidate))
		if (is_same_file(candidate, mapping))
			fd = candidate;
	vb_numbers_close(&descriptors);
	return fd;
}

static bool keep_by_descriptor(const struct vb_mapping *mapping, struct vb_kept *kept)
{
	int fd = find_descriptor(mapping);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/fd/%d", (int)syscall(SYS_gettid), fd);
	return fd >= 0 && vb_kept_open(path, mapping, kept);
}

/* The kernel marks files without a name this way; but a file may really be called that. */
static bool seems_unlinked(const char *path)
{
	static const char suffix[] = " (deleted)";
	size_t length = strlen(path);

	return length >= sizeof(suffix) && !strcmp(path + length - (sizeof(suffix) - 1), suffix);
}

static bool keep_file(const struct vb_mapping *mapping, struct vb_kept *kept)
{
	if (seems_unlinked(mapping->path))
		return keep_by_descriptor(mapping, kept) || keep_by_name(mapping, kept);
	return keep_by_name(mapping, kept) || keep_by_descriptor(mapping, kept);
}

bool vb_shared_find(uint64_t address, uint64_t length, struct vb_shared *shared_out)
{
	struct vb_mapping_list list;
	struct vb_mapping mapping;
	struct vb_kept kept;

	if (!length || !find_mapping(address, &list, &mapping) || mapping.end - address < length ||
	    strncmp(mapping.rights, "rw", 2) || mapping.rights[3] != 's' || !mapping.inode)
		return false;
	if (!keep_file(&mapping, &kept))
		return false;
	*shared_out = (struct vb_shared){
		.fd = -1,
		.kept = kept,
		.address = mapping.begin,
		.length = mapping.end - mapping.begin,
		.offset = mapping.offset,
	};
	return true;
}
