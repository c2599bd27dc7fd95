/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order and status of completions: each request completes exactly once, in the order of its queue;
 * unsignaled ones complete silently with a later completion; the first failure has a status that
 * fits its cause, and everything after it is flushed.
 */
#include "sim/model.h"

#include "sim/model_priv.h"

static const struct vb_model_qp *peer_of(const struct vb_model *model, const struct vb_model_qp *qp)
{
	return qp->peer == VB_MODEL_NONE ? NULL : &model->qps[qp->peer];
}

static bool can_be_flushed_first(const struct vb_model_qp *qp)
{
	return qp->cause & (VB_CAUSE_RESPONDER | VB_CAUSE_EXPLICIT | VB_CAUSE_OVERRUN);
}

static bool can_run_out_of_retries(const struct vb_model *model, const struct vb_model_qp *qp)
{
	const struct vb_model_qp *peer = peer_of(model, qp);

	if (!vb_model_is_reliable(qp))
		return false;
	if (qp->cause & VB_CAUSE_HOSTILE)
		return true;
	if (!peer)
		return false;
	if (qp->is_lossy && peer->cause & VB_CAUSE_RESPONDER)
		return true; /* it refused a request and failed, and its NAK was lost */
	return peer->cause & (VB_CAUSE_OWN | VB_CAUSE_EXPLICIT | VB_CAUSE_OVERRUN |
			      VB_CAUSE_HOSTILE | VB_CAUSE_GONE);
}

/* Statuses that a sender gets because of the receive that its message met. */
static uint32_t receive_trouble(const struct vb_model *model,
				const struct vb_model_request *request)
{
	const struct vb_model_qp *peer = peer_of(model, &model->qps[request->qp]);
	uint32_t srq;

	if (!request->is_message || !peer)
		return 0;
	srq = request->srq != VB_MODEL_NONE ? request->srq : peer->srq;
	return peer->recv_trouble | (srq != VB_MODEL_NONE ? model->srqs[srq].recv_trouble : 0);
}

static bool is_send_status_right(const struct vb_model *model,
				 const struct vb_model_request *request, uint8_t status)
{
	const struct vb_model_qp *qp = &model->qps[request->qp];

	if (status == VB_STATUS_WR_FLUSH_ERR)
		return qp->has_failed || can_be_flushed_first(qp);
	if (qp->has_failed)
		return false;
	if (status == VB_STATUS_RETRY_EXC_ERR && can_run_out_of_retries(model, qp))
		return true;
	if (status >= 32)
		return false;
	return (request->allowed | receive_trouble(model, request)) & VB_STATUS_BIT(status);
}

/* Not taken from the engine's table of operations: the model could find no mistake in that. */
static uint8_t completion_opcode(enum vb_wr_opcode opcode)
{
	switch (opcode) {
	case VB_WR_SEND:
	case VB_WR_SEND_IMM:
	case VB_WR_SEND_INV:
		return VB_COMPLETION_SEND;
	case VB_WR_WRITE:
	case VB_WR_WRITE_IMM:
		return VB_COMPLETION_WRITE;
	case VB_WR_READ:
		return VB_COMPLETION_READ;
	case VB_WR_COMPARE_SWAP:
		return VB_COMPLETION_COMPARE_SWAP;
	case VB_WR_FETCH_ADD:
		return VB_COMPLETION_FETCH_ADD;
	case VB_WR_LOCAL_INV:
		return VB_COMPLETION_LOCAL_INV;
	case VB_WR_BIND_MW:
		return VB_COMPLETION_BIND_MW;
	case VB_WR_ATOMIC_WRITE:
		return VB_COMPLETION_ATOMIC_WRITE;
	}
	return 255;
}

static void take_send(struct vb_model *model, uint32_t index, uint8_t status)
{
	struct vb_model_request *request = &model->requests[index];
	struct vb_model_qp *qp = &model->qps[request->qp];

	request->outcome = VB_OUTCOME_DONE;
	request->status = status;
	qp->send.head = request->next;
	if (qp->send.head == VB_MODEL_NONE)
		qp->send.tail = VB_MODEL_NONE;
}

