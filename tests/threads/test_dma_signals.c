/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program notices of how the adapter survives missing memory: nothing. Its own handlers of
 * SIGSEGV and SIGBUS, its masks and its crashes are as they are without the adapter, while copies
 * in the same threads fail quietly. Tests that end in a crash fork for it.
 */
#include "harness.h"
#include "host/memory/dma.h"
#include "support_dma.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Old programs call old functions. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

__sighandler_t bsd_signal(int number, __sighandler_t handler);

/* The C library's sigaction(), for calls that bypass the adapter. */
int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* --- the program's own handlers --------------------------------------------------------------- */

static struct {
	sigjmp_buf back;
	volatile sig_atomic_t is_expected, count, signal, code;
	void *volatile at;
	void *volatile pc;
	uint8_t *volatile stack;
	sigset_t mask;
} own;

static void note(int number, siginfo_t *info, void *context)
{
	uint8_t here;

	own.count++;
	own.signal = number;
	own.code = info->si_code;
	own.at = info->si_addr;
	own.pc = context;
	own.stack = &here;
	pthread_sigmask(SIG_BLOCK, NULL, &own.mask);
}

__attribute__((noreturn)) static void jump(void)
{
	if (!own.is_expected)
		FAIL("the fault of a copy reached the program");
	own.is_expected = 0;
	siglongjmp(own.back, 1);
}

static void jump_back(int number, siginfo_t *info, void *context)
{
	note(number, info, context);
	jump();
}

/* Does what garbage collectors do: makes the page accessible and goes on. */
static void mend(int number, siginfo_t *info, void *context)
{
	note(number, info, context);
	mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE,
		 PROT_READ | PROT_WRITE);
}

static void jump_back_simple(int number)
{
	own.count++;
	own.signal = number;
	jump();
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigaddset(&action.sa_mask, SIGUSR2);
	EXPECT_EQ(sigaction(number, &action, NULL), 0);
}

/* Returns true if the program's handler was reached, as it would have been without the adapter. */
static bool is_delivered(uint8_t *at, int number)
{
	int count = own.count;

	own.is_expected = 1;
	if (!sigsetjmp(own.back, 1))
		write_byte(at);
	return own.count == count + 1 && own.signal == number;
}

static void expect_own_faults_and_copies(void)
{
	uint8_t *gone = unmapped_address(), *short_file = map_truncated_file();

	for (int i = 0; i < 3; i++) {
		EXPECT(is_delivered(gone, SIGSEGV));
		expect_no_access(gone);
		EXPECT(is_delivered(short_file, SIGBUS));
		expect_no_access(short_file);
	}
}

TEST(a_handler_that_was_there_before_us_gets_its_own_faults)
{
	handle(SIGSEGV, jump_back, 0);
	handle(SIGBUS, jump_back, 0);
	install_dma();
	expect_own_faults_and_copies();
}

TEST(a_handler_that_comes_later_gets_its_own_faults)
{
	install_dma();
	handle(SIGSEGV, jump_back, 0);
	handle(SIGBUS, jump_back, SA_NODEFER);
	expect_own_faults_and_copies();
}

TEST(a_handler_set_by_signal_gets_its_own_faults)
{
	install_dma();
	EXPECT(signal(SIGSEGV, jump_back_simple) != SIG_ERR);
	EXPECT(bsd_signal(SIGBUS, jump_back_simple) != SIG_ERR);
	expect_own_faults_and_copies();
	EXPECT(ssignal(SIGBUS, SIG_DFL) == jump_back_simple);
	EXPECT(ssignal(SIGBUS, jump_back_simple) == SIG_DFL);
	EXPECT(sigset(SIGSEGV, jump_back_simple) == jump_back_simple);
	expect_own_faults_and_copies();
}

TEST(a_handler_set_behind_our_back_is_found_when_an_adapter_is_opened)
{
	struct sigaction action = { .sa_sigaction = jump_back, .sa_flags = SA_SIGINFO };

	install_dma();
	EXPECT_EQ(__sigaction(SIGSEGV, &action, NULL), 0);
	EXPECT_EQ(__sigaction(SIGBUS, &action, NULL), 0);
	MUST(vb_dma_install());
	expect_own_faults_and_copies();
}

