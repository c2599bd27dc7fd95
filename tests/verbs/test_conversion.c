/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private memory that is registered becomes shared, so that processes of the same host can map it,
 * and the program does not notice: each guarantee of docs/adr/0004 has its test here. The kernel's
 * list of mappings shows whether memory is shared at the moment.
 */
#include "harness.h"
#include "kernel_refuses.h"
#include "support_mapping.h"
#include "support_verbs.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, LENGTH = PAGES * PAGE };

static struct node node;

static void begin(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	open_node(&node);
}

/* --- memory --- */

static uint8_t *allocate(void)
{
	uint8_t *memory =
		mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

/* Each page begins with different bytes; the odd pages were never touched. */
static void fill(uint8_t *memory)
{
	for (uint32_t i = 0; i < PAGES; i += 2)
		memset(memory + i * PAGE, (int)i + 1, PAGE);
}

static void expect_filled(const uint8_t *memory)
{
	for (uint32_t i = 0; i < LENGTH; i++)
		EXPECT_EQ(memory[i], i / PAGE % 2 ? 0 : i / PAGE + 1);
}

static void expect_zero(const uint8_t *memory, size_t length)
{
	for (size_t i = 0; i < length; i++)
		EXPECT_EQ(memory[i], 0);
}

/* A region of private memory that has become shared. */
static struct ibv_mr *register_filled(uint8_t **memory_out)
{
	uint8_t *memory = allocate();
	struct ibv_mr *mr;

	fill(memory);
	mr = register_memory(&node, memory, LENGTH);
	EXPECT(is_shared(memory) && is_shared(memory + LENGTH - 1));
	expect_filled(memory);
	*memory_out = memory;
	return mr;
}

/* --- another thread of the program --- */

struct writer {
	pthread_t thread;
	_Atomic uint64_t *word;
	_Atomic bool is_ending;
	uint64_t count;
};

static void *write_on(void *argument)
{
	struct writer *writer = argument;

	while (!atomic_load(&writer->is_ending)) {
		/* Uses a load and a store, so that a lost store is noticed. */
		uint64_t value = atomic_load_explicit(writer->word, memory_order_relaxed);

		EXPECT_EQ(value, writer->count);
		atomic_store_explicit(writer->word, value + 1, memory_order_relaxed);
		writer->count++;
	}
	return NULL;
}

static void start_writer(struct writer *writer, void *word)
{
	writer->word = word;
	writer->count = atomic_load(writer->word);
	atomic_store(&writer->is_ending, false);
	EXPECT_EQ(pthread_create(&writer->thread, NULL, write_on, writer), 0);
}

/* Waits until the kernel has also seen the end of the thread. */
static void end_writer(struct writer *writer)
{
	pid_t own = getpid();
	char path[64];
	uint32_t count;

	atomic_store(&writer->is_ending, true);
	EXPECT_EQ(pthread_join(writer->thread, NULL), 0);
	do {
		char line[256];
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/status", own);
		file = fopen(path, "r");
		EXPECT(file);
		count = 0;
		while (fgets(line, sizeof(line), file))
			sscanf(line, "Threads: %u", &count);
		fclose(file);
	} while (count > 2); /* this one and the adapter's */
}

/* --- becoming shared --- */

TEST(private_memory_becomes_shared_and_keeps_its_contents)
{
	uint8_t *memory;

	begin();
	register_filled(&memory);
	for (uint32_t i = 0; i < LENGTH; i++)
		memory[i] = (uint8_t)(i * 7);
	for (uint32_t i = 0; i < LENGTH; i++)
		EXPECT_EQ(memory[i], (uint8_t)(i * 7));
}

TEST(only_pages_that_lie_wholly_in_the_region_become_shared)
{
	uint8_t *memory = allocate();

	begin();
	fill(memory);
	register_memory(&node, memory + PAGE + 1, 4 * PAGE);
	EXPECT(is_anonymous(memory + PAGE));
	EXPECT(is_shared(memory + 2 * PAGE) && is_shared(memory + 5 * PAGE - 1));
	EXPECT(is_anonymous(memory + 5 * PAGE));
	expect_filled(memory);
}

TEST(memory_of_malloc_becomes_shared)
{
	uint8_t *large, *small;

	begin();
	large = malloc(1 << 20); /* a mapping of its own */
	small = memalign(PAGE, 4 * PAGE); /* in the heap */
	EXPECT(large && small);
	memset(small, 0x5a, 4 * PAGE);
	register_memory(&node, large, 1 << 20);
	register_memory(&node, small, 4 * PAGE);
	EXPECT(is_shared(large + (1 << 19)));
	EXPECT(is_shared(small) && is_shared(small + 4 * PAGE - 1));
	for (uint32_t i = 0; i < 4 * PAGE; i++)
		EXPECT_EQ(small[i], 0x5a);
}

static void expect_not_shared(uint8_t *memory)
{
	register_memory(&node, memory, LENGTH);
	EXPECT(!is_shared(memory) && !is_shared(memory + LENGTH - 1));
}

TEST(with_share_off_nothing_becomes_shared)
{
	setenv("VERBATIM_SHARE", "off", 1);
	begin();
	expect_not_shared(allocate());
}

TEST(for_the_wire_nothing_becomes_shared)
{
	setenv("VERBATIM_PATH", "wire", 1);
	open_node(&node);
	expect_not_shared(allocate());
}

TEST(several_adapters_have_threads_that_are_not_the_programs)
{
	struct node other;
	uint8_t *memory;

	begin();
	open_node(&other);
	register_filled(&memory);
}

TEST(memory_that_is_registered_already_does_not_become_shared)
{
	uint8_t *memory = allocate();

	begin();
	EXPECT(ibv_reg_mr(node.pd, memory + 3 * PAGE, 8, IBV_ACCESS_LOCAL_WRITE));
	expect_not_shared(memory);
}

TEST(memory_of_which_more_is_known_than_a_new_mapping_has_does_not_become_shared)
{
	static const int advices[] = { MADV_DONTFORK, MADV_WIPEONFORK, MADV_DONTDUMP,
				       MADV_HUGEPAGE };

	begin();
	for (uint32_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		uint8_t *memory = allocate();

		if (!madvise(memory + PAGE, PAGE, advices[i])) /* kernels may lack some */
			expect_not_shared(memory);
	}
}

TEST(while_memory_is_locked_none_becomes_shared)
{
	uint8_t *memory = allocate();

	begin();
	if (syscall(SYS_mlock, memory, PAGE)) /* sanitizers take mlock() for themselves */
		SKIP("this user may not lock memory");
	expect_not_shared(memory);
}

TEST(memory_that_is_not_all_writable_or_private_does_not_become_shared)
{
	uint8_t *memory = allocate();

	begin();
	EXPECT_EQ(mprotect(memory + PAGE, PAGE, PROT_READ), 0);
	EXPECT(ibv_reg_mr(node.pd, memory, LENGTH, IBV_ACCESS_REMOTE_READ));
	EXPECT(!is_shared(memory));
}

TEST(a_program_that_may_not_write_files_so_long_is_not_killed_for_it)
{
	struct rlimit limit = { 2 * PAGE, 2 * PAGE };

	begin();
	EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	expect_not_shared(allocate());
}

/* --- becoming private again --- */

TEST(deregistering_makes_it_private_again_with_its_contents)
{
	struct ibv_mr *mr;
	uint8_t *memory;

	begin();
	mr = register_filled(&memory);
	memory[5 * PAGE] = 6;
	memory[5 * PAGE] = 0;
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT(is_anonymous(memory) && is_anonymous(memory + LENGTH - 1));
	expect_filled(memory);
}

/* The memory is one mapping, which can be moved. */
TEST(after_deregistering_a_part_the_mapping_is_whole_again)
{
	uint8_t *memory = allocate(), *moved;
	struct ibv_mr *mr;

	begin();
	memset(memory, 1, LENGTH);
	mr = register_memory(&node, memory + 3 * PAGE, 7 * PAGE);
	EXPECT(is_shared(memory + 3 * PAGE) && is_anonymous(memory));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	moved = mremap(memory, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE);
	EXPECT(moved != MAP_FAILED);
	for (uint32_t i = 0; i < LENGTH; i++)
		EXPECT_EQ(moved[i], 1);
	expect_zero(moved + LENGTH, LENGTH);
}

TEST(memory_stays_shared_while_another_region_has_it)
{
	struct ibv_mr *first, *second;
	uint8_t *memory;

	begin();
	first = register_filled(&memory);
	second = register_memory(&node, memory + 2 * PAGE, PAGE);
	EXPECT_EQ(ibv_dereg_mr(first), 0);
	EXPECT(is_shared(memory + 2 * PAGE));
	EXPECT_EQ(ibv_dereg_mr(second), 0);
	EXPECT(is_anonymous(memory + 2 * PAGE));
	expect_filled(memory);
}

TEST(a_thread_that_stores_loses_nothing_when_regions_are_deregistered)
{
	struct writer writer = { 0 };

	begin();
	for (uint32_t i = 0; i < 20; i++) {
		uint8_t *memory;
		struct ibv_mr *mr = register_filled(&memory);

		start_writer(&writer, memory + 3 * PAGE);
		usleep(200);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT(!is_shared(memory));
		usleep(200);
		end_writer(&writer);
		EXPECT_EQ(atomic_load(writer.word), writer.count);
		/* With the next region, the program has one thread again. */
		EXPECT_EQ(ibv_dereg_mr(register_memory(&node, allocate(), LENGTH)), 0);
		EXPECT(is_anonymous(memory));
		EXPECT_EQ(atomic_load(writer.word), writer.count);
		atomic_store(writer.word, 0);
		expect_filled(memory);
		EXPECT_EQ(munmap(memory, LENGTH), 0);
	}
}

TEST(the_heap_goes_on_as_if_nothing_had_been)
{
	begin();
	for (uint32_t i = 0; i < 50; i++) {
		size_t length = PAGE * (8 + i % 17);
		uint8_t *memory = memalign(PAGE, length), *cleared;
		struct ibv_mr *mr;

		EXPECT(memory);
		memset(memory, 0x77, length);
		mr = register_memory(&node, memory, length);
		if (i % 3)
			EXPECT_EQ(ibv_dereg_mr(mr), 0);
		free(memory); /* also without deregistering, as leaky programs do */
		EXPECT(malloc_trim(0) >= 0);
		cleared = calloc(1, 2 * length);
		EXPECT(cleared);
		expect_zero(cleared, 2 * length);
		free(cleared);
	}
}

/* --- fork --- */

static void expect_exit(pid_t child, int code)
{
	int status;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), code);
}

