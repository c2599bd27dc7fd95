/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A short WRITE to memory of a local peer, executed while it is being posted. Programs that wait
 * for a word in their own memory and answer with one do this. The effect is that of nic/direct.c
 * for the same request, but without a slot in the send queue, which no other code would ever look
 * at.
 */
#include "nic/direct_priv.h"

#include "base/probe.h"
#include "nic/peer_memory.h"

/* Whether the WRITE would be next in the queue, and the queue would take it. */
static bool is_next(const struct vb_qp *qp)
{
	return qp->requester.send_index == qp->sq.staged && !vb_queue_is_full(&qp->sq);
}

/* Inline data is where the program says, and needs no key. */
static bool find_data(const struct vb_qp *qp, const struct vb_send_request *request,
		      struct vb_span *span)
{
	const struct vb_sge sge = request->sges[0];
	struct vb_memory_request wanted = {
		.key = sge.lkey,
		.pd = qp->pd_number,
		.address = sge.address,
		.length = sge.length,
	};
	struct vb_memory memory;

	*span = (struct vb_span){ sge.address, sge.length };
	if (!sge.length || sge.length > VB_DIRECT_SHORT_MAX)
		return false;
	if (request->flags & VB_SEND_INLINE)
		return sge.length <= qp->inline_max;
	if (!qp->sq.sge_max || vb_memory_resolve(qp->nic, &wanted, &memory) != VB_PASS ||
	    memory.is_null)
		return false;
	span->address = memory.address;
	return true;
}

static bool execute(struct vb_qp *qp, const struct vb_send_request *request,
		    const struct vb_span *span)
{
	struct vb_peer_memory_request peer_memory;

	peer_memory.initiator = &qp->initiator;
	peer_memory.right = VB_ACCESS_REMOTE_WRITE;
	peer_memory.rkey = request->rkey;
	peer_memory.address = request->remote_address;
	peer_memory.length = peer_memory.part_length = span->length;
	peer_memory.offset = 0;
	peer_memory.bytes = NULL;
	peer_memory.spans = span;
	peer_memory.span_count = 1;
	return vb_dma_peer_write(qp->peer_memory, &peer_memory, 1);
}

/* Acts as if the WRITE had gone through the send queue. */
VB_INLINE void vb_qp_conclude_write(struct vb_qp *qp, const struct vb_send_request *request,
				    uint64_t now_ns)
{
	uint32_t index = qp->sq.staged++;
	uint32_t length = request->sges[0].length;

	qp->nic->now_ns = now_ns;
	atomic_store_explicit(&qp->sq.published, index + 1, memory_order_relaxed);
	qp->requester.send_index = qp->requester.done_index = index + 1;
	vb_nic_count(qp->nic, VB_COUNTER_DIRECT_PARTS);
	VB_PROBE4(post, qp->number.v, request->wr_id, request->opcode, length);
	if (qp->signal_all || request->flags & VB_SEND_SIGNALED)
		vb_qp_complete_write(qp, index, request->wr_id, length);
	vb_nic_fail_overruns(qp->nic);
}

/* An observer sees requests that were posted: they have all that it wants to know. */
bool vb_qp_write_directly(struct vb_qp *qp, const struct vb_send_request *request)
{
	struct vb_span span;

	return qp->type == VB_QP_RC && !qp->requester.direct_refusals && is_next(qp) &&
	       !qp->nic->executed.log.parts && find_data(qp, request, &span) &&
	       execute(qp, request, &span);
}
