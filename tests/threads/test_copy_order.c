/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guarantee that programs rely on: a reader that sees the last byte of a message sees all of
 * it. A writer places messages of one repeated byte, which differs from one message to the next; a
 * reader spins on the last byte and then compares the rest. A plain memcpy fails here within a
 * second.
 *
 * The reader does what such a program does: it loads the last byte with acquire and reads the
 * others without. By the C standard the two threads then race, because the release store may be of
 * the whole word and the load is of one byte of it; on the hardware they do not. The thread
 * sanitizer follows the standard and pairs a release and an acquire only on the same address, so
 * this test is skipped under it.
 */
#include "base/copy.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif
#ifndef UNDER_THREAD_SANITIZER
#define UNDER_THREAD_SANITIZER 0
#endif

#define SIZE_MAX_TESTED 8192
#define SMALL_SIZE_MAX 256
#define CACHE_LINE 64
#define SPINS_BEFORE_YIELD 500

struct exchange {
	_Alignas(CACHE_LINE) uint8_t area[SIZE_MAX_TESTED + 2 * CACHE_LINE];
	_Alignas(CACHE_LINE) uint8_t source[SIZE_MAX_TESTED];
	_Alignas(CACHE_LINE) atomic_uint_fast64_t seen; /* rounds that the reader has finished */
	_Alignas(CACHE_LINE) atomic_uint_fast64_t violation; /* 0, or the size and position */
	const uint32_t *sizes;
	uint32_t size_count;
	uint32_t rounds;
};

/* Where in a cache line messages begin: every position in a word, and just before the next line. */
static const uint32_t offsets[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 33, 59, 60, 61, 62, 63 };

#define OFFSET_COUNT (sizeof(offsets) / sizeof(offsets[0]))

/* Adjacent rounds have different bytes, and none is the byte with which the area was filled. */
static uint8_t round_value(uint64_t round)
{
	return (uint8_t)(1 + round % 251);
}

/* With fewer cores than threads, the other thread must get its turn. */
static void pause_spinning(uint32_t *spins)
{
	if (++*spins % SPINS_BEFORE_YIELD == 0)
		sched_yield();
}

static void *read_messages(void *argument)
{
	struct exchange *exchange = argument;
	uint8_t expected[SIZE_MAX_TESTED];
	uint64_t round = 0;

	for (uint32_t i = 0; i < exchange->size_count * OFFSET_COUNT; i++) {
		uint32_t size = exchange->sizes[i / OFFSET_COUNT];
		uint8_t *message = exchange->area + offsets[i % OFFSET_COUNT];

		for (uint32_t j = 0; j < exchange->rounds; j++) {
			uint8_t value = round_value(++round);
			uint32_t spins = 0;

			memset(expected, value, size);
			while (__atomic_load_n(message + size - 1, __ATOMIC_ACQUIRE) != value)
				pause_spinning(&spins);
			if (memcmp(message, expected, size) != 0)
				atomic_store(&exchange->violation, (uint64_t)size << 32 | i);
			atomic_store_explicit(&exchange->seen, round, memory_order_release);
		}
	}
	return NULL;
}

static void write_messages(struct exchange *exchange)
{
	uint64_t round = 0;

	for (uint32_t i = 0; i < exchange->size_count * OFFSET_COUNT; i++) {
		uint32_t size = exchange->sizes[i / OFFSET_COUNT];
		uint8_t *message = exchange->area + offsets[i % OFFSET_COUNT];

		for (uint32_t j = 0; j < exchange->rounds; j++) {
			uint32_t spins = 0;

			memset(exchange->source, round_value(++round), size);
			vb_copy_last_byte_last(message, exchange->source, size);
			while (atomic_load_explicit(&exchange->seen, memory_order_acquire) != round)
				pause_spinning(&spins);
		}
	}
}

static void run(const uint32_t *sizes, uint32_t size_count, uint32_t rounds)
{
	struct exchange *exchange = aligned_alloc(CACHE_LINE, sizeof(*exchange));
	pthread_t reader;
	uint64_t violation;

	memset(exchange, 0, sizeof(*exchange));
	exchange->sizes = sizes;
	exchange->size_count = size_count;
	exchange->rounds = rounds * (test_is_thorough() ? 20 : 1);
	EXPECT_EQ(pthread_create(&reader, NULL, read_messages, exchange), 0);
	write_messages(exchange);
	EXPECT_EQ(pthread_join(reader, NULL), 0);
	violation = atomic_load(&exchange->violation);
	if (violation)
		FAIL("the last byte of %u at offset %u was seen before the rest",
		     (unsigned)(violation >> 32), offsets[(uint32_t)violation % OFFSET_COUNT]);
	free(exchange);
}

TEST(the_last_byte_of_a_small_message_comes_last)
{
	uint32_t sizes[SMALL_SIZE_MAX];

	if (UNDER_THREAD_SANITIZER)
		SKIP("a race to the C standard, not to the hardware: see the file's comment");
	for (uint32_t i = 0; i < SMALL_SIZE_MAX; i++)
		sizes[i] = i + 1;
	run(sizes, SMALL_SIZE_MAX, 900);
}

TEST(the_last_byte_of_a_large_message_comes_last)
{
	uint32_t sizes[64];
	uint32_t count = 0;

	if (UNDER_THREAD_SANITIZER)
		SKIP("a race to the C standard, not to the hardware: see the file's comment");
	for (uint32_t power = 512; power <= SIZE_MAX_TESTED; power *= 2) {
		sizes[count++] = power - 9;
		sizes[count++] = power - 1;
		sizes[count++] = power;
		sizes[count++] = power * 3 / 4 + 1;
		sizes[count++] = power * 3 / 4 - 5;
	}
	run(sizes, count, 3000);
}
