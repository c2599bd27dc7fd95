/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guard is a place to continue from when an access to application memory faults. It lies on the
 * stack of the function that makes the access, and the thread's chain of guards leads to it. It is
 * a chain because a signal handler may interrupt a copy and copy itself. A function that opens a
 * guard looks like this:
 *
 *	struct vb_guard guard;
 *
 *	if (VB_GUARD_MARK(&guard))
 *		return false;
 *	vb_guard_open(&guard, address, length);
 *	... the access, and nothing that must be undone ...
 *	return vb_guard_close(&guard);
 *
 * On x86-64 the mark is three words and the handler changes where its thread resumes, so that the
 * kernel restores mask, vector and floating-point state as after any signal. Elsewhere, and for
 * sanitizers, which must be notified of a jump, the mark is the C library's _setjmp().
 */
#ifndef VB_HOST_MEMORY_GUARD_PRIV_H
#define VB_HOST_MEMORY_GUARD_PRIV_H

#include "base/dma.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VB_GUARD_IS_PLAIN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VB_GUARD_IS_PLAIN 1
#endif
#endif
#if !defined(VB_GUARD_IS_PLAIN) && !defined(__x86_64__)
#define VB_GUARD_IS_PLAIN 1
#endif

#ifdef VB_GUARD_IS_PLAIN
typedef jmp_buf vb_guard_mark;
#define VB_GUARD_MARK(guard) _setjmp((guard)->mark)
#else
typedef void *vb_guard_mark[5]; /* frame pointer, where to resume, stack pointer, two unused */
#define VB_GUARD_MARK(guard) __builtin_setjmp((guard)->mark)
#endif

struct vb_guard {
	uintptr_t first, last; /* the bytes that may be missing, in whole pages */
	struct vb_guard *outer; /* the guard of a copy that a signal handler interrupted */
	vb_guard_mark mark;
};

/*
 * Per thread. At a fixed offset from the thread pointer, as nothing may be allocated in a signal
 * handler.
 */
#define VB_GUARD_THREAD _Thread_local __attribute__((tls_model("initial-exec")))

extern VB_GUARD_THREAD struct vb_guard *vb_guard_innermost;

/* Between vb_dma_begin() and the first copy: the program may have SIGSEGV and SIGBUS blocked. */
extern VB_GUARD_THREAD bool vb_guard_is_untried;

/* Called at the first copy: unblocks the two signals. */
void vb_guard_prepare(void);

static inline void vb_guard_expect_fault(void)
{
	if (__builtin_expect(vb_guard_is_untried, 0))
		vb_guard_prepare();
}

static inline void vb_guard_set_innermost(struct vb_guard *guard)
{
	/* The signal handler of this thread looks at it between any two instructions. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&vb_guard_innermost, guard, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void vb_guard_open(struct vb_guard *guard, vb_dma_addr address, size_t length)
{
	enum { PAGE_MASK = 4095 };

	vb_guard_expect_fault();
	guard->first = (uintptr_t)address & ~(uintptr_t)PAGE_MASK;
	guard->last = (uintptr_t)(address + length - 1) | PAGE_MASK;
	guard->outer = vb_guard_innermost;
	vb_guard_set_innermost(guard);
}

static inline bool vb_guard_close(struct vb_guard *guard)
{
	vb_guard_set_innermost(guard->outer);
	return true;
}

#endif
