/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair on one host whose long SENDs go in trains, from TRAIN_MIN bytes on: A and B publish their
 * tables to each other, and both QPs have the shared-memory link. B reads the data in A's memory.
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_TRAIN_H
#define VB_TESTS_CONVERSATION_SUPPORT_TRAIN_H

#include "support_direct.h"

enum { TRAIN_MIN = 2048, TRAIN_MAX = 8192 };

extern struct vb_peer_memory train_peer_memory; /* B's */
extern _Atomic uint32_t train_busy;

struct setup train_setup(enum vb_qp_type type);
struct pair *connect_for_trains_as(struct setup setup);
struct pair *connect_for_trains(enum vb_qp_type type);

/* B can read no memory of A, as if the kernel did not permit it; or can again. */
void forbid_fetching(bool is_forbidden);

/* B has a receive for a message of this length, which is not cut by receives after it. */
void post_long_recv(struct pair *p, uint64_t wr_id, uint32_t length);

#endif
