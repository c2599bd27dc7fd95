/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps SIGPIPE and SIGXFSZ of our own system calls from the program: blocks both signals, and
 * discards the one that our call has raised in this thread.
 */
#include "host/sys/quiet.h"

#include "link/sys.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

void vb_quiet_begin(struct vb_quiet *quiet)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGPIPE);
	sigaddset(&both, SIGXFSZ);
	sigpending(&quiet->pending);
	pthread_sigmask(SIG_BLOCK, &both, &quiet->before);
}

static void swallow(int number)
{
	const struct timespec no_wait = { 0, 0 };
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	while (sigtimedwait(&one, NULL, &no_wait) < 0 && errno == EINTR)
		;
}

void vb_quiet_end(const struct vb_quiet *quiet, int error)
{
	if (error == EPIPE && !sigismember(&quiet->pending, SIGPIPE))
		swallow(SIGPIPE);
	if (error == EFBIG && !sigismember(&quiet->pending, SIGXFSZ))
		swallow(SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

int vb_quiet_ftruncate(int fd, size_t length)
{
	struct vb_quiet quiet;
	int error;

	vb_quiet_begin(&quiet);
	error = vb_sys_result(syscall(SYS_ftruncate, fd, length));
	vb_quiet_end(&quiet, -error);
	return error;
}
