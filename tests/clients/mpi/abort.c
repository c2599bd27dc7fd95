/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program that ends in the middle: all processes exchange messages until the last one calls
 * MPI_Abort. The launcher must then end all others, and return the number that it was called with.
 */
#include <mpi.h>
#include <stdio.h>

enum { LENGTH = 100000, ABORT_AFTER = 50, CODE = 7 };

int main(int argc, char **argv)
{
	static char out[LENGTH], in[LENGTH];
	int rank, count;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &count);
	for (int i = 0;; i++) {
		MPI_Sendrecv(out, LENGTH, MPI_CHAR, (rank + 1) % count, 0, in, LENGTH, MPI_CHAR,
			     (rank + count - 1) % count, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (i < ABORT_AFTER || rank != count - 1)
			continue;
		printf("abort: process %d of %d aborts\n", rank, count);
		fflush(stdout);
		MPI_Abort(MPI_COMM_WORLD, CODE);
	}
}
