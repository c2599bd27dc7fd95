/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mapping inherits the lock of all future memory when it is made, and not when it grows: so one page is mapped, unlocked, and grown to what it is
 * to be. Files of huge pages cannot grow that way and are mapped as they are.
 */
#include "host/expanse.h"

#include <sys/mman.h>
#include <unistd.h>

static void *map(int fd, size_t length, int protection, uint64_t offset)
{
	int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
	void *memory = mmap(NULL, length, protection, flags, fd, (off_t)offset);

	return memory == MAP_FAILED ? NULL : memory;
}

static void *map_unlocked(int fd, size_t length, int protection, uint64_t offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *first = length > page ? map(fd, page, protection, offset) : NULL;
	void *memory;

	if (!first)
		return NULL;
	munlock(first, page);
	memory = mremap(first, page, length, MREMAP_MAYMOVE);
	if (memory != MAP_FAILED)
		return memory;
	munmap(first, page);
	return NULL;
}

void *vb_expanse_map(int fd, size_t length, int protection, uint64_t offset)
{
	void *memory = map_unlocked(fd, length, protection, offset);

	return memory ? memory : map(fd, length, protection, offset);
}
