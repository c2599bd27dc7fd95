/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, connecting and resetting the two ends of a channel. */
#include "sim/channel.h"

#include "base/err.h"
#include "sim/dice.h"
#include "sim/world.h"

static bool is_xrc(const struct vb_channel *channel)
{
	return channel->options.type == VB_QP_XRC_SEND;
}

static enum vb_qp_type type_of(const struct vb_channel *channel, uint32_t end)
{
	return is_xrc(channel) && end == 1 ? VB_QP_XRC_RECV : channel->options.type;
}

bool vb_channel_can_send(const struct vb_channel *channel, uint32_t end)
{
	return type_of(channel, end) != VB_QP_XRC_RECV;
}

bool vb_channel_is_there(const struct vb_world *world, const struct vb_channel_end *end)
{
	const struct vb_node *node = world->nodes[end->node];

	return node->generation == end->generation && node->qps[end->qp];
}

bool vb_channel_is_alive(const struct vb_world *world, const struct vb_channel_end *end)
{
	const struct vb_node *node = world->nodes[end->node];

	return !node->is_dead && node->generation == end->generation && node->qps[end->qp];
}

struct vb_qp *vb_channel_qp(const struct vb_world *world, const struct vb_channel_end *end)
{
	return world->nodes[end->node]->qps[end->qp]->qp;
}

void vb_channel_expect(struct vb_world *world, const struct vb_channel_end *end, uint32_t cause)
{
	vb_model_expect(&world->model, end->model, cause);
}

/* Makes or shares a completion queue for a new queue of that depth. */
static uint32_t choose_cq(struct vb_node *node, const struct vb_channel_options *options,
			  uint32_t depth)
{
	struct vb_node_cq *cq;
	uint32_t index = node->cq_count ? node->cq_count - 1 : VB_NODE_NONE;

	if (options->shares_cq && index != VB_NODE_NONE && !node->cqs[index]->can_overrun &&
	    !options->cq_shortage) {
		cq = node->cqs[index];
		cq->needed += depth;
		if (cq->depth < cq->needed) {
			VB_CHECK(vb_cq_resize(cq->cq, cq->needed) == VB_OK);
			cq->depth = cq->needed;
		}
		return index;
	}
	index = vb_node_add_cq(node,
			       depth > options->cq_shortage ? depth - options->cq_shortage : 1);
	if (index == VB_NODE_NONE)
		return index;
	cq = node->cqs[index];
	cq->needed = depth;
	cq->can_overrun = cq->depth < cq->needed;
	cq->mode = options->is_awaited ? VB_CQ_AWAITED : VB_CQ_POLLED;
	if (options->is_moderated) {
		cq->is_moderated = true;
		VB_CHECK(vb_cq_moderate(cq->cq, 4, 50) == VB_OK);
	}
	return index;
}

static bool add_srq(struct vb_world *world, struct vb_channel *channel, struct vb_channel_end *end,
		    uint32_t cq)
{
	struct vb_node *node = world->nodes[end->node];
	const struct vb_channel_options *options = &channel->options;
	struct vb_srq_init init = {
		.depth = options->recv_depth,
		.sge_max = options->sge_max,
		.xrcd = is_xrc(channel) ? node->xrcd : NULL,
		.cq = is_xrc(channel) ? node->cqs[cq]->cq : NULL,
	};
	uint32_t srq = vb_node_add_srq(node, &init);

	if (srq == VB_NODE_NONE)
		return false;
	node->srqs[srq]->cq = cq;
	node->srqs[srq]->model = vb_model_add_srq(&world->model, init.depth);
	node->srqs[srq]->capacity = options->message_max;
	node->srqs[srq]->is_clean = options->is_clean;
	node->srqs[srq]->users = 1;
	end->srqs[end->srq_count++] = srq;
	return true;
}

/*
 * Finds another channel's SRQ on that machine; the channel's messages are made to fit into its
 * receives.
 */
static bool join_srq(struct vb_world *world, struct vb_channel *channel, struct vb_channel_end *end)
{
	struct vb_node *node = world->nodes[end->node];

	for (uint32_t i = 0; i < node->srq_count; i++) {
		struct vb_node_srq *srq = node->srqs[i];

		if (srq->is_xrc || srq->users >= VB_CHANNEL_SRQ_USERS_MAX ||
		    srq->is_clean != channel->options.is_clean ||
		    srq->depth > channel->options.recv_depth)
			continue;
		srq->users++;
		end->srqs[end->srq_count++] = i;
		if (channel->options.message_max > srq->capacity)
			channel->options.message_max = srq->capacity;
		return true;
	}
	return false;
}

