/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: basic, XRC, and for tag matching. */
#include "abi/driver_priv.h"
#include "abi/events_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

static enum ibv_srq_type type_of(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
}

static int check_attr(const struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t for_xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t for_tags = IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;

	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_srq_ex: comp_mask 0x%x: bits outside 0x%x",
				     attr->comp_mask, IBV_SRQ_INIT_ATTR_RESERVED - 1);
	if (type_of(attr) > IBV_SRQT_TM)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_srq_ex: type %d, basic (0), XRC (1) or tag "
				     "matching (2)",
				     (int)type_of(attr));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return vb_abi_refuse(EINVAL, "ibv_create_srq: no PD, or one of another context");
	if (type_of(attr) == IBV_SRQT_XRC &&
	    ((attr->comp_mask & for_xrc) != for_xrc || !attr->xrcd || !attr->cq))
		return vb_abi_refuse(EINVAL,
				     "ibv_create_srq_ex: XRC without an XRC domain or a CQ");
	if (type_of(attr) == IBV_SRQT_TM &&
	    ((attr->comp_mask & for_tags) != for_tags || !attr->cq || !attr->tm_cap.max_num_tags))
		return vb_abi_refuse(EINVAL,
				     "ibv_create_srq_ex: tag matching without a CQ or tags");
	if (type_of(attr) != IBV_SRQT_TM && attr->comp_mask & IBV_SRQ_INIT_ATTR_TM)
		return vb_abi_refuse(EINVAL, "ibv_create_srq_ex: tags for an SRQ of type %d",
				     (int)type_of(attr));
	return 0;
}

struct ibv_srq *vb_abi_op_create_srq_ex(struct ibv_context *context,
					struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;
	int error = check_attr(context, attr);

	if (!error)
		error = vb_abi_srq_create(context, attr, &srq);
	if (error)
		return vb_abi_return_null(error);
	srq->context = context;
	srq->srq_context = attr->srq_context;
	srq->pd = attr->pd;
	srq->events_completed = 0;
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);
	return srq;
}

VB_ABI_VERSION(ibv_create_srq, "ibv_create_srq@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					     struct ibv_srq_init_attr *srq_init_attr)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = srq_init_attr->srq_context,
		.attr = srq_init_attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = vb_abi_op_create_srq_ex(pd->context, &attr);

	if (srq)
		srq_init_attr->attr = attr.attr;
	return srq;
}

VB_ABI_VERSION(ibv_modify_srq, "ibv_modify_srq@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
				 int srq_attr_mask)
{
	if (srq_attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return vb_abi_return_errno(vb_abi_refuse(
			EINVAL, "ibv_modify_srq: SRQ 0x%06x: mask 0x%x: bits outside 0x%x",
			srq->handle, srq_attr_mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	return vb_abi_return_errno(vb_abi_srq_modify(srq, srq_attr, srq_attr_mask));
}

VB_ABI_VERSION(ibv_query_srq, "ibv_query_srq@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	return vb_abi_return_errno(vb_abi_srq_query(srq, srq_attr));
}

int vb_abi_op_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return vb_abi_return_errno(vb_abi_srq_number(srq, srq_num));
}

VB_ABI_VERSION(ibv_destroy_srq, "ibv_destroy_srq@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vb_abi_reported reported;
	int error = vb_abi_srq_destroy(srq, &reported);

	if (error)
		return vb_abi_return_errno(error);
	vb_abi_acks_wait((struct vb_abi_acks){ &srq->mutex, &srq->cond, &srq->events_completed },
			 reported.async_events);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	vb_abi_srq_free(srq);
	return 0;
}
