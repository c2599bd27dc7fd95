/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small verbs program: one device, one RC QP that is connected to itself, and memory of which one half is written to the
 * other. All packets go over the sockets.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_VERBS_H
#define VB_TESTS_LIVE_SUPPORT_VERBS_H

#include "harness.h"

#include <infiniband/verbs.h>

#define PROGRAM_LENGTH 20000

struct program {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned rounds;
	unsigned char source[PROGRAM_LENGTH];
	unsigned char target[PROGRAM_LENGTH];
};

/* A namespace with one device, vb_d0. */
void program_enter_namespace(void);

void program_open(struct program *program);
void program_close(struct program *program);

/* Posts a WRITE; waits for its completion by polling; looks at the data. */
void program_round(struct program *program);
/* The same, waiting for the event of the completion. */
void program_round_with_event(struct program *program);

#endif
