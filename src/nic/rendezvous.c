/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's own requests: a READ for each message that asks for a rendezvous, and a SEND of a
 * header when the data is there. They need no slot of the program's and raise no completion of its
 * send queue; the READ ends in a completion of the SRQ.
 */
#include "nic/rendezvous_priv.h"

#include "base/heap.h"
#include "nic/tag_list_priv.h"

#include "base/bytes.h"

#define STRIDE_OWN (uint32_t)(sizeof(struct vb_wqe) + VB_TAG_SGE_MAX * sizeof(struct vb_sge))

_Static_assert(VB_TMH_SIZE <= VB_TAG_SGE_MAX * sizeof(struct vb_sge), "a header fits as well");

vb_err vb_rendezvous_create(struct vb_qp *qp, const struct vb_qp_init *init, uint32_t stride)
{
	struct vb_rendezvous *rendezvous = vb_heap_alloc(1, sizeof(*rendezvous));
	vb_err err;

	if (!rendezvous)
		return VB_ENOMEM;
	err = vb_queue_init(&rendezvous->posted, init->send_depth, init->send_sge_max, stride);
	if (err)
		goto free_rendezvous;
	/* One more: a completed request is still looked at while the next one is added. */
	err = vb_queue_init(&qp->sq, init->send_depth + VB_OWN_REQUESTS_MAX + 1, init->send_sge_max,
			    max32(stride, (STRIDE_OWN + 63) & ~63u));
	if (err)
		goto fini_posted;
	qp->sq.depth = 0; /* nothing is posted to it, nor executed past it (direct_write.c) */
	vb_list_init(&rendezvous->waiting);
	qp->rendezvous = rendezvous;
	qp->posted = &rendezvous->posted;
	return VB_OK;
fini_posted:
	vb_queue_fini(&rendezvous->posted);
free_rendezvous:
	vb_heap_free(rendezvous);
	return err;
}

void vb_rendezvous_destroy(struct vb_qp *qp)
{
	if (!qp->rendezvous)
		return;
	vb_queue_fini(&qp->rendezvous->posted);
	vb_heap_free(qp->rendezvous);
}

/*
 * Polling frees slots in the send queue (vb_cq_take()), by indices that do not count the adapter's
 * own requests: these are the indices of `posted`.
 */
bool vb_rendezvous_find_room(struct vb_qp *qp)
{
	struct vb_queue *posted = qp->posted;

	if (!qp->rendezvous)
		return false;
	atomic_store_explicit(&posted->freed,
			      atomic_load_explicit(&qp->sq.freed, memory_order_acquire),
			      memory_order_relaxed);
	return !vb_queue_is_full(posted);
}

static struct vb_wqe *next_slot(const struct vb_qp *qp)
{
	return vb_queue_wqe(&qp->sq, atomic_load_explicit(&qp->sq.published, memory_order_relaxed));
}

static void publish(struct vb_qp *qp)
{
	uint32_t end = atomic_load_explicit(&qp->sq.published, memory_order_relaxed);

	atomic_store_explicit(&qp->sq.published, end + 1, memory_order_release);
}

/* There is room: a request has a slot in `posted` for as long as it is in the send queue. */
void vb_rendezvous_take_posted(struct vb_qp *qp)
{
	struct vb_rendezvous *rendezvous = qp->rendezvous;
	uint32_t end = vb_queue_published(&rendezvous->posted);

	for (; rendezvous->moved != end; rendezvous->moved++) {
		memcpy(next_slot(qp), vb_queue_slot(&rendezvous->posted, rendezvous->moved),
		       rendezvous->posted.stride);
		publish(qp);
	}
}

static void add_own(struct vb_qp *qp, enum vb_wr_opcode opcode, const struct vb_wqe *request)
{
	struct vb_wqe *wqe = next_slot(qp);

	*wqe = *request;
	wqe->opcode = (uint8_t)opcode;
	wqe->traits = vb_operations[opcode].traits | VB_OPERATION_IS_OWN;
	wqe->progress = VB_WQE_NOT_STARTED;
	qp->rendezvous->own_count++;
}

