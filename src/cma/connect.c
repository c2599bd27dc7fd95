/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting, accepting, rejecting and disconnecting. The QP changes its state before the message
 * goes out that lets the peer begin.
 */
#include "cma/cma_priv.h"

#include "base/bytes.h"

#include <arpa/inet.h>
#include <string.h>

#define RETRIES_MAX 7 /* three bits */

static uint64_t service_of(const struct vb_cma_id *id)
{
	return vb_service_id((uint16_t)id->id.ps, vb_cma_address_port(&id->id.route.addr.dst_addr));
}

static struct vb_service_ip ip_of(const struct vb_cma_id *id)
{
	const struct rdma_addr *addr = &id->id.route.addr;

	return (struct vb_service_ip){
		.source_port = vb_cma_address_port(&addr->src_addr),
		.source = vb_cma_address_gid(&addr->src_addr),
		.destination = vb_cma_address_gid(&addr->dst_addr),
	};
}

static struct vb_flow flow_of(const struct vb_cma_id *id)
{
	struct vb_flow flow = {
		.flow_label = ntohl(id->path.flow_label),
		.traffic_class = id->has_tos ? id->tos : id->path.traffic_class,
		.hop_limit = id->path.hop_limit,
	};

	memcpy(flow.source.raw, id->path.sgid.raw, sizeof(flow.source.raw));
	memcpy(flow.destination.raw, id->path.dgid.raw, sizeof(flow.destination.raw));
	return flow;
}

static struct vb_cm_private private_of(const struct rdma_conn_param *param)
{
	if (!param || !param->private_data)
		return (struct vb_cm_private){ 0 };
	return (struct vb_cm_private){ .data = param->private_data,
				       .length = param->private_data_len };
}

/* --- parameters that both sides send about their QP ------------------------------------------- */

static int check_param(const struct vb_cma_id *id, const struct rdma_conn_param *param,
		       const char *call)
{
	const struct vb_cma_device *device = id->place.device;

	if (!id->id.qp && !param)
		return vb_cma_refuse(EINVAL, "%s: neither a QP nor the number of one", call);
	if (!param || vb_cma_is_datagram(id))
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > device->responder_resources_max)
		return vb_cma_refuse(EINVAL, "%s: %u responder resources, at most %u", call,
				     param->responder_resources, device->responder_resources_max);
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > device->initiator_depth_max)
		return vb_cma_refuse(EINVAL, "%s: an initiator depth of %u, at most %u", call,
				     param->initiator_depth, device->initiator_depth_max);
	return 0;
}

static void set_qp(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	struct ibv_qp *qp = id->id.qp;

	id->qp_num = qp ? qp->qp_num : param->qp_num;
	id->has_srq = qp ? qp->srq != NULL : param->srq;
}

/*
 * If the program names no number, chooses the most that the device supports and, for an answer, the
 * peer supports.
 */
static uint8_t choose(uint8_t asked, uint8_t automatic, uint32_t most)
{
	return asked == automatic ? (uint8_t)most : asked;
}

static void set_depths(struct vb_cma_id *id, const struct rdma_conn_param *param,
		       uint8_t responder_most, uint8_t initiator_most)
{
	const struct vb_cma_device *device = id->place.device;

	id->responder_resources = choose(param ? param->responder_resources : RDMA_MAX_RESP_RES,
					 RDMA_MAX_RESP_RES,
					 min32(responder_most, device->responder_resources_max));
	id->initiator_depth = choose(param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH,
				     RDMA_MAX_INIT_DEPTH,
				     min32(initiator_most, device->initiator_depth_max));
}

static uint8_t rnr_retries(const struct rdma_conn_param *param)
{
	return (uint8_t)min32(param ? param->rnr_retry_count : RETRIES_MAX, RETRIES_MAX);
}

/* --- connecting ------------------------------------------------------------------------------- */

static enum vb_cm_transport transport_of(const struct vb_cma_id *id)
{
	if (id->id.qp_type == IBV_QPT_UC)
		return VB_CM_UC;
	return id->id.qp_type == IBV_QPT_XRC_SEND || id->id.qp_type == IBV_QPT_XRC_RECV ? VB_CM_XRC
											: VB_CM_RC;
}

static uint8_t life_time_of(const struct vb_cma_id *id)
{
	if (!id->has_ack_timeout)
		return VB_CM_PACKET_LIFE_TIME;
	return id->ack_timeout ? id->ack_timeout - 1 : 0;
}

