/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues. An entry's slot is free as soon as a QP has taken the entry: QPs finish in
 * any order, so the QP keeps a copy of the entry's SGEs.
 */
#include "nic/srq.h"

#include "base/heap.h"
#include "nic/qp_priv.h"
#include "nic/rc_priv.h"
#include "nic/row_mirror_priv.h"
#include "nic/tag_list_priv.h"

#include "base/bytes.h"

static uint32_t stride_of(uint32_t sge_max)
{
	return (uint32_t)(sizeof(struct vb_rwqe) + sge_max * sizeof(struct vb_sge));
}

/*
 * Claims a free SRQ number; its low bits choose the row. Numbers are not reused soon. False when
 * all rows are taken.
 */
static bool claim_number(struct vb_nic *nic, struct vb_srq *srq)
{
	for (uint32_t i = 0; i < VB_SRQ_ROWS; i++) {
		uint32_t number = nic->srqn_next = (nic->srqn_next + 1) & 0xffffff;

		if (!number || nic->srqs[number % VB_SRQ_ROWS])
			continue;
		nic->srqs[number % VB_SRQ_ROWS] = srq;
		srq->number = number;
		return true;
	}
	return false;
}

/* Peers only ever name SRQs for XRC. */
static void write_row(const struct vb_nic *nic, uint32_t index, const struct vb_srq *srq)
{
	struct vb_srq_row *row = &nic->srq_rows[index];
	void *mirror = nic->mirror.srq_rows ? &nic->mirror.srq_rows[index] : NULL;

	vb_row_mirror_begin_change(mirror, &row->generation);
	row->number = srq ? srq->number : 0;
	row->domain = srq ? srq->xrcd->number : 0;
	row->pd = srq ? srq->pd->number : 0;
	row->generation++;
	vb_row_mirror_end_change(mirror, row, sizeof(*row));
}

void vb_srq_publish_row(const struct vb_srq *srq)
{
	if (srq->xrcd)
		write_row(srq->pd->nic, srq->number % VB_SRQ_ROWS, srq);
}

static vb_err check_init(const struct vb_pd *pd, const struct vb_srq_init *init)
{
	const struct vb_nic_limits *limits = &pd->nic->limits;

	if (!init->depth || init->depth > limits->srq_depth || init->sge_max > limits->sge)
		return VB_EINVAL;
	if (init->limit > init->depth)
		return VB_EINVAL;
	if (init->tag_count > limits->tags || init->tag_depth > limits->tag_depth ||
	    !init->tag_count != !init->tag_depth || (init->xrcd && init->tag_count))
		return VB_EINVAL;
	if ((init->xrcd || init->tag_count) != (init->cq != NULL))
		return VB_EINVAL;
	if ((init->xrcd && init->xrcd->nic != pd->nic) || (init->cq && init->cq->nic != pd->nic))
		return VB_EINVAL;
	return VB_OK;
}

vb_err vb_srq_create(struct vb_pd *pd, const struct vb_srq_init *init, struct vb_srq **srq_out)
{
	struct vb_srq *srq;
	vb_err err = check_init(pd, init);

	if (err)
		return err;
	srq = vb_heap_alloc(1, sizeof(*srq));
	if (!srq)
		return VB_ENOMEM;
	err = vb_queue_init(&srq->queue, init->depth, max32(init->sge_max, 1),
			    stride_of(max32(init->sge_max, 1)));
	if (err)
		goto free_srq;
	srq->pd = pd;
	if (init->tag_count) {
		err = vb_tag_list_create(srq, init);
		if (err)
			goto fini_queue;
	}
	if (!claim_number(pd->nic, srq)) {
		err = VB_ENOSPC;
		goto destroy_tags;
	}
	srq->xrcd = init->xrcd;
	srq->cq = init->cq;
	srq->limit = init->limit;
	vb_event_source_init(&srq->source, VB_SOURCE_SRQ, init->owner_context);
	pd->child_count++;
	if (srq->xrcd) {
		vb_list_append(&srq->xrcd->srqs, &srq->in_xrcd);
		srq->xrcd->user_count++;
	}
	if (srq->cq)
		srq->cq->user_count++;
	vb_srq_publish_row(srq);
	*srq_out = srq;
	return VB_OK;
destroy_tags:
	if (srq->tags)
		vb_tag_list_destroy(srq);
fini_queue:
	vb_queue_fini(&srq->queue);
free_srq:
	vb_heap_free(srq);
	return err;
}