/* What one process stores after the fork the other does not see. */
static void expect_copies(pid_t (*copy_process)(void))
{
	int to_child[2], to_parent[2];
	uint8_t *memory;
	pid_t child;
	char byte;

	begin();
	register_filled(&memory);
	EXPECT(!pipe(to_child) && !pipe(to_parent));
	child = copy_process();
	EXPECT(child >= 0);
	if (!child) {
		bool is_right = read(to_child[0], &byte, 1) == 1 && memory[0] == 1;

		memory[PAGE] = 0x99;
		is_right = write(to_parent[1], &byte, 1) == 1 && is_right;
		is_right = read(to_child[0], &byte, 1) == 1 && is_right;
		is_right = memory[2 * PAGE] == 3 && memory[PAGE] == 0x99 && is_right;
		_exit(is_right ? 0 : 1);
	}
	memory[0] = 0x55;
	EXPECT(write(to_child[1], "", 1) == 1 && read(to_parent[0], &byte, 1) == 1);
	EXPECT_EQ(memory[PAGE], 0);
	memory[2 * PAGE] = 0x55;
	EXPECT_EQ(write(to_child[1], "", 1), 1);
	expect_exit(child, 0);
	memory[0] = 1;
	memory[2 * PAGE] = 3;
	expect_filled(memory);
}

