/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program that tries every kind of collective operation and of derived type on any number of
 * processes, and checks each number. It moves little, so that many more processes than processors
 * can run it. Every number says which process sent it, to which, and at which place. The first
 * process reports that everything was right.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 3000, SIDE = 12 };

static int rank, process_count;
static MPI_Comm all; /* the processes that take part */
static const char *step = "start";

static void expect(long long at, long long is, long long wanted)
{
	if (is == wanted)
		return;
	fprintf(stderr, "collectives: process %d of %d: %s: number %lld is %lld, wanted %lld\n",
		rank, process_count, step, at, is, wanted);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t number(int from, int to, int at)
{
	return ((int64_t)from * 1000 + to) * 100000 + at;
}

static int64_t *make_numbers(int count)
{
	int64_t *numbers = malloc(sizeof(*numbers) * (size_t)count);

	if (!numbers)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(numbers, 0xa5, sizeof(*numbers) * (size_t)count);
	return numbers;
}

/* One part of `count` numbers for each process. */
static int64_t *make_parts(int count)
{
	int64_t *parts = make_numbers(count * process_count);

	for (int i = 0; i < count * process_count; i++)
		parts[i] = number(rank, i / count, i % count);
	return parts;
}

/* --- operations that move numbers ------------------------------------------------------------- */

static void try_broadcast(int root, int count)
{
	int64_t *numbers = make_numbers(count);

	step = "broadcast";
	for (int i = 0; i < count && rank == root; i++)
		numbers[i] = number(root, 0, i);
	MPI_Bcast(numbers, count, MPI_INT64_T, root, all);
	for (int i = 0; i < count; i++)
		expect(i, numbers[i], number(root, 0, i));
	free(numbers);
}

static void try_scatter_and_gather(int root, int count)
{
	int64_t *parts = make_parts(count), *mine = make_numbers(count);
	int64_t *back = make_numbers(count * process_count);

	step = "scatter";
	MPI_Scatter(parts, count, MPI_INT64_T, mine, count, MPI_INT64_T, root, all);
	for (int i = 0; i < count; i++)
		expect(i, mine[i], number(root, rank, i));
	step = "gather";
	MPI_Gather(mine, count, MPI_INT64_T, back, count, MPI_INT64_T, root, all);
	for (int i = 0; i < count * process_count && rank == root; i++)
		expect(i, back[i], parts[i]);
	step = "all-gather";
	MPI_Allgather(mine, count, MPI_INT64_T, back, count, MPI_INT64_T, all);
	for (int i = 0; i < count * process_count; i++)
		expect(i, back[i], number(root, i / count, i % count));
	free(parts);
	free(mine);
	free(back);
}

static void try_all_to_all(int count)
{
	int64_t *parts = make_parts(count), *in = make_numbers(count * process_count);

	step = "all-to-all";
	MPI_Alltoall(parts, count, MPI_INT64_T, in, count, MPI_INT64_T, all);
	for (int i = 0; i < count * process_count; i++)
		expect(i, in[i], number(i / count, rank, i % count));
	free(parts);
	free(in);
}

/* A process sends `to + 1` numbers to process `to`, so each gets `rank + 1` from each. */
static void try_uneven_all_to_all(void)
{
	int out_count = process_count * (process_count + 1) / 2,
	    in_count = process_count * (rank + 1);
	int64_t *out = make_numbers(out_count), *in = make_numbers(in_count);
	int *counts = malloc(sizeof(int) * 4 * (size_t)process_count);
	int *out_counts = counts, *out_at = counts + process_count;
	int *in_counts = counts + 2 * process_count, *in_at = counts + 3 * process_count;

	step = "uneven all-to-all";
	for (int peer = 0, at = 0; peer < process_count; at += peer + 1, peer++) {
		out_counts[peer] = peer + 1;
		out_at[peer] = at;
		in_counts[peer] = rank + 1;
		in_at[peer] = peer * (rank + 1);
		for (int i = 0; i <= peer; i++)
			out[at + i] = number(rank, peer, i);
	}
	MPI_Alltoallv(out, out_counts, out_at, MPI_INT64_T, in, in_counts, in_at, MPI_INT64_T, all);
	for (int i = 0; i < in_count; i++)
		expect(i, in[i], number(i / (rank + 1), rank, i % (rank + 1)));
	free(counts);
	free(out);
	free(in);
}

/* --- operations that compute ------------------------------------------------------------------ */

static void try_reductions(int root, int count)
{
	int64_t *mine = make_numbers(count), *result = make_numbers(count);
	int64_t ranks = (int64_t)process_count * (process_count - 1) / 2;

	for (int i = 0; i < count; i++)
		mine[i] = (int64_t)rank * 1000003 + i;
	step = "reduce";
	MPI_Reduce(mine, result, count, MPI_INT64_T, MPI_SUM, root, all);
	for (int i = 0; i < count && rank == root; i++)
		expect(i, result[i], ranks * 1000003 + (int64_t)process_count * i);
	step = "all-reduce";
	MPI_Allreduce(mine, result, count, MPI_INT64_T, MPI_MAX, all);
	for (int i = 0; i < count; i++)
		expect(i, result[i], (int64_t)(process_count - 1) * 1000003 + i);
	step = "scan";
	MPI_Scan(mine, result, count, MPI_INT64_T, MPI_SUM, all);
	for (int i = 0; i < count; i++)
		expect(i, result[i],
		       (int64_t)rank * (rank + 1) / 2 * 1000003 + (int64_t)(rank + 1) * i);
	free(mine);
	free(result);
}

static void try_reduce_scatter(int count)
{
	int64_t *parts = make_parts(count), *mine = make_numbers(count);
	int64_t ranks = (int64_t)process_count * (process_count - 1) / 2;

	step = "reduce-scatter";
	MPI_Reduce_scatter_block(parts, mine, count, MPI_INT64_T, MPI_SUM, all);
	for (int i = 0; i < count; i++)
		expect(i, mine[i], ranks * 100000000 + (int64_t)process_count * number(0, rank, i));
	free(parts);
	free(mine);
}

/* Several operations at the same time, which end in any order. */
static void try_at_once(void)
{
	int64_t *out = make_parts(LONG / 10), *in = make_numbers(LONG / 10 * process_count);
	int64_t one = 1, sum = 0, root_number = rank == 0 ? 77 : 0;
	MPI_Request requests[4];

	step = "several operations at once";
	MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, all, &requests[0]);
	MPI_Ialltoall(out, LONG / 10, MPI_INT64_T, in, LONG / 10, MPI_INT64_T, all, &requests[1]);
	MPI_Ibcast(&root_number, 1, MPI_INT64_T, 0, all, &requests[2]);
	MPI_Ibarrier(all, &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	expect(0, sum, process_count);
	expect(1, root_number, 77);
	for (int i = 0; i < LONG / 10 * process_count; i++)
		expect(i, in[i], number(i / (LONG / 10), rank, i % (LONG / 10)));
	free(out);
	free(in);
}

/* --- derived types ---------------------------------------------------------------------------- */

/* Sends to the next process, and receives from the one before. */
static void pass_on(const void *out, void *in, MPI_Datatype type)
{
	MPI_Sendrecv(out, 1, type, (rank + 1) % process_count, 5, in, 1, type,
		     (rank + process_count - 1) % process_count, 5, all, MPI_STATUS_IGNORE);
}

static void try_struct(void)
{
	struct record {
		char letter;
		double weight;
		int32_t values[3];
	} out = { (char)('a' + rank), rank + 0.5, { rank, rank + 1, rank + 2 } }, in = { 0 };
	int lengths[] = { 1, 1, 3 }, previous = (rank + process_count - 1) % process_count;
	MPI_Aint places[] = { offsetof(struct record, letter), offsetof(struct record, weight),
			      offsetof(struct record, values) };
	MPI_Datatype members[] = { MPI_CHAR, MPI_DOUBLE, MPI_INT32_T }, type;

	step = "structs";
	MPI_Type_create_struct(3, lengths, places, members, &type);
	MPI_Type_commit(&type);
	pass_on(&out, &in, type);
	expect(0, in.letter, 'a' + previous);
	expect(1, (long long)(in.weight * 2), 2 * previous + 1);
	for (int i = 0; i < 3; i++)
		expect(2 + i, in.values[i], previous + i);
	MPI_Type_free(&type);
}

/* The columns 3 to 6 of the rows 2 to 9 of a matrix; nothing else may change. */
static void try_matrix(void)
{
	int sizes[] = { SIDE, SIDE }, part[] = { 8, 4 }, start[] = { 2, 3 };
	int previous = (rank + process_count - 1) % process_count;
	int64_t out[SIDE * SIDE], in[SIDE * SIDE];
	MPI_Datatype type;

	step = "parts of a matrix";
	for (int i = 0; i < SIDE * SIDE; i++) {
		out[i] = number(rank, 0, i);
		in[i] = -1;
	}
	MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT64_T, &type);
	MPI_Type_commit(&type);
	pass_on(out, in, type);
	for (int i = 0; i < SIDE * SIDE; i++) {
		int row = i / SIDE, column = i % SIDE;
		int is_in = row >= 2 && row < 10 && column >= 3 && column < 7;

		expect(i, in[i], is_in ? number(previous, 0, i) : -1);
	}
	MPI_Type_free(&type);
}

