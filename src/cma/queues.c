/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues for programs that pass none, each with a channel, as the inline functions of
 * rdma_verbs.h use them; and shared receive queues.
 */
#include "cma/cma_priv.h"

#include <rdma/rdma_verbs.h>
#include <string.h>

static int create_cq(struct rdma_cm_id *id, uint32_t count, struct ibv_comp_channel **channel,
		     struct ibv_cq **cq)
{
	int error;

	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(id->verbs, (int)count, id, *channel, 0);
	if (*cq)
		return 0;
	error = errno;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return error;
}

int vb_cma_cqs_create(struct rdma_cm_id *id, uint32_t send_count, uint32_t receive_count)
{
	int error = 0;

	if (receive_count && !id->recv_cq)
		error = create_cq(id, receive_count, &id->recv_cq_channel, &id->recv_cq);
	if (!error && send_count && !id->send_cq)
		error = create_cq(id, send_count, &id->send_cq_channel, &id->send_cq);
	if (error)
		vb_cma_cqs_destroy(id);
	return error;
}

static void destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

void vb_cma_cqs_destroy(struct rdma_cm_id *id)
{
	/* An SRQ of the identifier may still use this CQ. */
	if (!id->srq)
		destroy_cq(&id->recv_cq_channel, &id->recv_cq);
	destroy_cq(&id->send_cq_channel, &id->send_cq);
}

/* --- shared receive queues -------------------------------------------------------------------- */

static int complete_xrc(struct vb_cma_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int error = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
		error = vb_cma_device_open_xrcd(id->place.device, &attr->xrcd);
	}
	if (error || (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ && attr->cq))
		return error;
	error = vb_cma_cqs_create(&id->id, 0, attr->attr.max_wr);
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	attr->cq = id->id.recv_cq;
	return error;
}

static int create_srq(struct vb_cma_id *id, struct ibv_srq_init_attr_ex *attr)
{
	bool is_xrc;
	int error = 0;

	if (!attr || id->id.srq || !id->place.device)
		return vb_cma_refuse(EINVAL, "rdma_create_srq: %s",
				     !attr	  ? "no attributes"
				     : id->id.srq ? "it has one"
						  : "it is not bound to a device");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->id.pd;
	}
	is_xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
	if (is_xrc)
		error = complete_xrc(id, attr);
	if (error)
		return error;
	id->id.srq = ibv_create_srq_ex(id->id.verbs, attr);
	if (id->id.srq) {
		id->id.pd = attr->pd;
		return 0;
	}
	error = errno;
	if (!id->id.qp)
		vb_cma_cqs_destroy(&id->id);
	return error;
}

VB_CMA_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_create_srq_ex");

	return vb_cma_return(error ? error : create_srq(vb_cma_id_of(id), attr));
}

VB_CMA_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
				  struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex extended = { 0 };
	bool is_xrc = id && (id->qp_type == IBV_QPT_XRC_RECV || id->qp_type == IBV_QPT_XRC_SEND);
	int result;

	if (!attr)
		return rdma_create_srq_ex(id, NULL);
	extended.srq_context = attr->srq_context;
	extended.attr = attr->attr;
	extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	extended.srq_type = is_xrc ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	extended.pd = pd;
	result = rdma_create_srq_ex(id, &extended);
	if (!result)
		attr->attr = extended.attr;
	return result;
}

VB_CMA_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (!id || !id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (!id->qp)
		vb_cma_cqs_destroy(id);
}