static void add_read(struct vb_qp *qp, const struct vb_tag *tag)
{
	const struct vb_wqe request = {
		.wr_id = (uint64_t)(tag - qp->srq->tags->tags),
		.length = tag->rvh.length,
		.sge_count = (uint8_t)tag->sge_count,
		.rdma = { .remote_address = tag->rvh.address, .rkey = tag->rvh.rkey },
	};
	struct vb_sge *sges = vb_wqe_sges(next_slot(qp));
	uint32_t left = tag->rvh.length;

	add_own(qp, VB_WR_READ, &request);
	for (uint32_t i = 0; i < tag->sge_count; i++) { /* only as much of them as is needed */
		sges[i] = tag->sges[i];
		sges[i].length = min32(sges[i].length, left);
		left -= sges[i].length;
	}
	publish(qp);
}

static void add_fin(struct vb_qp *qp, const struct vb_tag *tag)
{
	const struct vb_wqe request = { .length = VB_TMH_SIZE, .flags = VB_SEND_INLINE };
	const struct vb_tmh fin = {
		.opcode = VB_TMH_FIN,
		.app_context = tag->tmh.app_context,
		.tag = tag->tmh.tag,
	};
	uint8_t *bytes = vb_wqe_inline(next_slot(qp));

	add_own(qp, VB_WR_SEND, &request);
	vb_tmh_store(bytes, &fin);
	publish(qp);
}

static void begin_waiting(struct vb_qp *qp)
{
	struct vb_rendezvous *rendezvous = qp->rendezvous;

	while (vb_list_is_linked(&rendezvous->waiting) &&
	       rendezvous->own_count < VB_OWN_REQUESTS_MAX) {
		struct vb_list_node *first = rendezvous->waiting.next;

		vb_list_remove(first);
		add_read(qp, VB_CONTAINER(first, struct vb_tag, node));
	}
	vb_qp_schedule(qp);
}

void vb_rendezvous_begin(struct vb_qp *qp, struct vb_tag *tag)
{
	vb_list_append(&qp->rendezvous->waiting, &tag->node);
	begin_waiting(qp);
}

void vb_rendezvous_on_done(struct vb_qp *qp, const struct vb_wqe *wqe, enum vb_status status)
{
	bool is_read = wqe->opcode == VB_WR_READ;
	struct vb_tag *tag = is_read ? &qp->srq->tags->tags[wqe->wr_id] : NULL;

	qp->requester.own_done++;
	qp->rendezvous->own_count--;
	if (tag && status == VB_STATUS_SUCCESS)
		add_fin(qp, tag);
	if (tag)
		vb_tag_list_on_read(qp, tag, status);
	if (status == VB_STATUS_SUCCESS)
		begin_waiting(qp);
}

void vb_rendezvous_flush(struct vb_qp *qp)
{
	struct vb_list_node *waiting = &qp->rendezvous->waiting;

	while (vb_list_is_linked(waiting)) {
		struct vb_tag *tag = VB_CONTAINER(waiting->next, struct vb_tag, node);

		vb_list_remove(&tag->node);
		vb_tag_list_on_read(qp, tag, VB_STATUS_WR_FLUSH_ERR);
	}
}

void vb_rendezvous_reset(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;
	uint32_t end = vb_queue_published(&qp->sq);

	for (; requester->done_index != end; requester->done_index++) {
		const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, requester->done_index);

		if (wqe->traits & VB_OPERATION_IS_OWN)
			vb_rendezvous_on_done(qp, wqe, VB_STATUS_WR_FLUSH_ERR);
	}
	vb_rendezvous_flush(qp);
	vb_queue_reset(&qp->rendezvous->posted);
	qp->rendezvous->moved = 0;
}
