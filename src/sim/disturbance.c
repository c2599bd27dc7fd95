/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disturbances. Each happens rarely; the model learns the expected consequences before it happens.
 */
#include "sim/disturbance.h"

#include "base/err.h"
#include "sim/dice.h"

#define MS 1000000u

static bool chance(struct vb_world *world, uint32_t count, uint32_t of)
{
	return vb_dice_chance(&world->prng, count, of);
}

void vb_disturbance_move_to_err(struct vb_world *world, struct vb_channel_end *end)
{
	if (!vb_channel_is_alive(world, end) ||
	    vb_qp_state(vb_channel_qp(world, end)) == VB_STATE_ERR)
		return;
	vb_channel_expect(world, end, VB_CAUSE_EXPLICIT);
	vb_channel_set_state(world, end, VB_STATE_ERR);
	world->coverage.flaws[VB_FLAW_MOVED_TO_ERR]++;
	vb_world_plan_drive(world, end->node, 0);
}

void vb_disturbance_reconnect(struct vb_world *world, struct vb_channel *channel)
{
	if (channel->reconnects == VB_CHANNEL_RECONNECTS_MAX ||
	    !vb_channel_is_alive(world, &channel->ends[0]) ||
	    !vb_channel_is_alive(world, &channel->ends[1]) || channel->options.type == VB_QP_UD)
		return;
	channel->reconnects++;
	vb_channel_reset(world, channel);
	channel->reopen_ns = world->now_ns + VB_FAULT_DELAY_MAX_NS + 10 * MS;
	world->coverage.flaws[VB_FLAW_RECONNECTED]++;
}

static void destroy_end(struct vb_world *world, struct vb_channel *channel)
{
	uint32_t side = (uint32_t)vb_prng_below(&world->prng, 2);

	if (!vb_channel_is_alive(world, &channel->ends[side]))
		return;
	vb_channel_destroy_end(world, channel, side);
	world->coverage.flaws[VB_FLAW_DESTROYED]++;
}

/* Registering a region again as it is changes nothing for its users. */
static void reregister(struct vb_world *world, struct vb_channel *channel)
{
	struct vb_node *node = world->nodes[channel->ends[0].node];
	struct vb_node_region *region =
		&node->regions[VB_REGION_LOOSE + vb_prng_below(&world->prng, VB_NODE_LOOSE_MAX)];
	struct vb_mr_init init = { .address = region->address,
				   .length = region->length,
				   .iova = region->iova,
				   .access = region->access };

	if (node->is_dead || !region->mr)
		return;
	if (vb_mr_reregister(region->mr, VB_REREG_TRANSLATION | VB_REREG_ACCESS | VB_REREG_PD,
			     node->pds[0], &init) != VB_OK ||
	    vb_mr_key(region->mr) != region->key)
		vb_model_report(&world->model, VB_MODEL_NONE,
				"registering a region again keeps its key", region->key, 0);
	world->coverage.flaws[VB_FLAW_REREGISTERED]++;
}

static void drain_sends(struct vb_world *world, struct vb_channel *channel)
{
	struct vb_channel_end *end = &channel->ends[0];

	if (!vb_channel_is_alive(world, end) ||
	    vb_qp_state(vb_channel_qp(world, end)) != VB_STATE_RTS)
		return;
	end->is_draining = true;
	end->drains_asked++;
	vb_channel_set_state(world, end, VB_STATE_SQD);
	vb_world_plan_drive(world, end->node, 0);
}

void vb_disturbance_resume(struct vb_world *world, struct vb_channel_end *end)
{
	enum vb_qp_state state = vb_qp_state(vb_channel_qp(world, end));

	if (state != VB_STATE_SQD) {
		end->is_draining = false; /* failed meanwhile */
		end->is_drained = false;
	} else if (end->is_drained) {
		end->is_drained = false;
		vb_model_on_resumed(&world->model, end->model);
		vb_channel_set_state(world, end, VB_STATE_RTS);
		vb_world_plan_drive(world, end->node, 0);
	}
}

/* Deregisters a region in use, or lets its memory vanish. */
static void lose_region(struct vb_world *world, struct vb_channel *channel, bool vanishes)
{
	struct vb_channel_end *end = &channel->ends[vb_prng_below(&world->prng, 2)];
	struct vb_node *node = world->nodes[end->node];
	uint32_t which = (uint32_t)vb_prng_below(&world->prng, VB_NODE_LOOSE_MAX);
	struct vb_node_region *region = &node->regions[VB_REGION_LOOSE + which];
	const uint32_t local = VB_STATUS_BIT(VB_STATUS_LOC_PROT_ERR);
	const uint32_t remote = VB_STATUS_BIT(VB_STATUS_REM_ACCESS_ERR) |
				VB_STATUS_BIT(VB_STATUS_REM_OP_ERR);

	if (!vb_channel_is_alive(world, end))
		return;
	if (!region->mr) {
		if (!vanishes && !node->arena->vanished_count)
			vb_node_register_loose(node, which,
					       VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE |
						       VB_ACCESS_REMOTE_READ |
						       VB_ACCESS_REMOTE_ATOMIC);
		return;
	}
	vb_model_forgive(&world->model, node->arena, region->address, region->length, local,
			 remote);
	vb_world_note(world, node->index,
		      vanishes ? VB_ACTION_MEMORY_VANISHES : VB_ACTION_DEREGISTERS, region->key, 0);
	world->coverage.flaws[vanishes ? VB_FLAW_VANISHED : VB_FLAW_DEREGISTERED]++;
	if (vanishes)
		vb_arena_vanish(node->arena, region->address, region->length);
	VB_CHECK(vb_mr_destroy(region->mr) == VB_OK || vanishes);
	region->mr = NULL;
}

