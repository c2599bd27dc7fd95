/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision whether the helper thread keeps polling for a moment before it sleeps. A wake-up
 * costs more than a short wait. So when packets for a program that does not poll come in quick
 * succession, such as the READs of a peer that waits for each, it pays to stay awake for the next
 * one. But this holds only on a CPU that no other thread wants: a helper that spins where the
 * program, or its peer, could run delays the very ones it works for. The helper thread owns this
 * state; the time is an argument.
 */
#ifndef VB_HOST_POLICY_SPIN_H
#define VB_HOST_POLICY_SPIN_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_SPIN_NS 50000u /* after the last packet: twice the cost of a wake-up */
#define VB_SPIN_LOST_NS 20000u /* between two looks: another thread may have run on our CPU */
#define VB_SPIN_ROUND_NS 1000000u /* between two looks at everything */
#define VB_SPIN_SOON_NS 100000u /* a shorter sleep was hardly worth it */
#define VB_SPIN_EARNED 4u /* by this many short sleeps in a row */
#define VB_SPIN_EARNED_MAX 1024u
#define VB_SPIN_COUNTED_NS 1000000u /* how long a free CPU counts … */
#define VB_SPIN_RESTS_NS 10000000u /* … how long the lack of one counts … */
/* … and how long the loss of ours counts; each further loss counts twice as long */
#define VB_SPIN_LOSES_NS 1000000u

struct vb_spin {
	uint32_t soon_count; /* short sleeps in a row */
	uint32_t timeout_count; /* waits without result: each doubles what must be earned */
	uint32_t loss_count; /* losses of our CPU: each doubles the rest that follows */
	uint64_t counted_ns; /* when a CPU was free */
	uint64_t rests_until_ns;
	/* While it lasts: when it began, when the last packet came, when we last looked. */
	uint64_t begin_ns;
	uint64_t packet_ns;
	uint64_t looked_ns;
	bool was_away; /* it did not look for so long that its CPU may have been lost */
};

/* The helper has slept on its sockets; `is_woken`: they woke it. */
void vb_spin_on_sleep(struct vb_spin *spin, uint64_t slept_ns, bool is_woken);

/* Whether the recent packets justify polling … */
bool vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns);
/* … and whether there was a CPU for it a moment ago. If not, threads and CPUs must be counted. */
bool vb_spin_has_cpu(const struct vb_spin *spin, uint64_t now_ns);
/*
 * They were counted: the threads of the whole machine that run or could run, including this one (0:
 * the kernel does not report it), the CPUs that this process may use, and those of the machine (0:
 * not reported). True: there is a CPU, as far as one can know. If the process may use only some of
 * the CPUs, as one that is pinned, the threads may run on its CPUs or on the others, and only the
 * loss of our CPU tells.
 */
VB_MUST_USE bool vb_spin_on_count(struct vb_spin *spin, uint64_t now_ns, uint32_t running_threads,
				  uint32_t own_cpus, uint32_t all_cpus);

void vb_spin_begin(struct vb_spin *spin, uint64_t now_ns);
/* The helper has looked once more; `has_moved`: a packet came. False: it spins no longer. */
VB_MUST_USE bool vb_spin_on_look(struct vb_spin *spin, uint64_t now_ns, bool has_moved);
/*
 * It has stopped, and offered its CPU to other threads; `was_switched`: a thread took the CPU since
 * it began. That alone is no loss: the kernel's own threads run for a few microseconds. A long time
 * between two looks alone is none either: a long packet takes it.
 */
void vb_spin_on_end(struct vb_spin *spin, uint64_t now_ns, bool was_switched);

#endif
