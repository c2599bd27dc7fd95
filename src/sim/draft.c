/* SPDX-License-Identifier: BSD-2-Clause */
/* Building and posting requests. A draft that cannot be posted releases everything. */
#include "sim/draft.h"

#include "base/err.h"
#include "nic/peer_memory.h"
#include "sim/dice.h"
#include "sim/draft_priv.h"

static bool is_write(enum vb_wr_opcode opcode)
{
	return opcode == VB_WR_WRITE || opcode == VB_WR_WRITE_IMM || opcode == VB_WR_ATOMIC_WRITE;
}

bool vb_draft_is_message(enum vb_wr_opcode opcode)
{
	return opcode == VB_WR_SEND || opcode == VB_WR_SEND_IMM || opcode == VB_WR_SEND_INV ||
	       opcode == VB_WR_WRITE_IMM;
}

uint32_t vb_draft_right(enum vb_wr_opcode opcode)
{
	if (is_write(opcode))
		return VB_ACCESS_REMOTE_WRITE;
	if (opcode == VB_WR_READ)
		return VB_ACCESS_REMOTE_READ;
	return vb_draft_is_atomic(opcode) ? VB_ACCESS_REMOTE_ATOMIC : 0;
}

/*
 * Splits `length` bytes into blocks of a region. False, with nothing allocated, if there is no
 * room.
 */
static bool cut_pieces(struct vb_world *world, struct vb_node *node,
		       const struct vb_node_region *region, uint32_t length, uint32_t count,
		       struct vb_model_request *model, struct vb_sge *sges)
{
	model->arena = node->arena;
	model->piece_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct vb_model_piece *piece = &model->pieces[i];
		uint32_t here = length;

		if (i + 1 < count)
			here = vb_dice_chance(&world->prng, 1, 5)
				       ? 0
				       : (uint32_t)vb_dice_between(&world->prng, 0, length);
		piece->length = here;
		piece->is_block = true;
		piece->address = vb_arena_allocate(node->arena, region->address,
						   region->address + region->length, here, 1);
		if (!piece->address) {
			vb_model_release_pieces(model);
			return false;
		}
		sges[i] =
			(struct vb_sge){ vb_node_iova(region, piece->address), here, region->key };
		model->piece_count++;
		length -= here;
	}
	return true;
}

static void fill_pieces(const struct vb_model_request *model)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < model->piece_count; i++) {
		vb_arena_fill(model->arena, model->pieces[i].address, model->key, offset,
			      model->pieces[i].length);
		offset += model->pieces[i].length;
	}
}

/* Takes the data from the buffer of a READ that is under way; the READ still owns its buffers. */
static void build_relay(struct vb_draft_build *b)
{
	const struct vb_model_request *read = &b->world->model.requests[b->draft->relays];
	const struct vb_node_region *region = &b->node->regions[b->draft->local_region];

	b->model.key = read->key;
	b->model.arena = read->arena;
	b->model.piece_count = read->piece_count;
	for (uint32_t i = 0; i < read->piece_count; i++) {
		b->model.pieces[i] = read->pieces[i];
		b->model.pieces[i].is_block = false;
		b->sges[i] = (struct vb_sge){ vb_node_iova(region, read->pieces[i].address),
					      read->pieces[i].length, region->key };
	}
	b->request.sges = b->sges;
	b->request.sge_count = read->piece_count;
}

/* From now on the buffers are released when the relaying request is done, which is later. */
static void take_over_pieces(struct vb_draft_build *b)
{
	struct vb_model_request *read = &b->world->model.requests[b->draft->relays];

	for (uint32_t i = 0; i < read->piece_count; i++) {
		b->model.pieces[i].is_block = read->pieces[i].is_block;
		read->pieces[i].is_block = false;
	}
	b->world->coverage.flaws[VB_FLAW_RELAY]++;
}

static bool build_local(struct vb_draft_build *b)
{
	const struct vb_draft *draft = b->draft;
	uint32_t which = draft->flaw == VB_FLAW_LOCAL_RIGHT ? VB_REGION_READABLE
							    : draft->local_region;
	uint32_t count = draft->sge_count;

	if (draft->opcode == VB_WR_LOCAL_INV || draft->opcode == VB_WR_BIND_MW)
		return true;
	if (draft->is_relay) {
		build_relay(b);
		return true;
	}
	if (vb_draft_is_word(draft->opcode))
		count = 1;
	if (!cut_pieces(b->world, b->node, &b->node->regions[which], draft->length, count,
			&b->model, b->sges))
		return false;
	b->request.sges = b->sges;
	b->request.sge_count = count;
	if (!vb_draft_has_sink(draft->opcode))
		fill_pieces(&b->model);
	else
		b->model.opens_local = true;
	if (draft->flags & VB_SEND_INLINE) {
		for (uint32_t i = 0; i < count; i++)
			b->sges[i] = (struct vb_sge){ b->model.pieces[i].address, b->sges[i].length,
						      0xbad };
	}
	return true;
}

