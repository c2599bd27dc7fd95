/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of executed parts. */
#include "nic/executed.h"

#include "nic/direct_priv.h"
#include "nic/peer_memory.h"
#include "nic/qp_priv.h"

#include <string.h>

void vb_nic_log_executed(struct vb_nic *nic, const struct vb_executed_log *log)
{
	nic->executed =
		(struct vb_executed_state){ .log = log ? *log : (struct vb_executed_log){ 0 } };
}

uint32_t vb_nic_take_executed(struct vb_nic *nic)
{
	uint32_t count = nic->executed.count;

	nic->executed.count = 0;
	nic->executed.byte_count = 0;
	return count;
}

static bool read_spans(const struct vb_peer_memory_request *request, uint8_t *to)
{
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!vb_dma_read(to, request->spans[i].address, request->spans[i].length))
			return false;
		to += request->spans[i].length;
	}
	return true;
}

/* The memory is the engine's until the request completes. */
static void add_data(struct vb_executed_state *state, const struct vb_peer_memory_request *request,
		     struct vb_executed *part)
{
	uint32_t length = request->part_length;
	uint8_t *to = state->log.bytes + state->byte_count;

	if (!length || length > state->log.byte_capacity - state->byte_count)
		return;
	if (request->bytes)
		memcpy(to, request->bytes, length);
	else if (!read_spans(request, to))
		return;
	part->data_offset = state->byte_count;
	part->data_length = length;
	state->byte_count += length;
}

VB_COLD void vb_executed_add(const struct vb_qp *qp, const struct vb_wqe *wqe,
			     const struct vb_peer_memory_request *request)
{
	struct vb_executed_state *state = &qp->nic->executed;
	struct vb_executed *part;

	if (state->count++ >= state->log.capacity)
		return;
	part = &state->log.parts[state->count - 1];
	*part = (struct vb_executed){
		.time_ns = qp->nic->now_ns,
		.wr_id = wqe->wr_id,
		.remote_address = request->address,
		.compare_add = wqe->rdma.compare_add,
		.swap = wqe->rdma.swap,
		.flow = qp->path.ip,
		.initiator = qp->number,
		.target = qp->attr.destination,
		.psn = qp->requester.next_psn,
		.opcode = wqe->opcode,
		.request_length = request->length,
		.offset = request->offset,
		.length = request->part_length,
		.rkey = request->rkey,
		.srqn = wqe->rdma.srqn,
		.mtu = qp->attr.path_mtu,
		.pkey = vb_nic_pkey(qp->nic, qp->attr.pkey_index),
		.service = qp->service,
	};
	if (state->log.bytes)
		add_data(state, request, part);
}
