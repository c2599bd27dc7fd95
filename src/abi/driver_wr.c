/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_wr_*: the calls between ibv_wr_start(), which takes the send queue's lock, and
 * ibv_wr_complete() or ibv_wr_abort(), which release it, build a list of requests. Each call that
 * names an operation posts the request before it and begins a new one. The first error is kept and
 * makes ibv_wr_complete() withdraw all requests.
 */
#include "abi/wr_priv.h"

#include "abi/observe_priv.h"
#include "abi/refuse_priv.h"

#include <endian.h>
#include <errno.h>

static struct vb_abi_qp *abi_qp_of(struct ibv_qp_ex *qp)
{
	return VB_CONTAINER(qp, struct vb_abi_qp, extended);
}

static void fail(struct vb_abi_qp *qp, int error)
{
	if (!qp->error)
		qp->error = error;
}

/* Posts the request under construction, unless there was an error. */
static void post_pending(struct vb_abi_qp *qp)
{
	vb_err err;

	if (!qp->has_request)
		return;
	qp->has_request = false;
	if (qp->error)
		return;
	err = vb_qp_post_send(qp->qp, &qp->request);
	if (err)
		fail(qp, vb_abi_refuse_send("ibv_wr_complete", qp, &qp->request, err));
	else
		vb_abi_note_post(vb_abi_context_of(qp->verbs.context)->adapter, qp->qp,
				 &qp->request);
}

static struct vb_send_request *begin_request(struct ibv_qp_ex *qp, enum vb_wr_opcode opcode)
{
	struct vb_abi_qp *own = abi_qp_of(qp);

	post_pending(own);
	own->has_request = true;
	own->request = (struct vb_send_request){
		.wr_id = qp->wr_id,
		.opcode = opcode,
		.flags = qp->wr_flags & (VB_SEND_FENCE | VB_SEND_SIGNALED | VB_SEND_SOLICITED),
		.sges = own->sges,
	};
	return &own->request;
}

static void set_remote(struct vb_send_request *request, uint32_t rkey, uint64_t address)
{
	request->rkey = rkey;
	request->remote_address = address;
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct vb_abi_qp *own = abi_qp_of(qp);
	bool is_usable = vb_adapter_ensure_usable(vb_abi_context_of(qp->qp_base.context)->adapter);

	/* Also if it is refused: the calls up to the end change the request. */
	vb_lock_take(&own->send_lock);
	own->is_start_refused = !is_usable;
	own->error = is_usable ? 0 : EIO;
	own->has_request = false;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct vb_abi_qp *own = abi_qp_of(qp);
	bool has_posted;
	int error;

	if (own->is_start_refused) {
		vb_lock_give(&own->send_lock);
		return EIO;
	}
	post_pending(own);
	error = own->error;
	if (error)
		vb_qp_discard_staged(own->qp);
	has_posted = vb_qp_publish_sends(own->qp);
	vb_lock_give(&own->send_lock);
	if (has_posted)
		vb_adapter_kick_qp(vb_abi_context_of(qp->qp_base.context)->adapter, own->qp);
	return error;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	struct vb_abi_qp *own = abi_qp_of(qp);

	own->has_request = false;
	if (!own->is_start_refused)
		vb_qp_discard_staged(own->qp);
	vb_lock_give(&own->send_lock);
}

/* --- operations --- */