static void build_counter(struct vb_draft_build *b)
{
	bool is_swap = b->draft->opcode == VB_WR_COMPARE_SWAP;
	uint32_t counter = b->world->counters[b->far->index][is_swap];
	const struct vb_node_region *region = &b->far->regions[VB_REGION_FULL];

	b->model.counter = counter;
	b->model.compare_add = is_swap ? b->world->swap_seen[b->far->index]
				       : vb_dice_between(&b->world->prng, 1, 1000);
	b->model.swap = is_swap ? b->model.key | 1 : 0;
	b->request.remote_address = vb_node_iova(region, b->world->model.counters[counter].address);
	b->request.rkey = region->key;
	b->request.compare_add = b->model.compare_add;
	b->request.swap = b->model.swap;
}

static void build_window_write(struct vb_draft_build *b)
{
	struct vb_channel_end *peer = b->peer;

	b->model.series = peer->window_series;
	b->model.remote = b->far->arena;
	b->model.remote_address = peer->window_address;
	b->request.remote_address = 0; /* the window is zero-based */
	b->request.rkey = peer->window_key;
}

static bool build_series_write(struct vb_draft_build *b)
{
	struct vb_channel_end *end = b->end;
	const struct vb_node_region *region = &b->far->regions[VB_REGION_FULL];

	if (end->series == VB_MODEL_NONE) {
		end->series_address = vb_arena_allocate(b->far->arena, region->address,
							region->address + region->length,
							b->draft->length, 1);
		if (!end->series_address)
			return false;
		end->series = vb_model_add_series(&b->world->model);
		end->series_length = b->draft->length;
	}
	b->model.series = end->series;
	b->model.remote = b->far->arena;
	b->model.remote_address = end->series_address;
	b->request.remote_address = vb_node_iova(region, end->series_address);
	b->request.rkey = region->key;
	return true;
}

static bool build_remote_block(struct vb_draft_build *b)
{
	const struct vb_draft *draft = b->draft;
	uint32_t which = draft->flaw == VB_FLAW_OTHER_PD ? VB_REGION_OTHER_PD
							 : draft->remote_region;
	const struct vb_node_region *region = &b->far->regions[which];
	uint32_t align = draft->opcode == VB_WR_ATOMIC_WRITE ? 8 : 1;

	b->model.remote = b->far->arena;
	b->model.remote_address = vb_arena_allocate(b->far->arena, region->address,
						    region->address + region->length, draft->length,
						    align);
	if (!b->model.remote_address)
		return false;
	b->model.owns_remote = true;
	b->request.remote_address = vb_node_iova(region, b->model.remote_address);
	b->request.rkey = region->key;
	if (draft->opcode == VB_WR_READ)
		vb_arena_fill(b->far->arena, b->model.remote_address, b->model.key, 0,
			      draft->length);
	return true;
}

static bool build_remote(struct vb_draft_build *b)
{
	enum vb_wr_opcode opcode = b->draft->opcode;

	if (vb_draft_is_atomic(opcode)) {
		build_counter(b);
		return true;
	}
	if (!is_write(opcode) && opcode != VB_WR_READ)
		return true;
	b->model.opens_remote = is_write(opcode);
	if (b->draft->uses_window) {
		build_window_write(b);
		return true;
	}
	if (b->draft->is_in_series)
		return build_series_write(b);
	return build_remote_block(b);
}

static void build_bind(struct vb_draft_build *b)
{
	struct vb_channel_end *end = b->end;
	const struct vb_node_region *region =
		&b->node->regions[b->draft->flaw == VB_FLAW_WRONG_BIND ? VB_REGION_LOCAL
								       : VB_REGION_FULL];

	b->request.bind = (struct vb_bind){
		.mw = b->node->windows[end->window],
		.mr = region->mr,
		.rkey = end->window_key,
		.address = vb_node_iova(region, end->window_address),
		.length = end->window_length,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_ZERO_BASED,
	};
	if (b->draft->flaw == VB_FLAW_WRONG_BIND)
		b->request.bind.address = region->iova;
}

