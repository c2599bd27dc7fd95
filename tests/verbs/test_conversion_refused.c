/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs register what they like: pages of the heap with whatever else is there, the stack that
 * they run on, variables, all that they have. Whatever becomes of it, neither the program nor the
 * adapter loses data.
 */
#include "harness.h"
#include "support_mapping.h"
#include "support_verbs.h"

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, MAPPINGS_MAX = 1024, MESSAGES = 16, MESSAGE = 64 };

#define REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct node nodes[2];
static struct ibv_mr *sides[2]; /* the memory of messages */

static void begin(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	alarm(100);
	open_nodes(nodes);
}

static void fork_once(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* --- traffic --- */

static void begin_traffic(void)
{
	begin();
	for (uint32_t i = 0; i < 2; i++) {
		void *memory = mmap(NULL, MESSAGES * MESSAGE, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		EXPECT(memory != MAP_FAILED);
		sides[i] = register_memory(&nodes[i], memory, MESSAGES * MESSAGE);
	}
	connect_nodes(nodes);
}

static struct ibv_sge message_at(const struct ibv_mr *mr, uint32_t i)
{
	struct ibv_sge sge = make_sge(mr, MESSAGE);

	sge.addr += (uint64_t)i * MESSAGE;
	return sge;
}

/* Sends messages that are on their way while something else is done. */
static void send_messages(uint8_t mark)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		post_recv(&nodes[B], message_at(sides[B], i));
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = message_at(sides[A], i);

		memset((void *)(uintptr_t)sge.addr, mark + (int)i, MESSAGE);
		post_send(&nodes[A], make_request(IBV_WR_SEND, &sge, NULL));
	}
}

static void expect_messages(uint8_t mark)
{
	const uint8_t *bytes = sides[B]->addr;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		EXPECT_EQ(await_status(nodes, B, true), IBV_WC_SUCCESS);
		EXPECT_EQ(await_status(nodes, A, true), IBV_WC_SUCCESS);
	}
	for (uint32_t i = 0; i < MESSAGES * MESSAGE; i++)
		EXPECT_EQ(bytes[i], (uint8_t)(mark + i / MESSAGE));
}

/* --- the heap --- */

/* As registration caches do: MPI libraries round buffers to pages. */
TEST(a_block_of_malloc_is_registered_rounded_to_pages)
{
	enum { COUNT = 200, SIZE = 10000 };
	char *kept[COUNT], text[64], *block;
	uintptr_t from, to;

	begin();
	for (uint32_t i = 0; i < COUNT; i++) {
		kept[i] = malloc(64);
		EXPECT(kept[i]);
		sprintf(kept[i], "text %u", i);
	}
	block = malloc(SIZE);
	EXPECT(block);
	memset(block, 'x', SIZE);
	from = (uintptr_t)block / PAGE * PAGE;
	to = ((uintptr_t)block + SIZE + PAGE - 1) / PAGE * PAGE;
	for (uint32_t round = 0; round < 3; round++) {
		struct ibv_mr *mr = ibv_reg_mr(nodes[A].pd, (void *)from, to - from, REMOTE);

		EXPECT(mr);
		for (uint32_t step = 0; step < 2; step++) {
			for (uint32_t i = 0; i < COUNT; i++) {
				sprintf(text, "text %u", i);
				EXPECT_STR(kept[i], text);
			}
			for (uint32_t i = 0; i < SIZE; i++)
				EXPECT_EQ(block[i], 'x');
			if (!step)
				EXPECT_EQ(ibv_dereg_mr(mr), 0);
		}
	}
}

/*
 * Registers the heap from the first byte to the last, whatever mappings it consists of at the
 * moment.
 */
static struct ibv_mr *register_heap(struct ibv_pd *pd)
{
	uintptr_t top = (uintptr_t)sbrk(0);
	uintptr_t block = (uintptr_t)malloc(1), from = mapping_at((void *)block).begin;

	free((void *)block);
	EXPECT(from < top);
	return ibv_reg_mr(pd, (void *)from, top - from, REMOTE);
}

TEST(the_whole_heap_is_registered_while_another_device_has_traffic)
{
	struct node third;

	if (has_sanitizer())
		SKIP("the sanitizer has its own heap, and ours lies in it");
	begin_traffic();
	open_node(&third);
	for (uint8_t round = 0; round < 30; round++) {
		send_messages(round);
		for (uint32_t i = 0; i < 10; i++) {
			struct ibv_mr *mr = register_heap(third.pd);

			EXPECT(mr);
			if (i % 5 == 4)
				fork_once();
			EXPECT_EQ(ibv_dereg_mr(mr), 0);
		}
		expect_messages(round);
	}
}

/* --- all memory --- */

