/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the helper thread looks on for a moment before it sleeps. To be woken costs more than a short wait, so where packets for a program that does not poll
 * come one soon after the other, as the READs of a peer that waits for each do, it pays to wait for the next one awake. But only on a CPU that nobody else wants:
 * a helper that spins where the program, or its peer, could run holds up the very ones it works for. Its owner is the helper; the time is an argument.
 */
#ifndef VB_HOST_SPIN_H
#define VB_HOST_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define VB_SPIN_NS 50000u /* so long after the last packet: twice what it costs to be woken */
#define VB_SPIN_LOST_NS \
	20000u /* between two looks that find nothing: somebody else ran on our CPU */
#define VB_SPIN_SOON_NS 100000u /* a sleep that is shorter was hardly worth it */
#define VB_SPIN_EARNED 4u /* by so many short sleeps in a row */
#define VB_SPIN_EARNED_MAX 1024u
#define VB_SPIN_COUNTED_NS 1000000u /* so long it counts that a CPU was free … */
#define VB_SPIN_RESTS_NS 10000000u /* … and so long that none was … */
#define VB_SPIN_LOSES_NS 1000000u /* … or that ours was somebody else's */

struct vb_spin {
	uint32_t soon_count; /* short sleeps in a row */
	uint32_t vain_count; /* times that we waited in vain: each doubles what must be earned */
	uint64_t counted_ns; /* when a CPU was free */
	uint64_t rests_until_ns;
};

/* The helper has slept on its sockets, and they have woken it or not. */
void vb_spin_on_sleep(struct vb_spin *spin, uint64_t slept_ns, bool is_woken);

/* Whether the packets have earned it. */
bool vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns);
/* … and whether there is a CPU for it: asked anew now and then, for as long as it goes on. */
bool vb_spin_has_cpu(struct vb_spin *spin, uint64_t now_ns);

/* How it went: a packet came in time; none did; the CPU was somebody else's meanwhile. */
void vb_spin_on_packet(struct vb_spin *spin);
void vb_spin_on_vain(struct vb_spin *spin);
void vb_spin_on_loss(struct vb_spin *spin, uint64_t now_ns);

#endif
