/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program that checks every byte, compiled by tests/clients/run for each MPI that is
 * installed: messages of many lengths, many at the same time, collective operations and, unless its
 * argument is "messages", one-sided ones ("noswap": without compare-and-swap), between any number of
 * processes. The bytes of a message follow from its sender, its receiver and a number; behind each
 * buffer lie bytes that must not change. The first process reports that everything was right.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, WINDOW = 64, WINDOW_LENGTH = 10000, COUNT = 5000 };

static int rank, process_count;
static const char *step = "start"; /* what is being tried, for messages about failures */

static void fail(const char *what, long long at, long long is, long long wanted)
{
	fprintf(stderr, "exchange: process %d: %s: %s at %lld is %lld, wanted %lld\n", rank, step,
		what, at, is, wanted);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect_equal(const char *what, long long at, long long is, long long wanted)
{
	if (is != wanted)
		fail(what, at, is, wanted);
}

/* --- buffers ---------------------------------------------------------------------------------- */

/* Different for each message, and not periodic in any power of two. */
static uint8_t byte_of(uint32_t message, size_t at)
{
	uint32_t x = message * 2654435761u + (uint32_t)at * 40503u + (uint32_t)(at >> 8) * 97u;

	return (uint8_t)(x >> 13 ^ x >> 3);
}

static uint32_t message_of(int from, int to, uint32_t number)
{
	return (number * 64 + (uint32_t)from) * 64 + (uint32_t)to;
}

static uint8_t *make_buffer(size_t length)
{
	uint8_t *buffer = malloc(length + GUARD);

	if (!buffer)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(buffer, GUARD_BYTE, length + GUARD);
	return buffer;
}

static void fill(uint8_t *buffer, size_t length, uint32_t message)
{
	for (size_t i = 0; i < length; i++)
		buffer[i] = byte_of(message, i);
}

static void expect_bytes(const uint8_t *buffer, size_t length, uint32_t message)
{
	for (size_t i = 0; i < length; i++)
		if (buffer[i] != byte_of(message, i))
			fail("byte", (long long)i, buffer[i], byte_of(message, i));
}

static void expect_guard(const uint8_t *buffer, size_t length)
{
	for (size_t i = length; i < length + GUARD; i++)
		expect_equal("byte behind the buffer", (long long)i, buffer[i], GUARD_BYTE);
}

/* --- messages --------------------------------------------------------------------------------- */

static int next(void)
{
	return (rank + 1) % process_count;
}

static int previous(void)
{
	return (rank + process_count - 1) % process_count;
}

/* Sends to the next process, and receives from the one before. */
static void pass_on(size_t length, uint32_t number)
{
	uint8_t *out = make_buffer(length), *in = make_buffer(length);
	MPI_Status status;
	int received;

	fill(out, length, message_of(rank, next(), number));
	MPI_Sendrecv(out, (int)length, MPI_BYTE, next(), (int)number, in, (int)length, MPI_BYTE,
		     previous(), (int)number, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &received);
	expect_equal("length", 0, received, (long long)length);
	expect_bytes(in, length, message_of(previous(), rank, number));
	expect_guard(in, length);
	free(out);
	free(in);
}

static void try_lengths(void)
{
	static const size_t lengths[] = { 0,	 1,	7,     8,      63,	64,	 65,
					  1000,	 4095,	4096,  4097,   8191,	8192,	 16384,
					  65535, 65536, 65537, 131072, 1000003, 4194304, 10000019 };

	step = "messages of many lengths";
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		pass_on(lengths[i], (uint32_t)i);
	step = "the same length again and again";
	for (uint32_t i = 0; i < 300; i++)
		pass_on(8, 100 + i);
}

/* The receiver waits before it posts its receive: the message arrives unexpected. */
static void try_unexpected(void)
{
	enum { LENGTH = 30000 };
	uint8_t *out = make_buffer(LENGTH), *in = make_buffer(LENGTH);
	MPI_Request requests[2];

	step = "messages that nobody expects yet";
	fill(out, LENGTH, message_of(rank, next(), 7));
	MPI_Isend(out, LENGTH, MPI_BYTE, next(), 7, MPI_COMM_WORLD, &requests[0]);
	MPI_Issend(out, 100, MPI_BYTE, next(), 8, MPI_COMM_WORLD, &requests[1]);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(in, LENGTH, MPI_BYTE, previous(), 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect_bytes(in, 100, message_of(previous(), rank, 7));
	MPI_Recv(in, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect_bytes(in, LENGTH, message_of(previous(), rank, 7));
	expect_guard(in, LENGTH);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
}

/* Many messages at the same time, from every process to every process. */
static void try_windows(void)
{
	size_t total = (size_t)process_count * WINDOW * WINDOW_LENGTH;
	MPI_Request *requests = malloc(2 * sizeof(*requests) * WINDOW * (size_t)process_count);
	uint8_t *out = make_buffer(total), *in = make_buffer(total);
	int count = 0;

	step = "many messages at once";
	for (int peer = 0; peer < process_count; peer++) {
		for (int i = 0; i < WINDOW; i++) {
			size_t at = ((size_t)peer * WINDOW + (size_t)i) * WINDOW_LENGTH;

			fill(out + at, WINDOW_LENGTH, message_of(rank, peer, (uint32_t)i));
			MPI_Irecv(in + at, WINDOW_LENGTH, MPI_BYTE, peer, i, MPI_COMM_WORLD,
				  &requests[count++]);
			MPI_Isend(out + at, WINDOW_LENGTH, MPI_BYTE, peer, i, MPI_COMM_WORLD,
				  &requests[count++]);
		}
	}
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
	for (int peer = 0; peer < process_count; peer++)
		for (int i = 0; i < WINDOW; i++)
			expect_bytes(in + ((size_t)peer * WINDOW + (size_t)i) * WINDOW_LENGTH,
				     WINDOW_LENGTH, message_of(peer, rank, (uint32_t)i));
	expect_guard(in, total);
	free(requests);
	free(out);
	free(in);
}

/* Every third number of an array. */
static void try_vectors(void)
{
	static int out[3 * COUNT], in[3 * COUNT];
	MPI_Datatype third;

	step = "messages with gaps";
	MPI_Type_vector(COUNT, 1, 3, MPI_INT, &third);
	MPI_Type_commit(&third);
	for (int i = 0; i < 3 * COUNT; i++) {
		out[i] = rank * 1000000 + i;
		in[i] = -1;
	}
	MPI_Sendrecv(out, 1, third, next(), 1, in, 1, third, previous(), 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (int i = 0; i < 3 * COUNT; i++)
		expect_equal("number", i, in[i], i % 3 ? -1 : previous() * 1000000 + i);
	MPI_Type_free(&third);
}

/* --- collective operations -------------------------------------------------------------------- */

static void try_broadcasts(void)
{
	static const size_t lengths[] = { 1, 1000, 65536, 3000001 };

	step = "broadcasts";
	for (int root = 0; root < process_count; root++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			uint8_t *buffer = make_buffer(lengths[i]);
			uint32_t message = message_of(root, 0, (uint32_t)i);

			if (rank == root)
				fill(buffer, lengths[i], message);
			MPI_Bcast(buffer, (int)lengths[i], MPI_BYTE, root, MPI_COMM_WORLD);
			expect_bytes(buffer, lengths[i], message);
			expect_guard(buffer, lengths[i]);
			free(buffer);
		}
	}
}

static void try_sums(void)
{
	static int64_t out[100000], in[100000];
	int64_t ranks = (int64_t)process_count * (process_count - 1) / 2;

	step = "sums";
	for (int count = 1; count <= 100000; count *= 10) {
		for (int i = 0; i < count; i++)
			out[i] = (int64_t)rank * 1000000007 + i;
		MPI_Allreduce(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < count; i++)
			expect_equal("sum", i, in[i],
				     ranks * 1000000007 + (int64_t)process_count * i);
	}
}

static void exchange_all(size_t length, uint32_t number)
{
	size_t total = length * (size_t)process_count;
	uint8_t *out = make_buffer(total), *in = make_buffer(total);

	for (int peer = 0; peer < process_count; peer++)
		fill(out + (size_t)peer * length, length, message_of(rank, peer, number));
	MPI_Alltoall(out, (int)length, MPI_BYTE, in, (int)length, MPI_BYTE, MPI_COMM_WORLD);
	for (int peer = 0; peer < process_count; peer++)
		expect_bytes(in + (size_t)peer * length, length, message_of(peer, rank, number));
	expect_guard(in, total);
	free(out);
	free(in);
}

static void try_all_to_all(void)
{
	static const size_t lengths[] = { 1, 100, 5000, 40000, 1000001 };

	step = "all to all";
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		exchange_all(lengths[i], (uint32_t)i);
}

/* --- one-sided operations --------------------------------------------------------------------- */

/* Each process that writes to the window has a part of it. */
static void try_puts_and_gets(size_t length)
{
	size_t total = length * (size_t)process_count;
	uint8_t *shared = make_buffer(total), *out = make_buffer(total), *in = make_buffer(total);
	MPI_Win window;

	step = "put and get";
	MPI_Win_create(shared, (MPI_Aint)total, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	for (int peer = 0; peer < process_count; peer++) {
		uint8_t *part = out + (size_t)peer * length;

		fill(part, length, message_of(rank, peer, 3));
		MPI_Put(part, (int)length, MPI_BYTE, peer, (MPI_Aint)((size_t)rank * length),
			(int)length, MPI_BYTE, window);
	}
	MPI_Win_fence(0, window);
	for (int peer = 0; peer < process_count; peer++)
		expect_bytes(shared + (size_t)peer * length, length, message_of(peer, rank, 3));
	expect_guard(shared, total);
	MPI_Win_fence(0, window);
	for (int peer = 0; peer < process_count; peer++)
		MPI_Get(in + (size_t)peer * length, (int)length, MPI_BYTE, peer,
			(MPI_Aint)((size_t)next() * length), (int)length, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	for (int peer = 0; peer < process_count; peer++)
		expect_bytes(in + (size_t)peer * length, length, message_of(next(), peer, 3));
	expect_guard(in, total);
	MPI_Win_free(&window);
	free(shared);
	free(out);
	free(in);
}

/* All processes add to all processes at the same time. */
static void try_accumulating(void)
{
	static int64_t sums[COUNT], terms[COUNT];
	MPI_Win window;

	step = "accumulate";
	for (int i = 0; i < COUNT; i++) {
		sums[i] = 7;
		terms[i] = (int64_t)i * (rank + 1);
	}
	MPI_Win_create(sums, sizeof(sums), sizeof(sums[0]), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	for (int peer = 0; peer < process_count; peer++)
		MPI_Accumulate(terms, COUNT, MPI_INT64_T, peer, 0, COUNT, MPI_INT64_T, MPI_SUM,
			       window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < COUNT; i++)
		expect_equal("sum", i, sums[i],
			     7 + (int64_t)i * process_count * (process_count + 1) / 2);
	MPI_Win_free(&window);
}

/* Each process waits for its turn to replace the number of the one before with its own. */
static void take_turns(MPI_Win window)
{
	int64_t expected = rank, wanted = rank + 1, found;

	do {
		MPI_Compare_and_swap(&wanted, &expected, &found, MPI_INT64_T, 0, 1, window);
		MPI_Win_flush(0, window);
	} while (found != expected);
}

/* All processes increment one process's counter, which gives each number once. */
static void try_counting(bool has_swap)
{
	enum { TURNS = 200 };
	static int64_t counters[2];
	int64_t one = 1, taken, last = -1, found;
	MPI_Win window;

	step = "a counter";
	MPI_Win_create(counters, sizeof(counters), sizeof(counters[0]), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &window);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < TURNS; i++) {
		MPI_Fetch_and_op(&one, &taken, MPI_INT64_T, 0, 0, MPI_SUM, window);
		MPI_Win_flush(0, window);
		if (taken <= last)
			fail("count", i, taken, last + 1);
		last = taken;
	}
	if (has_swap)
		take_turns(window);
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(&found, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window);
	MPI_Get(&taken, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
	MPI_Win_unlock(0, window);
	expect_equal("count", 0, found, (long long)TURNS * process_count);
	expect_equal("count", 1, taken, has_swap ? process_count : 0);
	MPI_Win_free(&window);
}

static void try_one_sided(bool has_swap)
{
	try_puts_and_gets(8);
	try_puts_and_gets(100000);
	try_accumulating();
	try_counting(has_swap);
}

int main(int argc, char **argv)
{
	const char *what;

	MPI_Init(&argc, &argv);
	what = argc > 1 ? argv[1] : "all";
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &process_count);
	try_lengths();
	try_unexpected();
	try_windows();
	try_vectors();
	try_broadcasts();
	try_sums();
	try_all_to_all();
	if (strcmp(what, "messages") != 0)
		try_one_sided(strcmp(what, "noswap") != 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("exchange: all bytes were right between %d processes\n", process_count);
	MPI_Finalize();
	return 0;
}
