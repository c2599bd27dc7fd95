/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Choosing requests: sizes around multiples of the MTU, regions of all rights, now and then a flaw.
 */
#include "sim/choice.h"

#include "sim/dice.h"
#include "sim/draft_priv.h"

#define SHORT_MAX 64u /* bytes */

static bool chance(struct vb_world *world, uint32_t count, uint32_t of)
{
	return vb_dice_chance(&world->prng, count, of);
}

bool vb_choice_is_terse(const struct vb_world *world, const struct vb_channel *channel)
{
	return world->shm_links.depth && channel->options.type == VB_QP_RC &&
	       (world->options.seed + channel->index) % 3 == 0;
}

static enum vb_wr_opcode pick_opcode(struct vb_world *world, const struct vb_channel *channel)
{
	static const enum vb_wr_opcode all[] = {
		VB_WR_SEND, VB_WR_SEND_IMM,  VB_WR_WRITE,	 VB_WR_WRITE_IMM,
		VB_WR_READ, VB_WR_FETCH_ADD, VB_WR_COMPARE_SWAP, VB_WR_ATOMIC_WRITE,
	};

	switch (channel->options.type) {
	case VB_QP_UD:
		return all[vb_prng_below(&world->prng, 2)];
	case VB_QP_UC:
		return all[vb_prng_below(&world->prng, 4)];
	case VB_QP_XRC_SEND:
		return all[vb_prng_below(&world->prng, 7)];
	case VB_QP_RC:
	case VB_QP_XRC_RECV:
		break;
	}
	return all[vb_prng_below(&world->prng, 8)];
}

static uint32_t pick_length(struct vb_world *world, uint32_t mtu, uint32_t most)
{
	uint32_t roll = (uint32_t)vb_prng_below(&world->prng, 100);
	uint32_t length;

	if (roll < 8)
		return 0;
	if (roll < 13)
		return most ? 1 : 0;
	if (roll < 45 && most >= mtu) {
		length = (uint32_t)vb_dice_between(&world->prng, 1, most / mtu) * mtu - 1 +
			 (uint32_t)vb_prng_below(&world->prng, 3);
		return length < most ? length : most;
	}
	return (uint32_t)vb_dice_between(&world->prng, 0, roll < 70 && most > 64 ? 64 : most);
}

static uint32_t pick_local_region(struct vb_world *world, enum vb_wr_opcode opcode)
{
	uint32_t roll = (uint32_t)vb_prng_below(&world->prng, 100);
	bool is_source = !vb_draft_has_sink(opcode);

	if (roll < 8)
		return VB_REGION_LOCAL;
	if (roll < 12 && is_source)
		return VB_REGION_READABLE;
	if (roll < 15)
		return VB_REGION_DEVICE;
	return roll < 22 ? VB_REGION_LOOSE + roll % VB_NODE_LOOSE_MAX : VB_REGION_FULL;
}

static uint32_t pick_remote_region(struct vb_world *world, enum vb_wr_opcode opcode)
{
	uint32_t roll = (uint32_t)vb_prng_below(&world->prng, 100);

	if (roll < 8 && opcode == VB_WR_READ)
		return VB_REGION_READABLE;
	if (roll < 12)
		return VB_REGION_DEVICE;
	return roll < 22 ? VB_REGION_LOOSE + roll % VB_NODE_LOOSE_MAX : VB_REGION_FULL;
}

/*
 * Finds a type 2 window that another channel's QP has bound on the machine that this request goes
 * to.
 */
static bool find_foreign_window(struct vb_world *world, struct vb_draft *draft)
{
	const struct vb_channel *own = world->channels[draft->channel];
	const struct vb_channel_end *peer = &own->ends[1 - draft->side];

	if (draft->opcode != VB_WR_WRITE)
		return false;
	for (uint32_t i = 0; i < world->channel_count; i++) {
		const struct vb_channel *other = world->channels[i];

		for (uint32_t side = 0; other != own && side < 2; side++) {
			const struct vb_channel_end *end = &other->ends[side];

			if (end->node != peer->node || end->window_phase != VB_WINDOW_BOUND ||
			    end->window_is_type_1 || !vb_channel_is_alive(world, end))
				continue;
			draft->foreign_key = end->window_key;
			draft->length =
				(uint32_t)vb_dice_between(&world->prng, 1, end->window_length);
			return true;
		}
	}
	return false;
}

static enum vb_flaw pick_rdma_flaw(struct vb_world *world, struct vb_draft *draft)
{
	bool is_atomic = vb_draft_is_atomic(draft->opcode);

	if (find_foreign_window(world, draft) && chance(world, 1, 2))
		return VB_FLAW_FOREIGN_WINDOW;
	switch (vb_prng_below(&world->prng, 6)) {
	case 0:
		return is_atomic ? VB_FLAW_WRONG_RKEY : VB_FLAW_OTHER_PD;
	case 1:
		return VB_FLAW_REMOTE_RANGE;
	case 2:
		if (is_atomic)
			return VB_FLAW_MISALIGNED;
		draft->remote_region = chance(world, 1, 2) ? VB_REGION_FULL : VB_REGION_DEVICE;
		return VB_FLAW_REMOTE_OVERFLOW;
	case 3:
		if (is_atomic)
			return VB_FLAW_MISALIGNED;
		draft->remote_region = draft->opcode == VB_WR_READ ? VB_REGION_LOCAL
								   : VB_REGION_READABLE;
		return VB_FLAW_REGION_RIGHT;
	default:
		return VB_FLAW_WRONG_RKEY;
	}
}

