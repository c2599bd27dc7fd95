/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates, destroys and finds QPs, and passes on what makes them act: a doorbell, a timer, a turn
 * to send.
 */
#include "nic/qp_priv.h"

#include "base/probe.h"
#include "base/heap.h"
#include "nic/ack_policy_priv.h"
#include "nic/rendezvous_priv.h"
#include "nic/row_mirror_priv.h"
#include "nic/tag_list_priv.h"
#include "nic/unreliable_priv.h"

#include "base/bytes.h"

#define SLOT_ALIGN 64u

_Static_assert(sizeof(struct vb_wqe) % SLOT_ALIGN &&
		       sizeof(struct vb_wqe) % SLOT_ALIGN <= SLOT_ALIGN - 8,
	       "an inline atomic write fits into a slot without SGEs");

struct vb_qp *vb_qp_find(const struct vb_nic *nic, vb_qpn number)
{
	struct vb_qp *qp = nic->qps[number.v & (nic->config.qp_row_count - 1)];

	return qp && qp->number.v == number.v ? qp : NULL;
}

/*
 * Claims the next QPN of the range that has a free row. Because it counts up, a number is used
 * again only after all others.
 */
static bool claim_number(struct vb_nic *nic, struct vb_qp *qp, vb_qpn wanted)
{
	const struct vb_nic_config *config = &nic->config;
	uint32_t number = wanted.v;
	/* Consecutive numbers choose different rows: beyond this many tries no row is free. */
	uint32_t tries = wanted.v ? 1 : min32(config->qpn_count, 2 * config->qp_row_count);

	for (; tries; tries--) {
		uint32_t index;

		if (!wanted.v) {
			number = nic->qpn_next++;
			if (nic->qpn_next >= config->qpn_first + config->qpn_count)
				nic->qpn_next = config->qpn_first;
		}
		index = number & (config->qp_row_count - 1);
		if (nic->qps[index] || (index < VB_QP_ROWS_RESERVED && !wanted.v))
			continue;
		nic->qps[index] = qp;
		qp->number.v = number;
		qp->row = &config->qp_rows[index];
		return true;
	}
	return false;
}

static bool has_send_queue(enum vb_qp_type type)
{
	return type != VB_QP_XRC_RECV;
}

static bool has_recv_queue(const struct vb_qp_init *init)
{
	return !init->srq && init->type != VB_QP_XRC_RECV && init->type != VB_QP_XRC_SEND;
}

static vb_err check_objects(const struct vb_pd *pd, const struct vb_qp_init *init)
{
	bool needs_send_cq = false;
	bool needs_recv_cq = false;

	switch (init->type) {
	case VB_QP_RC:
	case VB_QP_UC:
	case VB_QP_UD:
		needs_send_cq = true;
		needs_recv_cq = true;
		break;
	case VB_QP_XRC_SEND:
		needs_send_cq = true;
		break;
	case VB_QP_XRC_RECV:
		break;
	default:
		return VB_EOPNOTSUPP;
	}
	if (needs_send_cq && (!init->send_cq || init->send_cq->nic != pd->nic))
		return VB_EINVAL;
	if (needs_recv_cq && (!init->recv_cq || init->recv_cq->nic != pd->nic))
		return VB_EINVAL;
	if ((init->type == VB_QP_XRC_RECV) != (init->xrcd != NULL))
		return VB_EINVAL;
	if (init->xrcd && init->xrcd->nic != pd->nic)
		return VB_EINVAL;
	if (init->srq && (!needs_recv_cq || init->srq->xrcd || init->srq->pd->nic != pd->nic))
		return VB_EINVAL;
	if (init->srq && init->srq->tags && init->type != VB_QP_RC)
		return VB_EINVAL;
	return VB_OK;
}

static vb_err check_capacity(const struct vb_nic *nic, const struct vb_qp_init *init)
{
	const struct vb_nic_limits *limits = &nic->limits;

	if (has_send_queue(init->type) &&
	    (init->send_depth > limits->qp_depth || init->send_sge_max > limits->sge ||
	     init->inline_max > limits->inline_length))
		return VB_EINVAL;
	if (has_recv_queue(init) &&
	    (init->recv_depth > limits->qp_depth || init->recv_sge_max > limits->sge))
		return VB_EINVAL;
	if (init->qpn.v && (init->qpn.v != 1 || init->type != VB_QP_UD))
		return VB_EINVAL;
	return VB_OK;
}

static uint32_t send_stride(const struct vb_qp_init *init)
{
	uint32_t data =
		max32(init->send_sge_max * (uint32_t)sizeof(struct vb_sge), init->inline_max);
	uint32_t size = (uint32_t)sizeof(struct vb_wqe) + data;

	return (size + SLOT_ALIGN - 1) & ~(SLOT_ALIGN - 1);
}

