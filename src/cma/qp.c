/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that belong to an identifier. A datagram QP is ready immediately; the QP of a
 * connection waits in INIT, where receives can be posted.
 */
#include "cma/cma_priv.h"

#include <string.h>

static int move_to(struct vb_cma_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;
	int error = vb_cma_qp_attr(id, &attr, &mask);

	return error ? error : ibv_modify_qp(qp, &attr, mask);
}

/* Sets INIT a second time: the access rights are known only now. */
int vb_cma_qp_connect(struct vb_cma_id *id)
{
	int error = move_to(id, id->id.qp, IBV_QPS_INIT);

	if (!error)
		error = move_to(id, id->id.qp, IBV_QPS_RTR);
	return error ? error : move_to(id, id->id.qp, IBV_QPS_RTS);
}

void vb_cma_qp_fail(struct vb_cma_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (id->id.qp && !vb_cma_is_datagram(id))
		ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
}

static int make_ready(struct vb_cma_id *id, struct ibv_qp *qp)
{
	int error = move_to(id, qp, IBV_QPS_INIT);

	if (error || !vb_cma_is_datagram(id))
		return error;
	error = move_to(id, qp, IBV_QPS_RTR);
	return error ? error : move_to(id, qp, IBV_QPS_RTS);
}

/* --- making ----------------------------------------------------------------------------------- */

/* Fills in the attributes that the program left out. */
static int complete_attr(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->id.pd;
	}
	if (attr->pd->context != id->id.verbs)
		return vb_cma_refuse(EINVAL, "rdma_create_qp: the PD is of another device");
	if (!attr->srq && attr->qp_type != IBV_QPT_XRC_SEND && attr->qp_type != IBV_QPT_XRC_RECV)
		attr->srq = id->id.srq;
	if (attr->qp_type != IBV_QPT_XRC_RECV || attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		return 0;
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return vb_cma_device_open_xrcd(id->place.device, &attr->xrcd);
}

static uint32_t at_least_one(uint32_t count)
{
	return count ? count : 1;
}

static int make_cqs(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool sends = attr->qp_type != IBV_QPT_XRC_RECV;
	bool receives = sends && attr->qp_type != IBV_QPT_XRC_SEND;
	uint32_t send_count = sends && !attr->send_cq ? at_least_one(attr->cap.max_send_wr) : 0;
	uint32_t receive_count = receives && !attr->recv_cq ? at_least_one(attr->cap.max_recv_wr)
							    : 0;
	int error = vb_cma_cqs_create(&id->id, send_count, receive_count);

	if (error)
		return error;
	if (send_count)
		attr->send_cq = id->id.send_cq;
	if (receive_count)
		attr->recv_cq = id->id.recv_cq;
	return 0;
}

static int create(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int error;

	if (!attr || id->id.qp || !id->place.device)
		return vb_cma_refuse(EINVAL, "rdma_create_qp: %s",
				     !attr	 ? "no attributes"
				     : id->id.qp ? "it has one"
						 : "it is not bound to a device");
	error = complete_attr(id, attr);
	if (!error)
		error = make_cqs(id, attr);
	if (error)
		return error;
	qp = ibv_create_qp_ex(id->id.verbs, attr);
	error = qp ? make_ready(id, qp) : errno;
	if (error) {
		if (qp)
			ibv_destroy_qp(qp);
		vb_cma_cqs_destroy(&id->id);
		return error;
	}
	id->id.pd = qp->pd;
	id->id.qp = qp;
	return 0;
}

VB_CMA_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_create_qp_ex");

	return vb_cma_return(error ? error : create(vb_cma_id_of(id), qp_init_attr));
}

VB_CMA_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
				 struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = { 0 };
	int result;

	if (!qp_init_attr)
		return rdma_create_qp_ex(id, NULL);
	/* the extended struct begins with the same members */
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	result = rdma_create_qp_ex(id, &attr);
	if (!result)
		memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return result;
}

VB_CMA_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id || !id->qp)
		return;
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	vb_cma_cqs_destroy(id);
}
