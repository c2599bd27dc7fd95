/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP attributes of a connection. librdmacm uses them for its own QPs and reports them to
 * programs that bring their own (rdma_init_qp_attr()). Attributes and masks are those of the
 * kernel's rdma_cm.
 */
#include "cma/cma_priv.h"

#include <string.h>

struct ibv_ah_attr vb_cma_ah_attr(const struct vb_cma_id *id, const struct vb_flow *flow)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = VB_CMA_PORT_NUM,
		.grh = {
			.flow_label = flow->flow_label,
			.sgid_index = id->place.gid_index,
			.hop_limit = flow->hop_limit ? flow->hop_limit : VB_CMA_HOP_LIMIT,
			.traffic_class = flow->traffic_class,
		},
	};

	memcpy(attr.grh.dgid.raw, flow->destination.raw, sizeof(attr.grh.dgid.raw));
	return attr;
}

/* --- datagrams, and connections before they exist --------------------------------------------- */

static int set_datagram(struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->port_num = VB_CMA_PORT_NUM;
		attr->qkey = RDMA_UDP_QKEY;
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return 0;
	case IBV_QPS_RTR:
		*mask = IBV_QP_STATE;
		return 0;
	case IBV_QPS_RTS:
		*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		return 0;
	default:
		return EINVAL;
	}
}

static void set_init(struct ibv_qp_attr *attr, int *mask, unsigned access)
{
	attr->port_num = VB_CMA_PORT_NUM;
	attr->qp_access_flags = access;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

/* --- connections ------------------------------------------------------------------------------ */

/* True if the peer has sent the needed attributes. */
static bool is_known(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
	case VB_CM_CONNECTED:
		return true;
	case VB_CM_IDLE:
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
	case VB_CM_DREQ_SENT:
	case VB_CM_DREQ_RCVD:
	case VB_CM_TIMEWAIT:
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
	case VB_CM_CLOSED:
		break;
	}
	return false;
}

static unsigned access_of(const struct vb_cma_id *id)
{
	unsigned access = IBV_ACCESS_REMOTE_WRITE;

	return id->responder_resources ? access | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
				       : access;
}

static void set_rtr(const struct vb_cma_id *id, const struct vb_cm_qp *qp, struct ibv_qp_attr *attr,
		    int *mask)
{
	attr->ah_attr = vb_cma_ah_attr(id, &qp->flow);
	attr->ah_attr.sl = qp->service_level;
	attr->path_mtu = (enum ibv_mtu)qp->mtu;
	attr->dest_qp_num = qp->remote_qpn.v;
	attr->rq_psn = id->psn.v;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (id->id.qp_type == IBV_QPT_UC || id->id.qp_type == IBV_QPT_XRC_SEND)
		return;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = 0;
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void set_rts(const struct vb_cma_id *id, const struct vb_cm_qp *qp, struct ibv_qp_attr *attr,
		    int *mask)
{
	attr->sq_psn = qp->send_psn.v;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (id->id.qp_type == IBV_QPT_UC)
		return;
	attr->timeout = id->has_ack_timeout ? id->ack_timeout : qp->ack_timeout;
	*mask |= IBV_QP_TIMEOUT;
	if (id->id.qp_type == IBV_QPT_XRC_RECV)
		return;
	attr->retry_cnt = qp->retry_count;
	attr->rnr_retry = qp->rnr_retry_count;
	attr->max_rd_atomic = id->initiator_depth;
	*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

static int set_connected(const struct vb_cma_id *id, const struct vb_cm_qp *qp,
			 struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		set_init(attr, mask, access_of(id));
		return 0;
	case IBV_QPS_RTR:
		set_rtr(id, qp, attr, mask);
		return 0;
	case IBV_QPS_RTS:
		set_rts(id, qp, attr, mask);
		return 0;
	default:
		return EINVAL;
	}
}

int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;
	enum vb_cm_state connection_state = VB_CM_IDLE;
	struct vb_cm_qp qp = { 0 };

	if (!id->place.device)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	if (vb_cma_is_datagram(id))
		return set_datagram(attr, mask);
	vb_cma_lock();
	if (id->connection) {
		connection_state = vb_cm_connection_state(id->connection);
		vb_cm_connection_qp(id->connection, &qp);
	}
	vb_cma_unlock();
	if (is_known(connection_state))
		return set_connected(id, &qp, attr, mask);
	if (state != IBV_QPS_INIT)
		return EINVAL;
	set_init(attr, mask, 0);
	return 0;
}

VB_CMA_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
				    int *qp_attr_mask)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_init_qp_attr");

	if (!error && (!qp_attr || !qp_attr_mask))
		error = EINVAL;
	if (!error)
		error = vb_cma_qp_attr(vb_cma_id_of(id), qp_attr, qp_attr_mask);
	if (error == EINVAL)
		vb_cma_log(
			VB_LOG_WARN, error,
			"rdma_init_qp_attr: no device, no connection yet, or another state than INIT, RTR and RTS");
	return vb_cma_return(error);
}
