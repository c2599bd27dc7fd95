/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our handlers of SIGSEGV and SIGBUS, with the program's own behind them. A fault that does not
 * belong to a copy reaches the program's handler with the arguments, on the stack and with the mask
 * that it would have had without us. We see the program's sigaction() only if the preloaded library
 * is present (src/shim/names_signal.c) and forwards it to us.
 */
#include "host/memory/signals_priv.h"

#include "host/memory/guard_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A set of signals as the kernel takes it. */
typedef uint64_t mask64;

#define BIT(signal) ((mask64)1 << ((signal)-1))
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS))
/*
 * The C library's own signals, which it lets no program block: cancellation, and changes of the
 * user.
 */
#define RESERVED (BIT(32) | BIT(33))

/* The C library's function, under the name that stays reachable when sigaction() is replaced. */
int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/*
 * The action that the program wants. There are two slots, so that a child of fork() never finds a
 * half-written one.
 */
struct wish {
	struct sigaction slots[2];
	unsigned current;
};

static struct {
	int locked;
	bool is_installed;
	/*
	 * the process that installed the handlers: a child of vfork() shares our memory but not
	 * them
	 */
	pid_t process;
	struct wish segv, bus;
} signals;

/*
 * A signal that another process or thread sent while the program blocks it and we do not: enough to
 * send it again.
 */
struct sent {
	int code;
	pid_t sender;
	uid_t user;
	union sigval value;
};

/* The state of this thread while it copies. */
static VB_GUARD_THREAD struct {
	mask64 held; /* unblocked by us: the program has them blocked */
	mask64 pending_signals; /* those of them that are in `sent` */
	struct sent sent[2]; /* SIGSEGV, SIGBUS */
	uint64_t now_ns; /* when it began */
	uint64_t open_ns; /* when both were last found unblocked, or 0 … */
	unsigned mask_changes; /* … and the count of mask changes then */
} own;

/*
 * How long a thread with both signals unblocked is assumed not to have blocked them since. This is
 * how long a longjmp() or the like may go unnoticed. The second value applies where calls that
 * change masks also go unnoticed.
 */
#define MASK_HOLDS_NS 200000u
#define MASK_HOLDS_UNWATCHED_NS 20000u

/* Calls of the program that change masks, counted by the preloaded library if it is present. */
static const unsigned no_changes;
static const unsigned *mask_changes = &no_changes;

bool vb_signal_is_watched(void)
{
	return mask_changes != &no_changes;
}

static uint64_t mask_holds_ns(void)
{
	return vb_signal_is_watched() ? MASK_HOLDS_NS : MASK_HOLDS_UNWATCHED_NS;
}

/* --- masks ------------------------------------------------------------------------------------ */

static mask64 load_mask(const sigset_t *set)
{
	mask64 mask;

	memcpy(&mask, set, sizeof(mask));
	return mask;
}

/* Leaves errno alone. */
static void change_mask(int how, mask64 set, mask64 *old)
{
	int saved = errno;

	syscall(SYS_rt_sigprocmask, how, &set, old, sizeof(set));
	errno = saved;
}

void vb_signal_set_mask(const sigset_t *mask)
{
	change_mask(SIG_SETMASK, load_mask(mask), NULL);
}

/*
 * Compilers must not move accesses to this thread's variables across this fence: the handler reads
 * them.
 */
static void fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* --- signals that were sent ------------------------------------------------------------------- */

static struct sent *sent_of(int signal)
{
	return &own.sent[signal == SIGBUS];
}

VB_COLD static void send_again(int signal, siginfo_t *info)
{
	if (info->si_code > 0 || info->si_code == SI_TKILL)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
	else
		syscall(SYS_rt_sigqueueinfo, getpid(), signal, info);
}

/*
 * Keeps a signal until the program's own mask is restored. A second one is lost; the kernel keeps
 * only one as well.
 */
static void hold_signal(int signal, const siginfo_t *info)
{
	*sent_of(signal) =
		(struct sent){ info->si_code, info->si_pid, info->si_uid, info->si_value };
	own.pending_signals |= BIT(signal);
}