static vb_err init_queues(struct vb_qp *qp, const struct vb_qp_init *init)
{
	vb_err err = VB_OK;

	qp->posted = &qp->sq;
	if (init->srq && init->srq->tags)
		err = vb_rendezvous_create(qp, init, send_stride(init));
	else if (has_send_queue(init->type))
		err = vb_queue_init(&qp->sq, init->send_depth, init->send_sge_max,
				    send_stride(init));
	if (err)
		return err;
	if (has_recv_queue(init))
		err = vb_queue_init(&qp->rq, init->recv_depth, init->recv_sge_max,
				    (uint32_t)(sizeof(struct vb_rwqe) +
					       init->recv_sge_max * sizeof(struct vb_sge)));
	if (err)
		goto fini_sq;
	if (init->srq || init->type == VB_QP_XRC_RECV) {
		qp->responder.receive.copy = vb_heap_alloc(
			init->srq ? init->srq->queue.sge_max : VB_SGE_MAX, sizeof(struct vb_sge));
		if (!qp->responder.receive.copy) {
			err = VB_ENOMEM;
			goto fini_rq;
		}
	}
	return VB_OK;
fini_rq:
	vb_queue_fini(&qp->rq);
fini_sq:
	vb_queue_fini(&qp->sq);
	vb_rendezvous_destroy(qp);
	return err;
}

static void fini_queues(struct vb_qp *qp)
{
	vb_heap_free(qp->responder.receive.copy);
	vb_queue_fini(&qp->rq);
	vb_queue_fini(&qp->sq);
	vb_rendezvous_destroy(qp);
}

static enum vb_service service_of(enum vb_qp_type type)
{
	switch (type) {
	case VB_QP_UC:
		return VB_SERVICE_UC;
	case VB_QP_UD:
		return VB_SERVICE_UD;
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		return VB_SERVICE_XRC;
	case VB_QP_RC:
		break;
	}
	return VB_SERVICE_RC;
}

/* Adds 1 or -1 to the use counts of everything that the QP refers to. */
static void add_to_use_counts(struct vb_qp *qp, int32_t step)
{
	uint32_t change = (uint32_t)step; /* the sums wrap */

	qp->pd->child_count += change;
	if (qp->send_cq)
		qp->send_cq->user_count += change;
	if (qp->recv_cq)
		qp->recv_cq->user_count += change;
	if (qp->srq)
		qp->srq->user_count += change;
	if (qp->xrcd)
		qp->xrcd->user_count += change;
	qp->nic->qp_count += change;
}

vb_err vb_qp_create(struct vb_pd *pd, const struct vb_qp_init *init, struct vb_qp **qp_out)
{
	struct vb_nic *nic = pd->nic;
	struct vb_qp *qp;
	vb_err err = check_objects(pd, init);

	if (!err)
		err = check_capacity(nic, init);
	if (err)
		return err;
	qp = vb_heap_alloc(1, sizeof(*qp));
	if (!qp)
		return VB_ENOMEM;
	err = init_queues(qp, init);
	if (err)
		goto free_qp;
	err = vb_nic_add_timer(nic);
	if (err)
		goto fini_queues;
	if (!claim_number(nic, qp, init->qpn)) {
		err = VB_ENOSPC;
		goto remove_timer;
	}
	qp->nic = nic;
	qp->pd = pd;
	qp->pd_number = pd->number;
	qp->type = (uint8_t)init->type;
	qp->service = (uint8_t)service_of(init->type);
	qp->send_cq = has_send_queue(init->type) ? init->send_cq : NULL;
	qp->recv_cq = init->type == VB_QP_XRC_SEND || init->type == VB_QP_XRC_RECV ? NULL
										   : init->recv_cq;
	qp->srq = init->srq;
	qp->xrcd = init->xrcd;
	qp->signal_all = init->signal_all;
	qp->inline_max = init->inline_max;
	vb_list_init(&qp->active);
	vb_list_init(&qp->sent);
	vb_list_init(&qp->waiting);
	vb_train_choice_init(&qp->train_choice);
	vb_timer_init(&qp->timer, VB_TIMER_QP);
	vb_event_source_init(&qp->source, VB_SOURCE_QP, init->owner_context);
	add_to_use_counts(qp, 1);
	vb_qp_publish_row(qp);
	*qp_out = qp;
	return VB_OK;
remove_timer:
	nic->timer_count--;
fini_queues:
	fini_queues(qp);
free_qp:
	vb_heap_free(qp);
	return err;
}

/*
 * Takes a rung QP off the doorbell stack. A program that posts to a QP while it destroys it is
 * wrong.
 */
