/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the helper thread does next. It drives when no thread of the program does. While the program
 * polls, the helper pauses; while a thread waits on the sockets, the helper keeps only deadlines;
 * otherwise it waits on the sockets itself, asleep or awake (spin.h). docs/adr/0006 has the rules
 * in one table. The helper owns this state, and the time is an argument.
 */
#ifndef VB_HOST_POLICY_HELPER_POLICY_H
#define VB_HOST_POLICY_HELPER_POLICY_H

#include "base/err.h"
#include "host/policy/spin.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_drive_policy;

/*
 * The first pause is short: some programs poll for a moment only and then wait for data in memory,
 * which only the helper brings in. Each pause is twice as long as the one before, for as long as
 * the program continues to poll; and in the end it lasts until the program no longer postpones the
 * alarm.
 */
#define VB_HELPER_FIRST_PAUSE_NS 50000u
#define VB_HELPER_PAUSE_NS 1000000u
/*
 * After traffic the helper sleeps no longer than this: a deadline that the next request brings is
 * then usually a later one, and no thread needs to wake the helper for each request.
 */
#define VB_HELPER_LINGER_NS 10000000u
#define VB_HELPER_MISSES_MAX 2u

struct vb_helper_policy {
	uint64_t moves; /* how often driving had moved something, at our last drive */
	uint64_t pause_ns; /* how long the next pause is */
	uint32_t rounds; /* the program's rounds at our last look */
	uint32_t misses; /* looks in a row at which another thread was driving */
	struct vb_spin spin;
};

enum vb_helper_step {
	VB_HELPER_LOOK, /* again, without a wait */
	VB_HELPER_PAUSE, /* see vb_helper_policy_take_pause() */
	VB_HELPER_KEEP_DEADLINES, /* sleep; the sockets are watched by another thread */
	VB_HELPER_SPIN, /* wait awake for the next packet, if there is a CPU for it */
	VB_HELPER_SLEEP, /* on the sockets */
};

void vb_helper_policy_init(struct vb_helper_policy *helper);

/*
 * The helper looks; `is_rung`: a doorbell waits. False: the program drives everything itself, and
 * would only have to wait for the helper.
 */
VB_MUST_USE bool vb_helper_policy_on_look(struct vb_helper_policy *helper,
					  const struct vb_drive_policy *policy, uint64_t now_ns,
					  bool is_rung);

/* Another thread has the engine. True: the helper waits for it. */
VB_MUST_USE bool vb_helper_policy_on_miss(struct vb_helper_policy *helper);

/*
 * The helper has driven; `moves`: how often driving has moved something, by any thread. Returns
 * when to look again at the latest, which is not after `deadline_ns`.
 */
uint64_t vb_helper_policy_on_driven(struct vb_helper_policy *helper, uint64_t now_ns,
				    uint64_t deadline_ns, uint64_t moves);

/* What comes next, after the helper has driven or left that to another thread. */
VB_MUST_USE enum vb_helper_step vb_helper_policy_next(struct vb_helper_policy *helper,
						      const struct vb_drive_policy *policy,
						      uint64_t now_ns, bool has_driven,
						      bool is_rung);

/* A pause begins. Returns its length; one of VB_HELPER_PAUSE_NS can be postponed by an alarm. */
uint64_t vb_helper_policy_take_pause(struct vb_helper_policy *helper);

/*
 * After the helper has announced that it pauses: whether that is still right. A thread that arms a
 * CQ may have looked before the announcement. `is_owned`: some thread has the engine.
 */
bool vb_helper_policy_may_pause(const struct vb_drive_policy *policy, uint64_t now_ns,
				bool is_owned);

/* While the helper spins: whether no thread of the program polls or waits. */
bool vb_helper_policy_may_spin_on(const struct vb_drive_policy *policy, uint64_t now_ns);

#endif