static bool add_srqs(struct vb_world *world, struct vb_channel *channel, uint32_t side,
		     uint32_t recv_cq)
{
	struct vb_channel_end *end = &channel->ends[side];

	if (is_xrc(channel))
		/* NOLINTNEXTLINE(misc-redundant-expression): it gets two SRQs */
		return side == 0 || (add_srq(world, channel, end, recv_cq) &&
				     add_srq(world, channel, end, recv_cq));
	if (!channel->options.has_srq ||
	    (channel->options.shares_srq && join_srq(world, channel, end)))
		return true;
	return add_srq(world, channel, end, recv_cq);
}

static void add_to_model(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	struct vb_node *node = world->nodes[end->node];
	struct vb_node_qp *qp = node->qps[end->qp];
	const struct vb_channel_options *options = &channel->options;
	struct vb_model_qp model = {
		.type = type_of(channel, side),
		.number = qp->number.v,
		.node = end->node,
		.arena = node->arena,
		.peer = VB_MODEL_NONE,
		.srq = end->srq_count && !is_xrc(channel) ? node->srqs[end->srqs[0]]->model
							  : VB_MODEL_NONE,
		.gids = { node->gids[0], node->gids[1] },
		.send = { .depth = options->send_depth },
		.recv = { .depth = options->recv_depth },
		.is_lossy = world->fabric.faults.mood != VB_MOOD_CALM,
		.is_patient = !options->timeout,
		.is_unordered = world->fabric.faults.duplicate || world->fabric.faults.reorder ||
				world->fabric.faults.delay,
	};

	end->model = qp->model = vb_model_add_qp(&world->model, &model);
	qp->channel = channel->index;
	qp->end = side;
}

static bool add_qp(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	struct vb_node *node = world->nodes[end->node];
	const struct vb_channel_options *options = &channel->options;
	enum vb_qp_type type = type_of(channel, side);
	bool has_srq = options->has_srq && type != VB_QP_XRC_SEND && type != VB_QP_XRC_RECV;
	uint32_t recv_depth =
		options->recv_depth *
		(options->has_srq ? 1 + VB_CHANNEL_SRQ_USERS_MAX * VB_CHANNEL_RECONNECTS_MAX : 1) *
		(type == VB_QP_XRC_RECV ? VB_CHANNEL_SRQS_MAX : 1);
	uint32_t send_cq = VB_NODE_NONE, recv_cq = VB_NODE_NONE;
	struct vb_qp_init init = {
		.type = type,
		.send_depth = options->send_depth,
		.recv_depth = has_srq ? 0 : options->recv_depth,
		.send_sge_max = options->sge_max,
		.recv_sge_max = options->sge_max,
		.inline_max = options->inline_max,
		.signal_all = options->signal_all,
	};

	if (type != VB_QP_XRC_RECV)
		send_cq = choose_cq(node, options, options->send_depth);
	if (type != VB_QP_XRC_SEND)
		recv_cq = choose_cq(node, options, recv_depth);
	if (!add_srqs(world, channel, side, recv_cq))
		return false;
	if (send_cq != VB_NODE_NONE)
		init.send_cq = node->cqs[send_cq]->cq;
	if (recv_cq != VB_NODE_NONE && type != VB_QP_XRC_RECV)
		init.recv_cq = node->cqs[recv_cq]->cq;
	if (has_srq)
		init.srq = node->srqs[end->srqs[0]]->srq;
	if (type == VB_QP_XRC_RECV)
		init.xrcd = node->xrcd;
	end->qp = vb_node_add_qp(node, 0, &init);
	if (end->qp == VB_NODE_NONE)
		return false;
	node->qps[end->qp]->send_cq = send_cq;
	node->qps[end->qp]->recv_cq = recv_cq;
	add_to_model(world, channel, side);
	return true;
}

static void init_end(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];

	end->node = channel->options.nodes[side];
	end->generation = world->nodes[end->node]->generation;
	end->series = VB_MODEL_NONE;
	end->window = VB_NODE_NONE;
	end->handle = VB_NODE_NONE;
	end->group_handle = VB_NODE_NONE;
}

static struct vb_address address_of(const struct vb_world *world, const struct vb_channel *channel,
				    uint32_t side)
{
	bool is_ipv6 = channel->options.is_ipv6;

	return (struct vb_address){
		.destination = world->nodes[channel->ends[side].node]->gids[is_ipv6],
		.source_index = is_ipv6,
		.flow_label = channel->index * 77,
		.traffic_class = (uint8_t)(channel->index << 2),
	};
}