void vb_qp_remove_from_doorbell(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;
	struct vb_qp *stack;

	if (!atomic_load_explicit(&qp->is_rung, memory_order_acquire))
		return;
	stack = atomic_exchange_explicit(&nic->doorbells, NULL, memory_order_acquire);
	while (stack) {
		struct vb_qp *next = stack->next_rung;

		atomic_exchange_explicit(&stack->is_rung, 0, memory_order_seq_cst);
		if (stack != qp)
			vb_qp_ring_doorbell(stack);
		stack = next;
	}
}

vb_err vb_qp_destroy(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;

	if (qp->group_count)
		return VB_EBUSY;
	vb_qp_reset(qp);
	vb_mw_unbind_all(qp); /* bound windows do not keep a QP alive: o10-2.2.5 */
	vb_qp_remove_from_doorbell(qp);
	vb_list_remove(&qp->active);
	vb_timer_remove(&nic->timers, &qp->timer);
	nic->timer_count--;
	vb_event_source_fini(&qp->source);
	add_to_use_counts(qp, -1);
	nic->qps[qp->number.v & (nic->config.qp_row_count - 1)] = NULL;
	qp->number.v = 0;
	vb_qp_publish_row(qp);
	fini_queues(qp);
	vb_heap_free(qp->responder.resources);
	vb_heap_free(qp);
	return VB_OK;
}

/*
 * Tags and their completions belong to the SRQ. A message under way is lost, which the SRQ's user
 * learns.
 */
VB_COLD static void reset_tagged(struct vb_qp *qp)
{
	if (qp->responder.receive.is_used)
		vb_qp_complete_receive(qp, VB_STATUS_WR_FLUSH_ERR, NULL, 0);
	vb_rendezvous_reset(qp);
}

/* Discards everything that was posted, completed or under way. */
void vb_qp_reset(struct vb_qp *qp)
{
	struct vb_sge *copy = qp->responder.receive.copy;
	struct vb_resource *resources = qp->responder.resources;

	if (qp->rendezvous)
		reset_tagged(qp);
	if (qp->send_cq)
		vb_cq_purge(qp->send_cq, qp);
	if (qp->recv_cq)
		vb_cq_purge(qp->recv_cq, qp);
	if (qp->xrcd)
		vb_srq_purge_xrc(qp);
	vb_timer_stop(&qp->timer);
	vb_flight_leave(qp);
	vb_list_remove(&qp->sent);
	vb_qp_set_link(qp, 0, NULL);
	vb_queue_reset(&qp->sq);
	vb_queue_reset(&qp->rq);
	qp->requester = (struct vb_requester){ 0 };
	vb_train_choice_init(&qp->train_choice);
	vb_qp_forget_holds(qp);
	qp->responder = (struct vb_responder){ 0 };
	qp->responder.receive.copy = copy;
	qp->responder.resources = resources;
	atomic_store_explicit(&qp->has_announced_no_credits, 0, memory_order_relaxed);
	vb_qp_set_state(qp, VB_STATE_RESET);
}

void vb_qp_set_state(struct vb_qp *qp, enum vb_qp_state state)
{
	/*
	 * Pairs with the fence in vb_qp_post_recv(): the flush after this sees every receive that
	 * does not ring.
	 */
	VB_PROBE3(state, qp->number.v, vb_qp_state_now(qp), state);
	atomic_store_explicit(&qp->state, (uint8_t)state, memory_order_seq_cst);
	if (qp->type == VB_QP_RC || qp->type == VB_QP_XRC_SEND)
		vb_qp_note_hold(qp, state == VB_STATE_RTS ? VB_HOLD_EMPTY : VB_HOLD_NONE);
	vb_qp_publish_row(qp);
}

void vb_qp_publish_row(struct vb_qp *qp)
{
	struct vb_qp_row *row = qp->row;
	const struct vb_nic *nic = qp->nic;
	void *mirror = nic->mirror.qp_rows ? &nic->mirror.qp_rows[row - nic->config.qp_rows] : NULL;
	enum vb_qp_state state = vb_qp_state_now(qp);

	vb_row_mirror_begin_change(mirror, &row->generation);
	row->qpn = qp->number.v;
	row->domain = qp->xrcd ? qp->xrcd->number : qp->pd_number;
	row->access = qp->attr.access;
	row->peer_qpn = qp->peer.v;
	row->peer = qp->path.ip.destination;
	row->local = qp->path.ip.source;
	row->accepts = state >= VB_STATE_RTR && state != VB_STATE_ERR && qp->number.v;
	/*
	 * The first packet to a QP in RTR raises an event, so the engine must see it: a peer may
	 * not execute it directly.
	 */
	row->is_direct = row->accepts && (state != VB_STATE_RTR || qp->responder.is_established);
	row->is_on_wire = state >= VB_STATE_RTR && !qp->path.link && qp->number.v;
	row->service = qp->service;
	row->reads_in = qp->responder.resource_count;
	row->generation++;
	vb_row_mirror_end_change(mirror, row, sizeof(*row));
}