static void build_operands(struct vb_draft_build *b)
{
	struct vb_world *world = b->world;

	switch (b->draft->opcode) {
	case VB_WR_SEND_IMM:
	case VB_WR_WRITE_IMM:
		b->request.imm = (uint32_t)vb_prng_next(&world->prng);
		b->model.has_imm = true;
		break;
	case VB_WR_SEND_INV:
		b->request.imm = b->peer->window_key;
		b->model.has_inv = true;
		break;
	case VB_WR_LOCAL_INV:
		b->request.imm = b->end->window_key;
		break;
	case VB_WR_BIND_MW:
		build_bind(b);
		break;
	case VB_WR_SEND:
	case VB_WR_WRITE:
	case VB_WR_READ:
	case VB_WR_COMPARE_SWAP:
	case VB_WR_FETCH_ADD:
	case VB_WR_ATOMIC_WRITE:
		break;
	}
	b->model.imm = b->request.imm;
}

static void build_datagram(struct vb_draft_build *b)
{
	uint32_t copies = b->world->fabric.faults.duplicate ? 2 : 1;

	b->request.ah =
		b->node->handles[b->draft->is_to_group ? b->end->group_handle : b->end->handle];
	b->request.remote_qkey = vb_dice_chance(&b->world->prng, 1, 4) ? 0x80000000u
								       : VB_CHANNEL_QKEY;
	b->request.remote_qpn = b->far->qps[b->peer->qp]->number.v;
	b->model.target = b->peer->model;
	b->model.deliveries_max = copies;
	if (b->draft->is_to_group) {
		b->request.remote_qpn = VB_QPN_MULTICAST.v;
		b->model.target = VB_MODEL_NONE;
		b->model.group = b->end->group;
	}
}

static void build_target(struct vb_draft_build *b)
{
	struct vb_channel_end *peer = b->peer;

	switch (b->channel->options.type) {
	case VB_QP_UD:
		build_datagram(b);
		break;
	case VB_QP_XRC_SEND:
		b->request.remote_srqn = b->far->srqs[peer->srqs[b->draft->srq]]->number;
		if (b->model.is_message)
			b->model.srq = b->far->srqs[peer->srqs[b->draft->srq]]->model;
		break;
	case VB_QP_UC:
		b->model.deliveries_max = b->world->fabric.faults.duplicate ? 2 : 1;
		break;
	case VB_QP_RC:
	case VB_QP_XRC_RECV:
		break;
	}
}

/* A message may run out of RNR retries if there may be no receive for it. */
static void allow_rnr(struct vb_draft_build *b)
{
	const struct vb_model_qp *far = &b->world->model.qps[b->peer->model];
	const struct vb_model_qp *near = &b->world->model.qps[b->end->model];
	uint32_t messages = 1;

	if (!b->model.is_message || b->channel->options.rnr_retry == 7 ||
	    !vb_draft_is_reliable(b->channel))
		return;
	for (uint32_t i = near->first_message; i != VB_MODEL_NONE;
	     i = b->world->model.requests[i].next_message)
		messages++;
	if (!b->peer->srq_count && far->recv.posted >= messages)
		return;
	b->model.allowed |= VB_STATUS_BIT(VB_STATUS_RNR_RETRY_EXC_ERR);
	vb_channel_expect(b->world, b->end, VB_CAUSE_OWN);
}

static void give_up(struct vb_draft_build *b)
{
	vb_model_release_pieces(&b->model);
	if (b->model.owns_remote && b->model.length)
		vb_arena_release(b->model.remote, b->model.remote_address);
}

static void note_post(const struct vb_draft_build *b)
{
	const uint64_t values[5] = { b->node->qps[b->end->qp]->number.v, b->draft->opcode,
				     b->request.wr_id, b->draft->length, b->request.flags };

	vb_trace_note(&b->world->trace, b->world->now_ns, VB_TRACE_POST_SEND, b->node->index,
		      values);
	b->world->coverage.requests[b->world->model.qps[b->end->model].type][b->draft->opcode]++;
	b->world->coverage.flaws[b->draft->flaw]++;
}

/*
 * Writes immediately, as a program's post of a single request does if no other thread drives its
 * adapter at that moment.
 */
