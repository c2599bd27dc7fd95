/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice between trains and packets. Whatever else happens on a machine only adds time, so the
 * least cost of a few samples says most about a way. A trial that was unlucky costs little, because
 * there will be others.
 */
#include "nic/train_choice_priv.h"

#include "base/bytes.h"

#define COST_BYTES_LOG2 20u /* costs are those of a MB */
#define COST_NONE UINT32_MAX
#define BUSY_NS_MAX (1ull << 43)

void vb_train_choice_init(struct vb_train_choice *choice)
{
	*choice = (struct vb_train_choice){
		.costs = { COST_NONE, COST_NONE, COST_NONE },
		.samples_left = VB_TRIAL_SAMPLES_MAX,
		.next_wait = VB_TRIAL_WAIT_MIN,
		.chosen = VB_BY_TRAINS,
	};
}

enum vb_train_way vb_train_choice_way(const struct vb_train_choice *choice)
{
	bool is_by_trains = (choice->chosen == VB_BY_TRAINS) != choice->is_trial;

	return is_by_trains ? VB_BY_TRAINS : VB_BY_PACKETS;
}

static uint32_t least_cost(const struct vb_train_choice *choice)
{
	return min32(choice->costs[0], min32(choice->costs[1], choice->costs[2]));
}

static uint32_t cost_of_sample(const struct vb_train_choice *choice)
{
	uint64_t busy_ns = choice->busy_ns < BUSY_NS_MAX ? choice->busy_ns : BUSY_NS_MAX;
	uint64_t cost = (busy_ns << COST_BYTES_LOG2) / choice->byte_count;

	return cost < COST_NONE ? (uint32_t)cost : COST_NONE - 1;
}

static void begin_sample(struct vb_train_choice *choice)
{
	choice->busy_ns = 0;
	choice->byte_count = 0;
}

/* What is in flight went the other way, or was disturbed. */
static void begin_sample_behind_flight(struct vb_train_choice *choice)
{
	begin_sample(choice);
	choice->first = choice->newest + 1;
}

static void begin_trial(struct vb_train_choice *choice)
{
	choice->is_trial = true;
	choice->trial_cost = COST_NONE;
	choice->trial_sample_count = 0;
	begin_sample_behind_flight(choice);
}

static void end_trial(struct vb_train_choice *choice)
{
	choice->is_trial = false;
	choice->samples_left = choice->next_wait;
	begin_sample_behind_flight(choice);
}

static void wait_longer(struct vb_train_choice *choice)
{
	choice->next_wait = (uint16_t)min32(2u * choice->next_wait, VB_TRIAL_WAIT_MAX);
}

/* The way of the trial is now the chosen one. */
static void change(struct vb_train_choice *choice)
{
	choice->chosen = (uint8_t)vb_train_choice_way(choice);
	for (uint32_t i = 0; i < VB_TRIAL_SAMPLES_MAX; i++)
		choice->costs[i] = choice->trial_cost;
	choice->next_wait = VB_TRIAL_WAIT_MIN;
}

static void take_sample(struct vb_train_choice *choice, uint32_t cost)
{
	choice->costs[choice->cost_index] = cost;
	choice->cost_index = (uint8_t)((choice->cost_index + 1u) % VB_TRIAL_SAMPLES_MAX);
	if (--choice->samples_left)
		begin_sample(choice);
	else
		begin_trial(choice);
}

/* A tenth less is clear. Without such a margin, two ways that cost the same would alternate. */
static bool is_clearly_less(uint32_t cost, uint32_t other)
{
	return 10ull * cost < 9ull * other;
}

/*
 * A way that costs half as much again will not win, and trying it on would cost the most. One
 * sample does not say so yet: the CPU may have been taken away during it.
 */
static bool is_hopeless(const struct vb_train_choice *choice, uint32_t other)
{
	uint64_t cost = choice->trial_cost;

	return choice->trial_sample_count > 1 ? 2 * cost > 3ull * other : cost > 4ull * other;
}

static void take_trial_sample(struct vb_train_choice *choice, uint32_t cost)
{
	uint32_t chosen_cost = least_cost(choice);

	choice->trial_cost = min32(choice->trial_cost, cost);
	choice->trial_sample_count++;
	if (is_clearly_less(choice->trial_cost, chosen_cost))
		change(choice);
	else if (choice->trial_sample_count < VB_TRIAL_SAMPLES_MAX &&
		 !is_hopeless(choice, chosen_cost)) {
		begin_sample(choice);
		return;
	}
	end_trial(choice);
	wait_longer(choice);
}

void vb_train_choice_on_begun(struct vb_train_choice *choice, uint32_t number, bool is_busy,
			      uint64_t now_ns)
{
	if (!is_busy) {
		choice->counted_ns = now_ns;
		choice->first = number;
	}
	choice->newest = number;
}

bool vb_train_choice_on_done(struct vb_train_choice *choice, uint32_t number, uint32_t length,
			     uint32_t sample_bytes, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - choice->counted_ns;

	choice->counted_ns = now_ns;
	if ((int32_t)(number - choice->first) >= 0) {
		choice->busy_ns += passed_ns;
		choice->byte_count += length;
		if (choice->byte_count >= sample_bytes) {
			uint32_t cost = cost_of_sample(choice);

			if (choice->is_trial)
				take_trial_sample(choice, cost);
			else
				take_sample(choice, cost);
		}
	}
	return number != choice->newest;
}

void vb_train_choice_on_disturbed(struct vb_train_choice *choice)
{
	if (choice->is_trial)
		end_trial(choice);
	else
		begin_sample_behind_flight(choice);
}