TEST(a_forked_child_has_a_copy)
{
	expect_copies(fork);
}

TEST(a_child_of_underscore_fork_has_a_copy)
{
	expect_copies(_Fork);
}

TEST(a_fork_while_another_thread_stores_loses_nothing)
{
	struct writer writer = { 0 };
	uint8_t *memory;
	pid_t child;

	begin();
	register_filled(&memory);
	start_writer(&writer, memory + 3 * PAGE);
	usleep(200);
	child = fork();
	if (!child) {
		uint64_t word = *(uint64_t *)(void *)(memory + 3 * PAGE);

		usleep(2000);
		_exit(word == *(uint64_t *)(void *)(memory + 3 * PAGE) && memory[0] == 1 ? 0 : 1);
	}
	usleep(2000);
	expect_exit(child, 0);
	end_writer(&writer);
	EXPECT_EQ(atomic_load(writer.word), writer.count);
}

/*
 * Forks by a bare system call, which the adapter does not notice: the child has no memory rather
 * than its parent's.
 */
TEST(a_child_that_came_without_our_knowledge_cannot_write_to_its_parents_memory)
{
	uint8_t *memory;
	pid_t child;
	int status;

	begin();
	register_filled(&memory);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	EXPECT(child >= 0);
	if (!child) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		memory[0] = 0x99;
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(memory[0], 1);
	expect_filled(memory);
}

