/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of an actor, which executes orders. There are two actors: engine.c with the engine
 * in its own process, and dummy.c with verbs. Each has one QP and the region, and provides the
 * functions below. Orders mean the same to both (support_obey.c). All numbers are those of verbs.
 */
#ifndef VB_TESTS_DRILL_ACTOR_H
#define VB_TESTS_DRILL_ACTOR_H

#include "drill/support_order.h"

/* The region, filled with its pattern when the QP is made. */
extern uint8_t region[REGION_LENGTH];

/* Executes an order; the answer, one line, is valid until the next order. */
const char *obey(const char *order);
/* Returns to the state before "open". */
void obey_no_more(void);

/* Makes the QP, in RESET, and everything it needs; returns its number and the region's key. */
void actor_create(enum ibv_qp_type service, uint32_t *qpn, uint32_t *rkey);
void actor_destroy(void);

/* False if the QP refuses. */
bool actor_modify(enum ibv_qp_state state, const struct order_attr *attr, int mask);
enum ibv_qp_state actor_state(void);
bool actor_post_recv(const struct order_post *post);
bool actor_post_send(const struct order_post *post);

/* One completion, with its immediate data in the CPU's byte order; false if there is none. */
bool actor_poll(struct ibv_wc *done);

#endif
