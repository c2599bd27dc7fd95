/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The actions of a program on a channel at each tick: posts of all kinds, receives, polling;
 * sometimes an error or a disturbance. When the program has done enough, it keeps receives posted
 * until everything is done, and stops.
 */
#include "sim/workload.h"

#include "base/err.h"
#include "sim/choice.h"
#include "sim/dice.h"
#include "sim/disturbance.h"
#include "sim/draft.h"
#include "sim/window.h"

#define MS 1000000u

static bool chance(struct vb_world *world, uint32_t count, uint32_t of)
{
	return vb_dice_chance(&world->prng, count, of);
}

static bool is_reliable(const struct vb_channel *channel)
{
	return channel->options.type == VB_QP_RC || channel->options.type == VB_QP_XRC_SEND;
}

static struct vb_model_qp *model_of(struct vb_world *world, const struct vb_channel_end *end)
{
	return &world->model.qps[end->model];
}

/*
 * The number of receives that a queue should have. Receives lost in a reset are not known to be
 * gone.
 */
static uint32_t receives_wanted(const struct vb_channel *channel, const struct vb_node_srq *srq)
{
	uint32_t by_memory = 65536 / (channel->options.message_max + 64) + 1;
	uint32_t depth = srq ? srq->depth : channel->options.recv_depth;

	return (by_memory < depth ? by_memory : depth) + (srq ? srq->resets * depth : 0);
}

static uint32_t receives_outstanding(struct vb_world *world, const struct vb_channel_end *end,
				     uint32_t srq)
{
	const struct vb_model_queue *queue = &model_of(world, end)->recv;

	if (end->srq_count)
		return world->model.srqs[world->nodes[end->node]->srqs[end->srqs[srq]]->model]
			.outstanding;
	return queue->posted - queue->freed;
}

static enum vb_flaw pick_receive_flaw(struct vb_world *world, const struct vb_channel *channel)
{
	if (channel->options.is_clean || !is_reliable(channel) || !channel->options.message_max ||
	    !chance(world, 1, 120))
		return VB_FLAW_NONE;
	return chance(world, 1, 2) ? VB_FLAW_SHORT_RECEIVE : VB_FLAW_RECEIVE_LKEY;
}

/*
 * A QP in error returns receives immediately. A program that is done posts no more of them, however
 * long the other side waits.
 */
static bool is_given_up(const struct vb_world *world, const struct vb_channel *channel,
			const struct vb_channel_end *end)
{
	return !channel->operations_left && !end->srq_count &&
	       vb_qp_state(vb_channel_qp(world, end)) == VB_STATE_ERR;
}

static void post_receives(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	uint32_t queues = end->srq_count ? end->srq_count : 1;

	if (!vb_channel_is_alive(world, end) || is_given_up(world, channel, end) ||
	    (is_reliable(channel) && channel->options.type != VB_QP_RC && side == 0))
		return;
	for (uint32_t q = 0; q < queues; q++) {
		const struct vb_node_srq *srq =
			end->srq_count ? world->nodes[end->node]->srqs[end->srqs[q]] : NULL;

		while (receives_outstanding(world, end, q) < receives_wanted(channel, srq)) {
			enum vb_flaw flaw = pick_receive_flaw(world, channel);
			uint32_t capacity = srq ? srq->capacity : channel->options.message_max;
			uint32_t region = chance(world, 1, 10) ? VB_REGION_LOCAL : VB_REGION_FULL;
			uint32_t sges = (uint32_t)vb_dice_between(
				&world->prng, 1, srq ? srq->sge_max : channel->options.sge_max);

			if (flaw == VB_FLAW_SHORT_RECEIVE)
				capacity = (uint32_t)vb_prng_below(&world->prng, capacity);
			if (vb_draft_receive(world, channel->index, side, q, capacity, sges, region,
					     flaw) != VB_DRAFT_POSTED &&
			    (region == VB_REGION_FULL ||
			     vb_draft_receive(world, channel->index, side, q, capacity, sges,
					      VB_REGION_FULL, flaw) != VB_DRAFT_POSTED))
				break;
		}
	}
}

/* Without the other QP, only plain messages can be addressed to it. */
static bool can_address(const struct vb_world *world, const struct vb_channel *channel,
			uint32_t side)
{
	return vb_channel_is_there(world, &channel->ends[1 - side]);
}

static bool is_registered(const struct vb_node *node, uint32_t region)
{
	return node->regions[region].mr;
}

static void replace_lost_regions(const struct vb_world *world, const struct vb_channel *channel,
				 struct vb_draft *draft)
{
	const struct vb_node *node = world->nodes[channel->ends[draft->side].node];
	const struct vb_node *far = world->nodes[channel->ends[1 - draft->side].node];

	if (!is_registered(node, draft->local_region))
		draft->local_region = VB_REGION_FULL;
	if (!is_registered(far, draft->remote_region))
		draft->remote_region = VB_REGION_FULL;
}

