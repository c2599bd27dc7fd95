/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often a program that polls looks beyond the links, when the last packet came by one. To look
 * there takes system calls, and each of them takes longer than a message by a link. So it looks by
 * the clock. But where there are more threads than CPUs, a thread polls a few times whenever it
 * gets a CPU, and has been away for longer than that clock ticks: it would spend most of its time
 * with such looks. So a look must also have been preceded by some rounds, or by a long time. Only
 * the engine's owner uses this state; the time is an argument.
 */
#ifndef VB_HOST_POLICY_ELSEWHERE_H
#define VB_HOST_POLICY_ELSEWHERE_H

#include <stdbool.h>
#include <stdint.h>

#define VB_ELSEWHERE_NS 20000u
#define VB_ELSEWHERE_ROUNDS 32u
#define VB_ELSEWHERE_NS_MAX 200000u /* then rounds do not matter */

struct vb_elsewhere {
	uint64_t looked_ns;
	uint32_t rounds; /* since then */
};

/* For each round: whether it is to look elsewhere, too. */
bool vb_elsewhere_is_due(struct vb_elsewhere *elsewhere, uint64_t now_ns);
/* It looks. */
void vb_elsewhere_on_look(struct vb_elsewhere *elsewhere, uint64_t now_ns);

#endif