TEST(all_writable_memory_is_registered_while_another_device_has_traffic)
{
	static struct mapping mappings[MAPPINGS_MAX];
	uint32_t registered_count = 0;
	struct node third;

	if (has_sanitizer())
		SKIP("the sanitizer has mappings of terabytes");
	begin_traffic();
	open_node(&third);
	for (uint8_t round = 0; round < 6; round++) {
		size_t count = read_mappings(mappings, MAPPINGS_MAX);

		for (size_t i = 0; i < count; i++) {
			const struct mapping *mapping = &mappings[i];
			struct ibv_mr *mr;

			if (strncmp(mapping->rights, "rw", 2))
				continue;
			send_messages((uint8_t)(round + i));
			mr = ibv_reg_mr(third.pd, (void *)mapping->begin,
					mapping->end - mapping->begin, REMOTE);
			registered_count += mr != NULL;
			if (i % 8 == round)
				fork_once();
			if (mr)
				EXPECT_EQ(ibv_dereg_mr(mr), 0);
			expect_messages((uint8_t)(round + i));
		}
	}
	EXPECT(registered_count > 60);
}

/* Each region stays registered while the others are made. */
TEST(all_writable_memory_is_registered_at_once)
{
	static struct mapping mappings[MAPPINGS_MAX];
	static struct ibv_mr *mrs[MAPPINGS_MAX];
	struct node third;
	size_t count;

	if (has_sanitizer())
		SKIP("the sanitizer has mappings of terabytes");
	begin_traffic();
	open_node(&third);
	for (uint8_t round = 0; round < 3; round++) {
		count = read_mappings(mappings, MAPPINGS_MAX);
		send_messages(round);
		for (size_t i = 0; i < count; i++)
			mrs[i] = strncmp(mappings[i].rights, "rw", 2)
					 ? NULL
					 : ibv_reg_mr(third.pd, (void *)mappings[i].begin,
						      mappings[i].end - mappings[i].begin, REMOTE);
		expect_messages(round);
		if (round == 1)
			fork_once();
		send_messages(round);
		for (size_t i = count; i--;)
			if (mrs[i])
				EXPECT_EQ(ibv_dereg_mr(mrs[i]), 0);
		expect_messages(round);
	}
}

/* --- memory of the adapter --- */

TEST(memory_of_the_library_does_not_become_shared)
{
	struct mapping mapping;

	if (has_sanitizer())
		SKIP("with the sanitizer it is memory of malloc()");
	begin();
	mapping = mapping_at(nodes[B].context);
	EXPECT(ibv_reg_mr(nodes[A].pd, (void *)mapping.begin, mapping.end - mapping.begin, REMOTE));
	EXPECT(!is_shared(nodes[B].context));
}

/*
 * For libraries: the last segment of each has variables that are zero at first, in anonymous
 * memory.
 */
static int register_variables(struct dl_phdr_info *object, size_t size, void *argument)
{
	(void)size;
	(void)argument;
	for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
		uintptr_t to = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
		struct ibv_mr *mr;

		from = (from + PAGE - 1) / PAGE * PAGE;
		to = (to + PAGE - 1) / PAGE * PAGE;
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || from >= to ||
		    !*object->dlpi_name)
			continue;
		mr = ibv_reg_mr(nodes[A].pd, (void *)from, to - from, REMOTE);
		EXPECT(mr);
		EXPECT(!is_shared((void *)from));
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	return 0;
}

TEST(variables_of_libraries_do_not_become_shared)
{
	begin();
	dl_iterate_phdr(register_variables, NULL);
}

static uint8_t variables[64 * PAGE];

TEST(variables_of_the_program_become_shared_and_keep_their_contents)
{
	struct ibv_mr *mr;

	begin();
	for (uint32_t i = 0; i < sizeof(variables); i++)
		variables[i] = (uint8_t)(i * 3);
	mr = register_memory(&nodes[A], variables, sizeof(variables));
	EXPECT(is_shared(variables + sizeof(variables) / 2));
	for (uint32_t i = 0; i < sizeof(variables); i++)
		EXPECT_EQ(variables[i], (uint8_t)(i * 3));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT(!is_shared(variables + sizeof(variables) / 2));
	for (uint32_t i = 0; i < sizeof(variables); i++)
		EXPECT_EQ(variables[i], (uint8_t)(i * 3));
}

/* --- stacks --- */

static ucontext_t main_context, coroutine;
static uint8_t *pool;
static struct ibv_mr *pool_mr;
static bool was_shared;
static uint32_t step_count;

enum { POOL = 1 << 20, TEXT = 64 };

static void switch_to(void (*function)(void))
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = pool;
	coroutine.uc_stack.ss_size = POOL;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, function, 0);
	EXPECT_EQ(swapcontext(&main_context, &coroutine), 0);
}

