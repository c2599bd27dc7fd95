/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/policy/spin.h"

#define TIMEOUTS_MAX 8u
#define LOSSES_MAX 6u

void vb_spin_on_sleep(struct vb_spin *spin, uint64_t slept_ns, bool is_woken)
{
	if (!is_woken || slept_ns > VB_SPIN_SOON_NS)
		spin->soon_count = 0;
	else if (spin->soon_count < VB_SPIN_EARNED_MAX)
		spin->soon_count++;
}

bool vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns)
{
	return spin->soon_count >= VB_SPIN_EARNED << spin->timeout_count &&
	       now_ns >= spin->rests_until_ns;
}

bool vb_spin_has_cpu(const struct vb_spin *spin, uint64_t now_ns)
{
	return now_ns - spin->counted_ns < VB_SPIN_COUNTED_NS;
}

bool vb_spin_on_count(struct vb_spin *spin, uint64_t now_ns, uint32_t running_threads,
		      uint32_t own_cpus, uint32_t all_cpus)
{
	uint32_t cpus = all_cpus > own_cpus ? all_cpus : own_cpus;

	if (!running_threads || running_threads > cpus) {
		spin->rests_until_ns = now_ns + VB_SPIN_RESTS_NS;
		return false;
	}
	if (running_threads <= own_cpus)
		spin->loss_count = 0; /* one of ours is free for certain */
	spin->counted_ns = now_ns;
	return true;
}

void vb_spin_begin(struct vb_spin *spin, uint64_t now_ns)
{
	spin->begin_ns = spin->packet_ns = spin->looked_ns = now_ns;
	spin->was_away = false;
}

static void on_timeout(struct vb_spin *spin)
{
	spin->soon_count = 0;
	if (spin->timeout_count < TIMEOUTS_MAX)
		spin->timeout_count++;
}

static void on_loss(struct vb_spin *spin, uint64_t now_ns)
{
	spin->counted_ns = 0;
	spin->rests_until_ns = now_ns + ((uint64_t)VB_SPIN_LOSES_NS << spin->loss_count);
	if (spin->loss_count < LOSSES_MAX)
		spin->loss_count++;
}

bool vb_spin_on_look(struct vb_spin *spin, uint64_t now_ns, bool has_moved)
{
	bool is_late = now_ns - spin->looked_ns > VB_SPIN_LOST_NS;

	spin->looked_ns = now_ns;
	spin->was_away |= is_late;
	if (has_moved) {
		spin->packet_ns = now_ns;
		spin->timeout_count = 0;
	} else if (is_late) {
		return false;
	} else if (now_ns - spin->packet_ns > VB_SPIN_NS) {
		on_timeout(spin);
		return false;
	}
	return now_ns - spin->begin_ns <= VB_SPIN_ROUND_NS;
}

void vb_spin_on_end(struct vb_spin *spin, uint64_t now_ns, bool was_switched)
{
	bool was_away = spin->was_away || now_ns - spin->looked_ns > VB_SPIN_LOST_NS;

	if (was_away && was_switched)
		on_loss(spin, now_ns);
	else if (now_ns - spin->begin_ns > VB_SPIN_ROUND_NS)
		spin->loss_count = 0; /* the CPU was ours all the time */
}
