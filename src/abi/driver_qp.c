/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creating, modifying, querying, destroying; posting lists of requests. */
#include "abi/observe_priv.h"
#include "abi/refuse_priv.h"
#include "abi/wr_priv.h"
#include "host/adapter/group.h"
#include "host/sys/clock.h"
#include "nic/inspect.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static struct vb_cq *engine_cq(struct ibv_cq *cq)
{
	return cq ? vb_abi_cq_of(cq)->cq : NULL;
}

#define FREE_INLINE_MAX 128

/* Offers the room of the SGEs for inline data: hardware gives it away, and programs expect it. */
static uint32_t inline_of(const struct ibv_qp_cap *cap)
{
	uint32_t room = min32(cap->max_send_sge, FREE_INLINE_MAX / sizeof(struct vb_sge)) *
			(uint32_t)sizeof(struct vb_sge);

	return max32(cap->max_inline_data, room);
}

static struct vb_qp_init init_of(const struct ibv_qp_init_attr_ex *attr, void *owner)
{
	bool has_xrcd = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD &&
			attr->qp_type == IBV_QPT_XRC_RECV;

	return (struct vb_qp_init){
		.type = (enum vb_qp_type)attr->qp_type,
		.send_cq = engine_cq(attr->send_cq),
		.recv_cq = engine_cq(attr->recv_cq),
		.srq = attr->srq ? vb_abi_srq_of(attr->srq)->srq : NULL,
		.xrcd = has_xrcd ? VB_CONTAINER(attr->xrcd, struct vb_abi_xrcd, verbs)->domain->xrcd
				 : NULL,
		.send_depth = attr->cap.max_send_wr,
		.recv_depth = attr->cap.max_recv_wr,
		.send_sge_max = attr->cap.max_send_sge,
		.recv_sge_max = attr->cap.max_recv_sge,
		.inline_max = inline_of(&attr->cap),
		.signal_all = attr->sq_sig_all,
		.owner_context = owner,
	};
}

static void report_capacity(const struct vb_qp *qp, struct ibv_qp_cap *cap)
{
	struct vb_qp_init init;

	vb_qp_query_init(qp, &init);
	*cap = (struct ibv_qp_cap){
		.max_send_wr = init.send_depth,
		.max_recv_wr = init.recv_depth,
		.max_send_sge = init.send_sge_max,
		.max_recv_sge = init.recv_sge_max,
		.max_inline_data = init.inline_max,
	};
}

/*
 * An XRC_RECV QP has no PD of its own. Any PD works, because its requests access memory through the
 * PD of their SRQ.
 */
static struct vb_pd *pd_for(const struct ibv_qp_init_attr_ex *attr, struct vb_pd *spare)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->pd ? vb_abi_pd_of(attr->pd) : spare;
}

static int refuse_capacity(const char *name, const char *what, uint32_t value, uint32_t limit)
{
	if (value <= limit)
		return 0;
	return vb_abi_refuse(EINVAL, "ibv_create_qp: %s: %s is %" PRIu32 ", at most %" PRIu32, name,
			     what, value, limit);
}

/* Logs which capacity the engine refused as too large. */
static int refuse_qp(struct ibv_context *context, const struct vb_qp_init *init, vb_err err)
{
	const struct vb_nic *nic = vb_adapter_nic(vb_abi_context_of(context)->adapter);
	struct vb_nic_limits limits = vb_nic_limits(nic);
	const char *name = vb_abi_device_name(context);

	if (err == VB_EOPNOTSUPP)
		return vb_abi_refuse(EOPNOTSUPP, "ibv_create_qp: %s has no QPs of type %d", name,
				     (int)init->type);
	if (err == VB_ENOSPC)
		return vb_abi_refuse(ENOSPC, "ibv_create_qp: %s has no more than %" PRIu32 " QPs",
				     name, limits.qp_count);
	if (err != VB_EINVAL)
		return vb_abi_errno(err);
	if (refuse_capacity(name, "max_send_wr", init->send_depth, limits.qp_depth) ||
	    refuse_capacity(name, "max_recv_wr", init->recv_depth, limits.qp_depth) ||
	    refuse_capacity(name, "max_send_sge", init->send_sge_max, limits.sge) ||
	    refuse_capacity(name, "max_recv_sge", init->recv_sge_max, limits.sge) ||
	    refuse_capacity(name, "max_inline_data", init->inline_max, limits.inline_length))
		return EINVAL;
	return vb_abi_refuse(
		EINVAL, "ibv_create_qp: %s: a CQ, SRQ or XRC domain is of another device or kind",
		name);
}

