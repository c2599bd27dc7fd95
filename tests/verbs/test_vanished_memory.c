/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that the program unmaps, protects or truncates. For every operation and either
 * side, this ends in the completions that an adapter would give, the process goes on, and new QPs
 * work. And the program keeps control of SIGSEGV and SIGBUS: handlers from before and after the
 * device was opened, alternate stacks, blocked signals.
 */
#include "harness.h"
#include "support_verbs.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 1 << 16, SHORT = 8, LONG = 5000 };

static struct node nodes[2];

/* --- memory that vanishes --------------------------------------------------------------------- */

struct memory {
	uint8_t *bytes;
	int file;
};

static struct memory make_memory(void)
{
	struct memory memory = { .file = memfd_create("memory", 0) };

	EXPECT_EQ(ftruncate(memory.file, LENGTH), 0);
	memory.bytes = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file, 0);
	EXPECT(memory.bytes != MAP_FAILED);
	memset(memory.bytes, 0x5a, LENGTH);
	return memory;
}

static void unmap(struct memory *memory)
{
	EXPECT_EQ(munmap(memory->bytes, LENGTH), 0);
}

static void protect(struct memory *memory)
{
	EXPECT_EQ(mprotect(memory->bytes, LENGTH, PROT_NONE), 0);
}

static void make_read_only(struct memory *memory)
{
	EXPECT_EQ(mprotect(memory->bytes, LENGTH, PROT_READ), 0);
}

static void truncate_file(struct memory *memory)
{
	EXPECT_EQ(ftruncate(memory->file, 0), 0);
}

typedef void vanishing(struct memory *memory);

/* The last one is for memory that is written to. */
static vanishing *const ways[] = { unmap, protect, truncate_file, make_read_only };

enum { WAYS_FOR_READING = 3, WAYS_FOR_WRITING = 4 };

static void free_memory(struct memory *memory)
{
	munmap(memory->bytes, LENGTH); /* again, or for the first time */
	EXPECT_EQ(close(memory->file), 0);
}

/* --- operations on it ------------------------------------------------------------------------- */

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	/*
	 * The side whose memory vanishes: of A the local buffer, of B the target or receive buffer.
	 */
	enum side gone;
	bool is_written; /* rather than read */
	enum ibv_wc_status status; /* at A, the requester */
} operations[] = {
	{ "send from", IBV_WR_SEND, SHORT, A, false, IBV_WC_LOC_PROT_ERR },
	{ "long send from", IBV_WR_SEND, LONG, A, false, IBV_WC_LOC_PROT_ERR },
	{ "send into", IBV_WR_SEND, SHORT, B, true, IBV_WC_REM_OP_ERR },
	{ "long send into", IBV_WR_SEND, LONG, B, true, IBV_WC_REM_OP_ERR },
	{ "write from", IBV_WR_RDMA_WRITE, SHORT, A, false, IBV_WC_LOC_PROT_ERR },
	{ "long write from", IBV_WR_RDMA_WRITE, LONG, A, false, IBV_WC_LOC_PROT_ERR },
	{ "write into", IBV_WR_RDMA_WRITE, SHORT, B, true, IBV_WC_REM_OP_ERR },
	{ "long write into", IBV_WR_RDMA_WRITE, LONG, B, true, IBV_WC_REM_OP_ERR },
	{ "read into", IBV_WR_RDMA_READ, SHORT, A, true, IBV_WC_LOC_PROT_ERR },
	{ "long read into", IBV_WR_RDMA_READ, LONG, A, true, IBV_WC_LOC_PROT_ERR },
	{ "read from", IBV_WR_RDMA_READ, SHORT, B, false, IBV_WC_REM_OP_ERR },
	{ "long read from", IBV_WR_RDMA_READ, LONG, B, false, IBV_WC_REM_OP_ERR },
	{ "fetch and add into", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, A, true, IBV_WC_LOC_PROT_ERR },
	{ "fetch and add on", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, B, true, IBV_WC_REM_OP_ERR },
	{ "compare and swap on", IBV_WR_ATOMIC_CMP_AND_SWP, 8, B, true, IBV_WC_REM_OP_ERR },
};

enum { OPERATION_COUNT = sizeof(operations) / sizeof(operations[0]) };

static void expect_status(const struct operation *operation, int way, enum side side,
			  enum ibv_wc_status wanted, bool drives_both)
{
	enum ibv_wc_status got = await_status(nodes, side, drives_both);

	if (got != wanted)
		FAIL("%s, way %d: side %c got '%s' and not '%s'", operation->name, way, "AB"[side],
		     ibv_wc_status_str(got), ibv_wc_status_str(wanted));
}

static void post(const struct operation *operation, struct ibv_mr *mrs[2])
{
	struct ibv_sge local = make_sge(mrs[A], operation->length);

	if (operation->opcode == IBV_WR_SEND)
		post_recv(&nodes[B], make_sge(mrs[B], operation->length));
	post_send(&nodes[A], make_request(operation->opcode, &local, mrs[B]));
}

