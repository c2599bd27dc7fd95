/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock that takes a few instructions where no thread waits: a message on one host passes six of
 * them, and with the C library's lock they would be a tenth of its time. Releasing is a mere store:
 * it may miss a thread that begins to wait at the same moment, so a waiting thread looks again
 * every millisecond. Not recursive, and not fair.
 */
#ifndef VB_HOST_SYS_LOCK_H
#define VB_HOST_SYS_LOCK_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_lock {
	_Atomic uint32_t is_held;
	_Atomic uint32_t waiter_count;
	_Atomic uintptr_t holder; /* a thread's mark; valid only if it is the caller's own */
};

void vb_lock_wait(struct vb_lock *lock); /* waits for the lock, and takes it */
void vb_lock_wake(struct vb_lock *lock); /* wakes one waiting thread */

/* False if the lock does not become free within that time. */
VB_MUST_USE bool vb_lock_take_within(struct vb_lock *lock, uint64_t longest_ns);

/* The lock is free afterwards, whichever thread had it. */
static inline void vb_lock_init(struct vb_lock *lock)
{
	atomic_store_explicit(&lock->holder, 0, memory_order_relaxed);
	atomic_store_explicit(&lock->waiter_count, 0, memory_order_relaxed);
	atomic_store_explicit(&lock->is_held, 0, memory_order_release);
}

static inline uintptr_t vb_lock_mark(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

VB_MUST_USE static inline bool vb_lock_try(struct vb_lock *lock)
{
	if (atomic_load_explicit(&lock->is_held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire))
		return false;
	atomic_store_explicit(&lock->holder, vb_lock_mark(), memory_order_relaxed);
	return true;
}

static inline void vb_lock_take(struct vb_lock *lock)
{
	if (!vb_lock_try(lock))
		vb_lock_wait(lock);
}

static inline void vb_lock_give(struct vb_lock *lock)
{
	atomic_store_explicit(&lock->holder, 0, memory_order_relaxed);
	atomic_store_explicit(&lock->is_held, 0, memory_order_release);
	if (atomic_load_explicit(&lock->waiter_count, memory_order_relaxed))
		vb_lock_wake(lock);
}

/* Whether any thread holds the lock. The answer may be out of date. */
static inline bool vb_lock_is_held(const struct vb_lock *lock)
{
	return atomic_load_explicit(&lock->is_held, memory_order_relaxed);
}

/* Whether the calling thread holds the lock: in a signal handler it may. */
static inline bool vb_lock_is_mine(const struct vb_lock *lock)
{
	return atomic_load_explicit(&lock->holder, memory_order_relaxed) == vb_lock_mark();
}

#endif
