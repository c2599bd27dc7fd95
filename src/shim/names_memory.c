/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions by which a program changes its mappings, or copies itself without fork(), which
 * notifies libibverbs by itself. Before such a call sees it, private memory that libibverbs has
 * converted (docs/adr/0004) is converted back. Calls inside the C library do not come here: free(),
 * realloc() and thread stacks.
 */
#include "shim/next.h"

#include "host/conversion.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#define DROPPABLE 8 /* a kind of private mapping, since Linux 6.11 */

/* libibverbs finds this variable by its name and stores its function here. */
VB_EXPORT extern vb_conversion_hook *vb_shim_memory;
vb_conversion_hook *vb_shim_memory;

/*
 * libibverbs asks here whether the program has ever made memory special, so that a new mapping in
 * its place would not be the same.
 */
VB_EXPORT extern bool vb_shim_has_special_memory;
bool vb_shim_has_special_memory;

static void note_special(void)
{
	__atomic_store_n(&vb_shim_has_special_memory, true, __ATOMIC_RELEASE);
}

static bool notify_adapter(enum vb_conversion_reason reason, const void *address, size_t length)
{
	vb_conversion_hook *hook = __atomic_load_n(&vb_shim_memory, __ATOMIC_ACQUIRE);
	int errno_before = errno;
	bool may_go_on;

	if (!hook)
		return true;
	may_go_on = hook(reason, (uintptr_t)address, length);
	errno = errno_before;
	return may_go_on;
}

VB_EXPORT int munmap(void *address, size_t length)
{
	int result;

	(void)notify_adapter(VB_CONVERSION_UNMAPS, address, length);
	result = vb_next()->munmap(address, length);
	(void)notify_adapter(VB_CONVERSION_UNMAPPED, address, length);
	return result;
}

static void notify_if_fixed(enum vb_conversion_reason reason, const void *address, size_t length,
			    int flags)
{
	if (flags & MAP_FIXED)
		(void)notify_adapter(reason, address, length);
}

/* Notes the kinds of memory that the kernel's short list of mappings does not show. */
static void note_kind(int flags)
{
	if (flags & MAP_GROWSDOWN || (flags & MAP_TYPE) == DROPPABLE)
		note_special();
}

VB_EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *memory;

	note_kind(flags);
	notify_if_fixed(VB_CONVERSION_UNMAPS, address, length, flags);
	memory = vb_next()->mmap(address, length, protection, flags, fd, offset);
	notify_if_fixed(VB_CONVERSION_UNMAPPED, address, length, flags);
	return memory;
}

VB_EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd,
		       off64_t offset)
{
	void *memory;

	note_kind(flags);
	notify_if_fixed(VB_CONVERSION_UNMAPS, address, length, flags);
	memory = vb_next()->mmap64(address, length, protection, flags, fd, offset);
	notify_if_fixed(VB_CONVERSION_UNMAPPED, address, length, flags);
	return memory;
}

VB_EXPORT void *mremap(void *address, size_t length, size_t new_length, int flags, ...)
{
	void *place = NULL;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & MREMAP_FIXED)
		place = va_arg(arguments, void *);
	va_end(arguments);
	if (flags & MREMAP_FIXED)
		(void)notify_adapter(VB_CONVERSION_CHANGES, place, new_length);
	if (!notify_adapter(new_length > length ? VB_CONVERSION_GROWS : VB_CONVERSION_CHANGES,
			    address, length)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return vb_next()->mremap(address, length, new_length, flags, place);
}

/* Hints about the use of memory do not change its kind. */
static bool is_mere_hint(int advice)
{
	return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL ||
	       advice == MADV_WILLNEED || advice == MADV_COLD || advice == MADV_PAGEOUT ||
	       advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE;
}

static bool is_emptying(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE;
}

static bool is_at_page(const void *address)
{
	return (uintptr_t)address % (uintptr_t)sysconf(_SC_PAGESIZE) == 0;
}

/* Unknown advice counts as special: its effect is not known. */
static bool is_making_special(int advice)
{
	return !is_mere_hint(advice) && !is_emptying(advice) && advice != MADV_REMOVE &&
	       advice != MADV_DONTNEED_LOCKED && advice != MADV_DOFORK && advice != MADV_DODUMP &&
	       advice != MADV_KEEPONFORK && advice != MADV_UNMERGEABLE;
}

VB_EXPORT int madvise(void *address, size_t length, int advice)
{
	if (is_making_special(advice))
		note_special();
	if (!is_mere_hint(advice) && is_at_page(address))
		(void)notify_adapter(is_emptying(advice) ? VB_CONVERSION_EMPTIES
							 : VB_CONVERSION_CHANGES,
				     address, length);
	return vb_next()->madvise(address, length, advice);
}

VB_EXPORT int mprotect(void *address, size_t length, int protection)
{
	(void)notify_adapter(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->mprotect(address, length, protection);
}

VB_EXPORT int pkey_mprotect(void *address, size_t length, int protection, int key)
{
	note_special();
	(void)notify_adapter(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->pkey_mprotect(address, length, protection, key);
}

VB_EXPORT int mlock(const void *address, size_t length)
{
	(void)notify_adapter(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->mlock(address, length);
}

VB_EXPORT int mlock2(const void *address, size_t length, unsigned flags)
{
	(void)notify_adapter(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->mlock2(address, length, flags);
}

VB_EXPORT int mlockall(int flags)
{
	(void)notify_adapter(VB_CONVERSION_CHANGES, NULL, SIZE_MAX);
	return vb_next()->mlockall(flags);
}

/* Does not run the handlers that fork() calls. */
VB_EXPORT pid_t _Fork(void)
{
	(void)notify_adapter(VB_CONVERSION_COPIES, NULL, SIZE_MAX);
	return vb_next()->_Fork();
}

VB_EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	va_list arguments;
	void *further[3];

	va_start(arguments, argument);
	for (int i = 0; i < 3; i++)
		further[i] = va_arg(arguments, void *);
	va_end(arguments);
	if (!(flags & CLONE_VM))
		(void)notify_adapter(VB_CONVERSION_COPIES, NULL, SIZE_MAX);
	return vb_next()->clone(function, stack, flags, argument, further[0], further[1],
				further[2]);
}
