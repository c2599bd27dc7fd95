/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. Every CQ is an extended one: ibv_create_cq asks for the standard fields, and a
 * pointer to one kind is a pointer to the other.
 */
#include "abi/driver_priv.h"
#include "abi/events_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

#include <inttypes.h>

static int check_attr(const struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t known_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
				     IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

	if (attr->comp_mask & ~known)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_cq_ex: comp_mask 0x%x: bits outside 0x%x",
				     attr->comp_mask, known);
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~known_flags))
		return vb_abi_refuse(EOPNOTSUPP, "ibv_create_cq_ex: flags 0x%x: bits outside 0x%x",
				     attr->flags, known_flags);
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!attr->parent_domain || attr->parent_domain->context != context))
		return vb_abi_refuse(
			EINVAL, "ibv_create_cq_ex: no parent domain, or one of another context");
	if (attr->cqe == 0)
		return vb_abi_refuse(EINVAL, "ibv_create_cq: 0 entries, at least 1");
	if (attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return vb_abi_refuse(EINVAL, "ibv_create_cq: completion vector %d, at most %d",
				     (int)attr->comp_vector, context->num_comp_vectors - 1);
	if (attr->channel && attr->channel->context != context)
		return vb_abi_refuse(EINVAL, "ibv_create_cq: the channel is of another context");
	return 0;
}

static void count_in_channel(struct ibv_comp_channel *channel, int difference)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += difference;
	pthread_mutex_unlock(&channel->context->mutex);
}

struct ibv_cq_ex *vb_abi_op_create_cq_ex(struct ibv_context *context,
					 struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq;
	int error = check_attr(context, attr);

	if (error)
		return vb_abi_return_null(error);
	count_in_channel(attr->channel, 1);
	error = vb_abi_cq_create(context, attr, &cq);
	if (error) {
		count_in_channel(attr->channel, -1);
		return vb_abi_return_null(error);
	}
	cq->context = context;
	cq->channel = attr->channel;
	cq->cq_context = attr->cq_context;
	cq->comp_events_completed = 0;
	cq->async_events_completed = 0;
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
	return cq;
}

VB_ABI_VERSION(ibv_create_cq, "ibv_create_cq@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					   struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	if (cqe < 0)
		return vb_abi_return_null(vb_abi_refuse(EINVAL, "ibv_create_cq: %d entries", cqe));
	return (struct ibv_cq *)vb_abi_op_create_cq_ex(context, &attr);
}

VB_ABI_VERSION(ibv_resize_cq, "ibv_resize_cq@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return vb_abi_return_errno(vb_abi_cq_resize(cq, cqe));
}

int vb_abi_op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return vb_abi_return_errno(vb_abi_refuse(
			EOPNOTSUPP,
			"ibv_modify_cq: CQ %" PRIu32 ": attr_mask 0x%x: bits outside 0x%x",
			cq->handle, attr->attr_mask, IBV_CQ_ATTR_MODERATE));
	return vb_abi_return_errno(vb_abi_cq_modify(cq, attr));
}

VB_ABI_VERSION(ibv_destroy_cq, "ibv_destroy_cq@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct ibv_comp_channel *channel = cq->channel;
	struct vb_abi_reported reported;
	int error = vb_abi_cq_destroy(cq, &reported);

	if (error)
		return vb_abi_return_errno(error);
	vb_abi_acks_wait((struct vb_abi_acks){ &cq->mutex, &cq->cond, &cq->comp_events_completed },
			 reported.completion_events);
	vb_abi_acks_wait((struct vb_abi_acks){ &cq->mutex, &cq->cond, &cq->async_events_completed },
			 reported.async_events);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	vb_abi_cq_free(cq);
	count_in_channel(channel, -1);
	return 0;
}
