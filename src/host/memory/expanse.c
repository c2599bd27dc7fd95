/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large mappings without the lock of future memory. A mapping inherits that lock when it is made,
 * and not when it grows. So one page is mapped, unlocked, and grown to the full length. Files of
 * huge pages cannot grow that way and are mapped as they are. Uses bare system calls: the preloaded
 * library would take these calls for the program's.
 */
#include "host/memory/expanse.h"

#include "link/sys.h"

#include <sys/mman.h>

static void *map(int fd, size_t length, int protection, uint64_t offset)
{
	int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
	long address =
		syscall(SYS_mmap, NULL, length, (long)protection, (long)flags, (long)fd, offset);

	return address == -1 ? NULL : (void *)address;
}

static void *map_unlocked(int fd, size_t length, int protection, uint64_t offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *first = length > page ? map(fd, page, protection, offset) : NULL;
	long address;

	if (!first)
		return NULL;
	syscall(SYS_munlock, first, page);
	address = syscall(SYS_mremap, first, page, length, (long)MREMAP_MAYMOVE);
	if (address != -1)
		return (void *)address;
	syscall(SYS_munmap, first, page);
	return NULL;
}

void *vb_expanse_map(int fd, size_t length, int protection, uint64_t offset)
{
	void *memory = map_unlocked(fd, length, protection, offset);

	return memory ? memory : map(fd, length, protection, offset);
}
