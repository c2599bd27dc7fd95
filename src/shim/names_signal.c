/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the C library by which a program sets signal handlers and masks. This library
 * stands before the C library in every process that `verbatim run` started, however libibverbs came
 * into it. After a program has opened an adapter, its calls for SIGSEGV and SIGBUS go to
 * libibverbs, which must have the first handlers of both (docs/adr/0001); everything else goes
 * where it would have gone. siginterrupt() is left as it is. Changes of masks are only counted.
 */
#include "shim/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#pragma GCC visibility push(default)

typedef int vb_shim_action(int number, const struct sigaction *action, struct sigaction *old);
typedef __sighandler_t handler_setter(int number, __sighandler_t handler);

/* libibverbs finds this variable by its name and stores its function here, once. */
extern vb_shim_action *vb_shim_sigaction;
vb_shim_action *vb_shim_sigaction;

/* The number of times the program has set a signal mask, in any thread. libibverbs reads it. */
extern unsigned vb_shim_mask_changes;
unsigned vb_shim_mask_changes;

/* An old name that headers no longer declare. */
__sighandler_t bsd_signal(int number, __sighandler_t handler);

#pragma GCC visibility pop

/* --- the destination of a call --- */

/* The function that would have been called without this library. */
static void *find_next(void **found, const char *name)
{
	void *next = __atomic_load_n(found, __ATOMIC_RELAXED);

	if (!next) {
		next = dlsym(RTLD_NEXT, name);
		__atomic_store_n(found, next, __ATOMIC_RELAXED);
	}
	return next;
}

/* The function of libibverbs, if it handles this signal; otherwise NULL. */
static vb_shim_action *find_taker(int number)
{
	if (number != SIGSEGV && number != SIGBUS)
		return NULL;
	return __atomic_load_n(&vb_shim_sigaction, __ATOMIC_ACQUIRE);
}

/* Returns the previous handler, or SIG_ERR and errno. */
static __sighandler_t exchange(vb_shim_action *take, int number, __sighandler_t handler, int flags,
			       bool blocks_itself)
{
	struct sigaction action, old;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = flags;
	if (blocks_itself)
		sigaddset(&action.sa_mask, number);
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	return take(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

/* --- the interposed functions --- */

#pragma GCC visibility push(default)

int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	static void *found;
	vb_shim_action *take = find_taker(number);

	if (!take)
		take = (vb_shim_action *)find_next(&found, "sigaction");
	return take(number, action, old);
}

__sighandler_t signal(int number, __sighandler_t handler)
{
	static void *found;
	vb_shim_action *take = find_taker(number);

	if (!take)
		return ((handler_setter *)find_next(&found, "signal"))(number, handler);
	return exchange(take, number, handler, SA_RESTART, true);
}

__sighandler_t bsd_signal(int number, __sighandler_t handler)
{
	return signal(number, handler);
}

__sighandler_t ssignal(int number, __sighandler_t handler)
{
	return signal(number, handler);
}

__sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
	static void *found;
	vb_shim_action *take = find_taker(number);

	if (!take)
		return ((handler_setter *)find_next(&found, "__sysv_signal"))(number, handler);
	return exchange(take, number, handler, (int)(SA_RESETHAND | SA_NODEFER), false);
}

__sighandler_t sysv_signal(int number, __sighandler_t handler)
{
	return __sysv_signal(number, handler);
}

int sigignore(int number)
{
	static void *found;
	vb_shim_action *take = find_taker(number);

	if (!take)
		return ((int (*)(int))find_next(&found, "sigignore"))(number);
	return exchange(take, number, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}

/*
 * A mask belongs to one thread, so that thread sees the count that goes with it. Both functions are
 * called in handlers and between fork and exec, where nothing can be looked up: vb_next() did so
 * when the process began.
 */
static int count_change(int result)
{
	__atomic_fetch_add(&vb_shim_mask_changes, 1, __ATOMIC_RELEASE);
	return result;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return count_change(vb_next()->sigprocmask(how, set, old));
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return count_change(vb_next()->pthread_sigmask(how, set, old));
}

/* Blocks the signal for SIG_HOLD; for all others sets the handler and unblocks it. */
__sighandler_t sigset(int number, __sighandler_t handler)
{
	static void *found;
	vb_shim_action *take = find_taker(number);
	struct sigaction old;
	sigset_t set, before;

	if (!take)
		return ((handler_setter *)find_next(&found, "sigset"))(number, handler);
	if (take(number, NULL, &old))
		return SIG_ERR;
	if (handler != SIG_HOLD && exchange(take, number, handler, 0, false) == SIG_ERR)
		return SIG_ERR;
	sigemptyset(&set);
	sigaddset(&set, number);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the C library's sigset() does the same */
	if (sigprocmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before))
		return SIG_ERR;
	return sigismember(&before, number) ? SIG_HOLD : old.sa_handler;
}

#pragma GCC visibility pop