/*
 * Posts a WRITE of the data that an earlier READ fetches. The result is correct only if the fence
 * holds the WRITE back.
 */
static void post_relay(struct vb_world *world, struct vb_channel *channel,
		       const struct vb_draft *read)
{
	struct vb_draft draft = *read;

	if (vb_model_is_full(&world->model, channel->ends[read->side].model, false) ||
	    !(channel->options.access[1 - read->side] & VB_ACCESS_REMOTE_WRITE) ||
	    !chance(world, 1, 2))
		return;
	draft.opcode = VB_WR_WRITE;
	draft.flags = VB_SEND_SIGNALED | VB_SEND_FENCE;
	draft.remote_region = VB_REGION_FULL;
	draft.is_relay = true;
	draft.relays = world->model.request_count - 1;
	vb_draft_send(world, &draft);
}

static void post_one(struct vb_world *world, struct vb_channel *channel, uint32_t side,
		     bool is_held_back)
{
	struct vb_draft draft = vb_choice_request(world, channel, side);
	enum vb_draft_result result;

	draft.is_held_back = is_held_back;
	if (!can_address(world, channel, side)) {
		if (channel->options.type != VB_QP_RC && channel->options.type != VB_QP_UC)
			return;
		draft.opcode = VB_WR_SEND;
		draft.flaw = VB_FLAW_NONE;
		draft.is_in_series = false;
		draft.length = 0;
	}
	replace_lost_regions(world, channel, &draft);
	result = vb_draft_send(world, &draft);
	if (result == VB_DRAFT_NO_MEMORY && draft.flaw == VB_FLAW_NONE) {
		draft.local_region = draft.remote_region = VB_REGION_FULL;
		result = vb_draft_send(world, &draft);
	}
	if (result == VB_DRAFT_POSTED && draft.opcode == VB_WR_READ && draft.flaw == VB_FLAW_NONE)
		post_relay(world, channel, &draft);
}

static bool can_post(const struct vb_world *world, const struct vb_channel *channel, uint32_t side)
{
	const struct vb_channel_end *end = &channel->ends[side];

	return vb_channel_can_send(channel, side) && vb_channel_is_alive(world, end) &&
	       !(channel->is_passive_now && side == 1);
}

static void post_sends(struct vb_world *world, struct vb_channel *channel)
{
	uint32_t side = vb_channel_can_send(channel, 1) ? (uint32_t)vb_prng_below(&world->prng, 2)
							: 0;
	uint32_t count = (uint32_t)vb_dice_between(&world->prng, 1, 4);
	bool is_terse = vb_choice_is_terse(world, channel);

	if (!can_post(world, channel, side)) {
		if (channel->operations_left)
			channel->operations_left--;
		return;
	}
	for (uint32_t i = 0; i < count && channel->operations_left; i++) {
		bool is_full = vb_model_is_full(&world->model, channel->ends[side].model, false);

		if (is_full && !chance(world, 1, 8)) {
			/* The queue may stay full forever. */
			channel->operations_left -= chance(world, 1, 20);
			break;
		}
		channel->operations_left--;
		post_one(world, channel, side, !is_terse && i + 1 < count);
		if (is_terse)
			vb_world_drive(world, world->nodes[channel->ends[side].node]);
	}
	vb_qp_publish_and_ring(vb_channel_qp(world, &channel->ends[side]));
}

static bool is_waiting(struct vb_world *world, struct vb_channel *channel)
{
	for (uint32_t side = 0; side < 2; side++) {
		const struct vb_channel_end *end = &channel->ends[side];

		if (vb_channel_is_alive(world, end) &&
		    (vb_model_is_waiting(&world->model, end->model) || end->is_draining ||
		     end->is_drained))
			return true;
	}
	return false;
}

/* Posts a last signaled request, which proves that the unsignaled ones before it are done. */
static bool post_last(struct vb_world *world, struct vb_channel *channel)
{
	bool is_needed = false;

	for (uint32_t side = 0; side < 2; side++) {
		struct vb_channel_end *end = &channel->ends[side];
		struct vb_draft draft = { .channel = channel->index,
					  .side = side,
					  .opcode = VB_WR_SEND,
					  .flags = VB_SEND_SIGNALED,
					  .sge_count = 1 };

		if (!can_post(world, channel, side) || !end->silent_run ||
		    !can_address(world, channel, side))
			continue;
		vb_draft_send(world, &draft);
		is_needed = true;
	}
	return is_needed;
}

static void recover(struct vb_world *world, struct vb_channel_end *end)
{
	if (!vb_channel_is_alive(world, end) ||
	    vb_qp_state(vb_channel_qp(world, end)) != VB_STATE_SQE)
		return;
	vb_world_drive(world, world->nodes[end->node]);
	vb_world_poll_all(world, world->nodes[end->node]);
	if (vb_model_is_waiting(&world->model, end->model) ||
	    vb_model_pending_sends(&world->model, end->model))
		return;
	vb_model_on_recovered(&world->model, end->model);
	vb_channel_set_state(world, end, VB_STATE_RTS);
	world->coverage.flaws[VB_FLAW_RECOVERED]++;
}