static void finish_send(struct vb_model *model, uint32_t index, uint8_t status)
{
	struct vb_model_qp *qp = &model->qps[model->requests[index].qp];

	take_send(model, index, status);
	if (status != VB_STATUS_SUCCESS) {
		qp->has_failed = true;
		qp->cause |= VB_CAUSE_OWN;
	}
	vb_delivery_on_send_done(model, index, status == VB_STATUS_SUCCESS);
}

/*
 * Every request before a completion was done earlier: silently if it was unsignaled and succeeded.
 */
static bool finish_silent_ones(struct vb_model *model, uint32_t index)
{
	struct vb_model_qp *qp = &model->qps[model->requests[index].qp];
	bool may_be_lost = qp->cause & VB_CAUSE_OVERRUN;

	while (qp->send.head != index) {
		const struct vb_model_request *skipped = &model->requests[qp->send.head];

		if (may_be_lost) { /* its completion did not fit: its end is unknown */
			uint32_t lost = qp->send.head;

			take_send(model, lost, VB_STATUS_WR_FLUSH_ERR);
			vb_delivery_on_send_done(model, lost, false);
			continue;
		}
		if (qp->has_failed) {
			vb_model_report(
				model, qp->send.head,
				"after a failure every request is flushed in order, but this one was skipped",
				qp->send.head + 1, index + 1);
			return false;
		}
		if (skipped->is_signaled) {
			vb_model_report(
				model, qp->send.head,
				"requests complete in order, but a later one came before this one",
				qp->send.head + 1, index + 1);
			return false;
		}
		if (!(skipped->allowed & VB_STATUS_BIT(VB_STATUS_SUCCESS))) {
			vb_model_report(model, qp->send.head,
					"a request that must be refused completed silently", 0, 0);
			return false;
		}
		finish_send(model, qp->send.head, VB_STATUS_SUCCESS);
	}
	return true;
}

static void on_send(struct vb_model *model, uint32_t index,
		    const struct vb_model_completion *completion)
{
	struct vb_model_request *request = &model->requests[index];
	struct vb_model_qp *qp = &model->qps[request->qp];

	if (!finish_silent_ones(model, index))
		return;
	if (!is_send_status_right(model, request, completion->status)) {
		vb_model_report(model, index, "a request ended with a status that nothing explains",
				request->allowed, completion->status);
		return;
	}
	if (completion->status == VB_STATUS_SUCCESS && !request->is_signaled) {
		vb_model_report(model, index,
				"an unsignaled request that went well gives no completion", 0, 1);
		return;
	}
	if (completion->status == VB_STATUS_SUCCESS &&
	    completion->opcode != completion_opcode(request->opcode)) {
		vb_model_report(model, index, "a completion names the wrong operation",
				completion_opcode(request->opcode), completion->opcode);
		return;
	}
	if (qp->is_drained && completion->status == VB_STATUS_SUCCESS) {
		vb_model_report(model, index,
				"a drained send queue does nothing before it is back in RTS", 0, 1);
		return;
	}
	qp->send.freed = request->position + 1;
	finish_send(model, index, completion->status);
}

static bool can_receive_be_flushed(const struct vb_model *model, const struct vb_model_qp *qp)
{
	const struct vb_model_qp *peer = peer_of(model, qp);

	return qp->cause || qp->has_failed || (peer && peer->cause);
}

/* True if the message that the receive met is longer than its buffer. */
static bool is_too_short(const struct vb_model *model, const struct vb_model_request *request,
			 uint32_t qp)
{
	uint32_t message = vb_delivery_next_message(model, qp);

	return message != VB_MODEL_NONE && model->requests[message].length > request->length;
}

/* A receive that a refused message has taken ends with the status that the sender gets. */
static uint32_t refusals(const struct vb_model *model, uint32_t qp)
{
	uint32_t message = vb_delivery_next_message(model, qp);

	return message == VB_MODEL_NONE ? 0
					: model->requests[message].allowed &
						  (VB_STATUS_BIT(VB_STATUS_REM_ACCESS_ERR) |
						   VB_STATUS_BIT(VB_STATUS_REM_INV_REQ_ERR) |
						   VB_STATUS_BIT(VB_STATUS_REM_OP_ERR));
}

