/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC, UC and XRC requests that the initiator executes itself in the memory of a local peer. This
 * happens only when nothing of the QP is in flight, so that the order of requests is kept; PSN and
 * MSN do not move. Long requests are executed in parts, so that the posting thread is not held up
 * for long. A request that is refused or fails goes out in packets: no error is reported here.
 */
#include "nic/direct_priv.h"

#include "nic/payload_priv.h"
#include "nic/peer_memory.h"
#include "nic/quiet_priv.h"
#include "nic/rc_priv.h"

#include "base/bytes.h"

#define SKIP_FIRST 8u
#define REFUSALS_MAX 8u

_Static_assert(VB_PEER_MEMORY_WRITES_MAX <= VB_SGE_MAX, "one span for each of them");

/*
 * Whether everything before the request has arrived. UC packets are not acknowledged: the peer must
 * have read them from the shared-memory link.
 */
static bool is_alone(const struct vb_qp *qp)
{
	return vb_qp_is_quiet(qp) &&
	       (qp->type != VB_QP_UC ||
		vb_dma_peer_has_read(qp->peer_memory, qp->requester.shm_link_end));
}

/*
 * A stream of one-sided requests would never be alone again once one of them went out in packets.
 * So the next one waits until that packet has arrived. It does not wait if the last requests that
 * were alone were refused: then only one in many tries again. UC does not wait: its requests are
 * complete when they are sent.
 */
static bool decide_to_wait(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;
	const struct vb_wqe *before = vb_queue_wqe(&qp->sq, requester->send_index - 1);

	if (qp->type == VB_QP_UC || requester->done_index == requester->send_index ||
	    !(before->traits & VB_OPERATION_MAY_BE_DIRECT))
		return false;
	if (!requester->direct_skip)
		return true;
	requester->direct_skip--;
	return false;
}

static void note_refusal(struct vb_requester *requester)
{
	if (requester->direct_refusals < REFUSALS_MAX)
		requester->direct_refusals++;
	requester->direct_skip = (uint16_t)(SKIP_FIRST << requester->direct_refusals);
	requester->direct_offset = 0;
}

/* Fills in the next part of the request, as much as its buffers and the limit of a turn permit. */
static bool fill_part(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_span *spans,
		      struct vb_peer_memory_request *request)
{
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_cursor cursor;

	request->offset = wqe == vb_queue_wqe(&qp->sq, qp->requester.send_index)
				  ? qp->requester.direct_offset
				  : 0; /* a request after it, which is not begun */
	request->part_length = min32(wqe->length - request->offset, qp->nic->direct_left);
	request->bytes = NULL;
	request->span_count = 0;
	if (!request->part_length)
		return true;
	if (wqe->flags & VB_SEND_INLINE) {
		request->bytes = vb_wqe_inline(wqe) + request->offset;
		return true;
	}
	cursor = vb_cursor_at(&sgl, request->offset);
	request->spans = spans;
	request->span_count =
		vb_sgl_resolve(qp->nic, &sgl, &cursor, request->part_length,
			       vb_traits_have_sink(wqe->traits) ? VB_ACCESS_LOCAL_WRITE : 0, spans);
	return request->span_count;
}

static bool execute_atomic(struct vb_qp *qp, const struct vb_wqe *wqe,
			   const struct vb_peer_memory_request *request, uint64_t *old)
{
	bool is_compare = wqe->opcode == VB_WR_COMPARE_SWAP;
	struct vb_peer_memory_atomic atomic = {
		.is_compare = is_compare,
		.compare = wqe->rdma.compare_add,
		.swap_or_add = is_compare ? wqe->rdma.swap : wqe->rdma.compare_add,
	};

	return vb_dma_peer_atomic(qp->peer_memory, request, &atomic, old);
}

/*
 * Writes the result of an atomic to its destination, which was resolved before. The atomic is done,
 * so memory that is gone is an error now.
 */
static enum vb_status place_result(const struct vb_peer_memory_request *request, uint64_t old)
{
	const uint8_t *from = (const uint8_t *)&old;

	for (uint32_t i = 0; i < request->span_count; i++) {
		const struct vb_span *span = &request->spans[i];

		if (!vb_dma_write(span->address, from, span->length))
			return VB_STATUS_LOC_PROT_ERR;
		from += span->length;
	}
	return VB_STATUS_SUCCESS;
}

/* A part of the request at send_index is executed. */
static void advance(struct vb_qp *qp, const struct vb_peer_memory_request *request,
		    enum vb_status status)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.*): no more are executed than were filled in */
	uint32_t length = request->part_length;

	vb_nic_count(qp->nic, VB_COUNTER_DIRECT_PARTS);
	if (qp->nic->executed.log.parts)
		vb_executed_add(qp, vb_queue_wqe(&qp->sq, qp->requester.send_index), request);
	qp->nic->direct_left -= length;
	qp->requester.direct_offset += length;
	if (qp->requester.direct_offset != request->length)
		return;
	qp->requester.direct_offset = 0;
	if (status == VB_STATUS_SUCCESS)
		vb_qp_complete_current(qp);
	else
		vb_rc_fail(qp, status);
}

