/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the model, posting, the slots of queues, reset and death, and the demands at the end.
 */
#include "sim/model.h"

#include "base/err.h"
#include "sim/array.h"
#include "sim/model_priv.h"

#include <inttypes.h>
#include <stdio.h>

void vb_model_init(struct vb_model *model)
{
	*model = (struct vb_model){ 0 };
}

void vb_model_fini(struct vb_model *model)
{
	free(model->requests);
	free(model->qps);
	free(model->srqs);
	free(model->series);
	free(model->counters);
	*model = (struct vb_model){ 0 };
}

bool vb_model_is_violated(const struct vb_model *model)
{
	return model->violation[0];
}

void vb_model_report(struct vb_model *model, uint32_t request, const char *rule, uint64_t expected,
		     uint64_t found)
{
	const struct vb_model_request *r;
	int used;

	if (vb_model_is_violated(model))
		return;
	used = snprintf(model->violation, VB_MODEL_TEXT_MAX,
			"%s (expected 0x%" PRIx64 ", found 0x%" PRIx64 ")", rule, expected, found);
	if (request >= model->request_count)
		return;
	r = &model->requests[request];
	snprintf(model->violation + used, VB_MODEL_TEXT_MAX - (uint32_t)used,
		 "; %s wr=%" PRIu32 " opcode=%d length=%" PRIu32 " model qp=%d node=%d",
		 r->is_receive ? "receive" : "send", request + 1,
		 r->is_receive ? -1 : (int)r->opcode, r->length, (int)r->qp,
		 r->qp == VB_MODEL_NONE ? -1 : (int)model->qps[r->qp].node);
}

static struct vb_model_queue empty_queue(uint32_t depth)
{
	return (struct vb_model_queue){ .depth = depth,
					.head = VB_MODEL_NONE,
					.tail = VB_MODEL_NONE };
}

static void empty_qp(struct vb_model_qp *qp)
{
	qp->send = empty_queue(qp->send.depth);
	qp->recv = empty_queue(qp->recv.depth);
	qp->first_message = VB_MODEL_NONE;
	qp->last_message = VB_MODEL_NONE;
	qp->next_message = VB_MODEL_NONE;
	qp->cause = 0;
	qp->recv_trouble = 0;
	qp->has_failed = false;
	qp->has_recv_failed = false;
	qp->is_removed = false;
	qp->is_drained = false;
}

uint32_t vb_model_add_qp(struct vb_model *model, const struct vb_model_qp *qp)
{
	model->qps = vb_array_reserve(model->qps, model->qp_count, &model->qp_capacity,
				      sizeof(*model->qps));
	model->qps[model->qp_count] = *qp;
	empty_qp(&model->qps[model->qp_count]);
	return model->qp_count++;
}

uint32_t vb_model_add_srq(struct vb_model *model, uint32_t depth)
{
	model->srqs = vb_array_reserve(model->srqs, model->srq_count, &model->srq_capacity,
				       sizeof(*model->srqs));
	model->srqs[model->srq_count] = (struct vb_model_srq){ .depth = depth };
	return model->srq_count++;
}

uint32_t vb_model_add_series(struct vb_model *model)
{
	model->series = vb_array_reserve(model->series, model->series_count,
					 &model->series_capacity, sizeof(*model->series));
	model->series[model->series_count] = (struct vb_model_series){ 0 };
	return model->series_count++;
}

uint32_t vb_model_add_counter(struct vb_model *model, struct vb_arena *arena, uint64_t address,
			      bool is_swap)
{
	struct vb_model_counter counter = { .arena = arena,
					    .address = address,
					    .is_swap = is_swap };

	memcpy(&counter.initial, vb_arena_bytes(arena, address), 8);
	vb_arena_open(arena, address, 8);
	model->counters = vb_array_reserve(model->counters, model->counter_count,
					   &model->counter_capacity, sizeof(*model->counters));
	model->counters[model->counter_count] = counter;
	return model->counter_count++;
}

void vb_model_connect(struct vb_model *model, uint32_t a, uint32_t b)
{
	empty_qp(&model->qps[a]);
	empty_qp(&model->qps[b]);
	model->qps[a].peer = b;
	model->qps[b].peer = a;
}

void vb_model_expect(struct vb_model *model, uint32_t qp, uint32_t cause)
{
	model->qps[qp].cause |= cause;
}

static bool overlaps(uint64_t a, uint32_t a_length, uint64_t b, uint32_t b_length)
{
	return a < b + b_length && b < a + a_length;
}

static bool uses_locally(const struct vb_model_request *request, const struct vb_arena *arena,
			 uint64_t address, uint32_t length)
{
	for (uint32_t i = 0; request->arena == arena && i < request->piece_count; i++) {
		if (overlaps(request->pieces[i].address, request->pieces[i].length, address,
			     length))
			return true;
	}
	return false;
}