static bool is_receive_status_right(const struct vb_model *model,
				    const struct vb_model_request *request, uint32_t qp,
				    uint8_t status)
{
	const struct vb_model_qp *q = &model->qps[qp];

	switch (status) {
	case VB_STATUS_SUCCESS:
		return !q->has_recv_failed;
	case VB_STATUS_WR_FLUSH_ERR:
		return q->has_recv_failed || can_receive_be_flushed(model, q);
	case VB_STATUS_LOC_LEN_ERR:
		return !q->has_recv_failed && is_too_short(model, request, qp);
	default:
		return !q->has_recv_failed && status < 32 &&
		       (request->allowed | refusals(model, qp)) & VB_STATUS_BIT(status);
	}
}

static bool take_from_queue(struct vb_model *model, uint32_t index)
{
	struct vb_model_request *request = &model->requests[index];
	struct vb_model_queue *queue;

	if (request->srq != VB_MODEL_NONE) {
		model->srqs[request->srq].outstanding--;
		return true;
	}
	queue = &model->qps[request->qp].recv;
	if (queue->head != index && !(model->qps[request->qp].cause & VB_CAUSE_OVERRUN)) {
		vb_model_report(model, index,
				"receives complete in the order in which they were posted",
				queue->head + 1, index + 1);
		return false;
	}
	while (queue->head != index) {
		model->requests[queue->head].outcome = VB_OUTCOME_DONE;
		vb_delivery_on_receive_failed(model, queue->head);
		queue->head = model->requests[queue->head].next;
	}
	queue->head = request->next;
	if (queue->head == VB_MODEL_NONE)
		queue->tail = VB_MODEL_NONE;
	queue->freed = request->position + 1;
	return true;
}

static void on_receive(struct vb_model *model, uint32_t index,
		       const struct vb_model_completion *completion)
{
	struct vb_model_request *request = &model->requests[index];
	struct vb_model_qp *qp = &model->qps[completion->qp];

	if (!is_receive_status_right(model, request, completion->qp, completion->status)) {
		vb_model_report(model, index, "a receive ended with a status that nothing explains",
				request->allowed, completion->status);
		return;
	}
	if (!take_from_queue(model, index))
		return;
	request->outcome = VB_OUTCOME_DONE;
	request->status = completion->status;
	if (completion->status == VB_STATUS_SUCCESS) {
		vb_delivery_on_receive(model, index, completion);
		return;
	}
	if (vb_model_is_reliable(qp) && qp->type != VB_QP_XRC_RECV) {
		qp->has_recv_failed = true;
		qp->cause |= VB_CAUSE_RESPONDER;
	}
	vb_delivery_on_receive_failed(model, index);
}

static bool is_of_this_qp(const struct vb_model *model, const struct vb_model_request *request,
			  const struct vb_model_completion *completion)
{
	if (completion->qp == VB_MODEL_NONE)
		return false;
	if (request->qp != VB_MODEL_NONE)
		return request->qp == completion->qp;
	/*
	 * A receive of an SRQ: any QP that uses the SRQ, or an XRC QP, whose sender names the SRQ.
	 */
	return model->qps[completion->qp].srq == request->srq ||
	       model->qps[completion->qp].type == VB_QP_XRC_RECV;
}

void vb_model_on_completion(struct vb_model *model, const struct vb_model_completion *completion)
{
	uint32_t index = (uint32_t)(completion->wr_id - 1);
	struct vb_model_request *request;

	if (vb_model_is_violated(model))
		return;
	if (completion->wr_id == 0 || completion->wr_id > model->request_count) {
		vb_model_report(model, VB_MODEL_NONE,
				"a completion names a request that was never posted", 0,
				completion->wr_id);
		return;
	}
	request = &model->requests[index];
	if (request->is_receive != completion->is_receive) {
		vb_model_report(model, index, "a completion takes a send for a receive",
				request->is_receive, completion->is_receive);
		return;
	}
	if (request->outcome == VB_OUTCOME_DONE) {
		vb_model_report(model, index,
				"a request completes exactly once, but this one did twice", 1, 2);
		return;
	}
	if (request->outcome == VB_OUTCOME_DROPPED) {
		vb_model_report(model, index,
				"moving a QP to RESET purges its completions, but this one came", 0,
				1);
		return;
	}
	if (!is_of_this_qp(model, request, completion)) {
		vb_model_report(model, index, "a completion names another QP than the request's",
				request->qp, completion->qp);
		return;
	}
	if (request->is_receive)
		on_receive(model, index, completion);
	else
		on_send(model, index, completion);
}
