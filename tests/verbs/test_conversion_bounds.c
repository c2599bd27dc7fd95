/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much memory becomes shared at most, what it costs to find out, and that no memory is there
 * twice for longer than necessary.
 */
#include "harness.h"
#include "support_mapping.h"
#include "support_verbs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MB = 1 << 20 };

static struct node node;

static void begin(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	alarm(100);
	open_node(&node);
}

static uint8_t *allocate(size_t length)
{
	uint8_t *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

/* Each page has different bytes, and some pages have none. */
static uint8_t byte_at(size_t i)
{
	return i / PAGE % 7 ? (uint8_t)(i / PAGE % 251) : 0;
}

static uint8_t *allocate_filled(size_t length)
{
	uint8_t *memory = allocate(length);

	for (size_t i = 0; i < length; i += PAGE)
		if (byte_at(i))
			memset(memory + i, byte_at(i), PAGE);
	return memory;
}

static bool is_filled(const uint8_t *memory, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (memory[i] != byte_at(i))
			return false;
	return true;
}

static uint64_t bytes_in_files(void)
{
	uint64_t bytes;

	(void)count_files(&bytes);
	return bytes;
}

static uint32_t files(void)
{
	uint64_t bytes;

	return count_files(&bytes);
}

/* --- how much --- */

TEST(at_most_64_mb_become_shared)
{
	uint8_t *large = allocate(48 * MB), *medium = allocate(20 * MB), *small = allocate(12 * MB);
	uint8_t *too_large = allocate(64 * MB + PAGE);
	struct ibv_mr *large_mr, *medium_mr;

	begin();
	EXPECT_EQ(ibv_dereg_mr(register_memory(&node, too_large, 64 * MB + PAGE)), 0);
	large_mr = register_memory(&node, too_large, 64 * MB + PAGE);
	EXPECT(!is_shared(too_large));
	EXPECT_EQ(ibv_dereg_mr(large_mr), 0);
	large_mr = register_memory(&node, large, 48 * MB);
	medium_mr = register_memory(&node, medium, 20 * MB);
	register_memory(&node, small, 12 * MB);
	EXPECT(is_shared(large) && !is_shared(medium) && is_shared(small));
	EXPECT_EQ(ibv_dereg_mr(large_mr), 0);
	EXPECT_EQ(ibv_dereg_mr(medium_mr), 0);
	register_memory(&node, medium, 20 * MB);
	EXPECT(!is_shared(large) && is_shared(medium));
}

TEST(what_is_larger_than_a_chunk_goes_there_and_back)
{
	const size_t length = 33 * MB + 5 * PAGE;
	uint8_t *memory = allocate_filled(length);
	struct ibv_mr *mr;

	begin();
	mr = register_memory(&node, memory, length);
	EXPECT(is_shared(memory) && is_shared(memory + length - 1));
	EXPECT(is_filled(memory, length));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT(is_anonymous(memory) && is_anonymous(memory + length - 1));
	EXPECT(is_filled(memory, length));
	EXPECT_EQ(files(), 0);
}

/* --- at what cost --- */

/* Each mapping costs time to list, for each registration. */
TEST(in_a_program_with_many_mappings_nothing_becomes_shared)
{
	enum { COUNT = 600 };
	uint8_t *many = allocate(COUNT * PAGE), *memory = allocate(MB);

	begin();
	for (uint32_t i = 0; i < COUNT; i += 2)
		EXPECT_EQ(mprotect(many + i * PAGE, PAGE, PROT_READ), 0);
	EXPECT(register_memory(&node, memory, MB));
	EXPECT(!is_shared(memory));
}

/* Then the kernel must be asked for flags, and looks at each existing page. */
TEST(with_much_memory_of_which_some_is_special_nothing_becomes_shared)
{
	uint8_t *special = allocate(PAGE), *much = allocate(64 * MB), *memory = allocate(MB);
	struct ibv_mr *mr;

	begin();
	memset(much, 1, 64 * MB);
	mr = register_memory(&node, memory, MB);
	EXPECT(is_shared(memory));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(madvise(special, PAGE, MADV_DONTFORK), 0);
	mr = register_memory(&node, memory, MB);
	EXPECT(!is_shared(memory));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	if (has_sanitizer())
		return; /* there is always much */
	EXPECT_EQ(munmap(much, 64 * MB), 0);
	register_memory(&node, memory, MB);
	EXPECT(is_shared(memory));
}

/* --- for how long --- */

static void *wait_for_byte(void *fd)
{
	char byte;

	EXPECT_EQ(read(*(int *)fd, &byte, 1), 1);
	return NULL;
}

/* Starts a second thread, which ends when a byte is written to it. */
static int start_thread(pthread_t *thread)
{
	static int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	EXPECT_EQ(pthread_create(thread, NULL, wait_for_byte, &ends[0]), 0);
	return ends[1];
}

static void end_thread(pthread_t thread, int fd)
{
	EXPECT_EQ(write(fd, "", 1), 1);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

TEST(memory_deregistered_beside_another_thread_is_not_there_twice)
{
	const size_t length = 20 * MB;
	uint8_t *memory = allocate_filled(length);
	struct ibv_mr *mr;
	pthread_t thread;
	int fd;

	begin();
	mr = register_memory(&node, memory, length);
	EXPECT(is_shared(memory) && bytes_in_files());
	fd = start_thread(&thread);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT(!is_shared(memory));
	EXPECT_EQ(bytes_in_files(), 0);
	EXPECT(is_filled(memory, length));
	EXPECT_EQ(munmap(memory, length), 0);
	EXPECT_EQ(files(), 0);
	end_thread(thread, fd);
}

TEST(nothing_is_left_of_memory_unmapped_while_it_is_registered)
{
	const size_t length = 20 * MB;
	uint8_t *memory = allocate_filled(length);
	struct ibv_mr *mr;

	begin();
	mr = register_memory(&node, memory, length);
	EXPECT(is_shared(memory));
	EXPECT_EQ(munmap(memory, length / 2), 0);
	EXPECT(!is_shared(memory + length / 2));
	for (size_t i = length / 2; i < length; i++)
		EXPECT_EQ(memory[i], byte_at(i));
	EXPECT_EQ(munmap(memory + length / 2, length / 2), 0);
	EXPECT_EQ(files(), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST(nothing_is_left_of_memory_unmapped_beside_another_thread)
{
	const size_t length = 20 * MB;
	uint8_t *memory = allocate_filled(length);
	pthread_t thread;
	int fd;

	begin();
	EXPECT(register_memory(&node, memory, length));
	EXPECT(is_shared(memory));
	fd = start_thread(&thread);
	EXPECT_EQ(munmap(memory, length), 0);
	EXPECT_EQ(files(), 0);
	end_thread(thread, fd);
}

/* What is freed inside the C library is noticed at the next opportunity. */
TEST(nothing_is_left_of_memory_freed_while_it_is_registered)
{
	const size_t length = 20 * MB;
	uint8_t *memory = malloc(length);
	struct ibv_mr *mr;

	begin();
	EXPECT(memory);
	memset(memory, 5, length);
	mr = register_memory(&node, memory, length);
	EXPECT(is_shared(memory + length / 2));
	free(memory);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(files(), 0);
}

static void expect_end(pid_t child)
{
	int status;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Only stored-to pages are copied, and nothing is left when the region is gone. */
TEST(after_a_fork_and_the_end_of_the_region_nothing_is_there_twice)
{
	const size_t length = 20 * MB;
	uint8_t *memory = allocate_filled(length);
	struct ibv_mr *mr;

	begin();
	for (uint32_t round = 0; round < 3; round++) {
		pid_t child;

		mr = register_memory(&node, memory, length);
		EXPECT(is_shared(memory));
		child = fork();
		if (!child)
			_exit(is_filled(memory, length) ? 0 : 1);
		EXPECT(!is_shared(memory));
		expect_end(child);
		for (size_t i = 0; i < length; i += PAGE)
			memory[i]++;
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT(is_anonymous(memory));
		EXPECT_EQ(files(), 0);
		for (size_t i = 0; i < length; i += PAGE)
			memory[i]--;
		EXPECT(is_filled(memory, length));
	}
}

/* The child has no descriptor of the file, and can still register the memory. */
TEST(a_forked_child_registers_what_its_parent_had_registered)
{
	const size_t length = 5 * MB;
	uint8_t *memory = allocate_filled(length);
	pid_t child;

	begin();
	EXPECT(register_memory(&node, memory, length));
	child = fork();
	if (!child) {
		struct node own;

		open_node(&own);
		for (uint32_t i = 0; i < 3; i++) {
			struct ibv_mr *mr = register_memory(&own, memory, length);

			EXPECT(is_filled(memory, length));
			EXPECT_EQ(ibv_dereg_mr(mr), 0);
			EXPECT(is_filled(memory, length));
		}
		_exit(0);
	}
	expect_end(child);
	EXPECT(is_filled(memory, length));
}
