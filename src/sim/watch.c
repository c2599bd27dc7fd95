/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's view of its adapter: completions, which go to the model, and events, which must have
 * a reason.
 */
#include "sim/world.h"

static uint32_t find_source(const struct vb_world *world, uint32_t qpn)
{
	for (uint32_t i = 0; i < world->model.qp_count; i++) {
		if (world->model.qps[i].number == qpn)
			return i;
	}
	return VB_MODEL_NONE;
}

static void note_completion(struct vb_world *world, const struct vb_node *node,
			    const struct vb_node_qp *qp, const struct vb_completion *completion)
{
	bool is_failure = completion->status != VB_STATUS_SUCCESS;
	const uint64_t values[5] = { completion->qpn, is_failure ? 0 : completion->opcode,
				     completion->wr_id, is_failure ? 0 : completion->byte_length,
				     completion->status };
	enum vb_qp_type type = qp ? world->model.qps[qp->model].type : 0;
	struct vb_coverage *coverage = &world->coverage;

	vb_trace_note(&world->trace, world->now_ns, VB_TRACE_COMPLETION, node->index, values);
	if (completion->status < VB_COVERAGE_STATUSES)
		(completion->is_receive ? coverage->recv_statuses
					: coverage->send_statuses)[type][completion->status]++;
}

/* An armed CQ must have announced a completion that came since. */
static void check_wakeup(struct vb_world *world, const struct vb_node_cq *cq,
			 const struct vb_completion *completion)
{
	if (!cq->is_armed || cq->is_fresh || cq->is_moderated || cq->has_overrun)
		return;
	if (cq->is_solicited_only && completion->status == VB_STATUS_SUCCESS &&
	    !(completion->is_receive && world->model.last_message != VB_MODEL_NONE &&
	      world->model.requests[world->model.last_message].is_solicited))
		return;
	vb_model_report(&world->model, (uint32_t)completion->wr_id - 1,
			"an armed CQ raises its event with the next completion, but none came", 1,
			0);
}

static void on_completion(struct vb_world *world, struct vb_node *node, struct vb_node_cq *cq,
			  const struct vb_completion *completion)
{
	const struct vb_node_qp *qp = vb_node_find_qp(node, completion->qpn);
	struct vb_model_completion fact = {
		.wr_id = completion->wr_id,
		.qp = qp ? qp->model : VB_MODEL_NONE,
		.status = completion->status,
		.opcode = completion->opcode,
		.flags = completion->flags,
		.is_receive = completion->is_receive,
		.byte_length = completion->byte_length,
		.imm = completion->imm,
		.source_qp = find_source(world, completion->source_qpn),
	};

	note_completion(world, node, qp, completion);
	vb_model_on_completion(&world->model, &fact);
	check_wakeup(world, cq, completion);
}

void vb_world_poll(struct vb_world *world, struct vb_node *node, uint32_t cq, uint32_t capacity)
{
	struct vb_completion completions[16];
	uint32_t count;

	do {
		uint32_t wanted = capacity < 16 ? capacity : 16;

		count = vb_cq_poll(node->cqs[cq]->cq, completions, wanted);
		capacity -= count;
		for (uint32_t i = 0; i < count; i++)
			on_completion(world, node, node->cqs[cq], &completions[i]);
		if (count < wanted)
			break;
	} while (capacity);
}

void vb_world_poll_all(struct vb_world *world, struct vb_node *node)
{
	for (uint32_t i = 0; i < node->cq_count; i++)
		vb_world_poll(world, node, i, UINT32_MAX);
}

void vb_world_arm(struct vb_world *world, struct vb_node *node, uint32_t cq, bool solicited_only)
{
	struct vb_node_cq *own = node->cqs[cq];

	vb_cq_arm(own->cq, solicited_only);
	own->is_armed = true;
	own->is_solicited_only = solicited_only;
	own->is_fresh = true;
	vb_world_poll(world, node, cq, UINT32_MAX); /* earlier completions raise no event */
	own->is_fresh = false;
}

static void on_cq_event(struct vb_world *world, struct vb_node *node, uint32_t cq)
{
	struct vb_node_cq *own = node->cqs[cq];

	if (!own->is_armed) {
		vb_model_report(&world->model, VB_MODEL_NONE,
				"a CQ raises an event only when it is armed", 0, 1);
		return;
	}
	own->is_armed = false;
	world->coverage.flaws[VB_FLAW_CQ_EVENT]++;
	if (own->mode != VB_CQ_AWAITED)
		return;
	vb_world_poll(world, node, cq, UINT32_MAX);
	vb_world_arm(world, node, cq, false);
}

