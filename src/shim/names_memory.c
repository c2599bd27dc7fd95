/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions by which a program changes its mappings, or copies itself other than by fork(), of
 * which libibverbs learns through pthread_atfork(). Before the real function runs, private memory
 * in its range that libibverbs has converted is converted back. Calls that the C library makes
 * itself, such as in free(), do not come here; docs/adr/0004 says why they do no harm.
 */
#include "shim/next.h"

#include "host/local/conversion.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#define MAP_DROPPABLE_TYPE 8 /* MAP_DROPPABLE of Linux 6.11, which older headers lack */

/* libibverbs finds this variable by its name and stores its function here. */
VB_EXPORT extern vb_conversion_hook *vb_shim_conversion_hook;
vb_conversion_hook *vb_shim_conversion_hook;

/*
 * libibverbs reads here whether the program has ever given memory a property that a new mapping in
 * its place would not have, such as advice, a protection key or growth.
 */
VB_EXPORT extern bool vb_shim_has_special_memory;
bool vb_shim_has_special_memory;

static void note_special_memory(void)
{
	__atomic_store_n(&vb_shim_has_special_memory, true, __ATOMIC_RELEASE);
}

/* False: the program's call must fail (only for VB_CONVERSION_GROWS). */
static bool withdraw_conversions(enum vb_conversion_reason reason, const void *address,
				 size_t length)
{
	vb_conversion_hook *hook = __atomic_load_n(&vb_shim_conversion_hook, __ATOMIC_ACQUIRE);
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

	(void)withdraw_conversions(VB_CONVERSION_UNMAPS, address, length);
	result = vb_next()->munmap(address, length);
	(void)withdraw_conversions(VB_CONVERSION_UNMAPPED, address, length);
	return result;
}

/* MAP_FIXED unmaps what was there. */
static void withdraw_if_fixed(enum vb_conversion_reason reason, const void *address, size_t length,
			      int flags)
{
	if (flags & MAP_FIXED)
		(void)withdraw_conversions(reason, address, length);
}

/* Notes the kinds of memory that /proc/self/maps does not show. */
static void note_if_special_mapping(int flags)
{
	if (flags & MAP_GROWSDOWN || (flags & MAP_TYPE) == MAP_DROPPABLE_TYPE)
		note_special_memory();
}

VB_EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *memory;

	note_if_special_mapping(flags);
	withdraw_if_fixed(VB_CONVERSION_UNMAPS, address, length, flags);
	memory = vb_next()->mmap(address, length, protection, flags, fd, offset);
	withdraw_if_fixed(VB_CONVERSION_UNMAPPED, address, length, flags);
	return memory;
}

VB_EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd,
		       off64_t offset)
{
	void *memory;

	note_if_special_mapping(flags);
	withdraw_if_fixed(VB_CONVERSION_UNMAPS, address, length, flags);
	memory = vb_next()->mmap64(address, length, protection, flags, fd, offset);
	withdraw_if_fixed(VB_CONVERSION_UNMAPPED, address, length, flags);
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
		(void)withdraw_conversions(VB_CONVERSION_CHANGES, place, new_length);
	if (!withdraw_conversions(new_length > length ? VB_CONVERSION_GROWS : VB_CONVERSION_CHANGES,
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

static bool discards_contents(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE;
}

/* At any other address madvise() fails and changes nothing. */
static bool is_page_aligned(const void *address)
{
	return (uintptr_t)address % (uintptr_t)sysconf(_SC_PAGESIZE) == 0;
}

/* True for advice that gives memory a lasting property, and for advice that is not known here. */
static bool makes_special(int advice)
{
	return !is_mere_hint(advice) && !discards_contents(advice) && advice != MADV_REMOVE &&
	       advice != MADV_DONTNEED_LOCKED && advice != MADV_DOFORK && advice != MADV_DODUMP &&
	       advice != MADV_KEEPONFORK && advice != MADV_UNMERGEABLE;
}

VB_EXPORT int madvise(void *address, size_t length, int advice)
{
	if (makes_special(advice))
		note_special_memory();
	if (!is_mere_hint(advice) && is_page_aligned(address))
		(void)withdraw_conversions(discards_contents(advice) ? VB_CONVERSION_EMPTIES
								     : VB_CONVERSION_CHANGES,
					   address, length);
	return vb_next()->madvise(address, length, advice);
}

VB_EXPORT int mprotect(void *address, size_t length, int protection)
{
	(void)withdraw_conversions(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->mprotect(address, length, protection);
}

VB_EXPORT int pkey_mprotect(void *address, size_t length, int protection, int key)
{
	note_special_memory();
	(void)withdraw_conversions(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->pkey_mprotect(address, length, protection, key);
}

VB_EXPORT int mlock(const void *address, size_t length)
{
	(void)withdraw_conversions(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->mlock(address, length);
}

VB_EXPORT int mlock2(const void *address, size_t length, unsigned flags)
{
	(void)withdraw_conversions(VB_CONVERSION_CHANGES, address, length);
	return vb_next()->mlock2(address, length, flags);
}

VB_EXPORT int mlockall(int flags)
{
	(void)withdraw_conversions(VB_CONVERSION_CHANGES, NULL, SIZE_MAX);
	return vb_next()->mlockall(flags);
}

/* Does not run the handlers of pthread_atfork(), so libibverbs is told here. */
VB_EXPORT pid_t _Fork(void)
{
	(void)withdraw_conversions(VB_CONVERSION_COPIES, NULL, SIZE_MAX);
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
		(void)withdraw_conversions(VB_CONVERSION_COPIES, NULL, SIZE_MAX);
	return vb_next()->clone(function, stack, flags, argument, further[0], further[1],
				further[2]);
}