static void forgive_receive(struct vb_model *model, struct vb_model_request *request,
			    uint32_t statuses)
{
	request->allowed |= statuses;
	if (request->srq != VB_MODEL_NONE) {
		model->srqs[request->srq].recv_trouble |= VB_STATUS_BIT(VB_STATUS_REM_OP_ERR);
		for (uint32_t i = 0; i < model->qp_count; i++) {
			if (model->qps[i].srq == request->srq ||
			    model->qps[i].type == VB_QP_XRC_RECV)
				model->qps[i].cause |= VB_CAUSE_RESPONDER;
		}
		return;
	}
	model->qps[request->qp].recv_trouble |= VB_STATUS_BIT(VB_STATUS_REM_OP_ERR);
	model->qps[request->qp].cause |= VB_CAUSE_RESPONDER;
}

static bool uses_remotely(const struct vb_model_request *request, const struct vb_arena *arena,
			  uint64_t address, uint32_t length)
{
	return request->remote == arena &&
	       overlaps(request->remote_address, request->length, address, length);
}

/* True if the request is under way, or was flushed while its packets may still be under way. */
static bool may_still_arrive(const struct vb_model *model, const struct vb_model_request *request)
{
	if (request->is_receive || model->qps[request->qp].peer == VB_MODEL_NONE)
		return false;
	return request->outcome != VB_OUTCOME_DONE || request->status != VB_STATUS_SUCCESS;
}

static void expect_refusal(struct vb_model *model, const struct vb_model_request *request)
{
	model->qps[model->qps[request->qp].peer].cause |= VB_CAUSE_RESPONDER;
}

void vb_model_forgive(struct vb_model *model, const struct vb_arena *arena, uint64_t address,
		      uint32_t length, uint32_t local_statuses, uint32_t remote_statuses)
{
	for (uint32_t i = 0; i < model->request_count; i++) {
		struct vb_model_request *request = &model->requests[i];
		struct vb_model_qp *qp;

		if (may_still_arrive(model, request) &&
		    uses_remotely(request, arena, address, length))
			expect_refusal(model, request);
		if (request->outcome != VB_OUTCOME_PENDING)
			continue;
		if (request->is_receive) {
			if (uses_locally(request, arena, address, length))
				forgive_receive(model, request, local_statuses);
			continue;
		}
		qp = &model->qps[request->qp];
		if (uses_locally(request, arena, address, length)) {
			request->allowed |= local_statuses;
			qp->cause |= VB_CAUSE_OWN;
		}
		if (uses_remotely(request, arena, address, length)) {
			request->allowed |= remote_statuses;
			qp->cause |= VB_CAUSE_OWN;
		}
	}
}

uint64_t vb_model_next_id(const struct vb_model *model)
{
	return (uint64_t)model->request_count + 1;
}

struct vb_model_request vb_model_request_of(uint32_t qp, enum vb_wr_opcode opcode)
{
	return (struct vb_model_request){
		.qp = qp,
		.srq = VB_MODEL_NONE,
		.opcode = opcode,
		.is_signaled = true,
		.allowed = VB_STATUS_BIT(VB_STATUS_SUCCESS),
		.target = VB_MODEL_NONE,
		.deliveries_max = 1,
		.series = VB_MODEL_NONE,
		.counter = VB_MODEL_NONE,
	};
}

static void enqueue(struct vb_model *model, struct vb_model_queue *queue, uint32_t index)
{
	model->requests[index].position = queue->posted++;
	if (queue->head == VB_MODEL_NONE)
		queue->head = index;
	else
		model->requests[queue->tail].next = index;
	queue->tail = index;
}

static void enqueue_message(struct vb_model *model, struct vb_model_qp *qp, uint32_t index)
{
	if (qp->first_message == VB_MODEL_NONE)
		qp->first_message = index;
	else
		model->requests[qp->last_message].next_message = index;
	qp->last_message = index;
	if (qp->next_message == VB_MODEL_NONE)
		qp->next_message = index;
}

static void open_ranges(struct vb_model *model, const struct vb_model_request *request)
{
	for (uint32_t i = 0; request->opens_local && i < request->piece_count; i++)
		vb_arena_open(request->arena, request->pieces[i].address,
			      request->pieces[i].length);
	if (request->opens_remote)
		vb_arena_open(request->remote, request->remote_address, request->length);
	if (request->series != VB_MODEL_NONE) {
		model->series[request->series].pending++;
		model->series[request->series].last_key = request->key;
	}
}

void vb_model_on_post(struct vb_model *model, const struct vb_model_request *request)
{
	uint32_t index = model->request_count;
	struct vb_model_request *kept;

	model->requests = vb_array_reserve(model->requests, index, &model->request_capacity,
					   sizeof(*model->requests));
	model->request_count++;
	kept = &model->requests[index];
	*kept = *request;
	kept->outcome = VB_OUTCOME_PENDING;
	kept->next = VB_MODEL_NONE;
	kept->next_message = VB_MODEL_NONE;
	kept->delivered = 0;
	kept->arrived_once = 0;
	kept->arrived_twice = 0;
	open_ranges(model, kept);
	if (request->is_receive && request->srq != VB_MODEL_NONE) {
		model->srqs[request->srq].outstanding++;
		return;
	}
	enqueue(model,
		request->is_receive ? &model->qps[request->qp].recv : &model->qps[request->qp].send,
		index);
	if (request->is_message)
		enqueue_message(model, &model->qps[request->qp], index);
}

