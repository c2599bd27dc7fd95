/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault plans, and the fate of single packets. */
#include "sim/fault.h"

#include "sim/dice.h"

#define MS 1000000u

void vb_fault_init(struct vb_fault_plan *plan)
{
	*plan = (struct vb_fault_plan){
		.budget = UINT32_MAX,
		.down_node = VB_FAULT_NODE_NONE,
		.death_node = VB_FAULT_NODE_NONE,
		.restart_node = VB_FAULT_NODE_NONE,
	};
}

static uint32_t draw_rate(struct vb_prng *prng, uint32_t highest)
{
	if (vb_dice_chance(prng, 1, 3))
		return 0;
	return (uint32_t)vb_dice_between(prng, 1,
					 vb_dice_chance(prng, 1, 4) ? highest : highest / 8 + 1);
}

static void draw_rates(struct vb_fault_plan *plan, struct vb_prng *prng)
{
	plan->packets.begin_ns = vb_dice_chance(prng, 3, 4) ? vb_prng_below(prng, 50000)
							    : vb_prng_below(prng, MS);
	plan->packets.end_ns = plan->packets.begin_ns + vb_dice_between(prng, 1, 40) * MS;
	plan->loss = draw_rate(prng, 3000);
	plan->duplicate = draw_rate(prng, 2000);
	plan->reorder = draw_rate(prng, 2000);
	plan->delay = draw_rate(prng, 400);
	plan->corrupt = draw_rate(prng, 1000);
	plan->truncate = draw_rate(prng, 200);
}

static void draw_window(struct vb_fault_window *window, struct vb_prng *prng)
{
	window->begin_ns = vb_prng_below(prng, 5 * MS);
	window->end_ns = window->begin_ns + vb_dice_between(prng, 1, 30) * MS;
}

static void draw_outages(struct vb_fault_plan *plan, struct vb_prng *prng, uint32_t node_count)
{
	if (vb_dice_chance(prng, 1, 4)) {
		draw_window(&plan->partition, prng);
		plan->partition_nodes = (uint32_t)vb_dice_between(prng, 1, (1u << node_count) - 2);
	}
	if (vb_dice_chance(prng, 1, 4)) {
		draw_window(&plan->down, prng);
		plan->down_node = (uint32_t)vb_prng_below(prng, node_count);
	}
}

void vb_fault_draw(struct vb_fault_plan *plan, struct vb_prng *prng, uint32_t node_count)
{
	uint32_t roll = (uint32_t)vb_prng_below(prng, 100);

	vb_fault_init(plan);
	plan->mood = roll < 30	 ? VB_MOOD_CALM
		     : roll < 55 ? VB_MOOD_MILD
		     : roll < 88 ? VB_MOOD_HOSTILE
				 : VB_MOOD_CATASTROPHIC;
	if (plan->mood == VB_MOOD_CALM)
		return;
	draw_rates(plan, prng);
	if (plan->mood == VB_MOOD_MILD) {
		plan->budget = (uint32_t)vb_dice_between(prng, 1, 5);
		return;
	}
	draw_outages(plan, prng, node_count);
	if (plan->mood == VB_MOOD_HOSTILE)
		return;
	if (vb_dice_chance(prng, 1, 2)) {
		plan->death_node = (uint32_t)vb_prng_below(prng, node_count);
		plan->death_ns = vb_prng_below(prng, 3 * MS);
	} else {
		plan->restart_node = (uint32_t)vb_prng_below(prng, node_count);
		plan->restart_ns = vb_prng_below(prng, 3 * MS);
	}
}

static bool is_open(const struct vb_fault_window *window, uint64_t now_ns)
{
	return now_ns >= window->begin_ns && now_ns < window->end_ns;
}

static enum vb_packet_fate decide_by_rates(const struct vb_fault_plan *plan, struct vb_prng *prng)
{
	uint32_t roll = (uint32_t)vb_prng_below(prng, 10000);

	if (roll < plan->loss)
		return VB_FATE_LOST;
	roll -= plan->loss;
	if (roll < plan->duplicate)
		return VB_FATE_DUPLICATED;
	roll -= plan->duplicate;
	if (roll < plan->reorder)
		return VB_FATE_REORDERED;
	roll -= plan->reorder;
	if (roll < plan->delay)
		return VB_FATE_DELAYED;
	roll -= plan->delay;
	if (roll < plan->corrupt)
		return VB_FATE_CORRUPTED;
	roll -= plan->corrupt;
	return roll < plan->truncate ? VB_FATE_TRUNCATED : VB_FATE_DELIVERED;
}

enum vb_packet_fate vb_fault_decide(struct vb_fault_plan *plan, struct vb_prng *prng,
				    uint64_t now_ns, uint64_t packet_number, uint32_t from,
				    uint32_t to)
{
	enum vb_packet_fate fate = VB_FATE_DELIVERED;

	if (packet_number < plan->script_length)
		return plan->script[packet_number];
	if (is_open(&plan->partition, now_ns) &&
	    (plan->partition_nodes >> from & 1) != (plan->partition_nodes >> to & 1))
		return VB_FATE_PARTITIONED;
	if (is_open(&plan->down, now_ns) && (from == plan->down_node || to == plan->down_node))
		return VB_FATE_LINK_DOWN;
	if (is_open(&plan->packets, now_ns) && plan->budget)
		fate = decide_by_rates(plan, prng);
	if (fate != VB_FATE_DELIVERED && plan->budget != UINT32_MAX)
		plan->budget--;
	return fate;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t vb_fault_end(const struct vb_fault_plan *plan)
{
	uint64_t end =
		later(later(plan->packets.end_ns, plan->partition.end_ns), plan->down.end_ns);

	if (plan->death_node != VB_FAULT_NODE_NONE)
		end = later(end, plan->death_ns);
	if (plan->restart_node != VB_FAULT_NODE_NONE)
		end = later(end, plan->restart_ns);
	return end ? end + VB_FAULT_DELAY_MAX_NS + MS : 0;
}

bool vb_fault_is_hostile(const struct vb_fault_plan *plan)
{
	return plan->mood >= VB_MOOD_HOSTILE;
}

const char *vb_mood_describe(enum vb_fault_mood mood)
{
	static const char *const names[VB_MOOD_COUNT] = { "calm", "mild", "hostile",
							  "catastrophic" };

	return names[mood];
}
