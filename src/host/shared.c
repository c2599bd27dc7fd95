/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's list of mappings says which file is behind one, by name and inode. A file that has a name is opened by it; one that has none any
 * more, and memfds never had one, is found among the descriptors of the process. Where neither helps, it is not found.
 */
#include "host/shared.h"

#include "host/mapping.h"
#include "host/numbers.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* The mapping that an address lies in. The list is the caller's, for the path. */
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

static bool is_same_file(int fd, const struct vb_mapping *mapping)
{
	struct stat status;

	return !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_ino == mapping->inode &&
	       status.st_dev == mapping->device;
}

static int open_by_name(const struct vb_mapping *mapping)
{
	int fd;

	if (mapping->path[0] != '/')
		return -1;
	fd = vb_sys_result(
		syscall(SYS_openat, AT_FDCWD, mapping->path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
	if (fd >= 0 && is_same_file(fd, mapping))
		return fd;
	if (fd >= 0)
		vb_sys_close(fd);
	return -1;
}

static bool is_writable(int fd)
{
	return (syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* Among the descriptors of the process. */
static int open_by_descriptor(const struct vb_mapping *mapping)
{
	struct vb_numbers descriptors;
	int fd = -1, candidate;

	if (!vb_numbers_open(&descriptors, "/proc/self/fd"))
		return -1;
	while (fd < 0 && vb_numbers_next(&descriptors, &candidate))
		if (is_same_file(candidate, mapping) && is_writable(candidate))
			fd = vb_sys_result(syscall(SYS_fcntl, candidate, F_DUPFD_CLOEXEC, 0));
	vb_numbers_close(&descriptors);
	return fd;
}

bool vb_shared_find(uint64_t address, uint64_t length, struct vb_shared *shared_out)
{
	struct vb_mapping_list list;
	struct vb_mapping mapping;
	int fd;

	if (!length || !find_mapping(address, &list, &mapping) || mapping.end - address < length ||
	    strncmp(mapping.rights, "rw", 2) || mapping.rights[3] != 's' || !mapping.inode)
		return false;
	fd = open_by_name(&mapping);
	if (fd < 0)
		fd = open_by_descriptor(&mapping);
	if (fd < 0)
		return false;
	*shared_out = (struct vb_shared){
		.fd = vb_fd_own(fd),
		.address = mapping.begin,
		.length = mapping.end - mapping.begin,
		.offset = mapping.offset,
	};
	return true;
}
