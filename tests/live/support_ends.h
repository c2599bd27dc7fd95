/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes of one host that meet. Each process is an end, with a QP and memory that the other
 * end knows. What the ends exchange before and during their work is on a board in shared memory.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_ENDS_H
#define VB_TESTS_LIVE_SUPPORT_ENDS_H

#include "support_verbs.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { LENGTH = 1 << 16 };

struct board {
	_Atomic uint32_t step;
	_Atomic uint32_t ready_count; /* ends that are connected */
	struct place places[2];
};

/*
 * One end, which may have more memory than the small program of support_verbs.h. The caller sets
 * the type before it opens the end.
 */
struct end {
	enum ibv_qp_type type; /* 0: RC */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd; /* for an XRC_RECV QP, with a shared receive queue */
	struct ibv_srq *srq;
	uint8_t *memory; /* LENGTH bytes */
	struct place peer;
};

struct board *make_board(void);
/* Enters a new namespace with shared-memory links enabled, and keeps the log. */
void begin(void);

uint8_t *private_memory(void);
uint8_t *shared_memory(void);

void open_end(struct end *end, uint8_t *memory);
/* Creates one more QP with the same queues. The caller then sets end->qp. */
struct ibv_qp *create_qp(struct end *end, enum ibv_qp_type type);
/* The QP type at the other end of a connection. */
enum ibv_qp_type peer_type(enum ibv_qp_type type);
void connect_end(struct end *end, struct place peer);
void close_end(struct end *end);
struct place place_of(const struct end *end);

/*
 * Steps of the two ends. The child is end 1 and announces itself with step 1, the parent with step
 * 2. Steps of the tests begin with 3.
 */
void reach_step(struct board *board, uint32_t step);
void await_step(struct board *board, uint32_t step);
void meet_as_child(struct end *end, struct board *board, uint8_t *memory);
void meet_as_parent(struct end *end, struct board *board, uint8_t *memory);
/* The same for ends that are already open. */
void introduce_child(struct end *end, struct board *board);
void introduce_parent(struct end *end, struct board *board);

void post_at(struct end *end, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length);
void receive_at(struct end *end, uint32_t offset, uint32_t length);
/* Waits for the next completion and returns the name of its status. */
const char *poll_status(struct end *end);
void do_at(struct end *end, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length);

/* Forks a child that does not outlive its parent. */
pid_t fork_end(void);
void expect_child_success(pid_t child);
/* Starts a child that only lends its memory to an end of that type, until it is killed. */
pid_t start_target(struct board *board, enum ibv_qp_type type, uint8_t *(*allocate)(void));
/*
 * The same, and our own end meets the target. Only the target may have shared memory. The second
 * function calls begin() first.
 */
pid_t meet_target(struct end *end, enum ibv_qp_type type, uint8_t *(*allocate)(void));
pid_t begin_with_target(struct end *end, enum ibv_qp_type type, uint8_t *(*allocate)(void));
/*
 * Starts a child that writes as fast as it can, one step per write, until it is refused or killed.
 */
pid_t start_writer(struct board *board, enum ibv_qp_type type);
void end_target(pid_t child);

/* Deregisters the memory that the peer writes to. */
void deregister(struct end *end);
void reset(struct end *end);

#endif
