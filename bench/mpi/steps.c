/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program that bench/clients compiles where there is an MPI. It repeats a step and prints
 * the microseconds of one, as the median of the batches.
 *
 *	steps pingpong <bytes> <count>    half a round trip between the first two of all processes
 *	steps allreduce <bytes> <count>   a sum over all processes, whose result is checked
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 50 };

static float *own, *sum;
static int bytes, rank, process_count;

static void exchange(void)
{
	if (rank == 0) {
		MPI_Send(own, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(sum, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(sum, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(own, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void reduce(void)
{
	int count = bytes / (int)sizeof(float);

	MPI_Allreduce(own, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	if (sum[0] != (float)process_count || sum[count - 1] != (float)process_count)
		MPI_Abort(MPI_COMM_WORLD, 3);
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static double measure(void (*step)(void), int count)
{
	double batches[BATCHES];

	for (int i = 0; i < count / 10; i++)
		step();
	for (int i = 0; i < BATCHES; i++) {
		double begin = MPI_Wtime();

		for (int k = 0; k < count / BATCHES; k++)
			step();
		batches[i] = (MPI_Wtime() - begin) * 1e6 / (count / BATCHES);
	}
	qsort(batches, BATCHES, sizeof(batches[0]), compare);
	return batches[BATCHES / 2];
}

int main(int argc, char **argv)
{
	int count = argc == 4 ? atoi(argv[3]) : 0;
	int is_exchange = argc == 4 && !strcmp(argv[1], "pingpong");
	double us;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &process_count);
	bytes = argc == 4 ? atoi(argv[2]) : 0;
	own = malloc((size_t)bytes);
	sum = malloc((size_t)bytes);
	if (!own || !sum || bytes < 4 || count < BATCHES || process_count < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < bytes / (int)sizeof(float); i++)
		own[i] = 1;
	us = measure(is_exchange ? exchange : reduce, count);
	if (rank == 0)
		printf("%.4f\n", is_exchange ? us / 2 : us);
	MPI_Finalize();
	free(own);
	free(sum);
	return 0;
}
