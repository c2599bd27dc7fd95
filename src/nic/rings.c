/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting requests to send queues, receive queues and SRQs. A request is checked as far as possible
 * without the engine's tables, copied into its slot, and published by one store; send requests are
 * first staged, and one store publishes all of them. A slot is free again when the completion that
 * covers it has been polled: an unsignaled request holds its slot until a later completion. The
 * slot of an SRQ is free as soon as the engine has taken the receive.
 */
#include "nic/rings.h"

#include "base/heap.h"
#include "nic/qp_priv.h"
#include "nic/rendezvous_priv.h"

#include "base/bytes.h"
#include "base/probe.h"

vb_err vb_queue_init(struct vb_queue *queue, uint32_t depth, uint32_t sge_max, uint32_t stride)
{
	uint32_t ring = power_of_two_above(depth);

	*queue = (struct vb_queue){
		.mask = ring - 1, .stride = stride, .depth = depth, .sge_max = sge_max
	};
	if (!depth)
		return VB_OK;
	queue->slots = vb_heap_alloc(ring, stride);
	return queue->slots ? VB_OK : VB_ENOMEM;
}

void vb_queue_fini(struct vb_queue *queue)
{
	vb_heap_free(queue->slots);
	queue->slots = NULL;
}

void vb_queue_reset(struct vb_queue *queue)
{
	queue->staged = 0;
	queue->taken = 0;
	atomic_store_explicit(&queue->published, 0, memory_order_relaxed);
	atomic_store_explicit(&queue->freed, 0, memory_order_release);
}

static bool sum_lengths(const struct vb_sge *sges, uint32_t count, uint32_t *length)
{
	uint64_t total = count ? sges[0].length : 0; /* usually there is one */

	for (uint32_t i = 1; i < count; i++)
		total += sges[i].length;
	*length = (uint32_t)total;
	return total <= VB_MESSAGE_LENGTH_MAX;
}

static enum vb_post_refusal check_inline(const struct vb_qp *qp, uint8_t traits, uint32_t length)
{
	if (!vb_traits_have_source(traits))
		return VB_POST_NO_INLINE;
	/* The 8 bytes of a word fit into every slot: qp.c asserts it. */
	if (length > qp->inline_max && !(traits & VB_OPERATION_IS_WORD))
		return VB_POST_INLINE_LENGTH;
	return VB_POST_OK;
}

/* Checks operations whose length is fixed, by their kind or because they have no data. */
static enum vb_post_refusal check_fixed(const struct vb_send_request *request, uint8_t traits,
					uint32_t *length)
{
	if (traits & VB_OPERATION_IS_WORD)
		return *length == 8 ? VB_POST_OK : VB_POST_ATOMIC_LENGTH;
	*length = 0;
	if (request->opcode == VB_WR_BIND_MW &&
	    (!request->bind.mw || (request->bind.rkey ^ request->bind.mw->key_base) >> 8))
		return VB_POST_WINDOW_KEY; /* the program may change only its low 8 bits */
	return VB_POST_OK;
}

static enum vb_post_refusal check_send(const struct vb_qp *qp,
				       const struct vb_send_request *request, uint32_t *length,
				       uint8_t *traits_out)
{
	bool is_inline = request->flags & VB_SEND_INLINE;
	uint8_t traits;
	uint32_t types;

	if ((uint32_t)request->opcode >= VB_OPERATION_COUNT)
		return VB_POST_OPCODE;
	types = vb_operations[request->opcode].types;
	traits = *traits_out = vb_operations[request->opcode].traits;
	if (!(types >> qp->type & 1))
		return types ? VB_POST_SERVICE : VB_POST_OPCODE;
	if (vb_qp_state_now(qp) < VB_STATE_RTS) /* IBA 11.4.1.1 */
		return VB_POST_STATE;
	/*
	 * Inline data is read now and needs no key. Its SGEs are not kept, so there may be more
	 * than the QP's limit.
	 */
	if (request->sge_count > (is_inline ? INT32_MAX : qp->sq.sge_max))
		return VB_POST_SGE_COUNT;
	if (!sum_lengths(request->sges, request->sge_count, length))
		return VB_POST_LENGTH;
	if (is_inline) {
		enum vb_post_refusal refusal = check_inline(qp, traits, *length);

		if (refusal)
			return refusal;
	}
	if (traits & (VB_OPERATION_IS_WORD | VB_OPERATION_IS_LOCAL))
		return check_fixed(request, traits, length);
	if (qp->type == VB_QP_UD && (!request->ah || request->ah->pd != qp->pd))
		return VB_POST_ADDRESS_HANDLE;
	return VB_POST_OK;
}

