/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/policy/helper_policy.h"

#include "host/policy/drive_policy.h"

void vb_helper_policy_init(struct vb_helper_policy *helper)
{
	*helper = (struct vb_helper_policy){ .pause_ns = VB_HELPER_FIRST_PAUSE_NS };
}

/*
 * The program drives everything itself if it polls, has done a whole round since we last asked, and
 * has deferred nothing. A program that merely posts, and always finds its completions, does not
 * look at everything.
 */
bool vb_helper_policy_on_look(struct vb_helper_policy *helper, const struct vb_drive_policy *policy,
			      uint64_t now_ns, bool is_rung)
{
	uint32_t rounds = atomic_load_explicit(&policy->rounds, memory_order_relaxed);
	bool has_gone_round = rounds != helper->rounds;

	helper->rounds = rounds;
	return is_rung || !has_gone_round || !vb_drive_policy_is_polled(policy, now_ns) ||
	       vb_drive_policy_has_deferred_acks(policy);
}

/*
 * To wait for the engine would mean to take the other thread's place when it is done, though it may
 * well go on. But a program that posts without end may never leave a gap.
 */
bool vb_helper_policy_on_miss(struct vb_helper_policy *helper)
{
	return helper->misses++ >= VB_HELPER_MISSES_MAX;
}

uint64_t vb_helper_policy_on_driven(struct vb_helper_policy *helper, uint64_t now_ns,
				    uint64_t deadline_ns, uint64_t moves)
{
	bool is_quiet = helper->moves == moves;
	uint64_t longest_ns = now_ns + (is_quiet ? VB_DRIVE_CHECK_NS : VB_HELPER_LINGER_NS);

	helper->misses = 0;
	helper->moves = moves;
	return deadline_ns < longest_ns ? deadline_ns : longest_ns;
}

enum vb_helper_step vb_helper_policy_next(struct vb_helper_policy *helper,
					  const struct vb_drive_policy *policy, uint64_t now_ns,
					  bool has_driven, bool is_rung)
{
	if (has_driven && is_rung)
		return VB_HELPER_LOOK;
	if (!has_driven || vb_drive_policy_is_polled(policy, now_ns))
		return VB_HELPER_PAUSE;
	helper->pause_ns = VB_HELPER_FIRST_PAUSE_NS;
	if (vb_drive_policy_has_waiters(policy))
		return VB_HELPER_KEEP_DEADLINES;
	return vb_spin_is_earned(&helper->spin, now_ns) ? VB_HELPER_SPIN : VB_HELPER_SLEEP;
}

uint64_t vb_helper_policy_take_pause(struct vb_helper_policy *helper)
{
	uint64_t pause_ns = helper->pause_ns;

	helper->pause_ns = pause_ns < VB_HELPER_PAUSE_NS / 2 ? 2 * pause_ns : VB_HELPER_PAUSE_NS;
	return pause_ns;
}

bool vb_helper_policy_may_pause(const struct vb_drive_policy *policy, uint64_t now_ns,
				bool is_owned)
{
	return is_owned || vb_drive_policy_is_polled(policy, now_ns);
}

bool vb_helper_policy_may_spin_on(const struct vb_drive_policy *policy, uint64_t now_ns)
{
	return !vb_drive_policy_is_polled(policy, now_ns) && !vb_drive_policy_has_waiters(policy);
}
