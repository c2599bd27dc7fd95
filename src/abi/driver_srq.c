/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include "abi/refuse_priv.h"
#include "base/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static struct vb_srq_init init_of(const struct ibv_srq_init_attr_ex *attr, void *owner)
{
	struct vb_srq_init init = {
		.depth = attr->attr.max_wr,
		.sge_max = attr->attr.max_sge,
		.limit = attr->attr.srq_limit,
		.owner_context = owner,
	};

	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC) {
		init.xrcd = VB_CONTAINER(attr->xrcd, struct vb_abi_xrcd, verbs)->domain->xrcd;
		init.cq = vb_abi_cq_of(attr->cq)->cq;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_TM) {
		init.cq = vb_abi_cq_of(attr->cq)->cq;
		init.tag_count = attr->tm_cap.max_num_tags;
		init.tag_depth = max32(attr->tm_cap.max_ops, 1);
	}
	return init;
}

static int refuse_srq(struct ibv_context *context, const struct vb_srq_init *init, vb_err err)
{
	struct vb_nic_limits limits =
		vb_nic_limits(vb_adapter_nic(vb_abi_context_of(context)->adapter));

	if (init->tag_count > limits.tags || init->tag_depth > limits.tag_depth)
		return vb_abi_refuse_at(vb_abi_errno(err), context,
					"ibv_create_srq_ex: %s: %" PRIu32 " tags, at most %" PRIu32
					"; %" PRIu32 " operations, at most %" PRIu32,
					vb_abi_device_name(context), init->tag_count, limits.tags,
					init->tag_depth, limits.tag_depth);
	return vb_abi_refuse_at(vb_abi_errno(err), context,
				"ibv_create_srq: %s: %" PRIu32 " receives, 1 to %" PRIu32
				"; %" PRIu32 " SGEs, at most %" PRIu32 "; limit %" PRIu32
				", at most as many as receives",
				vb_abi_device_name(context), init->depth, limits.srq_depth,
				init->sge_max, limits.sge, init->limit);
}

int vb_abi_srq_create(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr,
		      struct ibv_srq **srq_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(context)->adapter;
	struct vb_abi_srq *srq;
	struct vb_srq_init init;
	vb_err err;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	srq = vb_abi_allocate(attr->pd, sizeof(*srq), offsetof(struct vb_abi_srq, memory),
			      VB_ABI_SRQ);
	if (!srq)
		return ENOMEM;
	srq->verbs.context = context; /* event delivery reads it */
	init = init_of(attr, srq);
	vb_adapter_enter(adapter);
	err = vb_srq_create(vb_abi_pd_of(attr->pd), &init, &srq->srq);
	vb_adapter_leave(adapter);
	if (err) {
		vb_abi_release(srq, offsetof(struct vb_abi_srq, memory));
		return refuse_srq(context, &init, err);
	}
	vb_lock_init(&srq->lock);
	attr->attr.max_wr = vb_srq_depth(srq->srq);
	attr->attr.max_sge = vb_srq_sge_max(srq->srq);
	srq->verbs.handle = vb_srq_number(srq->srq);
	*srq_out = &srq->verbs;
	return 0;
}

static int refuse_modify(const struct vb_abi_srq *srq, const struct ibv_srq_attr *attr, int mask,
			 vb_err err)
{
	const struct vb_adapter *adapter = vb_abi_context_of(srq->verbs.context)->adapter;

	if (mask & IBV_SRQ_MAX_WR)
		return vb_abi_refuse(vb_abi_errno(err),
				     "ibv_modify_srq: SRQ 0x%06x: %" PRIu32
				     " receives: at most %" PRIu32
				     ", and not below the limit or what is posted; limit %" PRIu32,
				     srq->verbs.handle, attr->max_wr,
				     vb_nic_limits(vb_adapter_nic(adapter)).srq_depth,
				     attr->srq_limit);
	return vb_abi_refuse(vb_abi_errno(err),
			     "ibv_modify_srq: SRQ 0x%06x: limit %" PRIu32 ", at most %" PRIu32,
			     srq->verbs.handle, attr->srq_limit, vb_srq_depth(srq->srq));
}

int vb_abi_srq_modify(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct vb_abi_srq *own = vb_abi_srq_of(srq);
	struct vb_adapter *adapter = vb_abi_context_of(srq->context)->adapter;
	vb_err err = VB_OK;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	vb_adapter_enter(adapter);
	vb_lock_take(&own->lock);
	if (mask & IBV_SRQ_MAX_WR)
		err = vb_srq_resize(own->srq, attr->max_wr);
	if (!err && mask & IBV_SRQ_LIMIT)
		err = vb_srq_set_limit(own->srq, attr->srq_limit);
	vb_lock_give(&own->lock);
	vb_adapter_leave(adapter);
	if (err)
		return refuse_modify(own, attr, mask, err);
	return 0;
}