int vb_abi_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
		     struct ibv_qp **qp_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_abi_qp *qp;
	struct vb_qp_init init;
	vb_err err;

	if (!vb_adapter_ensure_usable(own->adapter))
		return EIO;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_qp_ex: create_flags 0x%x: no flag is supported",
				     attr->create_flags);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && !vb_abi_wr_supports(attr))
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_qp_ex: %s does not have send_ops_flags 0x%" PRIx64,
				     vb_qp_type_describe((enum vb_qp_type)attr->qp_type),
				     attr->send_ops_flags);
	qp = vb_abi_allocate(attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL, sizeof(*qp),
			     offsetof(struct vb_abi_qp, memory), VB_ABI_QP);
	if (!qp)
		return ENOMEM;
	qp->verbs.context = context; /* event delivery reads it */
	init = init_of(attr, qp);
	if (init.type == VB_QP_UD) /* its receives begin with the IP header */
		vb_adapter_enable_ip_fields(own->adapter);
	vb_adapter_enter(own->adapter);
	err = vb_qp_create(pd_for(attr, own->opened->spare_pd), &init, &qp->qp);
	vb_adapter_leave(own->adapter);
	if (err) {
		vb_abi_release(qp, offsetof(struct vb_abi_qp, memory));
		return refuse_qp(context, &init, err);
	}
	vb_lock_init(&qp->send_lock);
	vb_lock_init(&qp->recv_lock);
	qp->verbs.qp_num = vb_qp_number(qp->qp).v;
	qp->verbs.handle = qp->verbs.qp_num;
	report_capacity(qp->qp, &attr->cap);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->has_send_ops = true;
		vb_abi_wr_set_functions(&qp->extended);
	}
	*qp_out = &qp->verbs;
	return 0;
}

struct ibv_qp_ex *vb_abi_qp_extended(struct ibv_qp *qp)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);

	return own->has_send_ops ? &own->extended : NULL;
}

/* Purging completions and resetting rings needs the locks of all queues that the QP uses. */
static void lock_queues(struct vb_abi_qp *qp)
{
	vb_lock_take(&qp->send_lock);
	vb_lock_take(&qp->recv_lock);
	if (qp->verbs.send_cq)
		vb_lock_take(&vb_abi_cq_of(qp->verbs.send_cq)->lock);
	if (qp->verbs.recv_cq && qp->verbs.recv_cq != qp->verbs.send_cq)
		vb_lock_take(&vb_abi_cq_of(qp->verbs.recv_cq)->lock);
}

