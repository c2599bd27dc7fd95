/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small verbs program. It has one device, one RC QP that is connected to itself or to a QP of
 * another process, and memory whose one half is written to the other. All packets go over the
 * sockets, unless VERBATIM_PATH says otherwise.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_VERBS_H
#define VB_TESTS_LIVE_SUPPORT_VERBS_H

#include "harness.h"

#include <infiniband/verbs.h>

#define PROGRAM_LENGTH 20000

/* The memory that a program writes to. */
struct place {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t address;
	uint32_t srqn; /* XRC */
};

/* NULL means the first device, and a connection to its own address. */
struct path {
	const char *device;
	const char *address; /* as a GID */
};

struct program {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct place to;
	struct path path;
	unsigned rounds;
	unsigned char source[PROGRAM_LENGTH];
	unsigned char target[PROGRAM_LENGTH];
};

/* Enters a namespace with one device, vb_d0. */
void program_enter_namespace(void);

/*
 * Without `exchange` the program is connected to itself, otherwise to the program at the other end
 * of this socket.
 */
void program_open(struct program *program);
void program_open_with_peer(struct program *program, int exchange);
void program_open_on(struct program *program, struct path path);
void program_open_with_peer_on(struct program *program, int exchange, struct path path);
void program_close(struct program *program);

/* Waits for one event and takes one completion; returns its status. */
enum ibv_wc_status program_wait(struct program *program);
/* The same by polling. Returns the name of the status. */
const char *program_poll(struct program *program);
void program_post(struct program *program);

/* Posts a WRITE, waits for its completion by polling, and checks the data. */
void program_round(struct program *program);
/* The same, but waits for the event of the completion. */
void program_round_with_event(struct program *program);

/* Keeps what programs log from now on, including those of child processes. */
void program_keep_log(const char *level);
const char *program_read_log(void);
void program_expect_in_log(const char *part);

#endif
