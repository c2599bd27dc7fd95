/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that all talk to each other: an RC QP between any two, with checked messages in both
 * directions, connected again when one of the two is replaced or its QP has failed. They coordinate
 * by a board in shared memory. The test kills, stops and starts them and reads their state there.
 */
#ifndef VB_TESTS_HOLD_SUPPORT_MESH_H
#define VB_TESTS_HOLD_SUPPORT_MESH_H

#include "support_rig.h"

#include <stdatomic.h>
#include <sys/types.h>

enum { MESH_MAX = 64, MESH_PATIENCE_S = 120 };

struct mesh_pair {
	/* Epoch of the connection: the same for both ends, kept at the lower one. */
	_Atomic uint32_t epoch;
	_Atomic uint64_t offer; /* epoch and QPN of this end's QP */
	_Atomic uint32_t ready; /* the epoch for which this end takes packets */
	_Atomic uint32_t received; /* messages, in this epoch */
	_Atomic uint32_t failures; /* of connections whose peer was neither killed nor replaced */
};

struct mesh_board {
	uint32_t size;
	uint32_t message_limit; /* of a connection, each way; 0: none */
	_Atomic bool is_ending;
	_Atomic uint32_t quiet_count; /* processes that have nothing under way any more */
	_Atomic uint32_t wrong_count; /* statuses that must not occur */
	struct mesh_pair pairs[MESH_MAX][MESH_MAX]; /* of process and peer */
	pid_t pids[MESH_MAX]; /* used by the test */
};

struct mesh_board *mesh_make(uint32_t size);

void mesh_start(struct mesh_board *board, uint32_t index);
void mesh_kill(struct mesh_board *board, uint32_t index);

/*
 * Waits until process `a` has got `count` messages more from `b` than `before`, in their present
 * connection.
 */
uint32_t mesh_received(struct mesh_board *board, uint32_t a, uint32_t b);
void mesh_await(struct mesh_board *board, uint32_t a, uint32_t b, uint32_t count);
/*
 * Waits until every process but `except` (or MESH_MAX) has got `count` messages from every other
 * one.
 */
void mesh_await_all(struct mesh_board *board, uint32_t count, uint32_t except);

/* Ends all processes; none may have had an error that the test did not cause. */
void mesh_end(struct mesh_board *board);

#endif