static void unlock_queues(struct vb_abi_qp *qp)
{
	if (qp->verbs.recv_cq && qp->verbs.recv_cq != qp->verbs.send_cq)
		vb_lock_give(&vb_abi_cq_of(qp->verbs.recv_cq)->lock);
	if (qp->verbs.send_cq)
		vb_lock_give(&vb_abi_cq_of(qp->verbs.send_cq)->lock);
	vb_lock_give(&qp->recv_lock);
	vb_lock_give(&qp->send_lock);
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static int attr_of(const struct ibv_qp_attr *attr, int mask, struct vb_qp_attr *out)
{
	*out = (struct vb_qp_attr){
		.state = (enum vb_qp_state)attr->qp_state,
		.current_state = (enum vb_qp_state)attr->cur_qp_state,
		.sqd_notify = attr->en_sqd_async_notify,
		.access = attr->qp_access_flags,
		.pkey_index = attr->pkey_index,
		.port = attr->port_num,
		.qkey = attr->qkey,
		.path_mtu = mtu_bytes(attr->path_mtu),
		.timeout = attr->timeout,
		.retry_count = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.min_rnr_timer = attr->min_rnr_timer,
		.migration = (uint8_t)attr->path_mig_state,
		.reads_out = attr->max_rd_atomic,
		.reads_in = attr->max_dest_rd_atomic,
		.rq_psn = { attr->rq_psn },
		.sq_psn = { attr->sq_psn },
		.destination = { attr->dest_qp_num },
	};
	return mask & IBV_QP_AV ? vb_abi_address(&attr->ah_attr, &out->address) : 0;
}

/*
 * Programs treat both ends of XRC as RC: like the kernel, ignores attributes of the half that a QP
 * lacks.
 */
static int meaningful(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

/*
 * Chooses the path of a QP that was connected. After a QP was closed, waits until no local peer can
 * access it.
 */
static void update_path(struct vb_adapter *adapter, struct vb_qp *qp, int mask)
{
	if (mask & IBV_QP_AV && mask & IBV_QP_DEST_QPN)
		vb_adapter_choose_path(adapter, qp);
	if (vb_qp_state(qp) == VB_STATE_RESET || vb_qp_state(qp) == VB_STATE_ERR)
		vb_adapter_await_local_peers(adapter);
}

/* In these states a QP answers nothing. */
static bool ends_qp(const struct ibv_qp_attr *attr, int mask)
{
	return mask & IBV_QP_STATE &&
	       (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET);
}

int vb_abi_qp_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);
	struct vb_adapter *adapter = vb_abi_context_of(qp->context)->adapter;
	struct vb_qp_attr engine_attr;
	int error;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	if (attr_of(attr, mask, &engine_attr))
		return EINVAL;
	mask = meaningful(qp->qp_type, mask);
	if (mask & IBV_QP_AV && mask & IBV_QP_DEST_QPN)
		vb_adapter_prepare_path(adapter, &engine_attr.address.destination,
					engine_attr.destination);
	if (ends_qp(attr, mask))
		vb_adapter_enter_to_end(adapter);
	else
		vb_adapter_enter(adapter);
	error = vb_abi_refuse_modify(own, &engine_attr, (uint32_t)mask);
	lock_queues(own);
	if (!error)
		error = vb_abi_errno(vb_qp_modify(own->qp, &engine_attr, (uint32_t)mask));
	unlock_queues(own);
	if (!error && mask & IBV_QP_STATE)
		vb_qp_begin_hold(own->qp, vb_clock_now());
	if (!error)
		update_path(adapter, own->qp, mask);
	vb_adapter_leave(adapter);
	return error;
}

static void fill_address(const struct vb_address *address, struct ibv_ah_attr *out)
{
	*out = (struct ibv_ah_attr){
		.grh = {
			.flow_label = address->flow_label,
			.sgid_index = address->source_index,
			.hop_limit = address->hop_limit,
			.traffic_class = address->traffic_class,
		},
		.sl = address->service_level,
		.is_global = 1,
		.port_num = 1,
	};
	memcpy(out->grh.dgid.raw, address->destination.raw, sizeof(out->grh.dgid.raw));
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	return bytes ? (enum ibv_mtu)(__builtin_ctz(bytes) - 7) : 0;
}

int vb_abi_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr_out, int mask,
		    struct ibv_qp_init_attr *init_attr_out)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);
	struct vb_adapter *adapter = vb_abi_context_of(qp->context)->adapter;
	struct vb_qp_init capacity = { 0 };
	struct vb_qp_attr attr;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	(void)mask; /* returning more than requested does no harm */
	vb_adapter_enter(adapter);
	vb_qp_query(own->qp, &attr);
	vb_qp_query_init(own->qp, &capacity);
	vb_adapter_leave(adapter);
	*attr_out = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)attr.state,
		.cur_qp_state = (enum ibv_qp_state)attr.state,
		.path_mtu = mtu_code(attr.path_mtu),
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = attr.qkey,
		.rq_psn = attr.rq_psn.v,
		.sq_psn = attr.sq_psn.v,
		.dest_qp_num = attr.destination.v,
		.qp_access_flags = attr.access,
		.pkey_index = attr.pkey_index,
		.en_sqd_async_notify = attr.sqd_notify,
		.sq_draining = attr.is_draining,
		.max_rd_atomic = (uint8_t)attr.reads_out,
		.max_dest_rd_atomic = (uint8_t)attr.reads_in,
		.min_rnr_timer = attr.min_rnr_timer,
		.port_num = attr.port,
		.timeout = attr.timeout,
		.retry_cnt = attr.retry_count,
		.rnr_retry = attr.rnr_retry,
	};
	fill_address(&attr.address, &attr_out->ah_attr);
	report_capacity(own->qp, &attr_out->cap);
	*init_attr_out = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = attr_out->cap,
		.qp_type = qp->qp_type,
		.sq_sig_all = capacity.signal_all,
	};
	return 0;
}