static bool write_now(const struct vb_draft_build *b)
{
	struct vb_qp *qp = vb_channel_qp(b->world, b->end);

	if (b->draft->is_held_back || !vb_qp_may_write_now(qp, &b->request) ||
	    !vb_dice_chance(&b->world->shm_links.prng, 1, 2) || !vb_qp_write_now(qp, &b->request))
		return false;
	vb_qp_conclude_write(qp, &b->request, b->world->now_ns);
	return true;
}

static enum vb_draft_result post(struct vb_draft_build *b)
{
	bool is_full = vb_model_is_full(&b->world->model, b->end->model, false);
	vb_err err = VB_OK;

	b->is_executed = write_now(b);
	if (!b->is_executed)
		err = vb_qp_post_send(vb_channel_qp(b->world, b->end), &b->request);
	if (is_full && err == VB_ENOMEM) {
		b->world->coverage.flaws[VB_FLAW_FULL_QUEUE]++;
		return VB_DRAFT_QUEUE_FULL;
	}
	if (is_full || err != VB_OK) {
		vb_model_report(
			&b->world->model, VB_MODEL_NONE,
			"a post succeeds while the queue has a slot, and fails with ENOMEM when it has none",
			is_full ? VB_ENOMEM : VB_OK, err);
		return VB_DRAFT_WRONG;
	}
	return VB_DRAFT_POSTED;
}

/* A flaw is expected only after the request was posted, so a full queue is tested first. */
enum vb_draft_result vb_draft_send(struct vb_world *world, const struct vb_draft *draft)
{
	struct vb_channel *channel = world->channels[draft->channel];
	struct vb_draft_build b = {
		.world = world,
		.draft = draft,
		.channel = channel,
		.end = &channel->ends[draft->side],
		.peer = &channel->ends[1 - draft->side],
		.node = world->nodes[channel->ends[draft->side].node],
		.far = world->nodes[channel->ends[1 - draft->side].node],
	};
	enum vb_draft_result result;
	bool is_signaled = draft->flags & VB_SEND_SIGNALED || channel->options.signal_all;

	b.model = vb_model_request_of(b.end->model, draft->opcode);
	b.model.length = draft->length;
	b.model.is_signaled = is_signaled;
	b.model.is_solicited = draft->flags & VB_SEND_SOLICITED;
	b.model.is_message = vb_draft_is_message(draft->opcode);
	b.request.wr_id = vb_model_next_id(&world->model);
	b.model.key = world->options.seed << 24 ^ b.request.wr_id;
	b.request.opcode = draft->opcode;
	b.request.flags = draft->flags;
	if (!build_local(&b) || !build_remote(&b)) {
		give_up(&b);
		return VB_DRAFT_NO_MEMORY;
	}
	build_operands(&b);
	build_target(&b);
	if (!vb_model_is_full(&world->model, b.end->model, false))
		vb_draft_spoil(&b);
	allow_rnr(&b);
	result = post(&b);
	if (result != VB_DRAFT_POSTED) {
		give_up(&b);
		return result;
	}
	note_post(&b);
	if (draft->is_relay)
		take_over_pieces(&b);
	vb_model_on_post(&world->model, &b.model);
	b.end->silent_run = is_signaled ? 0 : b.end->silent_run + 1;
	if (b.is_executed) {
		world->coverage.flaws[VB_FLAW_WHILE_POSTED]++;
		vb_world_take_events(world, b.node);
	}
	if (!draft->is_held_back)
		vb_qp_publish_and_ring(vb_channel_qp(world, b.end));
	vb_world_plan_drive(world, b.node->index,
			    world->options.is_steady ? 0 : vb_prng_below(&world->prng, 500));
	return VB_DRAFT_POSTED;
}

/* Any QP that uses the SRQ may meet the bad receive. */
static void expect_shared_trouble(struct vb_world *world, uint32_t srq, uint32_t trouble)
{
	world->model.srqs[srq].recv_trouble |= trouble;
	for (uint32_t i = 0; i < world->model.qp_count; i++) {
		const struct vb_model_qp *qp = &world->model.qps[i];

		if (qp->srq != srq)
			continue;
		vb_model_expect(&world->model, i, VB_CAUSE_RESPONDER);
		if (qp->peer != VB_MODEL_NONE)
			vb_model_expect(&world->model, qp->peer, VB_CAUSE_OWN);
	}
}