/*
 * Filled in field by field: a struct that is built and then copied makes the CPU wait for its own
 * stores. fill_part() does the rest.
 */
static void init_request(struct vb_peer_memory_request *request, struct vb_qp *qp,
			 const struct vb_wqe *wqe)
{
	request->initiator = &qp->initiator;
	request->srqn = wqe->rdma.srqn;
	request->right = vb_wqe_operation(wqe)->right;
	request->rkey = wqe->rdma.rkey;
	request->address = wqe->rdma.remote_address;
	request->length = wqe->length;
}

/* --- WRITEs; short ones are executed together --- */

static bool is_short(const struct vb_wqe *wqe)
{
	return wqe->opcode == VB_WR_WRITE && wqe->length && wqe->length <= VB_DIRECT_SHORT_MAX &&
	       wqe->sge_count <= 1;
}

/* Adds the requests after the first one, at send_index, that can be executed with it. */
static uint32_t add_others(struct vb_qp *qp, struct vb_span spans[VB_PEER_MEMORY_WRITES_MAX],
			   struct vb_peer_memory_request requests[VB_PEER_MEMORY_WRITES_MAX])
{
	uint32_t index = qp->requester.send_index + 1;
	uint32_t end = vb_queue_published(&qp->sq);
	uint32_t left = qp->nic->direct_left - requests[0].part_length;
	uint32_t count = 1;

	for (; count < VB_PEER_MEMORY_WRITES_MAX && index != end; index++) {
		const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, index);

		if (!is_short(wqe) || wqe->length > left)
			break;
		init_request(&requests[count], qp, wqe);
		if (!fill_part(qp, wqe, &spans[count], &requests[count]))
			break; /* found again when its turn comes */
		left -= wqe->length;
		count++;
	}
	return count;
}

static enum vb_direct execute_writes(
	struct vb_qp *qp, struct vb_span *spans,
	struct vb_peer_memory_request requests[VB_PEER_MEMORY_WRITES_MAX])
{
	const struct vb_wqe *first = vb_queue_wqe(&qp->sq, qp->requester.send_index);
	uint32_t count = is_short(first) ? add_others(qp, spans, requests) : 1;
	uint32_t done = vb_dma_peer_write(qp->peer_memory, requests, count);

	for (uint32_t i = 0; i < done; i++)
		advance(qp, &requests[i], VB_STATUS_SUCCESS);
	return done ? VB_DIRECT_DONE : VB_DIRECT_REFUSED;
}

/* --- all requests --- */

static enum vb_direct execute(struct vb_qp *qp, const struct vb_wqe *wqe,
			      const struct vb_peer_memory_request *request)
{
	enum vb_status status = VB_STATUS_SUCCESS;
	uint64_t old;

	if (wqe->opcode == VB_WR_READ) {
		if (!vb_dma_peer_read(qp->peer_memory, request))
			return VB_DIRECT_REFUSED;
	} else {
		if (!execute_atomic(qp, wqe, request, &old))
			return VB_DIRECT_REFUSED;
		status = place_result(request, old);
	}
	advance(qp, request, status);
	return VB_DIRECT_DONE;
}

enum vb_direct vb_qp_execute_alone(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_span spans[VB_SGE_MAX];
	struct vb_peer_memory_request requests[VB_PEER_MEMORY_WRITES_MAX];
	enum vb_direct direct = VB_DIRECT_REFUSED;

	init_request(&requests[0], qp, wqe);
	if (fill_part(qp, wqe, spans, &requests[0]))
		direct = wqe->opcode == VB_WR_WRITE ? execute_writes(qp, spans, requests)
						    : execute(qp, wqe, &requests[0]);
	if (direct == VB_DIRECT_DONE)
		qp->requester.direct_refusals = 0;
	else
		note_refusal(&qp->requester);
	return direct;
}

enum vb_direct vb_qp_execute_directly(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	if (!vb_qp_can_execute(qp, wqe))
		return VB_DIRECT_REFUSED;
	if (!is_alone(qp))
		return decide_to_wait(qp) ? VB_DIRECT_WAIT : VB_DIRECT_REFUSED;
	if (qp->nic->direct_left < min32(wqe->length, VB_DIRECT_PART_MIN)) {
		qp->nic->direct_left = 0; /* ends the turn for all QPs */
		vb_qp_schedule(qp);
		return VB_DIRECT_LATER;
	}
	return vb_qp_execute_alone(qp, wqe);
}