int vb_abi_qp_destroy(struct ibv_qp *qp, struct vb_abi_reported *reported_out)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);
	struct vb_abi_context *context = vb_abi_context_of(qp->context);
	vb_err err;

	if (!vb_adapter_ensure_usable(context->adapter))
		return EIO;
	vb_adapter_enter_to_end(context->adapter);
	lock_queues(own);
	err = vb_qp_destroy(own->qp);
	unlock_queues(own);
	if (!err)
		vb_abi_forget_events(context, qp);
	vb_adapter_await_local_peers(context->adapter);
	vb_adapter_leave(context->adapter);
	if (err)
		return vb_abi_refuse_qp(EBUSY, NULL, qp,
					"ibv_destroy_qp: QP 0x%06x is still in a multicast group",
					qp->qp_num);
	*reported_out = (struct vb_abi_reported){ .async_events = own->async_taken };
	return 0;
}

void vb_abi_qp_free(struct ibv_qp *qp)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);

	vb_abi_release(own, offsetof(struct vb_abi_qp, memory));
}

static int change_group(struct ibv_qp *qp, const union ibv_gid *group,
			vb_err (*change)(struct vb_adapter *, struct vb_qp *,
					 const struct vb_gid *))
{
	struct vb_adapter *adapter = vb_abi_context_of(qp->context)->adapter;
	struct vb_gid gid;
	vb_err err;

	memcpy(gid.raw, group->raw, sizeof(gid.raw));
	vb_adapter_enter(adapter);
	err = change(adapter, vb_abi_qp_of(qp)->qp, &gid);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse_qp(vb_abi_errno(err), NULL, qp, "QP 0x%06x: %s", qp->qp_num,
					err == VB_EINVAL
						? "it is not in that group"
						: "there is no room for one more in a group");
	return 0;
}

int vb_abi_qp_attach(struct ibv_qp *qp, const union ibv_gid *group, uint16_t lid)
{
	(void)lid;
	return change_group(qp, group, vb_group_attach);
}

int vb_abi_qp_detach(struct ibv_qp *qp, const union ibv_gid *group, uint16_t lid)
{
	(void)lid;
	return change_group(qp, group, vb_group_detach);
}

/* --- posting --- */

/*
 * Fills only what the opcode and the QP type need: clearing the rest would take longer than
 * everything else.
 */
static void fill_request(const struct ibv_qp *qp, const struct ibv_send_wr *wr,
			 struct vb_send_request *request)
{
	request->wr_id = wr->wr_id;
	request->opcode = (enum vb_wr_opcode)wr->opcode;
	request->flags = wr->send_flags &
			 (VB_SEND_FENCE | VB_SEND_SIGNALED | VB_SEND_SOLICITED | VB_SEND_INLINE);
	request->sges = (const struct vb_sge *)(const void *)wr->sg_list;
	request->sge_count = (uint32_t)wr->num_sge;

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		request->imm = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		request->imm = 0;
		request->bind = (struct vb_bind){
			.mw = VB_CONTAINER(wr->bind_mw.mw, struct vb_abi_mw, verbs)->mw,
			.mr = wr->bind_mw.bind_info.mr ? VB_CONTAINER(wr->bind_mw.bind_info.mr,
								      struct vb_abi_mr, verbs)
								 ->mr
						       : NULL,
			.rkey = wr->bind_mw.rkey,
			.address = wr->bind_mw.bind_info.addr,
			.length = wr->bind_mw.bind_info.length,
			.access = wr->bind_mw.bind_info.mw_access_flags,
		};
		return;
	default:
		request->imm = be32toh(wr->imm_data);
		break;
	}
	if (qp->qp_type == IBV_QPT_UD) {
		request->ah = wr->wr.ud.ah ? VB_CONTAINER(wr->wr.ud.ah, struct vb_abi_ah, verbs)->ah
					   : NULL;
		request->remote_qpn = wr->wr.ud.remote_qpn;
		request->remote_qkey = wr->wr.ud.remote_qkey;
		return;
	}
	request->remote_srqn = wr->qp_type.xrc.remote_srqn;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		request->remote_address = wr->wr.atomic.remote_addr;
		request->rkey = wr->wr.atomic.rkey;
		request->compare_add = wr->wr.atomic.compare_add;
		request->swap = wr->wr.atomic.swap;
	} else {
		request->remote_address = wr->wr.rdma.remote_addr;
		request->rkey = wr->wr.rdma.rkey;
	}
}