VB_COLD static void send_kept(int signal)
{
	const struct sent *sent = sent_of(signal);
	siginfo_t info;

	if (!(own.pending_signals & BIT(signal)))
		return;
	own.pending_signals &= ~BIT(signal);
	memset(&info, 0, sizeof(info));
	info.si_signo = signal;
	info.si_code = sent->code;
	info.si_pid = sent->sender;
	info.si_uid = sent->user;
	info.si_value = sent->value;
	send_again(signal, &info);
}

bool vb_signal_begin(uint64_t now_ns)
{
	own.now_ns = now_ns; /* may be less than before: it may be the time of a tick */
	return !own.open_ns || (now_ns > own.open_ns && now_ns - own.open_ns > mask_holds_ns()) ||
	       own.mask_changes != __atomic_load_n(mask_changes, __ATOMIC_ACQUIRE);
}

void vb_signal_admit_faults(void)
{
	mask64 old = 0;

	own.mask_changes = __atomic_load_n(mask_changes, __ATOMIC_ACQUIRE);

	/*
	 * A pending signal arrives during the call, and only the call reports which signals were
	 * blocked.
	 */
	own.held = FAULTS;
	fence();
	change_mask(SIG_UNBLOCK, FAULTS, &old);
	fence();
	own.held = old & FAULTS;
	own.open_ns = own.held ? 0 : own.now_ns;
}

void vb_signal_dismiss_faults(void)
{
	if (__builtin_expect(!(own.held | own.pending_signals), 1))
		return;
	change_mask(SIG_BLOCK, own.held, NULL);
	fence();
	own.held = 0;
	fence();
	send_kept(SIGSEGV);
	send_kept(SIGBUS);
}

/* --- what the program wants ------------------------------------------------------------------- */

