/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock that every message takes. */
#include "harness.h"

#include "host/sys/clock.h"
#include "host/sys/lock.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, TIMES = 20000 };

static struct vb_lock lock;
static uint64_t count; /* protected by the lock */

static void *count_up(void *argument)
{
	bool only_tries = argument;

	for (uint32_t i = 0; i < TIMES; i++) {
		if (only_tries)
			while (!vb_lock_try(&lock))
				sched_yield();
		else
			vb_lock_take(&lock);
		count++;
		if (i % 1000 == 0)
			sched_yield(); /* while holding it, so that other threads have to sleep */
		vb_lock_give(&lock);
	}
	return NULL;
}

TEST(one_thread_has_the_lock_at_a_time)
{
	pthread_t threads[THREADS];

	vb_lock_init(&lock);
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, count_up, (void *)(i % 2)));
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(count, THREADS * TIMES);
}

TEST(a_thread_that_has_the_lock_knows)
{
	vb_lock_init(&lock);
	EXPECT(!vb_lock_is_mine(&lock));
	vb_lock_take(&lock);
	EXPECT(vb_lock_is_mine(&lock));
	EXPECT(!vb_lock_try(&lock));
	vb_lock_give(&lock);
	EXPECT(!vb_lock_is_mine(&lock));
}

static void *try_for_a_while(void *argument)
{
	uint64_t begin_ns = vb_clock_now();
	bool *is_taken = argument;

	EXPECT(!vb_lock_is_mine(&lock));
	*is_taken = vb_lock_take_within(&lock, 3000000);
	EXPECT(*is_taken || vb_clock_now() - begin_ns >= 3000000);
	return NULL;
}

TEST(a_thread_that_waits_for_a_while_gives_up)
{
	bool is_taken = true;
	pthread_t other;

	vb_lock_init(&lock);
	vb_lock_take(&lock);
	EXPECT(!pthread_create(&other, NULL, try_for_a_while, &is_taken));
	pthread_join(other, NULL);
	EXPECT(!is_taken);
	vb_lock_give(&lock);
	EXPECT(vb_lock_take_within(&lock, 0));
}