static void wr_send(struct ibv_qp_ex *qp)
{
	begin_request(qp, VB_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	begin_request(qp, VB_WR_SEND_IMM)->imm = be32toh(imm);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin_request(qp, VB_WR_SEND_INV)->imm = rkey;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address)
{
	set_remote(begin_request(qp, VB_WR_WRITE), rkey, address);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, __be32 imm)
{
	struct vb_send_request *request = begin_request(qp, VB_WR_WRITE_IMM);

	set_remote(request, rkey, address);
	request->imm = be32toh(imm);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address)
{
	set_remote(begin_request(qp, VB_WR_READ), rkey, address);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address,
			      uint64_t compare, uint64_t swap)
{
	struct vb_send_request *request = begin_request(qp, VB_WR_COMPARE_SWAP);

	set_remote(request, rkey, address);
	request->compare_add = compare;
	request->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, uint64_t add)
{
	struct vb_send_request *request = begin_request(qp, VB_WR_FETCH_ADD);

	set_remote(request, rkey, address);
	request->compare_add = add;
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address,
			    const void *value)
{
	struct vb_abi_qp *own = abi_qp_of(qp);
	struct vb_send_request *request = begin_request(qp, VB_WR_ATOMIC_WRITE);

	set_remote(request, rkey, address);
	memcpy(own->inline_data, value, 8);
	own->sges[0] = (struct vb_sge){ (uint64_t)(uintptr_t)own->inline_data, 8, 0 };
	request->sge_count = 1;
	request->flags |= VB_SEND_INLINE;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin_request(qp, VB_WR_LOCAL_INV)->imm = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	begin_request(qp, VB_WR_BIND_MW)->bind = (struct vb_bind){
		.mw = VB_CONTAINER(mw, struct vb_abi_mw, verbs)->mw,
		.mr = info->mr ? VB_CONTAINER(info->mr, struct vb_abi_mr, verbs)->mr : NULL,
		.rkey = rkey,
		.address = info->addr,
		.length = info->length,
		.access = info->mw_access_flags,
	};
}

/* --- buffers and addresses of a request --- */

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *sges)
{
	struct vb_abi_qp *own = abi_qp_of(qp);

	if (count > VB_SGE_MAX) {
		fail(own, vb_abi_refuse_qp(EINVAL, NULL, &own->verbs,
					   "ibv_wr_set_sge_list: QP 0x%06x: %zu SGEs, at most %u",
					   own->verbs.qp_num, count, VB_SGE_MAX));
		return;
	}
	memcpy(own->sges, sges, count * sizeof(*sges));
	own->request.sge_count = (uint32_t)count;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t address, uint32_t length)
{
	wr_set_sge_list(qp, 1, &(struct ibv_sge){ address, length, lkey });
}

/* Copies at once, because the program may reuse its buffer when this returns. */
static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count,
				    const struct ibv_data_buf *buffers)
{
	struct vb_abi_qp *own = abi_qp_of(qp);
	size_t length = 0;

	for (size_t i = 0; i < count; i++) {
		if (buffers[i].length > sizeof(own->inline_data) - length) {
			fail(own, vb_abi_refuse_qp(
					  ENOMEM, NULL, &own->verbs,
					  "ibv_wr_set_inline_data: QP 0x%06x: more than %zu bytes",
					  own->verbs.qp_num, sizeof(own->inline_data)));
			return;
		}
		memcpy(own->inline_data + length, buffers[i].addr, buffers[i].length);
		length += buffers[i].length;
	}
	own->sges[0] =
		(struct vb_sge){ (uint64_t)(uintptr_t)own->inline_data, (uint32_t)length, 0 };
	own->request.sge_count = 1;
	own->request.flags |= VB_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *address, size_t length)
{
	wr_set_inline_data_list(qp, 1, &(struct ibv_data_buf){ address, length });
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct vb_send_request *request = &abi_qp_of(qp)->request;

	request->ah = VB_CONTAINER(ah, struct vb_abi_ah, verbs)->ah;
	request->remote_qpn = remote_qpn;
	request->remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t remote_srqn)
{
	abi_qp_of(qp)->request.remote_srqn = remote_srqn;
}

bool vb_abi_wr_supports(const struct ibv_qp_init_attr_ex *attr)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t connected = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
	const uint64_t reliable = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_SEND_WITH_INV;
	uint64_t known = 0;

	switch (attr->qp_type) {
	case IBV_QPT_RC:
		known = sends | connected | reliable | IBV_QP_EX_WITH_ATOMIC_WRITE;
		break;
	case IBV_QPT_XRC_SEND: /* ATOMIC WRITE exists only for RC: see wire/opcode.c */
		known = sends | connected | reliable;
		break;
	case IBV_QPT_UC:
		known = sends | connected;
		break;
	case IBV_QPT_UD:
		known = sends;
		break;
	default:
		break;
	}
	return !(attr->send_ops_flags & ~known);
}

void vb_abi_wr_set_functions(struct ibv_qp_ex *qp)
{
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_atomic_write = wr_atomic_write;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;
}
