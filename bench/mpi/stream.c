/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program that bench/local compiles where there is an MPI. The first of two processes
 * streams messages to the second, a window of them at a time, and prints gigabits per second. Its
 * arguments are the length of a message and the number of messages.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16, WARMUP = 4 /* windows */ };

static void stream(char *buffer, int length, int windows, int rank)
{
	MPI_Request requests[WINDOW];

	for (int i = 0; i < windows; i++) {
		for (int k = 0; k < WINDOW; k++) {
			char *at = buffer + (size_t)k * (size_t)length;

			if (rank == 0)
				MPI_Isend(at, length, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[k]);
			else
				MPI_Irecv(at, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[k]);
		}
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int length = argc == 3 ? atoi(argv[1]) : 0;
	int windows = argc == 3 ? atoi(argv[2]) / WINDOW : 0;
	char *buffer = calloc(WINDOW, (size_t)length);
	double begin;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!buffer || length <= 0 || windows <= 0)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(buffer, rank, (size_t)length * WINDOW);
	stream(buffer, length, WARMUP, rank);
	begin = MPI_Wtime();
	stream(buffer, length, windows, rank);
	if (rank == 0)
		printf("%.3f\n",
		       (double)length * WINDOW * windows * 8 / 1e9 / (MPI_Wtime() - begin));
	MPI_Finalize();
	free(buffer);
	return 0;
}