static enum vb_flaw pick_local_flaw(struct vb_world *world, const struct vb_draft *draft)
{
	bool is_target = vb_draft_has_sink(draft->opcode);

	switch (vb_prng_below(&world->prng, 4)) {
	case 0:
		return VB_FLAW_LOCAL_OTHER_PD;
	case 1:
		return VB_FLAW_LOCAL_RANGE;
	case 2:
		return is_target ? VB_FLAW_LOCAL_RIGHT : VB_FLAW_WRONG_LKEY;
	default:
		return VB_FLAW_WRONG_LKEY;
	}
}

/* Turns a good request into a flawed one. A flaw needs data to be wrong about. */
static void pick_flaw(struct vb_world *world, const struct vb_channel *channel,
		      struct vb_draft *draft)
{
	bool is_rdma = vb_draft_right(draft->opcode);

	if (channel->options.type == VB_QP_UD && chance(world, 1, 2)) {
		draft->flaw = draft->is_to_group ? VB_FLAW_NONE : VB_FLAW_WRONG_QKEY;
		return;
	}
	if (!draft->length)
		draft->length = 1;
	draft->flags &= ~(uint32_t)VB_SEND_INLINE;
	draft->is_in_series = false;
	draft->local_region = draft->remote_region = VB_REGION_FULL;
	if (is_rdma && chance(world, 1, 2))
		draft->flaw = pick_rdma_flaw(world, draft);
	else if (channel->options.type == VB_QP_RC && !is_rdma &&
		 draft->length <= channel->options.message_max && chance(world, 1, 3)) {
		draft->opcode = VB_WR_SEND_INV;
		draft->flaw = VB_FLAW_WRONG_INVALIDATE;
	} else {
		draft->flaw = pick_local_flaw(world, draft);
	}
	if (vb_draft_is_word(draft->opcode))
		draft->length = 8;
}

static void pick_size(struct vb_world *world, struct vb_channel *channel, struct vb_draft *draft)
{
	uint32_t most = channel->options.message_max;

	if (draft->opcode == VB_WR_WRITE || draft->opcode == VB_WR_READ)
		most = most * 2 > 4096 ? most * 2 : 4096;
	draft->length = pick_length(world, channel->options.mtu, most);
	if (vb_draft_is_word(draft->opcode))
		draft->length = 8;
}

static void choose_flags(struct vb_world *world, struct vb_channel *channel, struct vb_draft *draft)
{
	const struct vb_channel_end *end = &channel->ends[draft->side];
	bool must_signal = end->silent_run + 1 >= channel->options.send_depth;

	draft->flags = 0;
	if (must_signal || chance(world, 3, 5))
		draft->flags |= VB_SEND_SIGNALED;
	if (chance(world, 1, 6))
		draft->flags |= VB_SEND_FENCE;
	if (chance(world, 1, 4))
		draft->flags |= VB_SEND_SOLICITED;
	if (draft->length <= channel->options.inline_max && channel->options.inline_max &&
	    chance(world, 1, 3) && !vb_draft_has_sink(draft->opcode))
		draft->flags |= VB_SEND_INLINE;
}

struct vb_draft vb_choice_request(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	struct vb_draft draft = { .channel = channel->index, .side = side };
	bool is_short = vb_choice_is_terse(world, channel) && chance(world, 3, 4);
	uint32_t right;

	draft.opcode = is_short ? VB_WR_WRITE : pick_opcode(world, channel);
	right = vb_draft_right(draft.opcode);
	if (right & ~channel->options.access[1 - side]) {
		if (channel->options.is_clean || !chance(world, 1, 12))
			draft.opcode = VB_WR_SEND;
		else
			draft.flaw = VB_FLAW_QP_RIGHT;
	}
	pick_size(world, channel, &draft);
	draft.sge_count = (uint32_t)vb_dice_between(&world->prng, 1, channel->options.sge_max);
	if (is_short) {
		draft.length = draft.length < SHORT_MAX ? draft.length : SHORT_MAX;
		draft.sge_count = 1;
	}
	draft.srq = (uint32_t)vb_prng_below(&world->prng, VB_CHANNEL_SRQS_MAX);
	draft.local_region = pick_local_region(world, draft.opcode);
	draft.remote_region = pick_remote_region(world, draft.opcode);
	draft.is_to_group = channel->options.type == VB_QP_UD && chance(world, 1, 5);
	choose_flags(world, channel, &draft);
	if (draft.flaw == VB_FLAW_QP_RIGHT && !draft.length)
		draft.length = 1;
	if (draft.opcode == VB_WR_WRITE && channel->options.type == VB_QP_RC &&
	    draft.flaw == VB_FLAW_NONE && chance(world, 1, 8)) {
		draft.is_in_series = true;
		if (end->series != VB_MODEL_NONE)
			draft.length = end->series_length;
		draft.flags &= ~(uint32_t)VB_SEND_INLINE;
		world->coverage.flaws[VB_FLAW_SERIES]++;
	}
	if (draft.flaw == VB_FLAW_NONE && !channel->options.is_clean && chance(world, 1, 40))
		pick_flaw(world, channel, &draft);
	return draft;
}
