/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the verbs programs here need: a device of their own network, an RC QP between any two of
 * them, and a check of what is left behind. They are written like any verbs program: nothing here
 * knows what is below.
 */
#ifndef VB_TESTS_HOLD_SUPPORT_RIG_H
#define VB_TESTS_HOLD_SUPPORT_RIG_H

#include "harness.h"

#include <infiniband/verbs.h>
#include <stdint.h>

/* The opened loopback device, with one object of each kind. */
struct rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	union ibv_gid gid;
};

enum { RIG_PORT = 1, RIG_GID = 1 };

/*
 * Gives this process a network, a /tmp and a /dev/shm of its own. Skips the test where that is
 * forbidden.
 */
void enter_own_world(void);

/*
 * Expects that nothing of the adapter is left in them: no socket on the port, no abstract name, no
 * file.
 */
void expect_nothing_left(void);

void rig_open(struct rig *rig, int cqe_count);
void rig_close(struct rig *rig);

struct ibv_qp *rig_make_qp(struct rig *rig, uint32_t depth);
/* Moves the QP from RESET to RTS. The first PSN of each side is its own QP number. */
void rig_connect(struct rig *rig, struct ibv_qp *qp, uint32_t peer, uint8_t timeout);

double seconds_now(void);

#endif
