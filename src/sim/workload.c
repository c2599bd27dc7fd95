/* SPDX-License-Identifier: BSD-2-Clause */
/* The machines, faults and channels of a world. activity.c defines what is done with them. */
#include "sim/workload.h"

#include "sim/dice.h"

#define MS 1000000u
#define WORLDS_WITH_HASHES 1000u /* in tests/sim/hashes; drawn before trains were measured */
#define ALL_RIGHTS                                                                \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC)

static uint32_t pick_node_count(struct vb_prng *prng)
{
	uint32_t roll = (uint32_t)vb_prng_below(prng, 100);

	return roll < 65 ? 2 : roll < 85 ? 3 : roll < 96 ? 4 : 2;
}

struct vb_world_options vb_workload_draw(uint64_t seed)
{
	static const uint32_t batches[] = { 0, 4, 16 };
	static const uint32_t window_packets[] = { 0, 0, 4, 16, 64 };
	static const uint32_t window_bytes[] = { 0, 0, 3000, 32768 };
	static const uint32_t flight_bytes[] = { 0, 1, 8192, 65536 };
	static const uint32_t depths[] = { 0, 0, 0, 1, 5, 60 };
	static const uint32_t train_mins[] = { 0, 300, 2000, 5000 };
	static const uint32_t train_maxs[] = { 1024, 8192, 128 * 1024 };
	static const uint32_t sample_bytes[] = { 0, 1000, 20000 };
	static const uint32_t rates[] = { 0, 80, 800 };
	struct vb_prng prng;
	struct vb_world_options options = { .seed = seed };
	uint32_t size;

	vb_prng_init(&prng, seed ^ 0x0b7a1c);
	size = (uint32_t)vb_prng_below(&prng, 100);
	options.node_count = pick_node_count(&prng);
	options.memory_length = size < 85   ? 512 * 1024
				: size < 99 ? 2 * 1024 * 1024
					    : 32 * 1024 * 1024;
	options.latency_ns = vb_dice_between(&prng, 300, 4000);
	options.picoseconds_per_byte = size < 85 ? rates[vb_prng_below(&prng, 3)] : 80;
	options.icrc_mode = vb_dice_chance(&prng, 1, 7) ? VB_ICRC_SOLVED : VB_ICRC_STRICT;
	options.batch_segments_max = batches[vb_prng_below(&prng, 3)];
	options.window_packets_max = window_packets[vb_prng_below(&prng, 5)];
	options.flight_bytes_max = flight_bytes[vb_prng_below(&prng, 4)];
	options.has_strange_iovas = vb_dice_chance(&prng, 1, 2);
	options.window_bytes_max = window_bytes[vb_prng_below(&prng, 4)];
	options.shm_link_depth = depths[vb_prng_below(&prng, 6)];
	options.train_length_min = train_mins[vb_prng_below(&prng, 4)];
	options.train_length_max = train_maxs[vb_prng_below(&prng, 3)];
	if (seed > WORLDS_WITH_HASHES)
		options.train_sample_bytes = sample_bytes[vb_prng_below(&prng, 3)];
	return options;
}

static uint32_t pick_depth(struct vb_prng *prng)
{
	return (uint32_t)vb_dice_between(prng, 1, vb_dice_chance(prng, 1, 3) ? 64 : 12);
}

static enum vb_qp_type pick_type(struct vb_prng *prng)
{
	uint32_t roll = (uint32_t)vb_prng_below(prng, 100);

	return roll < 55 ? VB_QP_RC : roll < 70 ? VB_QP_XRC_SEND : roll < 85 ? VB_QP_UC : VB_QP_UD;
}

static uint32_t pick_access(struct vb_prng *prng)
{
	return vb_dice_chance(prng, 3, 4) ? ALL_RIGHTS : (uint32_t)vb_prng_next(prng) & ALL_RIGHTS;
}

static uint32_t pick_psn(struct vb_prng *prng)
{
	return vb_dice_chance(prng, 1, 3) ? 0xffffff - (uint32_t)vb_prng_below(prng, 100)
					  : (uint32_t)vb_prng_below(prng, 0x1000000);
}

