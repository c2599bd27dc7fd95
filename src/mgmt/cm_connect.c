/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a program on a connection: connect, accept, reject, establish, disconnect, destroy. */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"

static bool is_in(const struct vb_cm_connection *connection, enum vb_cm_state one,
		  enum vb_cm_state other)
{
	return connection->self.state == one || connection->self.state == other;
}

/* --- connecting ------------------------------------------------------------------------------- */

static struct vb_mad_path path_of(const struct vb_cm *cm, const struct vb_cm_request *request)
{
	bool is_routed = request->flow.hop_limit > 1;

	return (struct vb_mad_path){
		.local_lid = is_routed ? VB_MAD_LID_PERMISSIVE : 0,
		.remote_lid = is_routed ? VB_MAD_LID_PERMISSIVE : 0,
		.local_gid = request->flow.source,
		.remote_gid = request->flow.destination,
		.flow_label = request->flow.flow_label,
		.packet_rate = request->packet_rate,
		.traffic_class = request->flow.traffic_class,
		.hop_limit = request->flow.hop_limit,
		.service_level = request->service_level,
		.is_subnet_local = !is_routed,
		.ack_timeout = vb_cm_ack_timeout(cm->config.ack_delay, request->packet_life_time),
	};
}

static void compose_req(const struct vb_cm *cm, const struct vb_cm_request *request,
			struct vb_mad *mad)
{
	bool is_xrc = request->transport == VB_CM_XRC;

	mad->modifier = request->ece.options;
	mad->req = (struct vb_mad_req){
		.service = request->service,
		.ca_guid = cm->config.ca_guid,
		.qkey = request->qkey,
		.qpn = request->qpn,
		.initiator_depth = request->initiator_depth,
		.remote_response_timeout = request->response_timeout,
		.local_response_timeout = request->response_timeout,
		.has_flow_control = request->has_flow_control,
		.starting_psn = request->starting_psn,
		.pkey = request->pkey,
		.mtu = request->mtu,
		.cm_retries_max = request->retries_max,
		.primary = path_of(cm, request),
	};
	store24(mad->req.vendor, request->ece.vendor);
	if (is_xrc) {
		mad->req.transport = VB_MAD_TRANSPORT_EXTENDED;
		mad->req.extended_transport = VB_MAD_EXTENDED_XRC;
		return;
	}
	/* An XRC initiator answers nothing, so it has none of these. */
	mad->req.transport = request->transport == VB_CM_UC ? VB_MAD_TRANSPORT_UC
							    : VB_MAD_TRANSPORT_RC;
	mad->req.responder_resources = request->responder_resources;
	mad->req.retry_count = request->retry_count;
	mad->req.rnr_retry_count = request->rnr_retry_count;
	mad->req.has_srq = request->has_srq;
}

static void begin_requests(struct vb_cm_connection *connection, const struct vb_flow *flow,
			   uint64_t retry_ns, uint32_t retries_max)
{
	connection->self.flow = *flow;
	connection->self.transaction = connection->cm->transaction_base | connection->self.local_id;
	connection->retry_ns = retry_ns;
	connection->retries_max = retries_max;
}

vb_err vb_cm_connect(struct vb_cm_connection *connection, const struct vb_cm_request *request,
		     uint64_t now_ns)
{
	struct vb_mad mad = { .kind = VB_MAD_REQ };

	if (connection->self.state != VB_CM_IDLE ||
	    vb_cm_put_private_ip(&mad, request->ip, &request->private_data) != VB_OK)
		return VB_EINVAL;
	begin_requests(connection, &request->flow,
		       2 * vb_mad_timeout_ns(request->packet_life_time) +
			       vb_mad_timeout_ns(request->response_timeout),
		       request->retries_max);
	connection->local_qpn = request->qpn;
	connection->qp = (struct vb_cm_qp){
		.transport = request->transport,
		.flow = request->flow,
		.receive_psn = request->starting_psn,
		.pkey = request->pkey,
		.mtu = request->mtu,
		.responder_resources = request->responder_resources,
		.initiator_depth = request->initiator_depth,
		.retry_count = request->retry_count,
		.rnr_retry_count = request->rnr_retry_count,
		.ack_timeout = (uint8_t)min32(request->packet_life_time + 1u, 31),
		.service_level = request->service_level,
		.packet_rate = request->packet_rate,
	};
	mad.transaction = connection->self.transaction;
	mad.local_id = connection->self.local_id;
	compose_req(connection->cm, request, &mad);
	vb_cm_set_state(connection, VB_CM_REQ_SENT);
	vb_cm_send_request(connection, &mad, now_ns);
	return VB_OK;
}