/* Makes address handles; half of the QPs join a multicast group. */
static void prepare_datagrams(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	struct vb_node *node = world->nodes[end->node];
	struct vb_address peer = address_of(world, channel, 1 - side);
	struct vb_address group = peer;
	uint32_t number = channel->index % VB_NODE_GROUPS;

	group.destination = vb_node_group(number, channel->options.is_ipv6);
	end->handle = vb_node_add_handle(node, &peer);
	end->group_handle = vb_node_add_handle(node, &group);
	end->group = 1u << (number * 2 + channel->options.is_ipv6);
	if (vb_dice_chance(&world->prng, 1, 2) &&
	    vb_node_attach(node, end->qp, number, channel->options.is_ipv6))
		world->model.qps[end->model].groups = end->group;
}

/* True if there is room for both ends, even if they are on one machine. */
static bool has_room(const struct vb_node *node)
{
	return node->qp_count + 2 <= VB_NODE_QPS_MAX && node->cq_count + 4 <= VB_NODE_CQS_MAX &&
	       node->srq_count + 2 <= VB_NODE_SRQS_MAX &&
	       node->handle_count + 4 <= VB_NODE_HANDLES_MAX;
}

struct vb_channel *vb_channel_create(struct vb_world *world,
				     const struct vb_channel_options *options)
{
	struct vb_channel *channel;

	if (world->channel_count == VB_WORLD_CHANNELS_MAX ||
	    !has_room(world->nodes[options->nodes[0]]) ||
	    !has_room(world->nodes[options->nodes[1]]))
		return NULL;
	channel = calloc(1, sizeof(*channel));
	VB_CHECK(channel);
	channel->index = world->channel_count;
	channel->options = *options;
	init_end(world, channel, 0);
	init_end(world, channel, 1);
	VB_CHECK(add_qp(world, channel, 0) && add_qp(world, channel, 1));
	world->channels[world->channel_count++] = channel;
	if (options->type == VB_QP_UD) {
		prepare_datagrams(world, channel, 0);
		prepare_datagrams(world, channel, 1);
	}
	vb_channel_connect(world, channel);
	return channel;
}

static void to_init(struct vb_world *world, const struct vb_channel *channel, uint32_t side)
{
	struct vb_qp_attr attr = { .state = VB_STATE_INIT,
				   .port = 1,
				   .qkey = VB_CHANNEL_QKEY,
				   .access = channel->options.access[side] };
	uint32_t mask = VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT;

	mask |= channel->options.type == VB_QP_UD ? VB_ATTR_QKEY : VB_ATTR_ACCESS;
	VB_CHECK(vb_qp_modify(vb_channel_qp(world, &channel->ends[side]), &attr, mask) == VB_OK);
}

static void to_rtr(struct vb_world *world, const struct vb_channel *channel, uint32_t side)
{
	const struct vb_channel_options *options = &channel->options;
	const struct vb_channel_end *peer = &channel->ends[1 - side];
	struct vb_qp_attr attr = {
		.state = VB_STATE_RTR,
		.address = address_of(world, channel, 1 - side),
		.path_mtu = options->mtu,
		.destination = world->nodes[peer->node]->qps[peer->qp]->number,
		.rq_psn = { options->psn[1 - side] },
		.reads_in = options->reads,
		.min_rnr_timer = options->min_rnr_timer,
	};
	uint32_t mask = VB_ATTR_STATE;

	if (options->type != VB_QP_UD)
		mask |= VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN;
	if (type_of(channel, side) == VB_QP_RC || type_of(channel, side) == VB_QP_XRC_RECV)
		mask |= VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER;
	VB_CHECK(vb_qp_modify(vb_channel_qp(world, &channel->ends[side]), &attr, mask) == VB_OK);
	if (options->type != VB_QP_UD)
		vb_shm_links_choose(world, channel->index, world->nodes[channel->ends[side].node],
				    vb_channel_qp(world, &channel->ends[side]),
				    world->nodes[peer->node]);
}

static void to_rts(struct vb_world *world, const struct vb_channel *channel, uint32_t side)
{
	const struct vb_channel_options *options = &channel->options;
	enum vb_qp_type type = type_of(channel, side);
	struct vb_qp_attr attr = {
		.state = VB_STATE_RTS,
		.sq_psn = { options->psn[side] },
		.timeout = options->timeout,
		.retry_count = options->retry_count,
		.rnr_retry = options->rnr_retry,
		.reads_out = options->reads,
	};
	uint32_t mask = VB_ATTR_STATE | VB_ATTR_SQ_PSN;

	if (type == VB_QP_RC || type == VB_QP_XRC_SEND)
		mask |= VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY | VB_ATTR_READS_OUT;
	if (type != VB_QP_UC && type != VB_QP_UD)
		mask |= VB_ATTR_TIMEOUT;
	VB_CHECK(vb_qp_modify(vb_channel_qp(world, &channel->ends[side]), &attr, mask) == VB_OK);
}