static vb_err send_req(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	struct vb_service_ip ip = ip_of(id);
	struct vb_cm_request request = {
		.service = service_of(id),
		.ip = &ip,
		.flow = flow_of(id),
		.transport = transport_of(id),
		.qpn = { id->qp_num },
		.starting_psn = id->psn,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.retry_count =
			(uint8_t)min32(param ? param->retry_count : RETRIES_MAX, RETRIES_MAX),
		.rnr_retry_count = rnr_retries(param),
		.has_flow_control = !param || param->flow_control,
		.has_srq = id->has_srq,
		.mtu = id->path.mtu,
		.pkey = VB_CMA_PKEY,
		.packet_life_time = life_time_of(id),
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = VB_CM_RETRIES_MAX,
		.ece = id->local_ece,
		.private_data = private_of(param),
	};

	return vb_cm_connect(id->connection, &request, vb_clock_now());
}

static vb_err send_sidr_req(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	struct vb_service_ip ip = ip_of(id);
	struct vb_cm_resolution resolution = {
		.service = service_of(id),
		.ip = &ip,
		.flow = flow_of(id),
		.pkey = VB_CMA_PKEY,
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = VB_CM_RETRIES_MAX,
		.private_data = private_of(param),
	};

	return vb_cm_resolve(id->connection, &resolution, vb_clock_now());
}

/* Call with the lock. */
static vb_err begin(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	vb_err err = vb_cm_connection_create(vb_cma_machine(), id, &id->connection);

	if (err != VB_OK)
		return err;
	err = vb_cma_is_datagram(id) ? send_sidr_req(id, param) : send_req(id, param);
	if (err != VB_OK) {
		vb_cm_connection_destroy(id->connection, vb_clock_now());
		id->connection = NULL;
		return err;
	}
	id->state = VB_CMA_TALKING;
	vb_cma_deliver();
	return VB_OK;
}

static int connect_to(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	vb_err err;
	int error = 0;

	if (id->state != VB_CMA_ROUTE_RESOLVED)
		return vb_cma_refuse(
			EINVAL, "rdma_connect: its route is not resolved, or it connects already");
	if (!vb_cma_is_datagram(id))
		error = check_param(id, param, "rdma_connect");
	if (!error)
		error = vb_cma_machine_start();
	if (error)
		return error;
	if (!vb_cma_is_datagram(id)) {
		set_qp(id, param);
		set_depths(id, param, UINT8_MAX, UINT8_MAX);
	}
	vb_cma_lock();
	err = begin(id, param);
	vb_cma_unlock();
	if (err != VB_OK)
		return vb_cma_refuse(vb_cma_errno(err), "rdma_connect: %s",
				     err == VB_EINVAL
					     ? "more private data than a request has room for"
					     : "too many connections");
	vb_cma_machine_kick();
	return 0;
}

VB_CMA_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_connect");

	if (!error)
		error = connect_to(vb_cma_id_of(id), conn_param);
	return vb_cma_return(error ? error : vb_cma_wait(vb_cma_id_of(id)));
}

static int establish(struct vb_cma_id *id)
{
	vb_err err;

	if (id->id.qp || !id->connection)
		return vb_cma_refuse(
			EINVAL,
			"rdma_establish: its QP is of rdma_create_qp(), or it never connected");
	vb_cma_lock();
	err = vb_cm_establish(id->connection, NULL, vb_clock_now());
	vb_cma_unlock();
	vb_cma_machine_kick();
	return vb_cma_errno(err);
}

VB_CMA_EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_establish");

	return vb_cma_return(error ? error : establish(vb_cma_id_of(id)));
}

/* --- accepting -------------------------------------------------------------------------------- */

static vb_err send_rep(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	struct vb_cm_reply reply = {
		.qpn = { id->qp_num },
		.starting_psn = id->psn,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.rnr_retry_count = rnr_retries(param),
		.has_flow_control = !param || param->flow_control,
		.has_srq = id->has_srq,
		.ece = id->local_ece,
		.private_data = private_of(param),
	};

	return vb_cm_accept(id->connection, &reply, vb_clock_now());
}

static vb_err send_sidr_rep(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	struct vb_cm_sidr answer = {
		.status = VB_MAD_SIDR_VALID,
		.qpn = { id->qp_num },
		.qkey = RDMA_UDP_QKEY,
		.ece = id->local_ece,
		.private_data = private_of(param),
	};

	return vb_cm_answer(id->connection, &answer, vb_clock_now());
}

