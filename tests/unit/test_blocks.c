/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory allocator: its blocks are zeroed, do not overlap, lie in mappings that hold
 * nothing else, and are freed.
 */
#include "harness.h"

#include "base/heap.h"
#include "base/prng.h"
#include "host/memory/blocks.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 2000, STEPS = 200000, THREADS = 4 };

struct place {
	uint8_t *memory;
	size_t size;
	uint8_t mark;
};

static bool is_all(const uint8_t *memory, size_t size, uint8_t byte)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != byte)
			return false;
	return true;
}

static bool is_ours(const void *memory, size_t size)
{
	return vb_blocks_overlap((uintptr_t)memory, size);
}

static void allocate(struct place *place, size_t size, uint8_t mark)
{
	*place = (struct place){ vb_blocks_alloc(size), size, mark };
	EXPECT(place->memory);
	EXPECT_EQ((uintptr_t)place->memory % 16, 0);
	EXPECT(is_all(place->memory, size, 0));
	memset(place->memory, mark, size);
}

static void release(struct place *place)
{
	EXPECT(is_all(place->memory, place->size, place->mark));
	vb_blocks_free(place->memory);
	*place = (struct place){ 0 };
}

/* Most blocks are small; some are large enough for a mapping of their own. */
static size_t draw_size(struct vb_prng *prng)
{
	uint64_t kind = vb_prng_next(prng) % 1000, number = vb_prng_next(prng);

	return kind < 700 ? number % 700 : kind < 990 ? number % 20000 : number % 400000;
}

static void shuffle(struct place *places, uint32_t count, uint32_t steps, uint64_t seed)
{
	struct vb_prng prng;

	vb_prng_init(&prng, seed);
	for (uint32_t i = 0; i < steps; i++) {
		struct place *place = &places[vb_prng_next(&prng) % count];

		if (place->memory)
			release(place);
		else
			allocate(place, draw_size(&prng), (uint8_t)(i | 1));
	}
	for (uint32_t i = 0; i < count; i++)
		if (places[i].memory)
			release(&places[i]);
}

TEST(blocks_are_zeroed_and_apart_from_each_other)
{
	static struct place places[PLACES];

	shuffle(places, PLACES, STEPS, 1);
}

TEST(what_was_freed_goes_back_to_the_kernel)
{
	static struct place places[PLACES];
	size_t before;

	shuffle(places, PLACES, STEPS / 10, 2);
	before = vb_blocks_mapped();
	EXPECT(before <= 8u << 20); /* one chunk may stay */
	for (uint32_t i = 0; i < PLACES; i++)
		allocate(&places[i], 16384, 7);
	EXPECT(vb_blocks_mapped() >= PLACES * 16384u);
	for (uint32_t i = 0; i < PLACES; i++)
		release(&places[i]);
	EXPECT(vb_blocks_mapped() <= 8u << 20);
}

/*
 * As many objects as a large program has, of a few sizes: at most an eighth and 4 MiB more than
 * their bytes.
 */
TEST(little_is_wasted)
{
	static const size_t sizes[] = { 1200, 64, 4096, 520, 144, 2080, 40 };
	static struct place places[7 * 3000];
	size_t wanted = 0;

	for (uint32_t i = 0; i < 7 * 3000; i++) {
		allocate(&places[i], sizes[i % 7], 1);
		wanted += sizes[i % 7];
	}
	EXPECT(vb_blocks_mapped() < wanted + wanted / 8 + (4u << 20));
	for (uint32_t i = 0; i < 7 * 3000; i += 2)
		release(&places[i]);
	for (uint32_t i = 0; i < 7 * 3000; i += 2)
		allocate(&places[i], sizes[i % 7], 2);
	EXPECT(vb_blocks_mapped() < wanted + wanted / 8 + (4u << 20));
	for (uint32_t i = 0; i < 7 * 3000; i++)
		release(&places[i]);
}

TEST(an_address_tells_whether_it_is_ours)
{
	uint8_t *small = vb_blocks_alloc(100), *large = vb_blocks_alloc(1 << 20);
	void *theirs = malloc(100);
	int here = 0;

	EXPECT(is_ours(small, 100) && is_ours(large, 1) && is_ours(large + (1 << 20) - 1, 1));
	EXPECT(is_ours(large - 65536, 65536) && is_ours(large + (1 << 19), 1 << 30));
	EXPECT(!is_ours(theirs, 100) && !is_ours(&here, sizeof(here)));
	vb_blocks_free(large);
	EXPECT(!is_ours(large, 1 << 20));
	vb_blocks_free(small);
	free(theirs);
}

TEST(what_cannot_be_is_refused)
{
	EXPECT(!vb_blocks_alloc(SIZE_MAX));
	EXPECT(!vb_blocks_alloc(SIZE_MAX - 5000));
	EXPECT(!vb_heap_alloc(SIZE_MAX / 2, 3));
	vb_blocks_free(NULL);
	vb_heap_free(NULL);
}

struct worker {
	pthread_t thread;
	uint64_t seed;
	struct place places[200];
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	shuffle(worker->places, 200, STEPS / 10, worker->seed);
	return NULL;
}

static void start(struct worker workers[THREADS])
{
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i].seed = i + 10;
		EXPECT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
}

static void end(struct worker workers[THREADS])
{
	for (uint32_t i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_join(workers[i].thread, NULL), 0);
}

TEST(many_threads_allocate_and_free)
{
	static struct worker workers[THREADS];

	start(workers);
	end(workers);
}

/* Whatever the other threads, which the child does not have, are doing. */
TEST(a_forked_child_allocates_and_frees)
{
	static struct worker workers[THREADS];
	static struct place places[200];

	start(workers);
	for (uint32_t i = 0; i < 20; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			alarm(20);
			shuffle(places, 200, 2000, i);
			_exit(0);
		}
		EXPECT(child > 0);
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT(WIFEXITED(status) && !WEXITSTATUS(status));
	}
	end(workers);
}