static uint32_t pick_message_max(struct vb_world *world, enum vb_qp_type type, uint32_t mtu)
{
	uint32_t most = world->options.memory_length > 8 * 1024 * 1024 ? 4 * 1024 * 1024
			: world->options.memory_length > 1024 * 1024   ? 100 * 1024
								       : 16 * 1024;

	if (type == VB_QP_UD)
		return (uint32_t)vb_dice_between(&world->prng, 0, 4096);
	if (vb_dice_chance(&world->prng, 2, 3) && mtu * 5 < most)
		most = mtu * 5;
	return (uint32_t)vb_dice_between(&world->prng, 0, most);
}

/* Draws the patience of a channel: it depends on what may go wrong. */
static void draw_patience(struct vb_world *world, struct vb_channel_options *options)
{
	struct vb_prng *prng = &world->prng;
	enum vb_fault_mood mood = world->fabric.faults.mood;

	options->timeout = (uint8_t)vb_dice_between(prng, 10, 14);
	options->retry_count = 7;
	if (mood == VB_MOOD_MILD) /* each failed try needs a harmed packet */
		options->retry_count =
			(uint8_t)vb_dice_between(prng, world->fabric.faults.budget, 7);
	else if (vb_dice_chance(prng, 1, 3))
		options->retry_count = (uint8_t)vb_prng_below(prng, 8);
	if (world->is_hostile && vb_dice_chance(prng, 1, 40))
		options->timeout = 0;
	options->rnr_retry = vb_dice_chance(prng, 2, 3) ? 7 : (uint8_t)vb_prng_below(prng, 7);
	options->min_rnr_timer = (uint8_t)vb_dice_between(prng, 1, 20);
	if (vb_dice_chance(prng, 1, 50))
		options->min_rnr_timer = 0;
}

static struct vb_channel_options draw_channel(struct vb_world *world, bool is_clean)
{
	struct vb_prng *prng = &world->prng;
	uint32_t nodes = world->options.node_count;
	struct vb_channel_options options = { .type = pick_type(prng) };

	options.nodes[0] = (uint32_t)vb_prng_below(prng, nodes);
	options.nodes[1] =
		vb_dice_chance(prng, 1, 12)
			? options.nodes[0]
			: (options.nodes[0] + 1 + (uint32_t)vb_prng_below(prng, nodes - 1)) % nodes;
	options.mtu = 256u << vb_prng_below(prng, 5);
	options.send_depth = pick_depth(prng);
	options.recv_depth = pick_depth(prng);
	options.sge_max = (uint32_t)vb_dice_between(prng, 1, 8);
	options.inline_max = vb_dice_chance(prng, 1, 2) ? 0
							: (uint32_t)vb_dice_between(prng, 1, 256);
	options.signal_all = vb_dice_chance(prng, 1, 6);
	options.is_ipv6 = vb_dice_chance(prng, 1, 2);
	options.has_srq = vb_dice_chance(prng, 1, 4) || options.type == VB_QP_XRC_SEND;
	options.shares_srq = options.type == VB_QP_RC && options.has_srq &&
			     vb_dice_chance(prng, 1, 2);
	options.is_clean = is_clean;
	options.is_awaited = vb_dice_chance(prng, 1, 3);
	options.is_moderated = options.is_awaited && vb_dice_chance(prng, 1, 3);
	options.shares_cq = !options.is_awaited && vb_dice_chance(prng, 1, 4);
	options.is_passive = options.type == VB_QP_RC && vb_dice_chance(prng, 1, 8);
	options.cq_shortage = !is_clean && vb_dice_chance(prng, 1, 30) ? 4 : 0;
	options.reads = (uint32_t)vb_dice_between(prng, 1, 8);
	options.access[0] = pick_access(prng);
	options.access[1] = pick_access(prng);
	options.psn[0] = pick_psn(prng);
	options.psn[1] = pick_psn(prng);
	options.message_max = pick_message_max(world, options.type, options.mtu);
	draw_patience(world, &options);
	return options;
}

static bool is_usable(const struct vb_world *world, const struct vb_channel_options *options)
{
	return !world->nodes[options->nodes[0]]->is_dead &&
	       !world->nodes[options->nodes[1]]->is_dead;
}

