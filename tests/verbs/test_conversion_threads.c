/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private memory becomes shared in programs with several threads, too, and private again. Threads
 * that store to it meanwhile wait, in their own code and in system calls, and no store is lost.
 * Where threads cannot be held off, nothing becomes shared.
 */
#include "harness.h"
#include "kernel_refuses.h"
#include "support_mapping.h"
#include "support_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, LENGTH = PAGES * PAGE, ROUNDS = 50 };

static struct node node;

static void begin(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	alarm(100);
	open_node(&node);
}

/* As the adapter finds out: by the system call, or by the device that stands for it. */
static bool may_hold_off_threads(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	int device = fd < 0 ? open("/dev/userfaultfd", O_RDWR | O_CLOEXEC) : -1;

	if (device >= 0) {
		fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
		close(device);
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

#define REQUIRE_HOLDING()                                                \
	do {                                                             \
		if (!may_hold_off_threads())                             \
			SKIP("this user may not hold off system calls"); \
	} while (0)

static uint8_t *allocate(void)
{
	uint8_t *memory =
		mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

/* The odd pages were never touched. */
static void fill(uint8_t *memory)
{
	for (uint32_t i = 0; i < PAGES; i += 2)
		memset(memory + i * PAGE, (int)i + 1, PAGE);
}

static void expect_filled(const uint8_t *memory, uint32_t from_page)
{
	for (uint32_t i = from_page * PAGE; i < LENGTH; i++)
		EXPECT_EQ(memory[i], i / PAGE % 2 ? 0 : i / PAGE + 1);
}

/* --- another thread --- */

struct thread {
	pthread_t id;
	_Atomic bool is_ending;
	_Atomic uint64_t *words; /* page 0 and page 1 of the memory */
	uint64_t count;
	int pipe[2];
};

/* Stores to a page that has contents and to one that has none. A lost store is noticed. */
static void *store(void *argument)
{
	struct thread *thread = argument;
	_Atomic uint64_t *other = thread->words + PAGE / sizeof(uint64_t);

	while (!atomic_load(&thread->is_ending)) {
		EXPECT_EQ(atomic_load_explicit(thread->words, memory_order_relaxed), thread->count);
		EXPECT_EQ(atomic_load_explicit(other, memory_order_relaxed), thread->count);
		thread->count++;
		atomic_store_explicit(thread->words, thread->count, memory_order_relaxed);
		atomic_store_explicit(other, thread->count, memory_order_relaxed);
	}
	return NULL;
}

/* The same by system calls: what it writes to a pipe, it reads from there into the memory. */
static void *store_by_calls(void *argument)
{
	struct thread *thread = argument;

	while (!atomic_load(&thread->is_ending)) {
		EXPECT_EQ(atomic_load(thread->words), thread->count);
		thread->count++;
		EXPECT_EQ(write(thread->pipe[1], &thread->count, 8), 8);
		EXPECT_EQ(read(thread->pipe[0], thread->words, 8), 8);
	}
	return NULL;
}

static void start(struct thread *thread, void *(*function)(void *), uint8_t *memory)
{
	memset(memory, 0, 2ul * PAGE);
	*thread = (struct thread){ .words = (void *)memory };
	EXPECT_EQ(pipe(thread->pipe), 0);
	EXPECT_EQ(pthread_create(&thread->id, NULL, function, thread), 0);
}

static void end(struct thread *thread)
{
	atomic_store(&thread->is_ending, true);
	EXPECT_EQ(pthread_join(thread->id, NULL), 0);
	EXPECT_EQ(atomic_load(thread->words), thread->count);
	close(thread->pipe[0]);
	close(thread->pipe[1]);
}

static void register_again_and_again(void *(*function)(void *))
{
	uint8_t *memory = allocate();
	struct thread thread;
	uint64_t bytes;

	REQUIRE_HOLDING();
	begin();
	fill(memory);
	start(&thread, function, memory);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr = register_memory(&node, memory, LENGTH);

		EXPECT(is_shared(memory) && is_shared(memory + LENGTH - 1));
		expect_filled(memory, 2);
		usleep(i * 10);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT(is_anonymous(memory) && is_anonymous(memory + LENGTH - 1));
		expect_filled(memory, 2);
	}
	EXPECT_EQ(count_files(&bytes), 0);
	end(&thread);
	EXPECT(thread.count > ROUNDS);
}

TEST(no_store_of_another_thread_is_lost)
{
	register_again_and_again(store);
}

TEST(no_store_of_another_threads_system_call_is_lost)
{
	register_again_and_again(store_by_calls);
}

/* --- where threads cannot be held off --- */

static void expect_not_shared(uint8_t *memory)
{
	struct ibv_mr *mr = register_memory(&node, memory, LENGTH);

	EXPECT(is_anonymous(memory) && is_anonymous(memory + LENGTH - 1));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static bool refuse_holding(void)
{
	return kernel_refuses(SYS_userfaultfd, EPERM) &&
	       kernel_refuses_value(SYS_ioctl, O_CLOEXEC, EPERM);
}

TEST(where_threads_cannot_be_held_off_nothing_becomes_shared)
{
	uint8_t *memory = allocate();
	struct thread thread;

	begin();
	if (!refuse_holding())
		SKIP("no seccomp");
	start(&thread, store, memory);
	expect_not_shared(memory);
	end(&thread);
}

TEST(where_threads_cannot_be_held_off_no_store_is_lost_when_a_region_is_deregistered)
{
	struct thread thread;

	begin();
	if (!refuse_holding())
		SKIP("no seccomp");
	for (uint32_t i = 0; i < 20; i++) {
		uint8_t *memory = allocate();
		struct ibv_mr *mr;

		fill(memory);
		mr = register_memory(&node, memory, LENGTH);
		EXPECT(is_shared(memory) || i); /* a thread that has just ended may still count */
		start(&thread, store, memory);
		usleep(200);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT(!is_shared(memory));
		usleep(200);
		end(&thread);
		expect_filled(memory, 2);
		EXPECT_EQ(munmap(memory, LENGTH), 0);
	}
}

/* O_DIRECT: the kernel may have fixed the pages that a device or another process writes to. */
TEST(beside_another_thread_and_direct_io_nothing_becomes_shared)
{
	uint8_t *memory = allocate();
	struct thread thread;
	int ends[2];

	begin();
	EXPECT_EQ(pipe2(ends, O_DIRECT), 0);
	start(&thread, store, memory);
	expect_not_shared(memory);
	end(&thread);
}

/* Tells the page that its stack pointer is in, and waits until that is taken back. */
static void *show_stack(void *argument)
{
	_Atomic(uint8_t *) *place = argument;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	atomic_store(place, (uint8_t *)(frame / PAGE * PAGE));
	while (atomic_load(place))
		usleep(100);
	return NULL;
}

TEST(the_stack_of_another_thread_does_not_become_shared)
{
	_Atomic(uint8_t *) place = NULL;
	struct ibv_mr *mr;
	pthread_t thread;
	uint8_t *memory;

	begin();
	EXPECT_EQ(pthread_create(&thread, NULL, show_stack, &place), 0);
	while (!(memory = atomic_load(&place)))
		usleep(100);
	mr = register_memory(&node, memory, PAGE);
	EXPECT(!is_shared(memory));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	atomic_store(&place, NULL);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

/* More than may be converted at a time. */
TEST(beside_another_thread_memory_becomes_shared_however_often)
{
	enum { COUNT = 100, SIZE = 1 << 20 };
	struct thread thread;

	REQUIRE_HOLDING();
	begin();
	start(&thread, store_by_calls, allocate());
	for (uint32_t i = 0; i < COUNT; i++) {
		uint8_t *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr;

		EXPECT(memory != MAP_FAILED);
		memory[0] = memory[SIZE - 1] = 1;
		mr = register_memory(&node, memory, SIZE);
		EXPECT(is_shared(memory));
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT(memory[0] == 1 && memory[SIZE - 1] == 1);
		EXPECT_EQ(munmap(memory, SIZE), 0);
	}
	end(&thread);
}

/* Several chunks: afterwards it is one mapping again, which can be moved as a whole. */
TEST(a_large_region_goes_there_and_back_beside_another_thread)
{
	const size_t length = 10ul << 20;
	uint8_t *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct thread thread;
	struct ibv_mr *mr;

	REQUIRE_HOLDING();
	EXPECT(memory != MAP_FAILED);
	begin();
	for (size_t i = 0; i < length; i++)
		memory[i] = (uint8_t)(i * 7 / 5);
	start(&thread, store, allocate());
	mr = register_memory(&node, memory, length);
	EXPECT(is_shared(memory) && is_shared(memory + length - 1));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT(is_anonymous(memory) && is_anonymous(memory + length - 1));
	memory = mremap(memory, length, 2 * length, MREMAP_MAYMOVE);
	EXPECT(memory != MAP_FAILED);
	for (size_t i = 0; i < length; i++)
		EXPECT_EQ(memory[i], (uint8_t)(i * 7 / 5));
	end(&thread);
}