static void resize_cq(struct vb_world *world, struct vb_channel *channel)
{
	struct vb_node *node = world->nodes[channel->ends[0].node];
	struct vb_node_cq *cq;
	uint32_t depth;

	if (node->is_dead || !node->cq_count)
		return;
	cq = node->cqs[vb_prng_below(&world->prng, node->cq_count)];
	if (cq->can_overrun)
		return;
	depth = cq->needed + (uint32_t)vb_prng_below(&world->prng, 40);
	if (vb_cq_resize(cq->cq, depth) != VB_OK)
		vb_model_report(&world->model, VB_MODEL_NONE,
				"a CQ can be resized to what its queues need", VB_OK, 1);
	cq->depth = depth;
	world->coverage.flaws[VB_FLAW_CQ_RESIZED]++;
}

static void arm_something(struct vb_world *world, struct vb_channel *channel)
{
	struct vb_node *node = world->nodes[channel->ends[0].node];
	uint32_t cq;

	if (node->is_dead || !node->cq_count)
		return;
	cq = (uint32_t)vb_prng_below(&world->prng, node->cq_count);
	if (node->cqs[cq]->mode == VB_CQ_POLLED && !node->cqs[cq]->is_armed)
		vb_world_arm(world, node, cq, chance(world, 1, 2));
}

static void arm_limit(struct vb_world *world, struct vb_channel *channel)
{
	struct vb_channel_end *end = &channel->ends[1];
	struct vb_node_srq *srq;

	if (!end->srq_count || !vb_channel_is_alive(world, end))
		return;
	srq = world->nodes[end->node]->srqs[end->srqs[0]];
	vb_world_poll_all(world, world->nodes[end->node]);
	srq->limit = (uint32_t)vb_dice_between(&world->prng, 1, srq->depth);
	srq->is_limit_certain = world->model.srqs[srq->model].outstanding >=
					srq->limit + 2 * srq->users &&
				!srq->resets;
	if (vb_srq_set_limit(srq->srq, srq->limit) != VB_OK)
		vb_model_report(&world->model, VB_MODEL_NONE,
				"an SRQ takes a limit up to its depth", srq->depth, srq->limit);
}

/* A post that can never be valid is refused and changes nothing. */
static void post_nonsense(struct vb_world *world, struct vb_channel *channel)
{
	struct vb_channel_end *end = &channel->ends[0];
	struct vb_sge sges[VB_SGE_MAX + 1] = { { 0 } };
	struct vb_send_request request = { .wr_id = 0xdead,
					   .opcode = VB_WR_SEND,
					   .sges = sges,
					   .sge_count = channel->options.sge_max + 1 };

	if (!vb_channel_is_alive(world, end))
		return;
	if (vb_qp_post_send(vb_channel_qp(world, end), &request) != VB_EINVAL)
		vb_model_report(&world->model, VB_MODEL_NONE,
				"a request with too many SGEs is refused", VB_EINVAL, 0);
	world->coverage.flaws[VB_FLAW_BAD_POST]++;
}

void vb_disturbance_on_tick(struct vb_world *world, struct vb_channel *channel)
{
	uint32_t roll = (uint32_t)vb_prng_below(&world->prng, 1000);

	if (roll < 20)
		resize_cq(world, channel);
	else if (roll < 50)
		arm_something(world, channel);
	else if (roll < 80)
		arm_limit(world, channel);
	else if (roll < 90)
		post_nonsense(world, channel);
	else if (roll < 110 && !channel->is_passive_now)
		drain_sends(world, channel);
	else if (roll < 120)
		reregister(world, channel);
	if (channel->options.is_clean)
		return;
	roll = (uint32_t)vb_prng_below(&world->prng, 1000);
	if (roll < 10)
		vb_disturbance_move_to_err(world, &channel->ends[vb_prng_below(&world->prng, 2)]);
	else if (roll < 20 && channel->options.type != VB_QP_UD)
		vb_disturbance_reconnect(world, channel);
	else if (roll < 40)
		lose_region(world, channel, false);
	else if (roll < 44)
		lose_region(world, channel, true);
	else if (roll < 47)
		destroy_end(world, channel);
}