static void spoil_receive(struct vb_world *world, struct vb_channel *channel, uint32_t side,
			  struct vb_model_request *model, struct vb_sge *sges, enum vb_flaw flaw)
{
	uint32_t trouble = flaw == VB_FLAW_SHORT_RECEIVE ? VB_STATUS_BIT(VB_STATUS_REM_INV_REQ_ERR)
							 : VB_STATUS_BIT(VB_STATUS_REM_OP_ERR);
	struct vb_channel_end *end = &channel->ends[side];

	if (flaw == VB_FLAW_NONE)
		return;
	if (flaw == VB_FLAW_RECEIVE_LKEY) {
		VB_CHECK(model->piece_count);
		sges[0].lkey ^= 0x00a5a500;
		model->allowed = VB_STATUS_BIT(VB_STATUS_LOC_PROT_ERR) |
				 VB_STATUS_BIT(VB_STATUS_SUCCESS);
	}
	world->model.qps[end->model].recv_trouble |= trouble;
	if (model->srq != VB_MODEL_NONE)
		expect_shared_trouble(world, model->srq, trouble);
	vb_channel_expect(world, end, VB_CAUSE_RESPONDER);
	vb_channel_expect(world, &channel->ends[1 - side], VB_CAUSE_OWN);
	world->coverage.flaws[flaw]++;
}

static vb_err post_receive(struct vb_world *world, struct vb_channel_end *end,
			   struct vb_node_srq *srq, const struct vb_recv_request *request,
			   uint32_t capacity)
{
	struct vb_node *node = world->nodes[end->node];
	uint64_t values[5] = { srq ? srq->number : node->qps[end->qp]->number.v, srq != NULL,
			       request->wr_id, capacity };

	vb_trace_note(&world->trace, world->now_ns, VB_TRACE_POST_RECV, node->index, values);
	return srq ? vb_srq_post_recv(srq->srq, request)
		   : vb_qp_post_recv(vb_channel_qp(world, end), request);
}

enum vb_draft_result vb_draft_receive(struct vb_world *world, uint32_t channel_index, uint32_t side,
				      uint32_t srq_index, uint32_t capacity, uint32_t sge_count,
				      uint32_t region, enum vb_flaw flaw)
{
	struct vb_channel *channel = world->channels[channel_index];
	struct vb_channel_end *end = &channel->ends[side];
	struct vb_node *node = world->nodes[end->node];
	struct vb_node_srq *srq = end->srq_count ? node->srqs[end->srqs[srq_index % end->srq_count]]
						 : NULL;
	struct vb_model_request model = vb_model_request_of(end->model, VB_WR_SEND);
	struct vb_sge sges[VB_MODEL_PIECES_MAX];
	struct vb_recv_request request = { .wr_id = vb_model_next_id(&world->model),
					   .sges = sges,
					   .sge_count = sge_count };
	uint32_t length = capacity + (channel->options.type == VB_QP_UD ? VB_GRH_SIZE : 0);
	bool is_full, may_be_full;
	vb_err err;

	model.is_receive = true;
	model.length = length;
	if (srq) {
		model.srq = srq->model;
		model.qp = VB_MODEL_NONE;
	}
	/*
	 * A reset QP takes an SRQ's entry with it, without notice: then only the engine knows what
	 * is free.
	 */
	may_be_full = srq && world->model.srqs[srq->model].outstanding >= srq->depth;
	is_full = !srq && vb_model_is_full(&world->model, end->model, true);
	if (!cut_pieces(world, node, &node->regions[region], length, sge_count, &model, sges))
		return VB_DRAFT_NO_MEMORY;
	model.opens_local = true;
	if (!is_full)
		spoil_receive(world, channel, side, &model, sges, flaw);
	err = post_receive(world, end, srq, &request, capacity);
	if (may_be_full && err == VB_ENOMEM)
		is_full = true;
	if (err != (is_full ? VB_ENOMEM : VB_OK)) {
		vb_model_report(
			&world->model, VB_MODEL_NONE,
			"posting a receive succeeds while the queue has a slot, and fails with ENOMEM when it has none",
			is_full ? VB_ENOMEM : VB_OK, err);
		return VB_DRAFT_WRONG;
	}
	if (is_full) {
		vb_model_release_pieces(&model);
		return VB_DRAFT_QUEUE_FULL;
	}
	vb_model_on_post(&world->model, &model);
	vb_world_plan_drive(world, node->index, 0);
	return VB_DRAFT_POSTED;
}
