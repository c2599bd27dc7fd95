/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs over the verbs library need here: a device of their own network, an RC QP between any two of them, and a
 * look at what is left behind. They are written like any program for verbs: nothing here knows what is below.
 */
#ifndef VB_TESTS_HOLD_SUPPORT_RIG_H
#define VB_TESTS_HOLD_SUPPORT_RIG_H

#include "harness.h"

#include <infiniband/verbs.h>
#include <stdint.h>

/* The device of loopback, opened, with one of each. */
struct rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	union ibv_gid gid;
};

enum { RIG_PORT = 1, RIG_GID = 1 };

/* A network, a /tmp and a /dev/shm of this process's own; skips where that is forbidden. */
void enter_own_world(void);

/* Nothing of ours may be in them any more: no socket on the port, no abstract name, no file. */
void expect_nothing_left(void);

void rig_open(struct rig *rig, int cqe_count);
void rig_close(struct rig *rig);

struct ibv_qp *rig_make_qp(struct rig *rig, uint32_t depth);
/* From RESET to RTS. The first PSN of each side is its own QP number. */
void rig_connect(struct rig *rig, struct ibv_qp *qp, uint32_t peer, uint8_t timeout);

double seconds_now(void);

#endif