TEST(a_handler_sees_fault_stack_and_mask_as_without_us)
{
	uint8_t *gone = unmapped_address(), *stack = map_pages(1 << 16, PROT_READ | PROT_WRITE);
	stack_t alternate = { .ss_sp = stack, .ss_size = 1 << 16 };

	install_dma();
	EXPECT_EQ(sigaltstack(&alternate, NULL), 0);
	handle(SIGSEGV, jump_back, SA_ONSTACK);
	EXPECT(is_delivered(gone + 5, SIGSEGV));
	EXPECT(own.at == gone + 5);
	EXPECT_EQ(own.code, SEGV_MAPERR);
	EXPECT(own.pc != NULL);
	if (!UNDER_SANITIZER) /* the address sanitizer keeps variables elsewhere */
		EXPECT(own.stack > stack && own.stack < stack + (1 << 16));
	EXPECT(sigismember(&own.mask, SIGSEGV) && sigismember(&own.mask, SIGUSR2));
	EXPECT(!sigismember(&own.mask, SIGUSR1));

	handle(SIGSEGV, jump_back, SA_NODEFER);
	EXPECT(is_delivered(gone, SIGSEGV));
	if (!UNDER_SANITIZER)
		EXPECT(own.stack < stack || own.stack > stack + (1 << 16));
	EXPECT(!sigismember(&own.mask, SIGSEGV));
}

TEST(a_handler_may_mend_the_memory_and_return)
{
	uint8_t *at = map_pages(2 * PAGE, PROT_NONE);

	install_dma();
	handle(SIGSEGV, mend, 0);
	write_byte(at + 9);
	EXPECT_EQ(at[9], 1);
	EXPECT_EQ(own.count, 1);
	expect_every_access(at);
	expect_no_access(at + PAGE);
	EXPECT_EQ(own.count, 1); /* the program need not mend the adapter's copies */
}

TEST(a_copy_in_the_programs_own_handler_survives)
{
	sigset_t seen;
	uint8_t *gone = unmapped_address();

	install_dma();
	expect_no_access(gone);
	handle(SIGSEGV, jump_back, 0);
	own.is_expected = 1;
	if (!sigsetjmp(own.back, 0)) /* leaves the handler, but not its mask */
		write_byte(gone);
	vb_dma_begin(0);
	expect_no_access(gone);
	vb_dma_end();
	EXPECT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &seen), 0);
	EXPECT(sigismember(&seen, SIGSEGV));
}

TEST(a_handler_for_once_is_called_once)
{
	struct sigaction seen;
	uint8_t *gone = unmapped_address();

	install_dma();
	handle(SIGSEGV, jump_back, (int)SA_RESETHAND);
	EXPECT(is_delivered(gone, SIGSEGV));
	EXPECT_EQ(sigaction(SIGSEGV, NULL, &seen), 0);
	EXPECT(seen.sa_handler == SIG_DFL);
	expect_no_access(gone);
	EXPECT_EQ(run_in_child(write_byte, gone), SIGSEGV);
	EXPECT(__sysv_signal(SIGSEGV, jump_back_simple) == SIG_DFL);
	EXPECT(is_delivered(gone, SIGSEGV));
	EXPECT_EQ(run_in_child(write_byte, gone), SIGSEGV);
}

TEST(the_program_reads_back_the_actions_it_set)
{
	struct sigaction set = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_NODEFER }, seen;

	signal(SIGBUS, SIG_DFL);
	install_dma();
	sigaddset(&set.sa_mask, SIGHUP);
	EXPECT_EQ(sigaction(SIGSEGV, &set, NULL), 0);
	EXPECT_EQ(sigaction(SIGSEGV, NULL, &seen), 0);
	EXPECT(seen.sa_sigaction == note && seen.sa_flags == set.sa_flags);
	EXPECT(sigismember(&seen.sa_mask, SIGHUP) && !sigismember(&seen.sa_mask, SIGINT));
	EXPECT(signal(SIGBUS, jump_back_simple) == SIG_DFL);
	EXPECT(signal(SIGBUS, SIG_IGN) == jump_back_simple);
	EXPECT(signal(SIGBUS, SIG_DFL) == SIG_IGN);
	EXPECT(signal(SIGUSR1, jump_back_simple) == SIG_DFL);
	EXPECT(signal(SIGUSR1, SIG_DFL) == jump_back_simple);
	EXPECT(signal(0, SIG_DFL) == SIG_ERR);
}

static atomic_bool is_interrupting;
static atomic_uint rounds; /* of the copies that are interrupted */
static uint8_t *missing_in_handler;

static void copy_in_handler(int number)
{
	(void)number;
	own.count++;
	expect_no_access(missing_in_handler);
}