/* A shared receive queue keeps its bad entries when the QP starts from scratch. */
static void expect_old_trouble(struct vb_world *world, const struct vb_channel *channel,
			       uint32_t side)
{
	const struct vb_channel_end *end = &channel->ends[side];

	for (uint32_t i = 0; i < end->srq_count; i++) {
		const struct vb_node_srq *srq = world->nodes[end->node]->srqs[end->srqs[i]];

		if (!world->model.srqs[srq->model].recv_trouble)
			continue;
		vb_channel_expect(world, end, VB_CAUSE_RESPONDER);
		vb_channel_expect(world, &channel->ends[1 - side], VB_CAUSE_OWN);
	}
}

void vb_channel_connect(struct vb_world *world, struct vb_channel *channel)
{
	if (channel->options.type != VB_QP_UD)
		vb_model_connect(&world->model, channel->ends[0].model, channel->ends[1].model);
	for (uint32_t side = 0; side < 2; side++) {
		if (world->is_hostile)
			vb_channel_expect(world, &channel->ends[side], VB_CAUSE_HOSTILE);
		if (channel->options.cq_shortage)
			vb_channel_expect(world, &channel->ends[side], VB_CAUSE_OVERRUN);
		expect_old_trouble(world, channel, side);
		to_init(world, channel, side);
	}
	to_rtr(world, channel, 0);
	to_rtr(world, channel, 1);
	to_rts(world, channel, 0);
	channel->is_passive_now = channel->options.is_passive;
	if (!channel->is_passive_now)
		to_rts(world, channel, 1);
	channel->state = VB_CHANNEL_OPEN;
	vb_world_note(world, channel->ends[0].node, VB_ACTION_CONNECTS_CHANNEL, channel->index,
		      channel->options.type);
}

void vb_channel_activate(struct vb_world *world, struct vb_channel *channel)
{
	if (!channel->is_passive_now)
		return;
	channel->is_passive_now = false;
	if (vb_channel_is_alive(world, &channel->ends[1]) &&
	    vb_qp_state(vb_channel_qp(world, &channel->ends[1])) == VB_STATE_RTR)
		to_rts(world, channel, 1);
}

void vb_channel_set_state(struct vb_world *world, struct vb_channel_end *end,
			  enum vb_qp_state state)
{
	struct vb_qp_attr attr = { .state = state, .sqd_notify = true };
	uint32_t mask = VB_ATTR_STATE | (state == VB_STATE_SQD ? (uint32_t)VB_ATTR_SQD_NOTIFY : 0);

	vb_world_note(world, end->node, VB_ACTION_MOVES_QP,
		      world->nodes[end->node]->qps[end->qp]->number.v, state);
	VB_CHECK(vb_qp_modify(vb_channel_qp(world, end), &attr, mask) == VB_OK);
	/* The resources that it releases may let others send. */
	if (vb_nic_has_work(world->nodes[end->node]->nic))
		vb_world_plan_drive(world, end->node, 0);
}

void vb_channel_reset(struct vb_world *world, struct vb_channel *channel)
{
	for (uint32_t side = 0; side < 2; side++) {
		struct vb_channel_end *end = &channel->ends[side];

		if (!vb_channel_is_alive(world, end))
			continue;
		vb_channel_set_state(world, end, VB_STATE_RESET);
		vb_model_on_removed(&world->model, end->model);
		for (uint32_t i = 0; i < end->srq_count; i++)
			world->nodes[end->node]->srqs[end->srqs[i]]->resets++;
		world->nodes[end->node]->qps[end->qp]->saw_last_wqe = false;
		end->silent_run = 0;
		end->is_draining = false;
		end->is_drained = false;
		end->series = VB_MODEL_NONE;
		end->window = VB_NODE_NONE;
		end->window_phase = VB_WINDOW_NONE;
	}
	channel->is_passive_now = false;
	channel->state = VB_CHANNEL_RESET;
}

void vb_channel_destroy_end(struct vb_world *world, struct vb_channel *channel, uint32_t side)
{
	struct vb_channel_end *end = &channel->ends[side];
	struct vb_node *node = world->nodes[end->node];

	vb_world_note(world, end->node, VB_ACTION_DESTROYS_QP, node->qps[end->qp]->number.v, 0);
	vb_model_on_removed(&world->model, end->model);
	for (uint32_t i = 0; i < end->srq_count; i++)
		node->srqs[end->srqs[i]]->resets++;
	if (!vb_node_remove_qp(node, end->qp))
		vb_model_report(&world->model, VB_MODEL_NONE, "a QP can be destroyed in any state",
				1, 0);
	if (vb_nic_has_work(node->nic))
		vb_world_plan_drive(world, end->node, 0);
}