/*
 * XRC_RECV QPs do not count as users. One that is in the middle of a message loses it, and its peer
 * gets a NAK.
 */
static void abandon_messages(struct vb_srq *srq)
{
	const struct vb_nic *nic = srq->pd->nic;

	for (uint32_t i = 0; i < nic->config.qp_row_count; i++) {
		struct vb_qp *qp = nic->qps[i];

		if (!qp || qp->responder.receive.srq != srq)
			continue;
		qp->responder.receive.is_used = false;
		qp->responder.receive.srq = NULL;
		qp->responder.message = VB_MESSAGE_NONE;
		vb_rc_refuse(qp, VB_INVALID_REQUEST, qp->responder.expected);
	}
}

vb_err vb_srq_destroy(struct vb_srq *srq)
{
	if (srq->user_count)
		return VB_EBUSY;
	if (srq->xrcd) {
		write_row(srq->pd->nic, srq->number % VB_SRQ_ROWS, NULL);
		abandon_messages(srq);
		vb_cq_forget_xrcd(srq->cq, srq->xrcd);
		vb_list_remove(&srq->in_xrcd);
		srq->xrcd->user_count--;
	}
	if (srq->tags)
		vb_tag_list_destroy(srq);
	if (srq->cq)
		srq->cq->user_count--;
	srq->pd->nic->srqs[srq->number % VB_SRQ_ROWS] = NULL;
	srq->pd->child_count--;
	vb_event_source_fini(&srq->source);
	vb_queue_fini(&srq->queue);
	vb_heap_free(srq);
	return VB_OK;
}

static uint32_t waiting(const struct vb_srq *srq)
{
	return vb_queue_published(&srq->queue) - srq->queue.taken;
}

vb_err vb_srq_set_limit(struct vb_srq *srq, uint32_t limit)
{
	if (limit > srq->queue.depth)
		return VB_EINVAL;
	srq->limit = limit;
	return VB_OK;
}

uint32_t vb_srq_limit(const struct vb_srq *srq)
{
	return srq->limit;
}

uint32_t vb_srq_depth(const struct vb_srq *srq)
{
	return srq->queue.depth;
}

uint32_t vb_srq_sge_max(const struct vb_srq *srq)
{
	return srq->queue.sge_max;
}

uint32_t vb_srq_number(const struct vb_srq *srq)
{
	return srq->number;
}

vb_err vb_srq_resize(struct vb_srq *srq, uint32_t depth)
{
	struct vb_queue *old = &srq->queue;
	struct vb_queue next;
	uint32_t end = vb_queue_published(old);
	vb_err err;

	if (!depth || depth > srq->pd->nic->limits.srq_depth || depth < waiting(srq) ||
	    depth < srq->limit)
		return VB_EINVAL;
	err = vb_queue_init(&next, depth, old->sge_max, old->stride);
	if (err)
		return err;
	for (uint32_t i = old->taken; i != end; i++)
		memcpy(vb_queue_slot(&next, i), vb_queue_slot(old, i), old->stride);
	next.taken = old->taken;
	next.staged = end;
	atomic_store_explicit(&next.published, end, memory_order_relaxed);
	atomic_store_explicit(&next.freed, old->taken, memory_order_relaxed);
	vb_queue_fini(old);
	*old = next;
	return VB_OK;
}

struct vb_srq *vb_srq_find(const struct vb_nic *nic, const struct vb_xrcd *xrcd, uint32_t number)
{
	struct vb_srq *srq = nic->srqs[number % VB_SRQ_ROWS];

	return srq && srq->number == number && srq->xrcd == xrcd ? srq : NULL;
}

void vb_srq_purge_xrc(const struct vb_qp *qp)
{
	for (struct vb_list_node *node = qp->xrcd->srqs.next; node != &qp->xrcd->srqs;
	     node = node->next)
		vb_cq_purge(VB_CONTAINER(node, struct vb_srq, in_xrcd)->cq, qp);
}

struct vb_rwqe *vb_srq_peek(struct vb_srq *srq)
{
	return waiting(srq) ? vb_queue_slot(&srq->queue, srq->queue.taken) : NULL;
}

void vb_srq_consume(struct vb_srq *srq)
{
	srq->queue.taken++;
	atomic_store_explicit(&srq->queue.freed, srq->queue.taken, memory_order_release);
	if (waiting(srq) < srq->limit) {
		srq->limit = 0; /* once; the program arms it again */
		vb_event_raise(srq->pd->nic, &srq->source, VB_EVENT_SRQ_LIMIT_REACHED);
	}
}