/*
 * Once a round: signals sent as fast as they are handled would leave no time for the copies
 * themselves.
 */
static void *interrupt(void *argument)
{
	unsigned seen = 0;

	while (atomic_load(&is_interrupting)) {
		if (atomic_load(&rounds) != seen) {
			seen = atomic_load(&rounds);
			pthread_kill(*(pthread_t *)argument, SIGUSR1);
		}
		sched_yield();
	}
	return NULL;
}

TEST(a_copy_survives_that_a_handler_interrupts_it_and_copies)
{
	enum { PRESENT = 4 << 20 };
	static uint8_t ours[2 * PRESENT];
	uint8_t *at = map_pages(2 * PRESENT, PROT_READ | PROT_WRITE);
	pthread_t self = pthread_self(), thread;

	if (UNDER_SANITIZER)
		SKIP("a jump in a sanitizer's build takes a lock that the interrupted one may have");
	install_dma();
	missing_in_handler = unmapped_address();
	EXPECT_EQ(mprotect(at + PRESENT, PAGE, PROT_NONE), 0);
	signal(SIGUSR1, copy_in_handler);
	atomic_store(&is_interrupting, true);
	EXPECT_EQ(pthread_create(&thread, NULL, interrupt, &self), 0);
	/*
	 * Short copies are interrupted anywhere; long ones while they copy, before they reach the
	 * hole in the middle.
	 */
	while (own.count < 50) {
		atomic_fetch_add(&rounds, 1);
		expect_no_access(missing_in_handler);
		EXPECT(!vb_dma_read(ours, dma_address(at), sizeof(ours)));
	}
	atomic_store(&is_interrupting, false);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

/* --- the program's own crashes ---------------------------------------------------------------- */

TEST(a_crash_is_still_a_crash)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	install_dma();
	EXPECT_EQ(run_in_child(write_byte, unmapped_address()), SIGSEGV);
	EXPECT_EQ(run_in_child(write_byte, map_truncated_file()), SIGBUS);
	expect_no_access(unmapped_address());
}

TEST(a_fault_that_is_ignored_is_a_crash)
{
	install_dma();
	signal(SIGSEGV, SIG_IGN);
	signal(SIGBUS, SIG_IGN);
	EXPECT_EQ(run_in_child(write_byte, unmapped_address()), SIGSEGV);
	EXPECT_EQ(run_in_child(write_byte, map_truncated_file()), SIGBUS);
	expect_no_access(unmapped_address());
}

static void raise_segv(void *argument)
{
	(void)argument;
	raise(SIGSEGV);
}

static void kill_by_bus(void *argument)
{
	(void)argument;
	kill(getpid(), SIGBUS);
}

TEST(a_signal_that_a_process_sends_does_what_the_program_wants)
{
	install_dma();
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	EXPECT_EQ(run_in_child(raise_segv, NULL), SIGSEGV);
	EXPECT_EQ(run_in_child(kill_by_bus, NULL), SIGBUS);
	signal(SIGSEGV, SIG_IGN);
	signal(SIGBUS, SIG_IGN);
	EXPECT_EQ(run_in_child(raise_segv, NULL), 0);
	EXPECT_EQ(run_in_child(kill_by_bus, NULL), 0);
	handle(SIGSEGV, note, 0);
	raise(SIGSEGV);
	EXPECT_EQ(own.count, 1);
	EXPECT_EQ(own.code, SI_TKILL);
	expect_no_access(unmapped_address());
}

static void handle_and_fault(void *at)
{
	EXPECT(signal(SIGSEGV, jump_back_simple) != SIG_ERR);
	EXPECT(is_delivered(at, SIGSEGV));
	expect_no_access(at);
}

TEST(a_forked_child_survives_and_has_handlers_of_its_own)
{
	uint8_t *gone = unmapped_address();
	struct sigaction seen;
	pid_t child;

	install_dma();
	handle(SIGSEGV, jump_back, 0);
	EXPECT_EQ(run_in_child(read_long, gone), 0);
	EXPECT_EQ(run_in_child(handle_and_fault, gone), 0);
	child = vfork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	EXPECT_EQ(sigaction(SIGSEGV, NULL, &seen), 0);
	EXPECT(seen.sa_sigaction == jump_back);
	EXPECT(is_delivered(gone, SIGSEGV));
	expect_no_access(gone);
}

/* --- blocked signals -------------------------------------------------------------------------- */