/* Blocks of 1, 2, 3 … numbers with gaps between them: long enough for a rendezvous. */
static void try_blocks(void)
{
	enum { BLOCKS = 200, SPAN = BLOCKS * (BLOCKS + 3) / 2 };
	int lengths[BLOCKS], places[BLOCKS], at = 0;
	int previous = (rank + process_count - 1) % process_count;
	int64_t *out = make_numbers(SPAN), *in = make_numbers(SPAN);
	MPI_Datatype type;

	step = "blocks with gaps";
	for (int i = 0; i < SPAN; i++) {
		out[i] = number(rank, 0, i);
		in[i] = -1;
	}
	for (int i = 0; i < BLOCKS; i++) {
		lengths[i] = i + 1;
		places[i] = at;
		at += lengths[i] + 1;
	}
	MPI_Type_indexed(BLOCKS, lengths, places, MPI_INT64_T, &type);
	MPI_Type_commit(&type);
	pass_on(out, in, type);
	for (int i = 0; i < BLOCKS; i++) {
		for (int j = 0; j < lengths[i]; j++)
			expect(places[i] + j, in[places[i] + j],
			       number(previous, 0, places[i] + j));
		expect(places[i] + lengths[i], in[places[i] + lengths[i]], -1);
	}
	MPI_Type_free(&type);
	free(out);
	free(in);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void try_everything(void)
{
	MPI_Comm_rank(all, &rank);
	MPI_Comm_size(all, &process_count);
	for (int count = 1; count <= LONG; count *= LONG) {
		try_broadcast(0, count);
		try_broadcast(process_count - 1, count);
		try_scatter_and_gather(0, count);
		try_scatter_and_gather(process_count / 2, count);
		try_all_to_all(count);
		try_reductions(process_count - 1, count);
		try_reduce_scatter(count);
	}
	try_uneven_all_to_all();
	try_at_once();
	try_struct();
	try_matrix();
	try_blocks();
	MPI_Barrier(all);
}

int main(int argc, char **argv)
{
	int world_rank, world_size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	all = MPI_COMM_WORLD;
	try_everything();
	/* The same in two groups at the same time. */
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &all);
	try_everything();
	MPI_Comm_free(&all);
	MPI_Barrier(MPI_COMM_WORLD);
	if (world_rank == 0)
		printf("collectives: all numbers were right between %d processes\n", world_size);
	MPI_Finalize();
	return 0;
}
