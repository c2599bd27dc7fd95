/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns events of the connection manager into events of identifiers, with the numbers that the
 * kernel's rdma_cm reports. All of this runs under the lock and mostly in a thread that owns the
 * adapter: nothing here touches a QP.
 */
#include "cma/cma_priv.h"

#include "base/bytes.h"

#include <string.h>

/* The private data is always reported whole, with its trailing zeros. */
static const void *copy_private(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	if (!from->has_message || !from->private_length)
		return NULL;
	memcpy(event->private_data, from->message.private_data, from->private_length);
	return event->private_data;
}

static void copy_conn_private(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	struct rdma_conn_param *conn = &event->event.param.conn;

	conn->private_data = copy_private(event, from);
	conn->private_data_len = conn->private_data ? (uint8_t)from->private_length : 0;
}

static void copy_ud_private(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	struct rdma_ud_param *ud = &event->event.param.ud;

	ud->private_data = copy_private(event, from);
	ud->private_data_len = ud->private_data ? (uint8_t)from->private_length : 0;
}

static struct vb_cm_ece ece_of(const uint8_t vendor[3], uint32_t options)
{
	return (struct vb_cm_ece){ .vendor = load24(vendor), .options = options };
}

/* --- requests --------------------------------------------------------------------------------- */

/* The peer's initiator depth is our responder resources, and the other way round. */
static void describe_req(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	const struct vb_mad_req *req = &from->message.req;
	struct rdma_conn_param *conn = &event->event.param.conn;

	conn->responder_resources = req->initiator_depth;
	conn->initiator_depth = req->responder_resources;
	conn->flow_control = req->has_flow_control;
	conn->retry_count = req->retry_count;
	conn->rnr_retry_count = req->rnr_retry_count;
	conn->srq = req->has_srq;
	conn->qp_num = req->qpn.v;
	copy_conn_private(event, from);
}

static enum ibv_qp_type type_of(const struct vb_cm_event *from)
{
	struct vb_cm_qp qp;

	if (from->kind == VB_CM_SIDR_REQUEST)
		return IBV_QPT_UD;
	vb_cm_connection_qp(from->connection, &qp);
	switch (qp.transport) {
	case VB_CM_RC:
		return IBV_QPT_RC;
	case VB_CM_UC:
		return IBV_QPT_UC;
	case VB_CM_XRC:
		return IBV_QPT_XRC_RECV;
	}
	return IBV_QPT_RC;
}

static void set_addresses(struct vb_cma_id *id, const struct vb_cma_id *listener,
			  const struct vb_cm_event *from)
{
	struct rdma_addr *addr = &id->id.route.addr;

	if (!from->has_ip)
		return;
	vb_cma_address_from_gid(&addr->src_storage, &from->ip.destination,
				vb_cma_address_port(&listener->id.route.addr.src_addr), 0);
	vb_cma_address_from_gid(&addr->dst_storage, &from->ip.source, from->ip.source_port, 0);
}

static struct vb_cma_id *make_child(struct vb_cma_id *listener, const struct vb_cm_event *from)
{
	struct vb_cma_id *child = vb_cma_id_make(listener->id.channel, listener->id.context,
						 listener->id.ps, type_of(from));

	if (!child)
		return NULL;
	child->state = VB_CMA_TALKING;
	child->connection = from->connection;
	set_addresses(child, listener, from);
	vb_cm_connection_set_owner(from->connection, child);
	if (from->kind == VB_CM_REQUEST) {
		const struct vb_mad_req *req = &from->message.req;

		child->responder_resources = req->initiator_depth;
		child->initiator_depth = req->responder_resources;
		child->remote_ece = ece_of(req->vendor, from->message.modifier);
	}
	return child;
}

static void on_request(const struct vb_cm_event *from)
{
	struct vb_cma_id *listener = from->owner;
	struct vb_cma_id *child = make_child(listener, from);
	struct vb_cma_event *event = NULL;

	if (child)
		event = vb_cma_event_make(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!event) {
		vb_cm_connection_destroy(from->connection, vb_clock_now());
		if (child)
			vb_cma_id_free(child);
		return;
	}
	event->counted = listener;
	event->event.listen_id = &listener->id;
	event->flow = from->flow;
	if (from->kind == VB_CM_REQUEST)
		describe_req(event, from);
	else
		copy_ud_private(event, from);
	vb_cma_event_queue(event);
}