static void in_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, run, argument), 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

static void *copy_in_thread(void *argument)
{
	sigset_t seen;

	vb_dma_begin(0);
	expect_no_access(argument);
	vb_dma_end();
	EXPECT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &seen), 0);
	EXPECT(sigismember(&seen, SIGSEGV) && sigismember(&seen, SIGBUS));
	return NULL;
}

TEST(a_thread_that_began_with_all_signals_blocked_survives)
{
	sigset_t all;

	install_dma();
	sigfillset(&all);
	EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	in_thread(copy_in_thread, unmapped_address());
	in_thread(copy_in_thread, map_truncated_file());
}

static uint64_t mask_now(void)
{
	uint64_t mask;

	EXPECT_EQ(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask)), 0);
	return mask;
}

static void expect_copies_to_leave_the_mask(uint8_t *at, const sigset_t *mask)
{
	uint64_t before;

	EXPECT_EQ(pthread_sigmask(SIG_SETMASK, mask, NULL), 0);
	before = mask_now();
	vb_dma_begin(0);
	expect_no_access(at);
	expect_no_access(at);
	vb_dma_end();
	EXPECT_EQ(mask_now(), before);
	vb_dma_begin(0);
	vb_dma_end();
	EXPECT_EQ(mask_now(), before);
}

TEST(the_mask_is_what_it_was_after_copies)
{
	sigset_t all, none, segv, bus;
	uint8_t *gone = unmapped_address();

	install_dma();
	sigfillset(&all);
	sigemptyset(&none);
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	sigaddset(&bus, SIGUSR1);
	for (int i = 0; i < 3; i++) {
		expect_copies_to_leave_the_mask(gone, &all);
		expect_copies_to_leave_the_mask(gone, &segv);
		expect_copies_to_leave_the_mask(gone, &none);
		expect_copies_to_leave_the_mask(gone, &bus);
	}
}

static void block_and_touch(void *at)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	vb_dma_begin(0);
	expect_no_access(at);
	write_byte(at);
}

TEST(a_fault_of_its_own_ends_a_program_that_blocks_it)
{
	install_dma();
	handle(SIGSEGV, note, 0);
	handle(SIGBUS, note, 0);
	EXPECT_EQ(run_in_child(block_and_touch, unmapped_address()), SIGSEGV);
	EXPECT_EQ(run_in_child(block_and_touch, map_truncated_file()), SIGBUS);
}

static void send_to_process(int number)
{
	EXPECT_EQ(kill(getpid(), number), 0);
}

static void send_to_thread(int number)
{
	EXPECT_EQ(raise(number), 0);
}

/* The signal is sent before or between copies of a thread that blocks it. */
static void expect_pending(int number, void (*send)(int number), bool is_sent_before)
{
	struct timespec at_once = { 0, 0 };
	uint8_t *gone = number == SIGSEGV ? unmapped_address() : map_truncated_file();
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, number);
	EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < 2; i++) {
		int count = own.count;

		if (is_sent_before)
			send(number);
		vb_dma_begin(0);
		expect_no_access(gone);
		if (!is_sent_before)
			send(number);
		expect_no_access(gone);
		vb_dma_end();
		EXPECT_EQ(own.count, count);
		EXPECT_EQ(sigtimedwait(&set, &info, &at_once), number);
		EXPECT_EQ(info.si_pid, getpid());
		EXPECT_EQ(sigtimedwait(&set, &info, &at_once), -1);
	}
	send(number);
	EXPECT_EQ(own.count, 0);
	EXPECT_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	EXPECT_EQ(own.count, 1);
	own.count = 0;
}

TEST(a_signal_that_is_sent_while_the_program_blocks_it_stays_pending)
{
	install_dma();
	handle(SIGSEGV, note, 0);
	handle(SIGBUS, note, 0);
	for (int i = 0; i < 8; i++)
		expect_pending(i & 1 ? SIGSEGV : SIGBUS, i & 2 ? send_to_thread : send_to_process,
			       i & 4);
}

TEST(a_signal_that_is_sent_while_nobody_blocks_it_comes_at_once)
{
	install_dma();
	handle(SIGSEGV, note, 0);
	vb_dma_begin(0);
	expect_no_access(unmapped_address());
	raise(SIGSEGV);
	EXPECT_EQ(own.count, 1);
	expect_no_access(unmapped_address());
	vb_dma_end();
	EXPECT_EQ(own.count, 1);
}