static int accept_request(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	vb_err err;
	int error;

	if (id->state != VB_CMA_TALKING || !id->place.device)
		return vb_cma_refuse(EINVAL, "rdma_accept: it came with no request");
	error = check_param(id, param, "rdma_accept");
	if (error)
		return error;
	set_qp(id, param);
	if (!vb_cma_is_datagram(id)) {
		set_depths(id, param, id->responder_resources, id->initiator_depth);
		error = id->id.qp ? vb_cma_qp_connect(id) : 0;
	}
	if (error)
		return error;
	vb_cma_lock();
	err = vb_cma_is_datagram(id) ? send_sidr_rep(id, param) : send_rep(id, param);
	vb_cma_deliver();
	vb_cma_unlock();
	vb_cma_machine_kick();
	if (err == VB_OK)
		return 0;
	vb_cma_qp_fail(id);
	return vb_cma_refuse(
		vb_cma_errno(err),
		"rdma_accept: it was answered, is withdrawn, or more private data than fits");
}

VB_CMA_EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_accept");

	if (!error)
		error = accept_request(vb_cma_id_of(id), conn_param);
	if (error || vb_cma_is_datagram(vb_cma_id_of(id)))
		return vb_cma_return(error);
	return vb_cma_return(vb_cma_wait(vb_cma_id_of(id)));
}

/* --- rejecting -------------------------------------------------------------------------------- */

static vb_err send_rej(struct vb_cma_id *id, uint16_t reason, struct vb_cm_private private_data)
{
	struct vb_cm_rejection rejection = { .reason = reason, .private_data = private_data };
	struct vb_cm_sidr refusal = { .status = VB_MAD_SIDR_REJECTED,
				      .private_data = private_data };

	if (vb_cma_is_datagram(id))
		return vb_cm_answer(id->connection, &refusal, vb_clock_now());
	return vb_cm_reject(id->connection, &rejection, vb_clock_now());
}

static int reject(struct rdma_cm_id *id, const char *call, uint16_t reason,
		  const void *private_data, uint8_t length)
{
	struct vb_cma_id *own = vb_cma_id_of(id);
	int error = vb_cma_id_ensure_ours(id, call);
	vb_err err;

	if (error)
		return error;
	if (!own->connection)
		return vb_cma_refuse(EINVAL, "%s: it came with no request", call);
	vb_cma_lock();
	err = send_rej(own, reason,
		       (struct vb_cm_private){ private_data, private_data ? length : 0 });
	vb_cma_unlock();
	vb_cma_machine_kick();
	return vb_cma_errno(err);
}

VB_CMA_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data,
			      uint8_t private_data_len)
{
	return vb_cma_return(
		reject(id, "rdma_reject", VB_MAD_CONSUMER_DEFINED, private_data, private_data_len));
}

VB_CMA_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
				  uint8_t private_data_len)
{
	return vb_cma_return(reject(id, "rdma_reject_ece", VB_MAD_VENDOR_OPTION_NOT_SUPPORTED,
				    private_data, private_data_len));
}

/* --- ending ----------------------------------------------------------------------------------- */

/* As in the kernel, ending a connection that is over is no error. True: an event is due. */
static bool hang_up(struct vb_cma_id *id)
{
	bool was_connected, is_event_due;

	vb_cma_lock();
	was_connected = vb_cm_connection_state(id->connection) == VB_CM_CONNECTED;
	is_event_due = (vb_cm_disconnect(id->connection, NULL, vb_clock_now()) == VB_OK &&
			was_connected) ||
		       vb_cma_event_is_waiting(id, RDMA_CM_EVENT_DISCONNECTED);
	vb_cma_deliver();
	vb_cma_unlock();
	vb_cma_machine_kick();
	return is_event_due;
}

VB_CMA_EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_disconnect");
	struct vb_cma_id *own;

	if (error)
		return vb_cma_return(error);
	own = vb_cma_id_of(id);
	if (!own->connection || vb_cma_is_datagram(own))
		return vb_cma_return(
			vb_cma_refuse(EINVAL, "rdma_disconnect: it has no connection"));
	vb_cma_qp_fail(own);
	return vb_cma_return(hang_up(own) ? vb_cma_wait(own) : 0);
}

VB_CMA_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_notify");
	struct vb_cma_id *own;

	if (error)
		return vb_cma_return(error);
	own = vb_cma_id_of(id);
	if (!own->connection || event != IBV_EVENT_COMM_EST)
		return vb_cma_return(vb_cma_refuse(
			EINVAL,
			"rdma_notify: event %d, or no connection; only COMM_EST means something",
			event));
	vb_cma_lock();
	vb_cm_on_communication(own->connection, vb_clock_now());
	vb_cma_deliver();
	vb_cma_unlock();
	return 0;
}
