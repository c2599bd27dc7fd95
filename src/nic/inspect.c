/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of objects for an observer, and the time that QPs were held. Only a change of the
 * reason costs anything: the time since the last change belongs to the reason that was.
 */
#include "nic/inspect.h"

#include "nic/cq.h"
#include "nic/payload_priv.h"
#include "nic/qp_priv.h"

const char *vb_qp_hold_name(enum vb_hold hold)
{
	static const char *const names[] = {
#define X(symbol, name) [VB_HOLD_##symbol] = (name),
		VB_HOLDS(X)
#undef X
	};

	return hold < VB_HOLD_COUNT ? names[hold] : "?";
}

VB_COLD void vb_qp_change_hold(struct vb_qp *qp, enum vb_hold hold)
{
	uint64_t now_ns = qp->nic->now_ns;

	if (now_ns > qp->held_since_ns) {
		qp->held_ns[qp->requester.hold] += now_ns - qp->held_since_ns;
		qp->held_since_ns = now_ns;
	}
	qp->requester.hold = (uint8_t)hold;
}

void vb_qp_begin_hold(struct vb_qp *qp, uint64_t now_ns)
{
	qp->held_since_ns = now_ns;
}

/* A QP that was empty may only have replies to send. */
VB_COLD void vb_qp_note_no_room(struct vb_qp *qp)
{
	if ((qp->type == VB_QP_RC || qp->type == VB_QP_XRC_SEND) &&
	    qp->requester.send_index != vb_queue_published(&qp->sq))
		vb_qp_note_hold(qp, VB_HOLD_ROOM);
}

void vb_qp_note_more(struct vb_qp *qp)
{
	if (qp->requester.hold == VB_HOLD_EMPTY &&
	    qp->requester.send_index != vb_queue_published(&qp->sq))
		vb_qp_change_hold(qp, VB_HOLD_NONE);
}

void vb_qp_forget_holds(struct vb_qp *qp)
{
	for (uint32_t i = 0; i < VB_HOLD_COUNT; i++)
		qp->held_ns[i] = 0;
	qp->held_since_ns = qp->nic->now_ns;
	qp->repeat_count = 0;
}

static struct vb_queue_view inspect_queue(const struct vb_queue *queue)
{
	return (struct vb_queue_view){
		.depth = queue->depth,
		.used = vb_queue_published(queue) -
			atomic_load_explicit(&queue->freed, memory_order_relaxed),
	};
}

void vb_qp_inspect(const struct vb_qp *qp, uint64_t now_ns, struct vb_qp_view *view_out)
{
	*view_out = (struct vb_qp_view){
		.path = qp->path,
		.sq = inspect_queue(&qp->sq),
		.rq = inspect_queue(&qp->rq),
		.srqn = qp->srq ? qp->srq->number : 0,
		.sq_psn = qp->requester.next_psn,
		.rq_psn = qp->responder.expected,
		.repeat_count = qp->repeat_count,
		.hold = (enum vb_hold)qp->requester.hold,
	};
	for (uint32_t i = VB_HOLD_NONE + 1; i < VB_HOLD_COUNT; i++)
		view_out->held_ns[i] = qp->held_ns[i];
	if (view_out->hold != VB_HOLD_NONE && now_ns > qp->held_since_ns)
		view_out->held_ns[view_out->hold] += now_ns - qp->held_since_ns;
}

bool vb_qp_is_connected_to(const struct vb_qp *qp, vb_qpn number, const struct vb_gid *gid)
{
	return qp->attr.destination.v == number.v &&
	       vb_gid_equal(&qp->attr.address.destination, gid);
}

/* From the newest on: what was just sent is asked for most. */
static const struct vb_wqe *find_request(const struct vb_qp *qp, vb_psn psn)
{
	uint32_t end = vb_queue_published(&qp->sq);
	uint32_t index = qp->requester.send_index;

	if (index != end)
		index++;
	while (index != qp->requester.done_index) {
		const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, --index);

		if (wqe->progress == VB_WQE_STARTED &&
		    vb_psn_distance(psn, wqe->first_psn) < wqe->packet_count)
			return wqe;
	}
	return NULL;
}

bool vb_qp_find_request(const struct vb_qp *qp, vb_psn psn, uint64_t *wr_id_out)
{
	const struct vb_wqe *wqe = find_request(qp, psn);

	if (wqe)
		*wr_id_out = wqe->wr_id;
	return wqe;
}

bool vb_qp_read_request(const struct vb_qp *qp, vb_psn psn, uint8_t *to, uint32_t length)
{
	const struct vb_wqe *wqe = find_request(qp, psn);
	struct vb_span spans[VB_SGE_MAX];
	struct vb_cursor cursor;
	struct vb_sgl sgl;
	uint32_t count;

	if (!wqe || wqe->flags & VB_SEND_INLINE)
		return false;
	sgl = vb_wqe_sgl(qp, wqe);
	cursor =
		vb_cursor_at(&sgl, (uint64_t)vb_psn_distance(psn, wqe->first_psn) << qp->mtu_shift);
	count = vb_sgl_resolve(qp->nic, &sgl, &cursor, length, 0, spans);
	for (uint32_t i = 0; i < count; i++) {
		if (!vb_dma_read(to, spans[i].address, spans[i].length))
			return false;
		to += spans[i].length;
	}
	return count;
}

bool vb_nic_inspect_pd(const struct vb_nic *nic, const struct vb_pd **place, uint32_t *number_out)
{
	struct vb_list_node *node = *place ? (*place)->node.next : nic->pds.next;

	if (node == &nic->pds)
		return false;
	*place = VB_CONTAINER(node, struct vb_pd, node);
	*number_out = (*place)->number;
	return true;
}

bool vb_nic_inspect_cq(const struct vb_nic *nic, const struct vb_cq **place,
		       struct vb_cq_view *view_out)
{
	struct vb_list_node *node = *place ? (*place)->node.next : nic->cqs.next;

	if (node == &nic->cqs)
		return false;
	*place = VB_CONTAINER(node, struct vb_cq, node);
	*view_out = (struct vb_cq_view){
		.number = (*place)->number,
		.depth = (*place)->depth,
		.used = vb_cq_waiting(*place),
		.is_armed = atomic_load_explicit(&(*place)->armed, memory_order_relaxed) !=
			    VB_ARMED_NOT,
	};
	return true;
}

bool vb_nic_inspect_srq(const struct vb_nic *nic, uint32_t *place, struct vb_srq_view *view_out)
{
	while (*place < VB_SRQ_ROWS) {
		const struct vb_srq *srq = nic->srqs[(*place)++];

		if (!srq)
			continue;
		*view_out = (struct vb_srq_view){ srq->number, inspect_queue(&srq->queue) };
		return true;
	}
	return false;
}

bool vb_nic_inspect_region(const struct vb_nic *nic, uint32_t *place, struct vb_key_row *row_out)
{
	while (*place < nic->config.key_row_count) {
		uint32_t index = (*place)++;
		const struct vb_key_row *row = &nic->config.key_rows[index];

		/* Rows that were never used are not even touched. */
		if (!nic->key_owners[index] ||
		    (row->kind != VB_KEY_REGION && row->kind != VB_KEY_NULL_REGION))
			continue;
		*row_out = *row;
		return true;
	}
	return false;
}