/* --- accepting -------------------------------------------------------------------------------- */

static void compose_rep(const struct vb_cm_connection *connection, const struct vb_cm_reply *reply,
			struct vb_mad *mad)
{
	mad->modifier = reply->ece.options;
	mad->rep = (struct vb_mad_rep){
		.qkey = reply->qkey,
		.starting_psn = reply->starting_psn,
		.responder_resources = reply->responder_resources,
		.target_ack_delay = connection->cm->config.ack_delay,
		.rnr_retry_count = reply->rnr_retry_count,
		.ca_guid = connection->cm->config.ca_guid,
	};
	store24(mad->rep.vendor, reply->ece.vendor);
	if (connection->qp.transport == VB_CM_XRC) {
		/* An XRC target requests nothing, and receives from SRQs only. */
		mad->rep.eecn = reply->qpn.v;
		mad->rep.has_srq = true;
		return;
	}
	mad->rep.qpn = reply->qpn;
	mad->rep.initiator_depth = reply->initiator_depth;
	mad->rep.has_flow_control = reply->has_flow_control;
	mad->rep.has_srq = reply->has_srq;
}

vb_err vb_cm_accept(struct vb_cm_connection *connection, const struct vb_cm_reply *reply,
		    uint64_t now_ns)
{
	struct vb_mad mad = vb_cm_compose(&connection->self, VB_MAD_REP);

	if (!is_in(connection, VB_CM_REQ_RCVD, VB_CM_MRA_REQ_SENT) ||
	    vb_cm_put_private(&mad, &reply->private_data) != VB_OK)
		return VB_EINVAL;
	compose_rep(connection, reply, &mad);
	connection->local_qpn = reply->qpn;
	connection->qp.receive_psn = reply->starting_psn;
	connection->qp.responder_resources = reply->responder_resources;
	connection->qp.initiator_depth = reply->initiator_depth;
	vb_cm_listener_release(connection);
	vb_cm_set_state(connection, VB_CM_REP_SENT);
	vb_cm_send_request(connection, &mad, now_ns);
	return VB_OK;
}

vb_err vb_cm_establish(struct vb_cm_connection *connection,
		       const struct vb_cm_private *private_data, uint64_t now_ns)
{
	struct vb_mad mad = vb_cm_compose(&connection->self, VB_MAD_RTU);

	(void)now_ns;
	if (!is_in(connection, VB_CM_REP_RCVD, VB_CM_MRA_REP_SENT) ||
	    vb_cm_put_private(&mad, private_data) != VB_OK)
		return VB_EINVAL;
	vb_cm_set_state(connection, VB_CM_CONNECTED);
	vb_cm_send_answer(connection, &mad);
	return VB_OK;
}

