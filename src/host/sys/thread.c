/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of threads. By default a stack is as large as RLIMIT_STACK: tens of kilobytes where
 * that is tiny; where all memory is locked (mlockall()), eight megabytes that become resident
 * immediately, or are refused.
 */
#include "host/sys/thread.h"

#include "host/memory/blocks.h"
#include "link/sys.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define STACK_LENGTH (1u << 20) /* most of it is never used; sanitizers need that much */

/* Makes a page at the low end fault, to protect what lies before it. */
static void guard(void *stack)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)stack + page - 1) / page * page;

	syscall(SYS_mprotect, begin, page, PROT_NONE);
}

/*
 * The thread-local data of the program's libraries also lies in the stack: the C library reports
 * its size.
 */
static int create(struct vb_thread *thread, void *(*function)(void *argument), void *argument)
{
	size_t length = STACK_LENGTH + (size_t)sysconf(_SC_THREAD_STACK_MIN);
	pthread_attr_t attr;
	int error;

	thread->stack = vb_blocks_alloc(length);
	if (!thread->stack)
		return ENOMEM;
	guard(thread->stack);
	pthread_attr_init(&attr);
	error = pthread_attr_setstack(&attr, thread->stack, length);
	if (!error)
		error = pthread_create(&thread->id, &attr, function, argument);
	pthread_attr_destroy(&attr);
	if (error)
		vb_thread_forget(thread);
	return error;
}

int vb_thread_start(struct vb_thread *thread, void *(*function)(void *argument), void *argument)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = create(thread, function, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void vb_thread_join(struct vb_thread *thread)
{
	pthread_join(thread->id, NULL);
	vb_thread_forget(thread);
}

void vb_thread_forget(struct vb_thread *thread)
{
	vb_blocks_free(thread->stack);
	thread->stack = NULL;
}

uint64_t vb_thread_yield(void)
{
	struct rusage usage;

	sched_yield(); /* a switch counts, since the thread could have gone on */
	return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)usage.ru_nivcsw;
}