static void expect_success(const struct operation *operation, bool drives_both)
{
	struct memory memory[2] = { make_memory(), make_memory() };
	struct ibv_mr *mrs[2] = { register_memory(&nodes[A], memory[A].bytes, LENGTH),
				  register_memory(&nodes[B], memory[B].bytes, LENGTH) };

	connect_nodes(nodes);
	post(operation, mrs);
	expect_status(operation, -1, A, IBV_WC_SUCCESS, drives_both);
	if (operation->opcode == IBV_WR_SEND)
		expect_status(operation, -1, B, IBV_WC_SUCCESS, drives_both);
	for (enum side side = A; side <= B; side++) {
		EXPECT_EQ(ibv_dereg_mr(mrs[side]), 0);
		free_memory(&memory[side]);
	}
}

static void expect_failure(const struct operation *operation, int way, bool drives_both)
{
	struct memory memory[2] = { make_memory(), make_memory() };
	struct ibv_mr *mrs[2] = { register_memory(&nodes[A], memory[A].bytes, LENGTH),
				  register_memory(&nodes[B], memory[B].bytes, LENGTH) };

	connect_nodes(nodes);
	ways[way](&memory[operation->gone]);
	post(operation, mrs);
	expect_status(operation, way, A, operation->status, drives_both);
	if (operation->opcode == IBV_WR_SEND && operation->gone == B)
		expect_status(operation, way, B, IBV_WC_LOC_PROT_ERR, drives_both);
	for (enum side side = A; side <= B; side++) {
		EXPECT_EQ(ibv_dereg_mr(mrs[side]), 0);
		free_memory(&memory[side]);
	}
}

/*
 * Runs every operation with memory that vanished in every way, and in between with memory that is
 * present.
 */
static void expect_completions(bool drives_both)
{
	for (int i = 0; i < OPERATION_COUNT; i++) {
		const struct operation *operation = &operations[i];

		for (int way = 0;
		     way < (operation->is_written ? WAYS_FOR_WRITING : WAYS_FOR_READING); way++)
			expect_failure(operation, way, drives_both);
		expect_success(operation, drives_both);
	}
}

/* --- the program's own faults ----------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t fault_count, is_expected;
static uint8_t *volatile handler_stack;

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	if (!is_expected)
		FAIL("a fault of the adapter reached the program");
	handler_stack = __builtin_frame_address(0); /* sanitizers put variables elsewhere */
	fault_count++;
	siglongjmp(back, 1);
}

static void on_fault_simple(int number)
{
	on_fault(number, NULL, NULL);
}

static void handle_faults(int flags)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags };

	EXPECT_EQ(sigaction(SIGSEGV, &action, NULL), 0);
	EXPECT_EQ(sigaction(SIGBUS, &action, NULL), 0);
}

static void touch(vanishing *vanish)
{
	struct memory memory = make_memory();

	vanish(&memory);
	*(volatile uint8_t *)memory.bytes = 1;
}

static void make_fault(vanishing *vanish)
{
	is_expected = 1;
	if (!sigsetjmp(back, 1))
		touch(vanish);
	is_expected = 0;
}

/* The program's handler gets the program's own faults. */
static void expect_own_faults(void)
{
	for (int way = 0; way < WAYS_FOR_WRITING; way++) {
		int count = fault_count;

		make_fault(ways[way]);
		EXPECT_EQ(fault_count, count + 1);
	}
}

/* Returns the signal that ends a child with such a fault. */
static int signal_of_own_fault(vanishing *vanish)
{
	struct rlimit no_core = { 0, 0 };
	pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		touch(vanish);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

TEST(memory_that_vanishes_ends_in_completions)
{
	open_nodes(nodes);
	expect_completions(true);
	EXPECT_EQ(signal_of_own_fault(unmap), SIGSEGV);
	EXPECT_EQ(signal_of_own_fault(truncate_file), SIGBUS);
}

TEST(memory_that_vanishes_at_a_side_that_nobody_polls_ends_in_completions)
{
	open_nodes(nodes);
	expect_completions(false);
}

TEST(a_program_may_handle_faults_before_it_opens_the_device)
{
	handle_faults(0);
	open_nodes(nodes);
	expect_own_faults();
	expect_completions(true);
	expect_own_faults();
}

TEST(a_program_may_handle_faults_after_it_opened_the_device)
{
	struct sigaction seen;

	open_nodes(nodes);
	handle_faults(SA_NODEFER);
	EXPECT_EQ(sigaction(SIGSEGV, NULL, &seen), 0);
	EXPECT(seen.sa_sigaction == on_fault);
	expect_own_faults();
	expect_completions(true);
	expect_own_faults();
}

TEST(a_program_may_handle_faults_by_signal)
{
	open_nodes(nodes);
	EXPECT(signal(SIGSEGV, on_fault_simple) == SIG_DFL);
	EXPECT(signal(SIGBUS, on_fault_simple) == SIG_DFL);
	expect_completions(true);
	expect_own_faults();
	EXPECT(signal(SIGSEGV, SIG_DFL) == on_fault_simple);
	EXPECT(signal(SIGBUS, SIG_IGN) == on_fault_simple);
	expect_completions(true);
	EXPECT_EQ(signal_of_own_fault(protect), SIGSEGV);
	EXPECT_EQ(signal_of_own_fault(truncate_file), SIGBUS);
}

TEST(a_program_may_handle_faults_on_a_stack_of_their_own)
{
	static uint8_t stack[1 << 16];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };

	EXPECT_EQ(sigaltstack(&alternate, NULL), 0);
	open_nodes(nodes);
	handle_faults(SA_ONSTACK);
	expect_completions(true);
	expect_own_faults();
	EXPECT(handler_stack > stack && handler_stack < stack + sizeof(stack));
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	EXPECT_EQ(sigprocmask(SIG_SETMASK, &all, NULL), 0);
}