/* --- what programs do with memory --- */

TEST(pages_that_are_not_needed_are_zero_when_they_are_touched_again)
{
	uint8_t *memory;

	begin();
	register_filled(&memory);
	EXPECT_EQ(madvise(memory + 2 * PAGE, 3 * PAGE, MADV_DONTNEED), 0);
	expect_zero(memory + PAGE, 5 * PAGE);
	EXPECT_EQ(memory[0], 1);
	EXPECT_EQ(memory[6 * PAGE], 7);
}

TEST(pages_that_are_not_needed_are_zero_with_other_threads_too)
{
	struct writer writer = { 0 };
	uint8_t *memory;

	begin();
	register_filled(&memory);
	start_writer(&writer, memory + 9 * PAGE);
	EXPECT_EQ(madvise(memory + 2 * PAGE, 3 * PAGE, MADV_DONTNEED), 0);
	expect_zero(memory + PAGE, 5 * PAGE);
	EXPECT_EQ(memory[0], 1);
	EXPECT_EQ(memory[6 * PAGE], 7);
	EXPECT_EQ(madvise(memory + 6 * PAGE, PAGE, MADV_DONTNEED), 0); /* and once more */
	expect_zero(memory + 6 * PAGE, PAGE);
	end_writer(&writer);
	EXPECT_EQ(atomic_load(writer.word), writer.count);
}

/* MADV_POPULATE_WRITE came with Linux 5.14. */
TEST(pages_that_are_not_needed_are_zero_where_the_kernel_cannot_copy_them_out_of_the_file)
{
	struct writer writer = { 0 };
	uint8_t *memory;

	begin();
	register_filled(&memory);
	start_writer(&writer, memory + 9 * PAGE);
	if (!kernel_refuses_value(SYS_madvise, MADV_POPULATE_WRITE, EINVAL))
		SKIP("no seccomp");
	EXPECT_EQ(madvise(memory + 2 * PAGE, 3 * PAGE, MADV_DONTNEED), 0);
	expect_zero(memory + PAGE, 5 * PAGE);
	EXPECT_EQ(memory[0], 1);
	EXPECT_EQ(memory[6 * PAGE], 7);
	end_writer(&writer);
	EXPECT_EQ(atomic_load(writer.word), writer.count);
}

