/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision whether the helper thread keeps polling for a moment before it sleeps. A wake-up
 * costs more than a short wait. So when packets for a program that does not poll come in quick
 * succession, such as the READs of a peer that waits for each, it pays to stay awake for the next
 * one. But this holds only on a CPU that no other thread wants: a helper that spins where the
 * program, or its peer, could run delays the very ones it works for. The helper thread owns this
 * state; the time is an argument.
 */
#ifndef VB_HOST_ADAPTER_SPIN_H
#define VB_HOST_ADAPTER_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define VB_SPIN_NS 50000u /* after the last packet: twice the cost of a wake-up */
/* between two looks that find nothing: another thread ran on our CPU */
#define VB_SPIN_LOST_NS 20000u
#define VB_SPIN_SOON_NS 100000u /* a shorter sleep was hardly worth it */
#define VB_SPIN_EARNED 4u /* by this many short sleeps in a row */
#define VB_SPIN_EARNED_MAX 1024u
#define VB_SPIN_COUNTED_NS 1000000u /* how long a free CPU counts … */
#define VB_SPIN_RESTS_NS 10000000u /* … how long the lack of one counts … */
#define VB_SPIN_LOSES_NS 1000000u /* … and how long the loss of ours counts */

struct vb_spin {
	uint32_t soon_count; /* short sleeps in a row */
	uint32_t timeout_count; /* waits without result: each doubles what must be earned */
	uint64_t counted_ns; /* when a CPU was free */
	uint64_t rests_until_ns;
};

/* The helper has slept on its sockets; `is_woken`: they woke it. */
void vb_spin_on_sleep(struct vb_spin *spin, uint64_t slept_ns, bool is_woken);

/* Whether the recent packets justify polling … */
bool vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns);
/* … and whether there is a CPU for it: asked again now and then while the polling lasts. */
bool vb_spin_look_for_cpu(struct vb_spin *spin, uint64_t now_ns);

/* The result: a packet came in time; none came; another thread had the CPU meanwhile. */
void vb_spin_on_packet(struct vb_spin *spin);
void vb_spin_on_timeout(struct vb_spin *spin);
void vb_spin_on_loss(struct vb_spin *spin, uint64_t now_ns);

#endif