static void expect_all_blocked(void)
{
	sigset_t seen;

	EXPECT_EQ(sigprocmask(SIG_BLOCK, NULL, &seen), 0);
	EXPECT(sigismember(&seen, SIGSEGV) && sigismember(&seen, SIGBUS));
}

TEST(a_program_may_block_all_signals_before_it_opens_the_device)
{
	block_all();
	open_nodes(nodes);
	expect_completions(true);
	expect_completions(false);
	expect_all_blocked();
}

TEST(a_program_may_block_all_signals_after_it_opened_the_device)
{
	open_nodes(nodes);
	expect_completions(true);
	handle_faults(0);
	block_all();
	expect_completions(true);
	expect_all_blocked();
	EXPECT_EQ(signal_of_own_fault(unmap), SIGSEGV); /* blocked, so the handler is not called */
}

/* --- during a transfer ------------------------------------------------------------------------ */

enum { MANY = 4 << 20, ROUNDS = 60 };

static struct {
	atomic_uint armed, fired; /* rounds */
	uint8_t *bytes;
	unsigned delay;
} bomb;

/* Takes the memory away once a round, some time after it was armed. */
static void *explode(void *unused)
{
	(void)unused;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&bomb.armed) != round)
			sched_yield();
		for (unsigned i = 0; i < bomb.delay; i++)
			atomic_signal_fence(memory_order_seq_cst);
		EXPECT_EQ(mprotect(bomb.bytes, MANY, PROT_NONE), 0);
		atomic_store(&bomb.fired, round);
	}
	return NULL;
}

static uint8_t *make_many(void)
{
	uint8_t *bytes =
		mmap(NULL, MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(bytes != MAP_FAILED);
	memset(bytes, 1, MANY);
	return bytes;
}

/* What vanishes during a transfer is an error or was in time, but the transfer always ends. */
TEST(memory_may_vanish_at_any_moment_of_a_transfer)
{
	uint8_t *bytes[2] = { make_many(), make_many() };
	struct ibv_mr *mrs[2];
	struct ibv_sge local;
	pthread_t thread;

	open_nodes(nodes);
	mrs[A] = register_memory(&nodes[A], bytes[A], MANY);
	mrs[B] = register_memory(&nodes[B], bytes[B], MANY);
	local = make_sge(mrs[A], MANY);
	EXPECT_EQ(pthread_create(&thread, NULL, explode, NULL), 0);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		enum side gone = round % 2 ? A : B;
		bool is_read = round / 2 % 2;
		enum ibv_wc_status status;

		connect_nodes(nodes);
		bomb.bytes = bytes[gone];
		bomb.delay = round * 50000;
		atomic_store(&bomb.armed, round);
		post_send(&nodes[A], make_request(is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
						  &local, mrs[B]));
		status = await_status(nodes, A, true);
		if (status != IBV_WC_SUCCESS)
			EXPECT_EQ(status, gone == A ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
		while (atomic_load(&bomb.fired) != round)
			sched_yield();
		EXPECT_EQ(mprotect(bomb.bytes, MANY, PROT_READ | PROT_WRITE), 0);
	}
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

/* --- registering ------------------------------------------------------------------------------ */

TEST(memory_that_is_not_there_cannot_be_registered)
{
	struct memory memory = make_memory();

	open_nodes(nodes);
	make_read_only(&memory);
	EXPECT(!ibv_reg_mr(nodes[A].pd, memory.bytes, LENGTH, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(errno, EFAULT);
	EXPECT(ibv_reg_mr(nodes[A].pd, memory.bytes, LENGTH, IBV_ACCESS_REMOTE_READ));
	protect(&memory);
	EXPECT(!ibv_reg_mr(nodes[A].pd, memory.bytes, LENGTH, IBV_ACCESS_REMOTE_READ));
	EXPECT_EQ(errno, EFAULT);
	unmap(&memory);
	EXPECT(!ibv_reg_mr(nodes[A].pd, memory.bytes, LENGTH, 0));
	EXPECT_EQ(errno, EFAULT);
	EXPECT(!ibv_reg_mr(nodes[A].pd, NULL, LENGTH, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(errno, EFAULT);
}

TEST(the_limit_of_locked_memory_does_not_matter)
{
	struct rlimit none = { 0, 0 };
	struct memory memory = make_memory();

	EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	open_nodes(nodes);
	EXPECT(ibv_reg_mr(nodes[A].pd, memory.bytes, LENGTH, IBV_ACCESS_LOCAL_WRITE));
	expect_success(&operations[0], true);
}