enum vb_post_refusal vb_qp_check_send(const struct vb_qp *qp, const struct vb_send_request *request)
{
	uint32_t length;
	uint8_t traits;

	return check_send(qp, request, &length, &traits);
}

/* Copies at least one SGE, and usually only one. */
static void copy_sges(struct vb_sge *to, const struct vb_sge *from, uint32_t count)
{
	to[0] = from[0];
	if (count > 1)
		memcpy(to + 1, from + 1, (count - 1) * sizeof(*to));
}

static vb_err copy_inline(struct vb_wqe *wqe, const struct vb_send_request *request)
{
	uint8_t *to = vb_wqe_inline(wqe);

	for (uint32_t i = 0; i < request->sge_count; i++) {
		const struct vb_sge *sge = &request->sges[i];

		if (sge->length && !vb_dma_read(to, sge->address, sge->length))
			return VB_EFAULT;
		to += sge->length;
	}
	return VB_OK;
}

static void copy_operands(const struct vb_qp *qp, struct vb_wqe *wqe,
			  const struct vb_send_request *request)
{
	if (request->opcode == VB_WR_BIND_MW) {
		wqe->bind.address = request->bind.address;
		wqe->bind.length = request->bind.length;
		wqe->bind.region_key = request->bind.mr ? vb_mr_key(request->bind.mr) : 0;
		wqe->bind.rkey = request->bind.rkey;
		wqe->bind.access = request->bind.access;
		return;
	}
	if (qp->type == VB_QP_UD) {
		wqe->ud.address = *vb_ah_address(request->ah);
		wqe->ud.qpn = request->remote_qpn & VB_QPN_MASK;
		wqe->ud.qkey = request->remote_qkey;
		return;
	}
	wqe->rdma.remote_address = request->remote_address;
	if (vb_traits_response(wqe->traits) == VB_RESPONSE_VALUE) { /* an atomic */
		wqe->rdma.compare_add = request->compare_add;
		wqe->rdma.swap = request->swap;
	}
	wqe->rdma.rkey = request->rkey;
	wqe->rdma.srqn = request->remote_srqn & 0xffffff;
}

VB_INLINE vb_err vb_qp_post_send(struct vb_qp *qp, const struct vb_send_request *request)
{
	struct vb_queue *queue = qp->posted;
	struct vb_wqe *wqe;
	uint32_t length;
	uint8_t traits;
	enum vb_post_refusal refusal = check_send(qp, request, &length, &traits);
	vb_err err;

	if (refusal)
		return refusal == VB_POST_SERVICE ? VB_EOPNOTSUPP : VB_EINVAL;
	if (vb_queue_is_full(queue) && !vb_rendezvous_find_room(qp))
		return VB_ENOMEM;
	wqe = vb_queue_wqe(queue, queue->staged);
	wqe->sge_count = 0;
	if (request->flags & VB_SEND_INLINE) {
		err = copy_inline(wqe, request);
		if (err)
			return err;
	} else if (request->sge_count) {
		wqe->sge_count = (uint8_t)request->sge_count;
		copy_sges(vb_wqe_sges(wqe), request->sges, request->sge_count);
	}
	wqe->wr_id = request->wr_id;
	wqe->opcode = (uint8_t)request->opcode;
	wqe->traits = traits;
	wqe->flags = (uint8_t)(request->flags | (qp->signal_all ? VB_SEND_SIGNALED : 0));
	wqe->imm = request->imm;
	wqe->length = length;
	wqe->progress = VB_WQE_NOT_STARTED;
	copy_operands(qp, wqe, request);
	queue->staged++;
	VB_PROBE4(post, qp->number.v, request->wr_id, request->opcode, length);
	return VB_OK;
}

