/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes, some of which are killed or stopped in the middle of traffic, and how the others
 * react.
 */
#include "support_mesh.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIX = 6, MANY = 64, SOME_MESSAGES = 20, STOP_SECONDS = 5 };

static void start_all(struct mesh_board *board)
{
	for (uint32_t i = 0; i < board->size; i++)
		mesh_start(board, i);
}

static void expect_no_failures(struct mesh_board *board, uint32_t except)
{
	for (uint32_t a = 0; a < board->size; a++)
		for (uint32_t b = 0; b < board->size; b++)
			if (a != except && b != except && atomic_load(&board->pairs[a][b].failures))
				FAIL("process %u lost %u, which was there", a, b);
}

/* A new process takes the place of the killed one, and all others talk to it. */
static void replace(struct mesh_board *board, uint32_t index, uint32_t except)
{
	mesh_kill(board, index);
	mesh_start(board, index);
	for (uint32_t peer = 0; peer < board->size; peer++) {
		if (peer == index || peer == except)
			continue;
		mesh_await(board, index, peer, 1);
		mesh_await(board, peer, index, 1);
	}
}

TEST(any_of_six_processes_may_be_killed_at_any_moment)
{
	uint32_t kills = test_is_thorough() ? 200 : 20;
	struct mesh_board *board;

	enter_own_world();
	srand(7);
	board = mesh_make(SIX);
	start_all(board);
	mesh_await_all(board, SOME_MESSAGES, MESH_MAX);
	for (uint32_t i = 0; i < kills; i++) {
		usleep((useconds_t)rand() % 30000);
		replace(board, (uint32_t)rand() % SIX, MESH_MAX);
	}
	mesh_await_all(board, SOME_MESSAGES, MESH_MAX);
	mesh_end(board);
	expect_no_failures(board, MESH_MAX);
	expect_nothing_left();
}

TEST(processes_may_be_killed_while_they_start)
{
	uint32_t kills = test_is_thorough() ? 1000 : 100;
	struct mesh_board *board;

	enter_own_world();
	srand(8);
	board = mesh_make(SIX);
	start_all(board);
	for (uint32_t i = 0; i < kills; i++) {
		uint32_t index = (uint32_t)rand() % SIX;

		mesh_kill(board, index);
		mesh_start(board, index);
		usleep((useconds_t)rand() % 20000);
	}
	mesh_await_all(board, SOME_MESSAGES, MESH_MAX);
	mesh_end(board);
	expect_nothing_left();
}

TEST(one_of_six_processes_is_stopped_and_the_others_go_on_and_connect_anew)
{
	enum { STOPPED = 2, REPLACED = 4 };
	struct mesh_board *board;
	double end;

	enter_own_world();
	board = mesh_make(SIX);
	start_all(board);
	mesh_await_all(board, SOME_MESSAGES, MESH_MAX);
	kill(board->pids[STOPPED], SIGSTOP);
	end = seconds_now() + STOP_SECONDS;
	for (uint32_t i = 1; seconds_now() < end; i++) {
		replace(board, REPLACED, STOPPED);
		mesh_await_all(board, SOME_MESSAGES * (1 + i % 5), STOPPED);
	}
	expect_no_failures(board, STOPPED);
	kill(board->pids[STOPPED], SIGCONT);
	for (uint32_t i = 0; i < SIX; i++)
		if (i != STOPPED)
			mesh_await(board, STOPPED, i, SOME_MESSAGES);
	mesh_await_all(board, SOME_MESSAGES, MESH_MAX);
	mesh_end(board);
	expect_nothing_left();
}

static void each_talks_to_each(void)
{
	struct mesh_board *board = mesh_make(MANY);

	board->message_limit = SOME_MESSAGES;
	start_all(board);
	mesh_await_all(board, SOME_MESSAGES, MESH_MAX);
	mesh_end(board);
	expect_no_failures(board, MESH_MAX);
	expect_nothing_left();
}

TEST(of_64_processes_each_talks_to_each)
{
	enter_own_world();
	each_talks_to_each();
}

TEST(of_64_processes_each_talks_to_each_with_the_receive_buffer_of_a_stock_kernel)
{
	enter_own_world();
	setenv("VERBATIM_RECEIVE_BUFFER", "212992", 1);
	each_talks_to_each();
}