/* True if the program has no memory for a receive that the other side waits for. */
static bool is_starved(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	const struct vb_node *node = world->nodes[end->node];
	const struct vb_node_region *full = &node->regions[VB_REGION_FULL];
	uint32_t length = channel->options.message_max;
	uint64_t block;

	if (!vb_channel_is_alive(world, end) ||
	    !vb_channel_is_alive(world, &channel->ends[1 - side]) ||
	    !vb_model_is_waiting(&world->model, channel->ends[1 - side].model))
		return false;
	if (end->srq_count)
		length = node->srqs[end->srqs[0]]->capacity;
	block = vb_arena_allocate(node->arena, full->address, full->address + full->length,
				  length + 64, 1);
	if (block)
		vb_arena_release(node->arena, block);
	return !block;
}

static void plan_tick(struct vb_world *world, struct vb_channel *channel, uint64_t delay_ns)
{
	vb_agenda_add(&world->agenda, world->now_ns + delay_ns, VB_ITEM_TICK, channel->index, NULL);
}

/* True if one end waits for receives of the other. */
static bool is_wanted(struct vb_world *world, const struct vb_channel *channel)
{
	for (uint32_t side = 0; side < 2 && is_reliable(channel); side++) {
		const struct vb_model_qp *sender = model_of(world, &channel->ends[side]);

		if (sender->next_message != VB_MODEL_NONE && !sender->has_failed &&
		    !sender->is_removed && vb_channel_is_alive(world, &channel->ends[1 - side]))
			return true;
	}
	return false;
}

static void wind_down(struct vb_world *world, struct vb_channel *channel)
{
	vb_channel_activate(world, channel);
	if (is_starved(world, channel, 0) || is_starved(world, channel, 1)) {
		vb_disturbance_move_to_err(world, &channel->ends[0]);
		vb_disturbance_move_to_err(world, &channel->ends[1]);
	}
	if (world->now_ns > channel->deadline_ns ||
	    (!is_waiting(world, channel) && !post_last(world, channel))) {
		channel->state = VB_CHANNEL_CLOSED;
		return;
	}
	if (channel->interval_ns < (is_wanted(world, channel) ? 1 : 20) * MS)
		channel->interval_ns *= 2;
	plan_tick(world, channel, channel->interval_ns);
}

static void reopen(struct vb_world *world, struct vb_channel *channel)
{
	if (!vb_channel_is_alive(world, &channel->ends[0]) ||
	    !vb_channel_is_alive(world, &channel->ends[1])) {
		channel->state = VB_CHANNEL_CLOSED;
		return;
	}
	if (world->now_ns < channel->reopen_ns) {
		plan_tick(world, channel, channel->reopen_ns - world->now_ns);
		return;
	}
	channel->options.psn[0] = (uint32_t)vb_prng_below(&world->prng, 0x1000000);
	channel->options.psn[1] = (uint32_t)vb_prng_below(&world->prng, 0x1000000);
	vb_channel_connect(world, channel);
	plan_tick(world, channel, channel->interval_ns);
}

static bool has_failed(struct vb_world *world, const struct vb_channel *channel)
{
	return model_of(world, &channel->ends[0])->has_failed ||
	       model_of(world, &channel->ends[1])->has_failed;
}

static void look_around(struct vb_world *world, struct vb_channel *channel)
{
	for (uint32_t side = 0; side < 2; side++) {
		struct vb_channel_end *end = &channel->ends[side];
		struct vb_node *node = world->nodes[end->node];

		if (!vb_channel_is_alive(world, end))
			continue;
		for (uint32_t i = 0; i < node->cq_count; i++) {
			if (node->cqs[i]->mode == VB_CQ_POLLED &&
			    (!channel->operations_left || chance(world, 1, 2)))
				vb_world_poll(world, node, i, UINT32_MAX);
		}
		if (!is_reliable(channel))
			recover(world, end);
		if (end->is_draining || end->is_drained)
			vb_disturbance_resume(world, end);
		post_receives(world, channel, side);
	}
}

void vb_workload_on_tick(struct vb_world *world, uint32_t index)
{
	struct vb_channel *channel = world->channels[index];

	if (channel->state == VB_CHANNEL_RESET) {
		reopen(world, channel);
		return;
	}
	look_around(world, channel);
	if (!channel->operations_left) {
		wind_down(world, channel);
		return;
	}
	if (chance(world, 1, 3))
		vb_channel_activate(world, channel);
	if (chance(world, 3, 4))
		post_sends(world, channel);
	if (channel->options.type == VB_QP_RC)
		vb_window_on_tick(world, channel);
	vb_disturbance_on_tick(world, channel);
	if (channel->state == VB_CHANNEL_OPEN && has_failed(world, channel) && chance(world, 1, 6))
		vb_disturbance_reconnect(world, channel);
	plan_tick(world, channel, vb_dice_between(&world->prng, 1, channel->interval_ns));
}