/*
 * Fills in the request again: a request whose address is passed on cannot stay in the CPU's
 * registers.
 */
static int refuse_send(struct vb_abi_qp *qp, const struct ibv_send_wr *wr, vb_err err)
{
	struct vb_send_request request;

	fill_request(&qp->verbs, wr, &request);
	return vb_abi_refuse_send("ibv_post_send", qp, &request, err);
}

int vb_abi_qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);
	struct vb_adapter *adapter = vb_abi_context_of(qp->context)->adapter;
	bool is_single, has_posted;
	int error = 0;

	if (!vb_adapter_ensure_usable(adapter)) {
		*bad_wr = wr;
		return EIO;
	}
	is_single = wr && !wr->next;
	vb_lock_take(&own->send_lock);
	for (; wr; wr = wr->next) {
		struct vb_send_request request;
		vb_err err;

		fill_request(qp, wr, &request);
		if (is_single && vb_adapter_write_now(adapter, own->qp, &request))
			break;
		err = vb_qp_post_send(own->qp, &request);
		if (err) {
			error = refuse_send(own, wr, err);
			break;
		}
		vb_abi_note_post(adapter, own->qp, &request);
	}
	has_posted = vb_qp_publish_sends(own->qp); /* the requests before a bad one */
	vb_lock_give(&own->send_lock);
	if (error)
		*bad_wr = wr;
	if (has_posted)
		vb_adapter_kick_qp(adapter, own->qp);
	return error;
}

int vb_abi_qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);
	bool has_waiting_peer;
	int error = 0;

	if (!vb_adapter_ensure_usable(vb_abi_context_of(qp->context)->adapter)) {
		*bad_wr = wr;
		return EIO;
	}
	vb_lock_take(&own->recv_lock);
	has_waiting_peer = vb_qp_has_waiting_peer(own->qp);
	for (; wr; wr = wr->next) {
		struct vb_recv_request request = {
			.wr_id = wr->wr_id,
			.sges = (const struct vb_sge *)(const void *)wr->sg_list,
			.sge_count = (uint32_t)wr->num_sge,
		};
		vb_err err = vb_qp_post_recv(own->qp, &request);

		if (err) {
			error = vb_abi_refuse_recv(own, &request, err);
			break;
		}
	}
	vb_lock_give(&own->recv_lock);
	if (has_waiting_peer)
		vb_adapter_kick_now(vb_abi_context_of(qp->context)->adapter);
	if (error)
		*bad_wr = wr;
	return error;
}

/*
 * ibv_bind_mw(): a type 1 window gets a new key with each binding. The program finds the key in the
 * window.
 */
int vb_abi_mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct vb_abi_qp *own = vb_abi_qp_of(qp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_mr *mr = bind->bind_info.mr;
	struct vb_send_request request = {
		.wr_id = bind->wr_id,
		.opcode = VB_WR_BIND_MW,
		.flags = bind->send_flags & (VB_SEND_FENCE | VB_SEND_SIGNALED),
		.bind = {
			.mw = VB_CONTAINER(mw, struct vb_abi_mw, verbs)->mw,
			.mr = mr ? VB_CONTAINER(mr, struct vb_abi_mr, verbs)->mr : NULL,
			.rkey = rkey,
			.address = bind->bind_info.addr,
			.length = bind->bind_info.length,
			.access = bind->bind_info.mw_access_flags,
		},
	};
	int error = 0;
	vb_err err;

	if (!vb_adapter_ensure_usable(vb_abi_context_of(qp->context)->adapter))
		return EIO;
	vb_lock_take(&own->send_lock);
	err = vb_qp_post_send(own->qp, &request);
	if (err) {
		error = vb_abi_refuse_send("ibv_bind_mw", own, &request, err);
	} else {
		vb_qp_publish_and_ring(own->qp);
		mw->rkey = rkey;
	}
	vb_lock_give(&own->send_lock);
	vb_adapter_kick(vb_abi_context_of(qp->context)->adapter);
	return error;
}
