/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and their multicast groups. This file checks the objects and masks; the engine checks
 * whether attributes fit the state and the type of the QP.
 */
#include "abi/driver_priv.h"
#include "abi/events_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

enum {
	/* The attributes that are missing here are for raw packets: segmentation, RSS. */
	KNOWN_INIT_ATTR = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			  IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	/* All bits below that of the rate limit, which is for raw packets. */
	KNOWN_ATTR = IBV_QP_RATE_LIMIT - 1,
};

/* Checks the PD or XRC domain, and the CQs, that a QP of this type needs. */
static int check_objects(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd)
			return 0;
		return vb_abi_refuse(EINVAL, "ibv_create_qp_ex: XRC_RECV without an XRC domain");
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return vb_abi_refuse(EINVAL, "ibv_create_qp: no PD, or one of another context");
	if (!attr->send_cq)
		return vb_abi_refuse(EINVAL, "ibv_create_qp: no CQ for sends");
	if (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND)
		return vb_abi_refuse(EINVAL, "ibv_create_qp: no CQ for receives");
	return 0;
}

static int check_init_attr(const struct ibv_context *context,
			   const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)KNOWN_INIT_ATTR)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_qp_ex: comp_mask 0x%x: bits outside 0x%x",
				     attr->comp_mask, KNOWN_INIT_ATTR);
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return check_objects(context, attr);
	case IBV_QPT_DRIVER:
		return vb_abi_refuse(EOPNOTSUPP, "ibv_create_qp: there are no QPs of type %d",
				     (int)attr->qp_type);
	}
	return vb_abi_refuse(EINVAL, "ibv_create_qp: there is no type %d", (int)attr->qp_type);
}

static struct ibv_qp *init_common_fields(struct ibv_qp *qp, struct ibv_context *context)
{
	qp->context = context;
	qp->events_completed = 0;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
	return qp;
}

struct ibv_qp *vb_abi_op_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int error = check_init_attr(context, attr);

	if (!error)
		error = vb_abi_qp_create(context, attr, &qp);
	if (error)
		return vb_abi_return_null(error);
	qp->qp_context = attr->qp_context;
	qp->pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	qp->state = IBV_QPS_RESET;
	return init_common_fields(qp, context);
}

VB_ABI_VERSION(ibv_create_qp, "ibv_create_qp@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = qp_init_attr->qp_context,
		.send_cq = qp_init_attr->send_cq,
		.recv_cq = qp_init_attr->recv_cq,
		.srq = qp_init_attr->srq,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = vb_abi_op_create_qp_ex(pd->context, &attr);

	if (qp)
		qp_init_attr->cap = attr.cap;
	return qp;
}

struct ibv_qp *vb_abi_op_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t required = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				  IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp *qp;
	int error = 0;

	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
		error = vb_abi_refuse(EOPNOTSUPP, "ibv_open_qp: comp_mask 0x%x: bits outside 0x%x",
				      attr->comp_mask, IBV_QP_OPEN_ATTR_RESERVED - 1);
	else if ((attr->comp_mask & required) != required || attr->qp_type != IBV_QPT_XRC_RECV ||
		 !attr->xrcd)
		error = vb_abi_refuse(
			EINVAL,
			"ibv_open_qp: comp_mask 0x%x, type %d: needs 0x%x, XRC_RECV (%d) and "
			"an XRC domain",
			attr->comp_mask, (int)attr->qp_type, required, IBV_QPT_XRC_RECV);
	if (!error)
		error = vb_abi_qp_open(context, attr, &qp);
	if (error)
		return vb_abi_return_null(error);
	qp->qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	qp->pd = NULL;
	qp->send_cq = NULL;
	qp->recv_cq = NULL;
	qp->srq = NULL;
	qp->qp_type = attr->qp_type;
	return init_common_fields(qp, context);
}

VB_ABI_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vb_abi_qp_extended(qp);
}

static int check_mask(const char *verb, const struct ibv_qp *qp, int mask)
{
	if (!(mask & ~KNOWN_ATTR))
		return 0;
	return vb_abi_refuse_qp(EOPNOTSUPP, verb, qp, "%s: QP 0x%06x: mask 0x%x: bits outside 0x%x",
				verb, qp->qp_num, mask, KNOWN_ATTR);
}

VB_ABI_VERSION(ibv_modify_qp, "ibv_modify_qp@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int error = check_mask("ibv_modify_qp", qp, attr_mask);

	if (!error)
		error = vb_abi_qp_modify(qp, attr, attr_mask);
	if (!error && (attr_mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	return vb_abi_return_errno(error);
}

VB_ABI_VERSION(ibv_query_qp, "ibv_query_qp@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			       struct ibv_qp_init_attr *init_attr)
{
	int error = check_mask("ibv_query_qp", qp, attr_mask);

	if (!error)
		error = vb_abi_qp_query(qp, attr, attr_mask, init_attr);
	if (!error && (attr_mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	return vb_abi_return_errno(error);
}

/* The last byte of a message becomes visible last; the order of the others is not guaranteed. */
VB_ABI_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
					     uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

VB_ABI_VERSION(ibv_destroy_qp, "ibv_destroy_qp@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vb_abi_reported reported;
	int error = vb_abi_qp_destroy(qp, &reported);

	if (error)
		return vb_abi_return_errno(error);
	vb_abi_acks_wait((struct vb_abi_acks){ &qp->mutex, &qp->cond, &qp->events_completed },
			 reported.async_events);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	vb_abi_qp_free(qp);
	return 0;
}

static int check_group(const char *verb, const struct ibv_qp *qp, const union ibv_gid *gid)
{
	if (qp->qp_type != IBV_QPT_UD)
		return vb_abi_refuse_qp(EINVAL, verb, qp, "%s: QP 0x%06x: only UD has groups", verb,
					qp->qp_num);
	if (gid->raw[0] == 0xff)
		return 0;
	if (memcmp(gid, &(union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } }, 12) == 0 &&
	    gid->raw[12] >> 4 == 0xe)
		return 0;
	return vb_abi_refuse_qp(
		EINVAL, verb, qp,
		"%s: QP 0x%06x: a GID that begins with 0x%02x, not 0xff, and is no IPv4 group",
		verb, qp->qp_num, gid->raw[0]);
}

VB_ABI_VERSION(ibv_attach_mcast, "ibv_attach_mcast@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int error = check_group("ibv_attach_mcast", qp, gid);

	return vb_abi_return_errno(error ? error : vb_abi_qp_attach(qp, gid, lid));
}

VB_ABI_VERSION(ibv_detach_mcast, "ibv_detach_mcast@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int error = check_group("ibv_detach_mcast", qp, gid);

	return vb_abi_return_errno(error ? error : vb_abi_qp_detach(qp, gid, lid));
}

/*
 * Enhanced connection establishment lets two adapters of one vendor learn about each other. We have
 * nothing to negotiate.
 */
VB_ABI_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)ece;
	return vb_abi_return_errno(
		vb_abi_refuse_qp(EOPNOTSUPP, NULL, qp, "QP 0x%06x: there is no ECE", qp->qp_num));
}

VB_ABI_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)ece;
	return vb_abi_return_errno(
		vb_abi_refuse_qp(EOPNOTSUPP, NULL, qp, "QP 0x%06x: there is no ECE", qp->qp_num));
}