static void on_overrun(struct vb_world *world, struct vb_node *node, uint32_t cq)
{
	struct vb_node_cq *own = node->cqs[cq];

	if (!own->can_overrun) {
		vb_model_report(&world->model, VB_MODEL_NONE,
				"a CQ that is large enough never runs over", own->needed,
				own->depth);
		return;
	}
	own->has_overrun = true;
	world->coverage.flaws[VB_FLAW_CQ_OVERRUN]++;
}

/* A QP in trouble must have a cause, on its own side or the other. */
static void check_trouble(struct vb_world *world, const struct vb_node_qp *qp)
{
	const struct vb_model_qp *own = &world->model.qps[qp->model];
	uint32_t causes = own->cause;

	if (own->peer != VB_MODEL_NONE)
		causes |= world->model.qps[own->peer].cause;
	if (!causes)
		vb_model_report(&world->model, VB_MODEL_NONE,
				"a QP reports an error only if there is a cause", 0, qp->number.v);
}

/* Events of CQs may be waiting behind the one that is being handled. */
static void poll_before_events(struct vb_world *world, struct vb_node *node)
{
	for (uint32_t i = 0; i < node->cq_count; i++) {
		node->cqs[i]->is_fresh = true;
		vb_world_poll(world, node, i, UINT32_MAX);
		node->cqs[i]->is_fresh = false;
	}
}

static void on_qp_event(struct vb_world *world, struct vb_node *node, struct vb_node_qp *qp,
			enum vb_event_kind kind)
{
	struct vb_channel_end *end = &world->channels[qp->channel]->ends[qp->end];

	switch (kind) {
	case VB_EVENT_QP_FATAL:
	case VB_EVENT_QP_REQ_ERR:
	case VB_EVENT_QP_ACCESS_ERR:
		check_trouble(world, qp);
		break;
	case VB_EVENT_SQ_DRAINED:
		if (!end->drains_asked) {
			vb_model_report(&world->model, VB_MODEL_NONE,
					"SQ_DRAINED comes only when it was asked for", 0,
					qp->number.v);
			break;
		}
		end->drains_asked--;
		if (!end->is_draining)
			break; /* reset meanwhile */
		end->is_draining = false;
		end->is_drained = true;
		/* requests that completed before the queue was drained */
		poll_before_events(world, node);
		vb_model_on_drained(&world->model, qp->model);
		world->coverage.flaws[VB_FLAW_DRAINED]++;
		break;
	case VB_EVENT_QP_LAST_WQE_REACHED:
		qp->saw_last_wqe = true;
		break;
	case VB_EVENT_COMM_EST:
		break;
	case VB_EVENT_CQ_ERR:
	case VB_EVENT_SRQ_ERR:
	case VB_EVENT_SRQ_LIMIT_REACHED:
	case VB_EVENT_COMPLETION:
		vb_model_report(&world->model, VB_MODEL_NONE,
				"an event names the object that it is about", 0, kind);
		break;
	}
}

static void on_srq_event(struct vb_world *world, struct vb_node_srq *srq)
{
	if (!srq->limit)
		vb_model_report(&world->model, VB_MODEL_NONE,
				"an SRQ reports its limit only when it is armed", 0, 1);
	srq->limit = 0;
	world->coverage.flaws[VB_FLAW_SRQ_LIMIT]++;
}

static void on_event(struct vb_world *world, struct vb_node *node, const struct vb_event *event)
{
	struct vb_node_qp *qp = event->qp ? event->owner_context : NULL;
	const uint64_t values[5] = { qp ? qp->number.v : 0, event->kind };

	vb_trace_note(&world->trace, world->now_ns, VB_TRACE_EVENT, node->index, values);
	world->coverage.events[event->kind % VB_COVERAGE_EVENTS]++;
	for (uint32_t i = 0; i < node->cq_count; i++) {
		if (event->cq != node->cqs[i]->cq)
			continue;
		if (event->kind == VB_EVENT_COMPLETION)
			on_cq_event(world, node, i);
		else
			on_overrun(world, node, i);
	}
	if (qp)
		on_qp_event(world, node, qp, event->kind);
	for (uint32_t i = 0; i < node->srq_count; i++) {
		if (event->srq == node->srqs[i]->srq)
			on_srq_event(world, node->srqs[i]);
	}
}

void vb_world_take_events(struct vb_world *world, struct vb_node *node)
{
	struct vb_event events[8];
	uint32_t count;

	while ((count = vb_nic_take_events(node->nic, events, 8)) > 0) {
		for (uint32_t i = 0; i < count; i++)
			on_event(world, node, &events[i]);
	}
}