TEST(a_mapping_that_grows_keeps_its_contents_and_gets_zeros)
{
	uint8_t *memory, *moved;

	begin();
	register_filled(&memory);
	moved = mremap(memory, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE);
	EXPECT(moved != MAP_FAILED);
	expect_filled(moved);
	expect_zero(moved + LENGTH, LENGTH);
	moved[2 * LENGTH - 1] = 1;
}

TEST(a_mapping_that_cannot_grow_says_so)
{
	struct writer writer = { 0 };
	uint8_t *memory, *moved;

	begin();
	register_filled(&memory);
	start_writer(&writer, memory + 9 * PAGE);
	errno = 0;
	moved = mremap(memory, LENGTH, 2 * LENGTH, 0);
	if (moved == MAP_FAILED)
		EXPECT_EQ(errno, ENOMEM);
	else
		expect_zero(moved + LENGTH, LENGTH);
	end_writer(&writer);
	memset(memory + 9 * PAGE, 0, 8);
	expect_filled(memory);
}

TEST(what_is_unmapped_and_mapped_again_is_new)
{
	uint8_t *memory, *again;

	begin();
	register_filled(&memory);
	EXPECT_EQ(munmap(memory + 2 * PAGE, 2 * PAGE), 0);
	again = mmap(memory + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	EXPECT(again == memory + 2 * PAGE);
	expect_zero(again, 2 * PAGE);
	EXPECT_EQ(memory[0], 1);
	EXPECT_EQ(memory[4 * PAGE], 5);
}

static void expect_private_when_locked(int (*lock)(void *memory))
{
	uint8_t *memory;

	begin();
	register_filled(&memory);
	if (lock(memory))
		SKIP("this user may not lock memory");
	EXPECT(is_anonymous(memory));
	expect_filled(memory);
}

static int lock_now(void *memory)
{
	return mlock(memory, PAGE);
}

static int lock_when_touched(void *memory)
{
	return mlock2(memory, PAGE, MLOCK_ONFAULT);
}

TEST(memory_that_is_locked_later_is_private_again)
{
	if (has_sanitizer())
		SKIP("the sanitizer takes mlock() for itself, and does nothing");
	expect_private_when_locked(lock_now);
}

TEST(memory_that_is_locked_later_by_mlock2_is_private_again)
{
	expect_private_when_locked(lock_when_touched);
}

/* --- two processes --- */

struct board {
	_Atomic uint32_t step;
	uint32_t qpns[2];
	struct ibv_mr target; /* address and key count */
};

static void reach_step(struct board *board, uint32_t step)
{
	atomic_store(&board->step, step);
}

static void await_step(struct board *board, uint32_t step)
{
	while (atomic_load(&board->step) < step)
		usleep(200);
}

typedef void action(uint8_t *memory);

/*
 * Starts a child with a shared region. The child acts on the region at step 3 and then waits to be
 * killed.
 */
static pid_t start_target(struct board *board, action *act)
{
	pid_t child = fork();
	uint8_t *memory;

	if (child)
		return child;
	begin();
	board->target = *register_filled(&memory);
	create_qp(&node);
	board->qpns[1] = node.qp->qp_num;
	reach_step(board, 1);
	await_step(board, 2);
	connect_qp(&node, board->qpns[0]);
	reach_step(board, 3);
	await_step(board, 4);
	if (act)
		act(memory);
	reach_step(board, 5);
	for (;;)
		pause();
}

static struct board *make_board(void)
{
	void *board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(board != MAP_FAILED);
	return board;
}

static struct ibv_mr *connect_to_target(struct board *board)
{
	struct ibv_mr *own;

	begin();
	await_step(board, 1);
	own = register_memory(&node, allocate(), LENGTH);
	create_qp(&node);
	board->qpns[0] = node.qp->qp_num;
	reach_step(board, 2);
	connect_qp(&node, board->qpns[1]);
	await_step(board, 3);
	return own;
}

static enum ibv_wc_status execute(const struct board *board, enum ibv_wr_opcode opcode,
				  const struct ibv_mr *own, uint32_t length)
{
	struct ibv_sge local = make_sge(own, length);
	struct ibv_wc wc;
	int count;

	post_send(&node, make_request(opcode, &local, &board->target));
	while (!(count = ibv_poll_cq(node.cq, 1, &wc)))
		;
	EXPECT_EQ(count, 1);
	return wc.status;
}

static void end_target(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

TEST(private_memory_of_a_stopped_target_takes_atomics_too)
{
	struct board *board = make_board();
	pid_t child = start_target(board, NULL);
	struct ibv_mr *own = connect_to_target(board);
	uint64_t word = 0, before;

	for (uint32_t i = 0; i < 100; i++) { /* until the mapping exists they go by packets */
		EXPECT_EQ(execute(board, IBV_WR_ATOMIC_FETCH_AND_ADD, own, 8), IBV_WC_SUCCESS);
		usleep(1000);
	}
	memcpy(&before, own->addr, sizeof(before));
	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
	for (uint32_t i = 0; i < 50; i++)
		EXPECT_EQ(execute(board, IBV_WR_ATOMIC_FETCH_AND_ADD, own, 8), IBV_WC_SUCCESS);
	memcpy(&word, own->addr, sizeof(word));
	EXPECT_EQ(word, before + 50);
	end_target(child);
}

static void unmap(uint8_t *memory)
{
	EXPECT_EQ(munmap(memory, LENGTH), 0);
}

static void protect(uint8_t *memory)
{
	EXPECT_EQ(mprotect(memory, LENGTH, PROT_READ), 0);
}

static void expect_refused_after(action *act)
{
	struct board *board = make_board();
	pid_t child = start_target(board, act);
	struct ibv_mr *own = connect_to_target(board);

	for (uint32_t i = 0; i < 30; i++) {
		EXPECT_EQ(execute(board, IBV_WR_RDMA_WRITE, own, LENGTH), IBV_WC_SUCCESS);
		usleep(1000);
	}
	reach_step(board, 4);
	await_step(board, 5);
	EXPECT_EQ(execute(board, IBV_WR_RDMA_WRITE, own, 8), IBV_WC_REM_OP_ERR);
	end_target(child);
}

TEST(memory_that_the_target_has_unmapped_is_an_error)
{
	expect_refused_after(unmap);
}

TEST(memory_that_the_target_has_protected_is_an_error)
{
	expect_refused_after(protect);
}

/* Writes go on while the target gives pages back and forks. No complete write is lost. */
static void fork_and_empty(uint8_t *memory)
{
	for (uint32_t i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		EXPECT_EQ(madvise(memory + 2 * PAGE, PAGE, MADV_DONTNEED), 0);
	}
}

TEST(what_is_written_while_the_target_forks_is_there_afterwards)
{
	struct board *board = make_board();
	pid_t child = start_target(board, fork_and_empty);
	struct ibv_mr *own = connect_to_target(board);
	uint64_t *word = own->addr;

	reach_step(board, 4);
	for (uint64_t i = 1; i < 3000 || atomic_load(&board->step) < 5; i++) {
		*word = i;
		EXPECT_EQ(execute(board, IBV_WR_RDMA_WRITE, own, 8), IBV_WC_SUCCESS);
		*word = 0;
		EXPECT_EQ(execute(board, IBV_WR_RDMA_READ, own, 8), IBV_WC_SUCCESS);
		EXPECT_EQ(*word, i);
	}
	end_target(child);
}