void vb_qp_ring_doorbell(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;
	struct vb_qp *head;

	/*
	 * A full barrier: an engine that clears the flag after this sees everything posted before.
	 */
	if (atomic_exchange_explicit(&qp->is_rung, 1, memory_order_seq_cst))
		return;
	head = atomic_load_explicit(&nic->doorbells, memory_order_relaxed);
	do
		qp->next_rung = head;
	while (!atomic_compare_exchange_weak_explicit(&nic->doorbells, &head, qp,
						      memory_order_release, memory_order_relaxed));
}

bool vb_qp_publish_sends(struct vb_qp *qp)
{
	struct vb_queue *queue = qp->posted;

	if (queue->staged == atomic_load_explicit(&queue->published, memory_order_relaxed))
		return false;
	atomic_store_explicit(&queue->published, queue->staged, memory_order_release);
	return true;
}

void vb_qp_publish_and_ring(struct vb_qp *qp)
{
	if (vb_qp_publish_sends(qp))
		vb_qp_ring_doorbell(qp);
}

void vb_qp_discard_staged(struct vb_qp *qp)
{
	qp->posted->staged = atomic_load_explicit(&qp->posted->published, memory_order_relaxed);
}

static enum vb_post_refusal check_recv(const struct vb_queue *queue,
				       const struct vb_recv_request *request, uint32_t *length)
{
	if (request->sge_count > queue->sge_max)
		return VB_POST_SGE_COUNT;
	return sum_lengths(request->sges, request->sge_count, length) ? VB_POST_OK : VB_POST_LENGTH;
}

static vb_err post_recv(struct vb_queue *queue, const struct vb_recv_request *request)
{
	struct vb_rwqe *rwqe;
	uint32_t length;

	if (check_recv(queue, request, &length))
		return VB_EINVAL;
	if (vb_queue_is_full(queue))
		return VB_ENOMEM;
	rwqe = vb_queue_slot(queue, queue->staged);
	rwqe->wr_id = request->wr_id;
	rwqe->length = length;
	rwqe->sge_count = request->sge_count;
	if (request->sge_count)
		copy_sges(vb_rwqe_sges(rwqe), request->sges, request->sge_count);
	atomic_store_explicit(&queue->published, ++queue->staged, memory_order_release);
	return VB_OK;
}

static enum vb_post_refusal check_recv_queue(const struct vb_qp *qp)
{
	if (qp->srq || qp->type == VB_QP_XRC_SEND || qp->type == VB_QP_XRC_RECV)
		return VB_POST_NO_QUEUE;
	return vb_qp_state_now(qp) == VB_STATE_RESET ? VB_POST_STATE : VB_POST_OK;
}

enum vb_post_refusal vb_qp_check_recv(const struct vb_qp *qp, const struct vb_recv_request *request)
{
	enum vb_post_refusal refusal = check_recv_queue(qp);
	uint32_t length;

	return refusal ? refusal : check_recv(&qp->rq, request, &length);
}

enum vb_post_refusal vb_srq_check_recv(const struct vb_srq *srq,
				       const struct vb_recv_request *request)
{
	uint32_t length;

	return check_recv(&srq->queue, request, &length);
}

bool vb_qp_has_waiting_peer(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->has_announced_no_credits, memory_order_relaxed);
}

vb_err vb_qp_post_recv(struct vb_qp *qp, const struct vb_recv_request *request)
{
	vb_err err;

	if (check_recv_queue(qp))
		return VB_EINVAL;
	err = post_recv(&qp->rq, request);
	if (err)
		return err;
	VB_PROBE3(post_recv, qp->number.v, request->wr_id, request->sge_count);
	/*
	 * Pairs with vb_qp_set_state(): either the engine's flush saw this receive, or we see its
	 * state. Also pairs with ack_syndrome(): either it announced this receive to the peer, or
	 * we see that it announced none.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (vb_qp_state_now(qp) == VB_STATE_ERR || vb_qp_has_waiting_peer(qp))
		vb_qp_ring_doorbell(qp);
	return VB_OK;
}

vb_err vb_srq_post_recv(struct vb_srq *srq, const struct vb_recv_request *request)
{
	return post_recv(&srq->queue, request);
}
