/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An OpenSHMEM program that checks every number: puts, gets, atomics, locks and collective
 * operations between any number of processes. Every number says which process wrote it, for which,
 * and at which place. The first process reports that everything was right; it does so before
 * shmem_finalize(), which may crash for reasons of its own.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20000, TURNS = 200 };

static int me, process_count;
static const char *step = "start";

static void expect(long long at, long long is, long long wanted)
{
	if (is == wanted)
		return;
	fprintf(stderr, "exchange: process %d: %s: number %lld is %lld, wanted %lld\n", me, step,
		at, is, wanted);
	shmem_global_exit(1);
}

static int64_t number(int from, int to, int at)
{
	return ((int64_t)from * 1000 + to) * 100000 + at;
}

/* Every process puts a part into every process's memory, and gets it back. */
static void try_puts_and_gets(int count)
{
	int64_t *shared = shmem_malloc(sizeof(*shared) * (size_t)(count * process_count));
	int64_t *own = malloc(sizeof(*own) * (size_t)count);

	step = "put";
	shmem_barrier_all();
	for (int peer = 0; peer < process_count; peer++) {
		for (int i = 0; i < count; i++)
			own[i] = number(me, peer, i);
		shmem_put64(shared + (size_t)me * (size_t)count, own, (size_t)count, peer);
	}
	shmem_barrier_all();
	for (int i = 0; i < count * process_count; i++)
		expect(i, shared[i], number(i / count, me, i % count));
	step = "get";
	for (int peer = 0; peer < process_count; peer++) {
		shmem_get64(own, shared + (size_t)me * (size_t)count, (size_t)count, peer);
		for (int i = 0; i < count; i++)
			expect(i, own[i], number(me, peer, i));
	}
	shmem_barrier_all();
	shmem_free(shared);
	free(own);
}

/* All processes increment numbers of 4 and 8 bytes of one process, which gives each value once. */
static void try_atomics(void)
{
	long *wide = shmem_malloc(sizeof(*wide));
	int *narrow = shmem_malloc(sizeof(*narrow));
	long last = -1;

	step = "atomics";
	*wide = 0;
	*narrow = 0;
	shmem_barrier_all();
	for (int i = 0; i < TURNS; i++) {
		long taken = shmem_long_atomic_fetch_inc(wide, 0);

		if (taken <= last)
			expect(i, taken, last + 1);
		last = taken;
		shmem_int_atomic_add(narrow, 3, 0);
	}
	shmem_barrier_all();
	expect(0, shmem_long_atomic_fetch(wide, 0), (long long)TURNS * process_count);
	expect(1, shmem_int_atomic_fetch(narrow, 0), 3LL * TURNS * process_count);
	shmem_barrier_all();
	*wide = 0;
	shmem_barrier_all();
	/* Each process waits for its turn to replace the number of the one before with its own. */
	while (shmem_long_atomic_compare_swap(wide, me, me + 1, 0) != me)
		;
	shmem_barrier_all();
	expect(2, shmem_long_atomic_swap(wide, process_count, me), me == 0 ? process_count : 0);
	shmem_barrier_all();
	shmem_free(wide);
	shmem_free(narrow);
}

/* A sum that only a lock protects. */
static void try_locks(void)
{
	static long lock, sum;

	step = "locks";
	for (int i = 0; i < TURNS / 10; i++) {
		long value;

		shmem_set_lock(&lock);
		shmem_long_get(&value, &sum, 1, 0);
		value++;
		shmem_long_put(&sum, &value, 1, 0);
		shmem_quiet();
		shmem_clear_lock(&lock);
	}
	shmem_barrier_all();
	if (me == 0)
		expect(0, sum, (long long)TURNS / 10 * process_count);
}

/* A process waits for a number that its neighbour puts behind the data. */
static void try_signals(void)
{
	static long data[COUNT], flag;
	static long source[COUNT];

	step = "a flag behind the data";
	for (int i = 0; i < COUNT; i++)
		source[i] = (long)number(me, 1, i);
	shmem_barrier_all();
	shmem_long_put(data, source, COUNT, (me + 1) % process_count);
	shmem_fence();
	shmem_long_p(&flag, 1, (me + 1) % process_count);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
	for (int i = 0; i < COUNT; i++)
		expect(i, data[i], number((me + process_count - 1) % process_count, 1, i));
	shmem_barrier_all();
}

static void try_collectives(void)
{
	static long sync[SHMEM_REDUCE_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE];
	static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 8], terms[8], sums[8];
	int64_t *parts = shmem_malloc(sizeof(*parts) * 100 * (size_t)process_count);
	int64_t *own = shmem_malloc(sizeof(*own) * 100);

	for (size_t i = 0; i < sizeof(sync) / sizeof(sync[0]); i++)
		sync[i] = SHMEM_SYNC_VALUE;
	for (int i = 0; i < 8; i++)
		terms[i] = me + i;
	for (int i = 0; i < 100; i++)
		own[i] = number(me, 2, i);
	step = "sums";
	shmem_barrier_all();
	shmem_long_sum_to_all(sums, terms, 8, 0, 0, process_count, work, sync);
	for (int i = 0; i < 8; i++)
		expect(i, sums[i],
		       (long long)process_count * (process_count - 1) / 2 + process_count * i);
	step = "collect";
	for (size_t i = 0; i < sizeof(sync) / sizeof(sync[0]); i++)
		sync[i] = SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	shmem_fcollect64(parts, own, 100, 0, 0, process_count, sync);
	for (int i = 0; i < 100 * process_count; i++)
		expect(i, parts[i], number(i / 100, 2, i % 100));
	shmem_barrier_all();
	shmem_free(own);
	shmem_free(parts);
}

int main(void)
{
	shmem_init();
	me = shmem_my_pe();
	process_count = shmem_n_pes();
	try_puts_and_gets(1);
	try_puts_and_gets(COUNT);
	try_atomics();
	try_locks();
	try_signals();
	try_collectives();
	shmem_barrier_all();
	if (me == 0) {
		printf("exchange: all numbers were right between %d processes\n", process_count);
		fflush(stdout);
	}
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
