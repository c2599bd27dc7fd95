/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program whose processes start three more of it together (MPI_Comm_spawn), twice. Parents
 * and children exchange numbers over the communicator between them and over a merged one, and check
 * each. The first process reports that everything was right.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHILDREN = 3, ROUNDS = 2, COUNT = 20000 };

static void expect(const char *what, int is, int wanted)
{
	if (is == wanted)
		return;
	fprintf(stderr, "spawn: %s is %d, wanted %d\n", what, is, wanted);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Every process sends to every process of the other group. */
static void exchange_with(MPI_Comm others, int is_parent)
{
	int rank, other_count;
	int *out, *in;

	MPI_Comm_rank(others, &rank);
	MPI_Comm_remote_size(others, &other_count);
	out = malloc(sizeof(*out) * COUNT * (size_t)other_count);
	in = malloc(sizeof(*in) * COUNT * (size_t)other_count);
	for (int i = 0; i < COUNT * other_count; i++)
		out[i] = (is_parent * 100 + rank) * 1000000 + i;
	MPI_Alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, others);
	for (int peer = 0; peer < other_count; peer++)
		for (int i = 0; i < COUNT; i++)
			expect("a number of the other group", in[peer * COUNT + i],
			       (!is_parent * 100 + peer) * 1000000 + rank * COUNT + i);
	free(out);
	free(in);
}

static void meet(MPI_Comm others, int is_parent)
{
	int one = 1, sum, own, remote;
	MPI_Comm merged;

	exchange_with(others, is_parent);
	MPI_Comm_size(others, &own);
	MPI_Comm_remote_size(others, &remote);
	MPI_Intercomm_merge(others, !is_parent, &merged);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
	expect("the number of processes", sum, own + remote);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&others);
}

int main(int argc, char **argv)
{
	MPI_Comm parents, children;
	int rank, errors[CHILDREN];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&parents);
	if (parents != MPI_COMM_NULL) {
		meet(parents, 0);
		MPI_Finalize();
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			       &children, errors);
		meet(children, 1);
	}
	if (rank == 0)
		printf("spawn: all numbers were right with %d children, %d times\n", CHILDREN,
		       ROUNDS);
	MPI_Finalize();
	return 0;
}