void vb_model_release_pieces(struct vb_model_request *request)
{
	for (uint32_t i = 0; i < request->piece_count; i++) {
		if (request->pieces[i].is_block && request->pieces[i].length)
			vb_arena_release(request->arena, request->pieces[i].address);
	}
	request->piece_count = 0;
}

bool vb_model_is_full(const struct vb_model *model, uint32_t qp, bool is_receive)
{
	const struct vb_model_queue *queue = is_receive ? &model->qps[qp].recv
							: &model->qps[qp].send;

	return queue->posted - queue->freed == queue->depth;
}

void vb_model_on_drained(struct vb_model *model, uint32_t qp)
{
	model->qps[qp].is_drained = true;
}

void vb_model_on_resumed(struct vb_model *model, uint32_t qp)
{
	model->qps[qp].is_drained = false;
}

void vb_model_on_recovered(struct vb_model *model, uint32_t qp)
{
	model->qps[qp].has_failed = false;
}

static void drop_queue(struct vb_model *model, struct vb_model_queue *queue)
{
	for (uint32_t i = queue->head; i != VB_MODEL_NONE; i = model->requests[i].next) {
		struct vb_model_request *request = &model->requests[i];

		request->outcome = VB_OUTCOME_DROPPED;
		if (request->series != VB_MODEL_NONE)
			model->series[request->series].is_broken = true;
		vb_delivery_give_back(model, request, true);
	}
	queue->head = VB_MODEL_NONE;
	queue->tail = VB_MODEL_NONE;
	queue->freed = queue->posted;
}

void vb_model_on_removed(struct vb_model *model, uint32_t qp)
{
	drop_queue(model, &model->qps[qp].send);
	drop_queue(model, &model->qps[qp].recv);
	model->qps[qp].cause |= VB_CAUSE_GONE;
	model->qps[qp].is_removed = true;
}

void vb_model_on_death(struct vb_model *model, uint32_t qp)
{
	model->qps[qp].cause |= VB_CAUSE_GONE;
	model->qps[qp].is_waived = true;
	model->qps[qp].is_removed = true;
}

uint32_t vb_model_pending_sends(const struct vb_model *model, uint32_t qp)
{
	uint32_t count = 0;

	for (uint32_t i = model->qps[qp].send.head; i != VB_MODEL_NONE; i = model->requests[i].next)
		count++;
	return count;
}

bool vb_model_is_waiting(const struct vb_model *model, uint32_t qp)
{
	const struct vb_model_qp *q = &model->qps[qp];

	if (q->is_waived || q->is_removed)
		return false;
	for (uint32_t i = q->send.head; i != VB_MODEL_NONE; i = model->requests[i].next) {
		if (model->requests[i].is_signaled || q->has_failed)
			return true;
	}
	return false;
}

void vb_model_check_rest(struct vb_model *model)
{
	for (uint32_t i = 0; i < model->qp_count; i++) {
		const struct vb_model_qp *qp = &model->qps[i];
		bool is_in_error = qp->has_recv_failed ||
				   (qp->has_failed && vb_model_is_reliable(qp));

		if (qp->is_waived || qp->is_removed || qp->cause & VB_CAUSE_OVERRUN)
			continue;
		if (vb_model_is_waiting(model, i) && !qp->is_patient)
			vb_model_report(
				model, qp->send.head,
				"after the faults end every request completes, but this one never did",
				1, 0);
		if (is_in_error && qp->recv.head != VB_MODEL_NONE)
			vb_model_report(
				model, qp->recv.head,
				"a QP in error flushes its receives, but this one never completed",
				1, 0);
	}
}

static void check_empty(struct vb_model *model, const struct vb_model_qp *qp)
{
	for (uint32_t i = qp->send.head; i != VB_MODEL_NONE; i = model->requests[i].next) {
		if (model->requests[i].is_signaled)
			vb_model_report(
				model, i,
				"a posted request never completed, not even when its QP was moved to ERR",
				1, 0);
	}
	if (qp->recv.head != VB_MODEL_NONE)
		vb_model_report(
			model, qp->recv.head,
			"a posted receive never completed, not even when its QP was moved to ERR",
			1, 0);
}

void vb_model_check_end(struct vb_model *model)
{
	for (uint32_t i = 0; i < model->qp_count; i++) {
		const struct vb_model_qp *qp = &model->qps[i];

		if (!qp->is_waived && !qp->is_removed && !(qp->cause & VB_CAUSE_OVERRUN))
			check_empty(model, qp);
	}
	vb_delivery_check_end(model);
	vb_history_check(model);
}