static void arm_sleepers(struct vb_world *world, struct vb_node *node)
{
	for (uint32_t i = 0; i < node->cq_count; i++) {
		if (node->cqs[i]->mode == VB_CQ_AWAITED && !node->cqs[i]->is_armed)
			vb_world_arm(world, node, i, false);
	}
}

static void add_channel(struct vb_world *world, bool is_clean)
{
	struct vb_channel_options options = draw_channel(world, is_clean);
	struct vb_channel *channel;

	if (!is_usable(world, &options))
		return;
	channel = vb_channel_create(world, &options);
	if (!channel)
		return;
	channel->operations_left = (uint32_t)vb_dice_between(
		&world->prng, 5, vb_dice_chance(&world->prng, 1, 8) ? 300 : 80);
	if (channel->options.message_max > 128 * 1024 && channel->operations_left > 8)
		channel->operations_left = 8; /* of several megabytes each */
	channel->interval_ns = vb_dice_between(&world->prng, 500, 100000);
	channel->deadline_ns = world->fault_end_ns + 60000u * (uint64_t)MS;
	world->coverage.flaws[VB_FLAW_PASSIVE] += options.is_passive;
	arm_sleepers(world, world->nodes[options.nodes[0]]);
	arm_sleepers(world, world->nodes[options.nodes[1]]);
	vb_agenda_add(&world->agenda,
		      world->now_ns + vb_prng_below(&world->prng, channel->interval_ns),
		      VB_ITEM_TICK, channel->index, NULL);
}

static void plan_machines(struct vb_world *world)
{
	const struct vb_fault_plan *plan = &world->fabric.faults;

	if (plan->death_node != VB_FAULT_NODE_NONE)
		vb_agenda_add(&world->agenda, plan->death_ns, VB_ITEM_DEATH, 0, NULL);
	if (plan->restart_node != VB_FAULT_NODE_NONE)
		vb_agenda_add(&world->agenda, plan->restart_ns, VB_ITEM_RESTART, 0, NULL);
	if (!world->shm_links.depth || !world->is_hostile)
		return;
	for (uint64_t i = vb_prng_below(&world->shm_links.prng, 4); i; i--)
		vb_agenda_add(&world->agenda, vb_prng_below(&world->shm_links.prng, 3 * MS),
			      VB_ITEM_BREAK,
			      (uint32_t)vb_prng_below(&world->shm_links.prng,
						      world->options.node_count),
			      NULL);
}

void vb_workload_begin(struct vb_world *world)
{
	struct vb_fault_plan *plan = &world->fabric.faults;
	uint32_t channels = (uint32_t)vb_dice_between(&world->prng, 1,
						      vb_dice_chance(&world->prng, 1, 4) ? 8 : 4);

	vb_fault_draw(plan, &world->prng, world->options.node_count);
	if (world->options.icrc_mode == VB_ICRC_SOLVED)
		plan->corrupt = plan->truncate = 0; /* a 16-bit check does not find every error */
	world->fault_end_ns = vb_fault_end(plan);
	world->is_hostile = vb_fault_is_hostile(plan);
	plan_machines(world);
	for (uint32_t i = 0; i < channels; i++)
		add_channel(world, vb_dice_chance(&world->prng, 1, 3));
	if (vb_dice_chance(&world->prng, 1, 3))
		vb_agenda_add(&world->agenda, vb_prng_below(&world->prng, 10 * MS), VB_ITEM_EPOCH,
			      1, NULL);
	if (world->fault_end_ns)
		vb_agenda_add(&world->agenda, world->fault_end_ns + 5 * MS, VB_ITEM_EPOCH, 0, NULL);
	for (uint32_t i = 1; i <= 3; i++)
		vb_agenda_add(&world->agenda, i * 700000u, VB_ITEM_CHECK, 0, NULL);
}

void vb_workload_on_epoch(struct vb_world *world, uint32_t epochs_left)
{
	uint32_t channels = (uint32_t)vb_dice_between(&world->prng, 1, 2);

	if (!epochs_left)
		world->is_hostile = false; /* everything made from now on must be flawless */
	vb_world_note(world, 0, VB_ACTION_NEW_CHANNELS, channels, epochs_left);
	for (uint32_t i = 0; i < channels; i++)
		add_channel(world, !epochs_left);
}