/* Blocks every signal: a handler that meets a fault also needs the lock. */
static mask64 lock(void)
{
	mask64 old = 0;

	change_mask(SIG_BLOCK, ~(mask64)0, &old);
	while (__atomic_exchange_n(&signals.locked, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	return old;
}

static void unlock(mask64 old)
{
	__atomic_store_n(&signals.locked, 0, __ATOMIC_RELEASE);
	change_mask(SIG_SETMASK, old, NULL);
}

static struct wish *program_action_of(int signal)
{
	return signal == SIGSEGV ? &signals.segv : &signals.bus;
}

static struct sigaction load_program_action(int signal)
{
	const struct wish *wish = program_action_of(signal);

	return wish->slots[__atomic_load_n(&wish->current, __ATOMIC_ACQUIRE)];
}

static void store_program_action(int signal, const struct sigaction *action)
{
	struct wish *wish = program_action_of(signal);
	unsigned next = !wish->current;

	wish->slots[next] = *action;
	__atomic_store_n(&wish->current, next, __ATOMIC_RELEASE);
}

static bool is_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Loads the action for this signal; a one-shot handler is forgotten by that. */
static struct sigaction take_program_action(int signal)
{
	mask64 mask = lock();
	struct sigaction action = load_program_action(signal);

	if (is_handler(&action) && action.sa_flags & (int)SA_RESETHAND) {
		struct sigaction once = action;

		once.sa_handler = SIG_DFL;
		store_program_action(signal, &once);
	}
	unlock(mask);
	return action;
}

/* --- the handler ------------------------------------------------------------------------------ */

/* Whether it is a fault, neither sent by a process nor an early warning of the memory hardware. */
static bool is_fault(int signal, const siginfo_t *info)
{
	return info->si_code > 0 && !(signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/*
 * When the handler returns, the process ends as it would without us: by the same signal, at the
 * same instruction.
 */
static void die(int signal, siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	__sigaction(signal, &action, NULL);
	send_again(signal, info);
}

/* Calls the program's handler with the mask that it would have had. */
static void call(const struct sigaction *action, int signal, siginfo_t *info, ucontext_t *context)
{
	mask64 mask = load_mask(&context->uc_sigmask) | load_mask(&action->sa_mask);

	if (!(action->sa_flags & SA_NODEFER))
		mask |= BIT(signal);
	change_mask(SIG_SETMASK, mask & ~RESERVED, NULL);
	action->sa_sigaction(signal, info, context); /* like the kernel, which passes all three */
}

/* Passes a signal on to the program: does what the program wants for it. */
static void pass_on(int signal, siginfo_t *info, ucontext_t *context)
{
	struct sigaction action = take_program_action(signal);

	if (is_fault(signal, info) && (own.held & BIT(signal) || action.sa_handler == SIG_IGN))
		die(signal, info); /* a fault can be neither blocked nor ignored */
	else if (is_handler(&action))
		call(&action, signal, info, context);
	else if (action.sa_handler == SIG_DFL)
		die(signal, info);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	if (vb_guard_catch(info, context))
		return;
	if (!is_fault(signal, info) && own.held & BIT(signal))
		hold_signal(signal, info);
	else
		pass_on(signal, info, context);
}

/* --- the owner of the signals ----------------------------------------------------------------- */

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

/*
 * Installs our handler, on the stack that the program wants for its own. No other handler may
 * interrupt it: the faults of that handler would find these signals blocked.
 */
static int set_handler(int signal, const struct sigaction *wanted)
{
	struct sigaction action = { .sa_sigaction = on_signal };

	sigfillset(&action.sa_mask);
	if (is_handler(wanted))
		action.sa_flags = SA_SIGINFO | (wanted->sa_flags & (SA_ONSTACK | SA_RESTART));
	else
		action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	return __sigaction(signal, &action, NULL);
}

static int take_over(int signal)
{
	struct sigaction found;

	if (__sigaction(signal, NULL, &found))
		return -1;
	if (is_ours(&found))
		return 0;
	store_program_action(signal, &found);
	return set_handler(signal, &found);
}

static void on_fork_in_child(void)
{
	/* The thread that held the lock is not in this process. */
	__atomic_store_n(&signals.locked, 0, __ATOMIC_RELEASE);
	signals.process = getpid();
}

/* From now on the preloaded library forwards the program's sigaction() to us. */
static void take_program_calls(void)
{
	int (**hook)(int, const struct sigaction *, struct sigaction *) =
		dlsym(RTLD_DEFAULT, "vb_shim_sigaction");
	const unsigned *changes = dlsym(RTLD_DEFAULT, "vb_shim_mask_changes");

	if (hook)
		__atomic_store_n(hook, vb_signal_action, __ATOMIC_RELEASE);
	if (changes)
		mask_changes = changes;
}

static void prepare(void)
{
	signals.process = getpid();
	pthread_atfork(NULL, NULL, on_fork_in_child);
	take_program_calls();
}

vb_err vb_signal_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int failed, saved = errno;
	mask64 mask;

	pthread_once(&once, prepare);
	mask = lock();
	failed = take_over(SIGSEGV) | take_over(SIGBUS);
	if (!failed)
		signals.is_installed = true;
	unlock(mask);
	errno = saved;
	return failed ? VB_EOPNOTSUPP : VB_OK;
}

/* Exchanges the action that the program wants. It cannot mean our own handler. */
static int exchange_program_action(int signal, const struct sigaction *wanted,
				   struct sigaction *before)
{
	*before = load_program_action(signal);
	if (!wanted || is_ours(wanted))
		return 0;
	store_program_action(signal, wanted);
	return set_handler(signal, wanted);
}

int vb_signal_action(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction wanted, before;
	mask64 mask;
	int result;

	if (signal != SIGSEGV && signal != SIGBUS)
		return __sigaction(signal, action, old);
	if (action)
		/* It may be in unmapped memory: do not read it under the lock. */
		wanted = *action;
	mask = lock();
	if (signals.is_installed && getpid() == signals.process) {
		result = exchange_program_action(signal, action ? &wanted : NULL, &before);
	} else {
		result = __sigaction(signal, action ? &wanted : NULL, &before);
		if (!result && is_ours(&before))
			before = load_program_action(signal);
	}
	unlock(mask);
	if (!result && old)
		*old = before;
	return result;
}
