/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom scripts are played against. Each executable has one of them: engine.c, an engine in this process whose time is
 * ours; or wire.c, a process with verbs at the other end of a wire, which runs dummy.c. Both have one QP, connected to
 * ours, and one region of memory (support_order.h), and take the same orders.
 */
#ifndef VB_TESTS_DRILL_PEER_H
#define VB_TESTS_DRILL_PEER_H

#include "packet_words.h"

#include <stdbool.h>
#include <stdint.h>

/* "ours" or "kernel": the lines of a script that are for one of them only begin with it. */
const char *peer_kind(void);

/* Begins; says who has which address. The first order is "open …". The test's process ends it. */
void peer_open(struct vb_gid *drill, struct vb_gid *peer);

/* Tells it to do something; its answer, one line, is valid until the next order. */
const char *peer_order(const char *order);

void peer_send(const struct made_packet *packet);

/* It stands still; when it is released, it finds all that was sent meanwhile at once. The kernel is never held. */
void peer_hold(void);
void peer_release(void);

/* The next packet that it sends; false if it sends none in this time. Says whether made->ip_id is known or a guess. */
bool peer_receive(struct made_packet *made, bool *is_id_known, uint64_t ns);

/* Time passes while it works, e.g. until a completion is there. */
void peer_wait(uint64_t ns);

uint64_t peer_now_ns(void);

/* Whether its time stands still while we do something. */
bool peer_time_is_ours(void);

/* How long nothing must come for it to be silence. */
uint64_t peer_silence_ns(void);

#endif
