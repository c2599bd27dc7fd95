/* SPDX-License-Identifier: BSD-2-Clause */
/* Two commanded machines: the plain options of such a pair, and its few operations. */
#include "sim/pair.h"

#define RIGHTS                                                                    \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC)

struct vb_world *vb_pair_create(uint64_t seed)
{
	struct vb_world_options options = {
		.seed = seed,
		.node_count = 2,
		.memory_length = 256 * 1024,
		.latency_ns = 1000,
		.is_steady = true,
	};

	return vb_world_create_bare(&options);
}

struct vb_channel *vb_pair_connect(struct vb_world *world, enum vb_qp_type type, uint32_t mtu)
{
	struct vb_channel_options options = {
		.type = type,
		.nodes = { 0, 1 },
		.mtu = mtu,
		.send_depth = 16,
		.recv_depth = 16,
		.sge_max = 4,
		.inline_max = 64,
		.has_srq = type == VB_QP_XRC_SEND,
		.timeout = 10,
		.retry_count = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.reads = 4,
		.access = { RIGHTS, RIGHTS },
		.psn = { 0, 1000 },
		.message_max = 4096,
	};

	return vb_channel_create(world, &options);
}

void vb_pair_post_receives(struct vb_world *world, const struct vb_channel *channel, uint32_t side,
			   uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		vb_draft_receive(world, channel->index, 1 - side, 0, channel->options.message_max,
				 2, VB_REGION_FULL, VB_FLAW_NONE);
}

uint32_t vb_pair_post(struct vb_world *world, const struct vb_channel *channel, uint32_t side,
		      enum vb_wr_opcode opcode, uint32_t length)
{
	struct vb_draft draft = {
		.channel = channel->index,
		.side = side,
		.opcode = opcode,
		.length = length,
		.flags = VB_SEND_SIGNALED,
		.sge_count = 2,
		.local_region = VB_REGION_FULL,
		.remote_region = VB_REGION_FULL,
	};
	uint32_t request = world->model.request_count;

	return vb_draft_send(world, &draft) == VB_DRAFT_POSTED ? request : VB_MODEL_NONE;
}

bool vb_pair_is_done(const struct vb_world *world, uint32_t request)
{
	return request < world->model.request_count &&
	       world->model.requests[request].outcome == VB_OUTCOME_DONE &&
	       world->model.requests[request].status == VB_STATUS_SUCCESS;
}