int vb_abi_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr_out)
{
	const struct vb_srq *own = vb_abi_srq_of(srq)->srq;
	struct vb_adapter *adapter = vb_abi_context_of(srq->context)->adapter;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	vb_adapter_enter(adapter);
	*attr_out = (struct ibv_srq_attr){
		.max_wr = vb_srq_depth(own),
		.max_sge = vb_srq_sge_max(own),
		.srq_limit = vb_srq_limit(own),
	};
	vb_adapter_leave(adapter);
	return 0;
}

int vb_abi_srq_number(struct ibv_srq *srq, uint32_t *number_out)
{
	*number_out = vb_srq_number(vb_abi_srq_of(srq)->srq);
	return 0;
}

int vb_abi_srq_destroy(struct ibv_srq *srq, struct vb_abi_reported *reported_out)
{
	struct vb_abi_srq *own = vb_abi_srq_of(srq);
	struct vb_abi_context *context = vb_abi_context_of(srq->context);
	vb_err err;

	if (!vb_adapter_ensure_usable(context->adapter))
		return EIO;
	vb_adapter_enter(context->adapter);
	err = vb_srq_destroy(own->srq);
	if (!err) {
		vb_adapter_await_local_peers(context->adapter);
		vb_abi_forget_events(context, srq);
	}
	vb_adapter_leave(context->adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_destroy_srq: SRQ 0x%06x still has QPs",
				     srq->handle);
	*reported_out = (struct vb_abi_reported){ .async_events = own->async_taken };
	return 0;
}

void vb_abi_srq_free(struct ibv_srq *srq)
{
	struct vb_abi_srq *own = vb_abi_srq_of(srq);

	vb_abi_release(own, offsetof(struct vb_abi_srq, memory));
}

int vb_abi_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_abi_srq *own = vb_abi_srq_of(srq);
	int error = 0;

	if (!vb_adapter_ensure_usable(vb_abi_context_of(srq->context)->adapter)) {
		*bad_wr = wr;
		return EIO;
	}
	vb_lock_take(&own->lock);
	for (; wr; wr = wr->next) {
		struct vb_recv_request request = {
			.wr_id = wr->wr_id,
			.sges = (const struct vb_sge *)(const void *)wr->sg_list,
			.sge_count = (uint32_t)wr->num_sge,
		};
		vb_err err = vb_srq_post_recv(own->srq, &request);

		if (err) {
			error = vb_abi_refuse_srq_recv(own, &request, err);
			break;
		}
	}
	vb_lock_give(&own->lock);
	if (error)
		*bad_wr = wr;
	return error;
}

/* --- tag matching --- */

static struct vb_tag_request tag_request(const struct ibv_ops_wr *wr)
{
	struct vb_tag_request request = {
		.wr_id = wr->wr_id,
		.opcode = (enum vb_tag_opcode)wr->opcode,
		.flags = (uint32_t)wr->flags,
		.unexpected_count = wr->tm.unexpected_cnt,
	};

	if (wr->opcode == IBV_WR_TAG_DEL)
		request.handle = wr->tm.handle;
	if (wr->opcode == IBV_WR_TAG_ADD) {
		request.recv_wr_id = wr->tm.add.recv_wr_id;
		request.sges = (const struct vb_sge *)(const void *)wr->tm.add.sg_list;
		request.sge_count = (uint32_t)wr->tm.add.num_sge;
		request.tag = wr->tm.add.tag;
		request.mask = wr->tm.add.mask;
	}
	return request;
}

int vb_abi_srq_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	struct vb_abi_srq *own = vb_abi_srq_of(srq);
	struct vb_adapter *adapter = vb_abi_context_of(srq->context)->adapter;
	int error = 0;

	if (!vb_adapter_ensure_usable(adapter)) {
		*bad_wr = wr;
		return EIO;
	}
	vb_lock_take(&own->lock);
	for (; wr; wr = wr->next) {
		struct vb_tag_request request = tag_request(wr);
		vb_err err = vb_srq_post_tag(own->srq, &request, &wr->tm.handle);

		if (err) {
			error = vb_abi_refuse_tag(own, &request, err);
			break;
		}
	}
	vb_lock_give(&own->lock);
	if (error)
		*bad_wr = wr;
	vb_srq_ring_doorbell(own->srq); /* for the operations before a bad one */
	vb_adapter_kick(adapter);
	return error;
}