/* --- other events ----------------------------------------------------------------------------- */

static void describe_rep(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	const struct vb_mad_rep *rep = &from->message.rep;
	struct rdma_conn_param *conn = &event->event.param.conn;
	struct vb_cm_qp qp;

	vb_cm_connection_qp(from->connection, &qp);
	conn->responder_resources = rep->initiator_depth;
	conn->initiator_depth = rep->responder_resources;
	conn->flow_control = rep->has_flow_control;
	conn->rnr_retry_count = rep->rnr_retry_count;
	conn->srq = rep->has_srq;
	conn->qp_num = qp.remote_qpn.v;
	copy_conn_private(event, from);
	event->counted->remote_ece = ece_of(rep->vendor, from->message.modifier);
}

static void describe_sidr(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	const struct vb_mad_sidr_rep *rep = &from->message.sidr_rep;
	struct rdma_ud_param *ud = &event->event.param.ud;

	copy_ud_private(event, from);
	if (rep->status != VB_MAD_SIDR_VALID) {
		event->event.event = RDMA_CM_EVENT_UNREACHABLE;
		event->event.status = rep->status;
		return;
	}
	ud->ah_attr = vb_cma_ah_attr(event->counted, &from->flow);
	ud->qp_num = rep->qpn.v;
	ud->qkey = rep->qkey;
	event->counted->remote_ece = ece_of(rep->vendor, from->message.modifier);
}

static void describe_rej(struct vb_cma_event *event, const struct vb_cm_event *from)
{
	event->event.status = from->message.rej.reason;
	copy_conn_private(event, from);
}

static enum rdma_cm_event_type type_for(enum vb_cm_event_kind kind)
{
	switch (kind) {
	case VB_CM_REQUEST:
	case VB_CM_SIDR_REQUEST:
		return RDMA_CM_EVENT_CONNECT_REQUEST;
	case VB_CM_RESPONSE:
		return RDMA_CM_EVENT_CONNECT_RESPONSE;
	case VB_CM_SIDR_RESPONSE:
	case VB_CM_ESTABLISHED:
		return RDMA_CM_EVENT_ESTABLISHED;
	case VB_CM_REJECTED:
		return RDMA_CM_EVENT_REJECTED;
	case VB_CM_UNREACHABLE:
		return RDMA_CM_EVENT_UNREACHABLE;
	case VB_CM_DISCONNECTED:
		return RDMA_CM_EVENT_DISCONNECTED;
	case VB_CM_TIMEWAIT_EXIT:
		return RDMA_CM_EVENT_TIMEWAIT_EXIT;
	}
	return RDMA_CM_EVENT_CONNECT_ERROR;
}

static void on_other(const struct vb_cm_event *from)
{
	struct vb_cma_event *event = vb_cma_event_make(from->owner, type_for(from->kind), 0);

	if (!event) {
		vb_cma_log(VB_LOG_ERROR, ENOMEM, "connections: no memory to tell of an event: %s",
			   vb_cm_event_describe(from->kind));
		return;
	}
	if (from->kind == VB_CM_RESPONSE)
		describe_rep(event, from);
	else if (from->kind == VB_CM_SIDR_RESPONSE)
		describe_sidr(event, from);
	else if (from->kind == VB_CM_REJECTED && from->has_message)
		describe_rej(event, from);
	else if (from->kind == VB_CM_UNREACHABLE || from->is_timeout)
		event->event.status = -ETIMEDOUT;
	vb_cma_event_queue(event);
}

void vb_cma_deliver(void)
{
	struct vb_cm_event event;

	while (vb_cm_take_event(vb_cma_machine(), &event)) {
		if (event.kind == VB_CM_REQUEST || event.kind == VB_CM_SIDR_REQUEST)
			on_request(&event);
		else if (event.owner)
			on_other(&event);
	}
}