static void begin_pool(void)
{
	begin();
	pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(pool != MAP_FAILED);
	memset(pool, 1, POOL);
	step_count = 0;
}

static void register_and_deregister(void)
{
	volatile uint32_t mark = 42;
	char text[TEXT] = "on the stack of the coroutine";

	pool_mr = ibv_reg_mr(nodes[A].pd, pool, POOL, REMOTE);
	EXPECT(pool_mr);
	was_shared = is_shared(pool + POOL - 1);
	step_count += mark == 42 && !strcmp(text, "on the stack of the coroutine");
	EXPECT_EQ(ibv_dereg_mr(pool_mr), 0);
	step_count += mark == 42 && !strcmp(text, "on the stack of the coroutine");
}

TEST(a_coroutine_registers_the_memory_that_its_stack_lies_in)
{
	begin_pool();
	switch_to(register_and_deregister);
	EXPECT_EQ(step_count, 2);
	EXPECT(!was_shared);
	EXPECT_EQ(pool[0], 1);
}

static void only_deregister(void)
{
	volatile uint32_t mark = 43;
	char text[TEXT] = "on the stack of the coroutine";

	fork_once();
	EXPECT_EQ(ibv_dereg_mr(pool_mr), 0);
	step_count += mark == 43 && !strcmp(text, "on the stack of the coroutine");
}

TEST(a_coroutine_deregisters_the_memory_that_its_stack_lies_in)
{
	begin_pool();
	pool_mr = register_memory(&nodes[A], pool, POOL);
	EXPECT(is_shared(pool + POOL - 1));
	switch_to(only_deregister);
	EXPECT_EQ(step_count, 1);
	EXPECT(!is_shared(pool + POOL - 1));
	/* From another stack the memory becomes what it was. */
	EXPECT_EQ(ibv_dereg_mr(register_memory(&nodes[A], variables, sizeof(variables))), 0);
	EXPECT(is_anonymous(pool + POOL - 1));
	for (uint32_t i = 0; i < POOL / 2; i++)
		EXPECT_EQ(pool[i], 1);
}

TEST(the_stack_of_the_program_does_not_become_shared)
{
	uint8_t array[64 * PAGE];
	struct ibv_mr *mr;

	begin();
	memset(array, 0x42, sizeof(array));
	mr = register_memory(&nodes[A], array, sizeof(array));
	EXPECT(!is_shared(array + sizeof(array) / 2));
	fork_once();
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	for (uint32_t i = 0; i < sizeof(array); i++)
		EXPECT_EQ(array[i], 0x42);
}

static volatile sig_atomic_t was_handled;

static void handle(int number)
{
	was_handled = number;
}

TEST(signals_are_handled_on_a_stack_that_is_registered)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_size = POOL };

	begin_pool();
	stack.ss_sp = pool;
	EXPECT_EQ(sigaltstack(&stack, NULL), 0);
	EXPECT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct ibv_mr *mr = register_memory(&nodes[A], pool, POOL);

		was_handled = 0;
		EXPECT_EQ(raise(SIGUSR1), 0);
		EXPECT_EQ(was_handled, SIGUSR1);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT_EQ(raise(SIGUSR1), 0);
	}
}

/* Memory that the kernel and the C library have for a thread. */
TEST(memory_of_the_thread_itself_does_not_become_shared)
{
	void *self = (void *)pthread_self();
	struct mapping mapping;

	begin();
	mapping = mapping_at(self);
	EXPECT(ibv_reg_mr(nodes[A].pd, (void *)mapping.begin, mapping.end - mapping.begin, REMOTE));
	EXPECT(!is_shared(self));
}

/* --- other writers --- */

TEST(with_requests_that_the_kernel_executes_nothing_becomes_shared)
{
	unsigned long queue = 0;

	begin_pool();
	if (syscall(SYS_io_setup, 8, &queue))
		SKIP("this kernel has no AIO");
	EXPECT(register_memory(&nodes[A], pool, POOL));
	EXPECT(!is_shared(pool));
}

/* A request may still write to the memory. */
TEST(with_requests_that_the_kernel_executes_memory_stays_shared)
{
	unsigned long queue = 0;
	struct ibv_mr *mr;

	begin_pool();
	mr = register_memory(&nodes[A], pool, POOL);
	if (syscall(SYS_io_setup, 8, &queue))
		SKIP("this kernel has no AIO");
	EXPECT(is_shared(pool));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT(is_shared(pool));
	EXPECT_EQ(syscall(SYS_io_destroy, queue), 0);
	EXPECT_EQ(ibv_dereg_mr(register_memory(&nodes[A], variables, sizeof(variables))), 0);
	EXPECT(is_anonymous(pool));
	for (uint32_t i = 0; i < POOL; i++)
		EXPECT_EQ(pool[i], 1);
}
