/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of a mesh. A connection that was given up stays until its requests have ended, with
 * or without success.
 */
#include "support_mesh.h"

#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 8, MESSAGE = 6000, TIMEOUT = 16, CQES = 16384, POLLS = 32, CONNECTIONS_MAX = 4096 };

struct connection {
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t peer;
	uint32_t epoch;
	bool is_connected;
	bool has_failed;
	bool is_given_up;
	uint32_t sends_out, receives_out;
	uint32_t sent, received;
	uint8_t outgoing[DEPTH][MESSAGE];
	uint8_t incoming[DEPTH][MESSAGE];
};

struct process {
	struct mesh_board *board;
	uint32_t index;
	struct rig rig;
	struct connection *current[MESH_MAX]; /* by peer */
	struct connection *all[CONNECTIONS_MAX]; /* by the number in wr_id */
	bool is_quiet;
};

static _Atomic uint32_t *epoch_of(struct mesh_board *board, uint32_t a, uint32_t b)
{
	return a < b ? &board->pairs[a][b].epoch : &board->pairs[b][a].epoch;
}

/* --- messages --- */

static void fill(uint8_t *bytes, uint32_t from, uint32_t epoch, uint32_t sequence)
{
	uint32_t word = from * 0x9e3779b9u ^ epoch * 0x85ebca6bu ^ sequence * 0xc2b2ae35u;

	for (uint32_t i = 0; i < MESSAGE / 4; i++, word = word * 1664525u + 1013904223u)
		memcpy(bytes + 4 * i, &word, 4);
}

static uint64_t wr_id_of(const struct process *process, const struct connection *connection,
			 uint32_t slot, bool is_send)
{
	uint32_t number = 0;

	while (process->all[number] != connection)
		number++;
	return (uint64_t)number << 32 | slot << 1 | is_send;
}

static void post_receive(struct process *process, struct connection *connection, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)connection->incoming[slot], MESSAGE,
			       connection->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id_of(process, connection, slot, false),
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	EXPECT_EQ(ibv_post_recv(connection->qp, &wr, &bad), 0);
	connection->receives_out++;
}

static void post_send(struct process *process, struct connection *connection)
{
	uint32_t slot = connection->sent % DEPTH;
	struct ibv_sge sge = { (uintptr_t)connection->outgoing[slot], MESSAGE,
			       connection->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id_of(process, connection, slot, true),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	fill(connection->outgoing[slot], process->index, connection->epoch, connection->sent);
	EXPECT_EQ(ibv_post_send(connection->qp, &wr, &bad), 0);
	connection->sends_out++;
	connection->sent++;
}

/* --- connections --- */

static void make_connection(struct process *process, uint32_t peer, uint32_t epoch)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	uint32_t number = 0;

	EXPECT(connection != NULL);
	while (process->all[number])
		EXPECT(++number < CONNECTIONS_MAX);
	process->all[number] = connection;
	process->current[peer] = connection;
	connection->peer = peer;
	connection->epoch = epoch;
	connection->qp = rig_make_qp(&process->rig, DEPTH);
	connection->mr = ibv_reg_mr(process->rig.pd, connection, sizeof(*connection),
				    IBV_ACCESS_LOCAL_WRITE);
	EXPECT(connection->mr != NULL);
	atomic_store(&process->board->pairs[process->index][peer].received, 0);
	atomic_store(&process->board->pairs[process->index][peer].offer,
		     (uint64_t)epoch << 32 | connection->qp->qp_num);
}

static void end_connection(struct process *process, uint32_t number)
{
	struct connection *connection = process->all[number];

	EXPECT_EQ(ibv_destroy_qp(connection->qp), 0);
	EXPECT_EQ(ibv_dereg_mr(connection->mr), 0);
	free(connection);
	process->all[number] = NULL;
}

static void try_connect(struct process *process, struct connection *connection)
{
	uint64_t offer =
		atomic_load(&process->board->pairs[connection->peer][process->index].offer);

	if (offer >> 32 != connection->epoch)
		return;
	rig_connect(&process->rig, connection->qp, (uint32_t)offer, TIMEOUT);
	connection->is_connected = true;
	for (uint32_t slot = 0; slot < DEPTH; slot++)
		post_receive(process, connection, slot);
	atomic_store(&process->board->pairs[process->index][connection->peer].ready,
		     connection->epoch);
}

static bool may_send(const struct process *process, const struct connection *connection)
{
	struct mesh_board *board = process->board;

	return connection->is_connected && !connection->has_failed &&
	       atomic_load(&board->pairs[connection->peer][process->index].ready) ==
		       connection->epoch &&
	       connection->sends_out < DEPTH && !atomic_load(&board->is_ending) &&
	       (!board->message_limit || connection->sent < board->message_limit);
}

static void look_after(struct process *process, uint32_t peer)
{
	struct connection *connection = process->current[peer];
	uint32_t epoch = atomic_load(epoch_of(process->board, process->index, peer));

	if (connection && connection->epoch != epoch) {
		connection->is_given_up = true;
		connection = NULL;
	}
	if (!connection && epoch) {
		make_connection(process, peer, epoch);
		connection = process->current[peer];
	}
	if (!connection)
		return;
	if (!connection->is_connected)
		try_connect(process, connection);
	while (may_send(process, connection))
		post_send(process, connection);
}

