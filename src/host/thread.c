/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting threads. By default a stack is as large as RLIMIT_STACK: tens of kilobytes where that is tiny, and where all memory is locked
 * (mlockall()) eight megabytes that become resident at once, or are refused.
 */
#include "host/thread.h"

#include <errno.h>
#include <signal.h>

#define STACK_SIZE (512u << 10)

/* What the program's libraries have for each thread lies in its stack, too: where that leaves no room, the stack is as large as any. */
static int create(pthread_t *thread, void *(*function)(void *argument), void *argument)
{
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	error = pthread_create(thread, &attr, function, argument);
	pthread_attr_destroy(&attr);
	return error == EINVAL ? pthread_create(thread, NULL, function, argument) : error;
}

int vb_thread_start(pthread_t *thread, void *(*function)(void *argument), void *argument)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = create(thread, function, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}