VB_COLD void vb_qp_withdraw_row(struct vb_qp *qp)
{
	struct vb_qp_row *row = qp->row;
	const struct vb_nic *nic = qp->nic;
	void *mirror = nic->mirror.qp_rows ? &nic->mirror.qp_rows[row - nic->config.qp_rows] : NULL;

	vb_row_mirror_begin_change(mirror, &row->generation);
	row->is_direct = 0;
	row->generation++;
	vb_row_mirror_end_change(mirror, row, sizeof(*row));
}

VB_COLD void vb_qp_on_established(struct vb_qp *qp)
{
	if (vb_qp_state_now(qp) == VB_STATE_RTR)
		vb_event_raise(qp->nic, &qp->source, VB_EVENT_COMM_EST);
	qp->responder.is_established = true;
	vb_qp_publish_row(qp); /* from now on a local peer may execute requests itself */
}

void vb_qp_schedule(struct vb_qp *qp)
{
	if (!vb_list_is_linked(&qp->active))
		vb_list_append(&qp->nic->active, &qp->active);
}

void vb_qp_on_doorbell(struct vb_qp *qp)
{
	if (qp->rendezvous)
		vb_rendezvous_take_posted(qp);
	switch (vb_qp_state_now(qp)) {
	case VB_STATE_ERR:
		vb_qp_flush_send(qp);
		vb_qp_flush_recv(qp);
		break;
	case VB_STATE_SQE:
		vb_qp_flush_send(qp);
		break;
	case VB_STATE_RTS:
	case VB_STATE_SQD:
		vb_ack_on_receives_posted(qp);
		vb_qp_schedule(qp);
		break;
	case VB_STATE_RTR:
		vb_ack_on_receives_posted(qp);
		break;
	case VB_STATE_RESET:
		if (qp->srq && qp->srq->tags)
			vb_tag_list_execute(qp->srq);
		break;
	case VB_STATE_INIT:
		break;
	}
}

void vb_qp_on_timer(struct vb_qp *qp)
{
	if (vb_qp_is_reliable(qp))
		vb_rc_on_timer(qp);
}

/*
 * Responses and requests alternate: a peer that reads without end must not keep us from sending. An
 * ACK waits for the requests of this turn (nic/ack_policy_priv.h): since it is shorter, it can only
 * be the last segment of their batch.
 */
static bool emit_reliable(struct vb_qp *qp, struct vb_slot *slot, bool is_last_of_turn)
{
	bool can_wait = !is_last_of_turn && vb_ack_is_all_owed(qp);
	bool has_request = vb_rc_has_request(qp);

	if (has_request && (qp->has_replied || can_wait) && vb_rc_emit_request(qp, slot)) {
		qp->has_replied = false;
		vb_ack_join_request(qp, slot);
		return true;
	}
	qp->has_replied = vb_rc_owes_reply(&qp->responder) && vb_rc_emit_reply(qp, slot);
	if (qp->has_replied)
		vb_rc_conclude_failure(qp);
	return qp->has_replied || (has_request && vb_rc_emit_request(qp, slot));
}

bool vb_qp_emit(struct vb_qp *qp, struct vb_slot *slot, bool is_last_of_turn)
{
	switch ((enum vb_qp_type)qp->type) {
	case VB_QP_RC:
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		return emit_reliable(qp, slot, is_last_of_turn);
	case VB_QP_UC:
		return vb_uc_emit(qp, slot);
	case VB_QP_UD:
		return vb_ud_emit(qp, slot);
	}
	return false;
}

struct vb_qp *vb_nic_next_qp(const struct vb_nic *nic, uint32_t *next_index)
{
	while (*next_index < nic->config.qp_row_count) {
		struct vb_qp *qp = nic->qps[(*next_index)++];

		if (qp)
			return qp;
	}
	return NULL;
}

vb_qpn vb_qp_number(const struct vb_qp *qp)
{
	return qp->number;
}

enum vb_qp_type vb_qp_type(const struct vb_qp *qp)
{
	return (enum vb_qp_type)qp->type;
}

enum vb_qp_state vb_qp_state(const struct vb_qp *qp)
{
	return vb_qp_state_now(qp);
}

void vb_qp_query_init(const struct vb_qp *qp, struct vb_qp_init *init)
{
	init->send_depth = qp->posted->depth;
	init->recv_depth = qp->rq.depth;
	init->send_sge_max = qp->sq.sge_max;
	init->recv_sge_max = qp->rq.sge_max;
	init->inline_max = qp->inline_max;
	init->signal_all = qp->signal_all;
}
