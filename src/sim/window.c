/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cycle of memory windows. Each end of an RC channel has at most one window at a time, which
 * repeats its phases.
 */
#include "sim/window.h"

#include "sim/dice.h"
#include "sim/draft.h"

#include <string.h>

static bool make(struct vb_world *world, struct vb_channel_end *end, bool is_type_1,
		 uint32_t length)
{
	struct vb_node *node = world->nodes[end->node];
	const struct vb_node_region *region = &node->regions[VB_REGION_FULL];

	end->window = vb_node_add_window(node, is_type_1 ? VB_MW_TYPE_1 : VB_MW_TYPE_2);
	if (end->window == VB_NODE_NONE)
		return false;
	end->window_is_type_1 = is_type_1;
	end->window_length = length;
	end->window_address = vb_arena_allocate(node->arena, region->address,
						region->address + region->length, length, 1);
	if (!end->window_address) {
		end->window = VB_NODE_NONE;
		return false;
	}
	end->window_series = vb_model_add_series(&world->model);
	return true;
}

/* Chooses a key that the window has not had before. */
static void choose_key(struct vb_world *world, struct vb_channel_end *end)
{
	end->window_key = vb_mw_key(world->nodes[end->node]->windows[end->window]);
	end->window_key = (end->window_key & ~0xffu) | ((end->window_key + 1) & 0xff);
}

static bool post(struct vb_world *world, struct vb_channel *channel, struct vb_channel_end *owner,
		 uint32_t side, enum vb_wr_opcode opcode, enum vb_flaw flaw)
{
	struct vb_draft draft = {
		.channel = channel->index,
		.side = side,
		.opcode = opcode,
		.flags = VB_SEND_SIGNALED,
		.sge_count = 1,
		.flaw = flaw,
		.uses_window = opcode == VB_WR_WRITE,
		.length = opcode == VB_WR_WRITE ? owner->window_length : 0,
	};
	uint32_t request = world->model.request_count;

	if (channel->is_passive_now ||
	    vb_model_is_full(&world->model, channel->ends[side].model, false) ||
	    vb_draft_send(world, &draft) != VB_DRAFT_POSTED)
		return false;
	owner->window_request = request;
	return true;
}

static bool is_done(const struct vb_world *world, const struct vb_channel_end *end)
{
	return world->model.requests[end->window_request].outcome != VB_OUTCOME_PENDING;
}

static bool has_request_succeeded(const struct vb_world *world, const struct vb_channel_end *end)
{
	const struct vb_model_request *request = &world->model.requests[end->window_request];

	return request->outcome == VB_OUTCOME_DONE && request->status == VB_STATUS_SUCCESS;
}

static void give_up(struct vb_channel_end *end)
{
	end->window = VB_NODE_NONE;
	end->window_phase = VB_WINDOW_NONE;
}

static void bind(struct vb_world *world, struct vb_channel *channel, struct vb_channel_end *end,
		 uint32_t side)
{
	bool is_wrong = !channel->options.is_clean && vb_dice_chance(&world->prng, 1, 60);
	uint32_t old_key = end->window_key;

	if (end->window == VB_NODE_NONE && !make(world, end, vb_dice_chance(&world->prng, 1, 4),
						 (uint32_t)vb_dice_between(&world->prng, 1, 3000)))
		return;
	choose_key(world, end);
	if (post(world, channel, end, side, VB_WR_BIND_MW,
		 is_wrong ? VB_FLAW_WRONG_BIND : VB_FLAW_NONE))
		end->window_phase = VB_WINDOW_BINDING;
	else
		end->window_key = old_key;
}

bool vb_window_bind(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];

	if (end->window == VB_NODE_NONE && !make(world, end, false, 700))
		return false;
	choose_key(world, end);
	return post(world, channel, end, side, VB_WR_BIND_MW, VB_FLAW_NONE);
}

static void use_or_invalidate(struct vb_world *world, struct vb_channel *channel,
			      struct vb_channel_end *end, uint32_t side)
{
	bool is_wrong = !channel->options.is_clean && vb_dice_chance(&world->prng, 1, 60);

	if (vb_dice_chance(&world->prng, 2, 3)) {
		if (channel->options.access[side] & VB_ACCESS_REMOTE_WRITE &&
		    post(world, channel, end, 1 - side, VB_WR_WRITE, VB_FLAW_NONE))
			world->coverage.flaws[VB_FLAW_WINDOW_USED]++;
		return;
	}
	if (is_wrong) {
		post(world, channel, end, side, VB_WR_LOCAL_INV, VB_FLAW_WRONG_LOCAL_INVALIDATE);
		return;
	}
	if (end->window_is_type_1 || world->model.series[end->window_series].pending)
		return;
	if (vb_dice_chance(&world->prng, 1, 2)
		    ? post(world, channel, end, side, VB_WR_LOCAL_INV, VB_FLAW_NONE)
		    : post(world, channel, end, 1 - side, VB_WR_SEND_INV, VB_FLAW_NONE))
		end->window_phase = VB_WINDOW_INVALIDATING;
}

void vb_window_on_tick(struct vb_world *world, struct vb_channel *channel)
{
	uint32_t side = (uint32_t)vb_prng_below(&world->prng, 2);
	struct vb_channel_end *end = &channel->ends[side];

	if (channel->state != VB_CHANNEL_OPEN || !vb_channel_is_alive(world, end) ||
	    !vb_channel_is_alive(world, &channel->ends[1 - side]) ||
	    !vb_dice_chance(&world->prng, 1, 2))
		return;
	switch (end->window_phase) {
	case VB_WINDOW_NONE:
		bind(world, channel, end, side);
		break;
	case VB_WINDOW_BINDING:
		if (!is_done(world, end))
			break;
		if (has_request_succeeded(world, end))
			end->window_phase = VB_WINDOW_BOUND;
		else
			give_up(end);
		break;
	case VB_WINDOW_BOUND:
		use_or_invalidate(world, channel, end, side);
		break;
	case VB_WINDOW_INVALIDATING:
		if (!is_done(world, end))
			break;
		if (has_request_succeeded(world, end))
			end->window_phase = VB_WINDOW_INVALID;
		else
			give_up(end);
		break;
	case VB_WINDOW_INVALID:
		if (!channel->options.is_clean &&
		    channel->options.access[side] & VB_ACCESS_REMOTE_WRITE &&
		    vb_dice_chance(&world->prng, 1, 6))
			post(world, channel, end, 1 - side, VB_WR_WRITE, VB_FLAW_DEAD_WINDOW);
		else
			bind(world, channel, end, side);
		break;
	}
}