/* A connection failed by itself: unless the test knows already, both ends start again. */
static void on_failure(struct process *process, struct connection *connection)
{
	_Atomic uint32_t *epoch = epoch_of(process->board, process->index, connection->peer);
	uint32_t expected = connection->epoch;

	connection->has_failed = true;
	if (atomic_compare_exchange_strong(epoch, &expected, expected + 1))
		atomic_fetch_add(&process->board->pairs[process->index][connection->peer].failures,
				 1);
}

static void on_received(struct process *process, struct connection *connection, uint32_t slot,
			uint32_t length)
{
	uint8_t expected[MESSAGE];

	fill(expected, connection->peer, connection->epoch, connection->received++);
	EXPECT_EQ(length, MESSAGE);
	EXPECT_MEM(connection->incoming[slot], expected, MESSAGE);
	post_receive(process, connection, slot);
	if (process->current[connection->peer] == connection)
		atomic_store(&process->board->pairs[process->index][connection->peer].received,
			     connection->received);
}

static void on_completion(struct process *process, const struct ibv_wc *wc)
{
	struct connection *connection = process->all[wc->wr_id >> 32];
	bool is_send = wc->wr_id & 1;

	EXPECT(connection != NULL);
	if (is_send)
		connection->sends_out--;
	else
		connection->receives_out--;
	if (wc->status == IBV_WC_SUCCESS) {
		if (!is_send)
			on_received(process, connection, (uint32_t)wc->wr_id >> 1, wc->byte_len);
		return;
	}
	if (wc->status !=
	    (connection->has_failed || !is_send ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR)) {
		fprintf(stderr, "%u from %u: %s of %s\n", process->index, connection->peer,
			ibv_wc_status_str(wc->status), is_send ? "a send" : "a receive");
		atomic_fetch_add(&process->board->wrong_count, 1);
	}
	if (!connection->has_failed)
		on_failure(process, connection);
}

static uint32_t sends_out(const struct process *process)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
		if (process->all[i])
			count += process->all[i]->sends_out;
	return count;
}

static void clean_up(struct process *process, bool is_end)
{
	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *connection = process->all[i];

		if (connection && (is_end || (connection->is_given_up && !connection->sends_out)))
			end_connection(process, i);
	}
}

static bool is_over(struct process *process)
{
	struct mesh_board *board = process->board;

	if (!atomic_load(&board->is_ending))
		return false;
	if (!process->is_quiet && !sends_out(process)) {
		process->is_quiet = true;
		atomic_fetch_add(&board->quiet_count, 1);
	}
	return atomic_load(&board->quiet_count) == board->size; /* no process needs our answers */
}

static void be_process(struct mesh_board *board, uint32_t index)
{
	struct process *process = calloc(1, sizeof(*process));
	struct ibv_wc wcs[POLLS];

	process->board = board;
	process->index = index;
	rig_open(&process->rig, CQES);
	while (!is_over(process)) {
		int count = ibv_poll_cq(process->rig.cq, POLLS, wcs);

		EXPECT(count >= 0);
		for (int i = 0; i < count; i++)
			on_completion(process, &wcs[i]);
		for (uint32_t peer = 0; peer < board->size; peer++)
			if (peer != index)
				look_after(process, peer);
		clean_up(process, false);
	}
	clean_up(process, true);
	rig_close(&process->rig);
	free(process);
}

/* --- the test's side --- */

struct mesh_board *mesh_make(uint32_t size)
{
	struct mesh_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(board != MAP_FAILED);
	board->size = size;
	return board;
}

void mesh_start(struct mesh_board *board, uint32_t index)
{
	pid_t pid;

	for (uint32_t peer = 0; peer < board->size; peer++)
		if (peer != index && board->pids[peer])
			atomic_fetch_add(epoch_of(board, index, peer), 1);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_process(board, index);
		exit(0);
	}
	board->pids[index] = pid;
}

void mesh_kill(struct mesh_board *board, uint32_t index)
{
	int status;

	EXPECT_EQ(kill(board->pids[index], SIGKILL), 0);
	EXPECT_EQ(waitpid(board->pids[index], &status, 0), board->pids[index]);
	if (!WIFSIGNALED(status))
		FAIL("process %u had ended by itself: %d", index, WEXITSTATUS(status));
}

uint32_t mesh_received(struct mesh_board *board, uint32_t a, uint32_t b)
{
	return atomic_load(&board->pairs[a][b].received);
}

void mesh_await(struct mesh_board *board, uint32_t a, uint32_t b, uint32_t count)
{
	double end = seconds_now() + MESH_PATIENCE_S;

	while (mesh_received(board, a, b) < count) {
		if (seconds_now() > end)
			FAIL("process %u has had %u of %u messages from %u, epoch %u", a,
			     mesh_received(board, a, b), count, b,
			     atomic_load(epoch_of(board, a, b)));
		usleep(1000);
	}
}

void mesh_await_all(struct mesh_board *board, uint32_t count, uint32_t except)
{
	for (uint32_t a = 0; a < board->size; a++)
		for (uint32_t b = 0; b < board->size; b++)
			if (a != b && a != except && b != except)
				mesh_await(board, a, b, count);
}

void mesh_end(struct mesh_board *board)
{
	atomic_store(&board->is_ending, true);
	for (uint32_t i = 0; i < board->size; i++) {
		int status;

		EXPECT_EQ(waitpid(board->pids[i], &status, 0), board->pids[i]);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			FAIL("process %u ended with %x", i, status);
	}
	EXPECT_EQ(atomic_load(&board->wrong_count), 0);
}
