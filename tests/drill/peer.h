/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of the peer that scripts are played against. Each executable has one of two peers:
 * engine.c, an engine in this process, whose time the test controls; or wire.c, a process with
 * verbs at the other end of a wire, which runs dummy.c. Both have one QP, connected to ours, and
 * one region of memory (support_order.h), and take the same orders.
 */
#ifndef VB_TESTS_DRILL_PEER_H
#define VB_TESTS_DRILL_PEER_H

#include "packet_words.h"

#include <stdbool.h>
#include <stdint.h>

/* "ours" or "kernel": the lines of a script that are for one kind only begin with it. */
const char *peer_kind(void);

/*
 * Starts the peer and returns both addresses. The first order is "open …". The peer ends with the
 * test's process.
 */
void peer_open(struct vb_gid *drill, struct vb_gid *peer);

/* Gives the peer an order; its answer, one line, is valid until the next order. */
const char *peer_order(const char *order);

void peer_send(const struct made_packet *packet);

/*
 * The held peer stands still; when it is released, it finds all that was sent meanwhile in one
 * batch. The kernel is never held.
 */
void peer_hold(void);
void peer_release(void);

/*
 * Takes the next packet that the peer sends; false if it sends none in this time. Reports whether
 * made->ip_id is known or a guess.
 */
bool peer_receive(struct made_packet *made, bool *is_id_known, uint64_t ns);

/* Lets time pass while the peer works, e.g. until a completion is there. */
void peer_wait(uint64_t ns);

uint64_t peer_now_ns(void);

/* Whether the peer's time stands still while the drill is busy. */
bool peer_time_is_ours(void);

/* How long nothing must arrive to count as silence. */
uint64_t peer_silence_ns(void);

#endif
