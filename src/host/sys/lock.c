/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/sys/lock.h"

#include "host/sys/clock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_AGAIN_NS 1000000u
#define SPINS 64u

static void pause_briefly(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

static bool try_often(struct vb_lock *lock)
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (vb_lock_try(lock))
			return true;
		pause_briefly();
	}
	return false;
}

static void sleep_while_held(struct vb_lock *lock, uint64_t longest_ns)
{
	struct timespec timeout = { 0, LOOK_AGAIN_NS };

	if (longest_ns < LOOK_AGAIN_NS)
		timeout.tv_nsec = (long)longest_ns;
	syscall(SYS_futex, &lock->is_held, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0);
}

VB_COLD bool vb_lock_take_within(struct vb_lock *lock, uint64_t longest_ns)
{
	uint64_t begin_ns = vb_clock_now();
	uint64_t passed_ns = 0;

	if (try_often(lock))
		return true;
	atomic_fetch_add_explicit(&lock->waiter_count, 1, memory_order_seq_cst);
	while (passed_ns < longest_ns) {
		sleep_while_held(lock, longest_ns - passed_ns);
		if (vb_lock_try(lock))
			break;
		passed_ns = vb_clock_now() - begin_ns;
	}
	atomic_fetch_sub_explicit(&lock->waiter_count, 1, memory_order_relaxed);
	return passed_ns < longest_ns;
}

VB_COLD void vb_lock_wait(struct vb_lock *lock)
{
	(void)!vb_lock_take_within(lock, UINT64_MAX);
}

VB_COLD void vb_lock_wake(struct vb_lock *lock)
{
	syscall(SYS_futex, &lock->is_held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
