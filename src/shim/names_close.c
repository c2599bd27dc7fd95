/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that close descriptors. Those of the adapter do not belong to the program
 * (link/fd_table.h): closing one fails as if it were not open, ranges skip them, and nothing can
 * be put in their place.
 */
#include "shim/next.h"

#include "link/fd_table.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Our libraries find this variable by its name. */
VB_EXPORT extern _Atomic uint64_t vb_shim_descriptors[VB_FD_TABLE_COUNT];
_Atomic uint64_t vb_shim_descriptors[VB_FD_TABLE_COUNT];

static bool is_protected(unsigned fd)
{
	uint64_t identity;

	if (fd >= VB_FD_TABLE_COUNT)
		return false;
	identity = atomic_load_explicit(&vb_shim_descriptors[fd], memory_order_relaxed);
	if (!identity || vb_fd_table_identity((int)fd) == identity)
		return identity;
	/*
	 * Closed without our knowledge, and now a descriptor of the program: forget it, unless it
	 * has just been set again.
	 */
	atomic_compare_exchange_strong(&vb_shim_descriptors[fd], &identity, 0);
	return false;
}

/* The first protected descriptor from here on, or UINT_MAX. */
static unsigned find_protected(unsigned from)
{
	for (; from < VB_FD_TABLE_COUNT; from++)
		if (is_protected(from))
			return from;
	return UINT_MAX;
}

VB_EXPORT int close(int fd)
{
	if (fd < 0 || !is_protected((unsigned)fd))
		return vb_next()->close(fd);
	errno = EBADF;
	return -1;
}

/* Closing only at exec needs no change: the adapter's descriptors also close at exec. */
VB_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	if (first > last || flags & (int)CLOSE_RANGE_CLOEXEC)
		return vb_next()->close_range(first, last, flags);
	for (;;) {
		unsigned next = find_protected(first);

		if (next > last)
			return vb_next()->close_range(first, last, flags);
		if (next > first && vb_next()->close_range(first, next - 1, flags))
			return -1;
		if (next == last)
			return 0;
		first = next + 1;
	}
}

VB_EXPORT void closefrom(int first)
{
	unsigned from = first < 0 ? 0 : (unsigned)first, next;

	while ((next = find_protected(from)) != UINT_MAX) {
		for (; from < next; from++)
			vb_next()->close((int)from);
		from = next + 1;
	}
	vb_next()->closefrom((int)from);
}

static bool would_replace(int fd, int target)
{
	return fd != target && target >= 0 && is_protected((unsigned)target);
}

VB_EXPORT int dup2(int fd, int target)
{
	if (!would_replace(fd, target))
		return vb_next()->dup2(fd, target);
	errno = EBUSY;
	return -1;
}

VB_EXPORT int dup3(int fd, int target, int flags)
{
	if (!would_replace(fd, target))
		return vb_next()->dup3(fd, target, flags);
	errno = EBUSY;
	return -1;
}