void vb_cm_on_communication(struct vb_cm_connection *connection, uint64_t now_ns)
{
	(void)now_ns;
	if (!is_in(connection, VB_CM_REP_SENT, VB_CM_MRA_REP_RCVD))
		return;
	vb_cm_stop_request(connection);
	vb_cm_set_state(connection, VB_CM_CONNECTED);
	vb_cm_note_event(connection, VB_CM_ESTABLISHED);
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Sends the REJ and leaves the state that it belongs to. */
static void reject(struct vb_cm_connection *connection, const struct vb_mad *mad, uint64_t now_ns)
{
	/* The peer may already have accepted our REP, and its packets may be under way. */
	if (is_in(connection, VB_CM_REP_SENT, VB_CM_MRA_REP_RCVD))
		vb_cm_enter_timewait(connection, now_ns);
	else
		vb_cm_close(connection);
	vb_cm_send_answer(connection, mad);
}

static bool can_reject(enum vb_cm_state state)
{
	return state >= VB_CM_REQ_SENT && state <= VB_CM_MRA_REP_SENT;
}

vb_err vb_cm_reject(struct vb_cm_connection *connection, const struct vb_cm_rejection *rejection,
		    uint64_t now_ns)
{
	struct vb_mad mad = vb_cm_compose_rej(connection->cm, &connection->self, rejection->reason);

	if (!can_reject((enum vb_cm_state)connection->self.state) ||
	    rejection->info_length > VB_MAD_INFO_SIZE ||
	    vb_cm_put_private(&mad, &rejection->private_data) != VB_OK)
		return VB_EINVAL;
	if (rejection->info_length) {
		mad.rej.info_length = (uint8_t)rejection->info_length;
		memcpy(mad.rej.info, rejection->info, rejection->info_length);
	}
	reject(connection, &mad, now_ns);
	return VB_OK;
}

static void send_drep(struct vb_cm_connection *connection, const struct vb_mad *mad,
		      uint64_t now_ns)
{
	vb_cm_enter_timewait(connection, now_ns);
	vb_cm_send_answer(connection, mad);
}

static void send_dreq(struct vb_cm_connection *connection, const struct vb_mad *mad,
		      uint64_t now_ns)
{
	vb_cm_set_state(connection, VB_CM_DREQ_SENT);
	vb_cm_send_request(connection, mad, now_ns);
}

vb_err vb_cm_disconnect(struct vb_cm_connection *connection,
			const struct vb_cm_private *private_data, uint64_t now_ns)
{
	struct vb_mad dreq = vb_cm_compose_dreq(connection->cm, &connection->self);
	struct vb_mad drep = vb_cm_compose(&connection->self, VB_MAD_DREP);

	if (connection->self.state == VB_CM_CONNECTED) {
		if (vb_cm_put_private(&dreq, private_data) != VB_OK)
			return VB_EINVAL;
		send_dreq(connection, &dreq, now_ns);
		return VB_OK;
	}
	if (connection->self.state != VB_CM_DREQ_RCVD ||
	    vb_cm_put_private(&drep, private_data) != VB_OK)
		return VB_EINVAL;
	send_drep(connection, &drep, now_ns);
	return VB_OK;
}

void vb_cm_hang_up(struct vb_cm_connection *connection, uint64_t now_ns)
{
	struct vb_mad mad = vb_cm_compose_dreq(connection->cm, &connection->self);

	send_dreq(connection, &mad, now_ns);
}

static void send_farewell(struct vb_cm_connection *connection, uint64_t now_ns)
{
	struct vb_cm_sidr refusal = { .status = VB_MAD_SIDR_REJECTED };
	struct vb_mad mad;

	if (connection->self.state == VB_CM_DREQ_SENT)
		return; /* continues until the DREP */
	if (vb_cm_compose_farewell(connection->cm, &connection->self, &mad)) {
		if (mad.kind == VB_MAD_REJ)
			reject(connection, &mad, now_ns);
		else if (mad.kind == VB_MAD_DREQ)
			send_dreq(connection, &mad, now_ns);
		else
			send_drep(connection, &mad, now_ns);
	} else if (connection->self.state == VB_CM_SIDR_REQ_SENT) {
		vb_cm_close(connection);
	} else if (connection->self.state == VB_CM_SIDR_REQ_RCVD &&
		   vb_cm_answer(connection, &refusal, now_ns) != VB_OK) {
		vb_cm_close(connection);
	}
}

void vb_cm_connection_destroy(struct vb_cm_connection *connection, uint64_t now_ns)
{
	connection->is_orphan = true;
	connection->is_unseen = false;
	connection->owner = NULL;
	connection->events = 0;
	vb_list_remove(&connection->talking);
	send_farewell(connection, now_ns);
	vb_cm_free_if_over(connection);
}
