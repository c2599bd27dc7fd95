/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that open a connection: REQ, MRA, REP, RTU. Each may arrive twice, late, or for a
 * connection that is over; each case is a row of the switch over the current state.
 */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"

/* --- REQ -------------------------------------------------------------------------------------- */

static bool transport_of(const struct vb_mad_req *req, enum vb_cm_transport *transport)
{
	switch ((enum vb_mad_transport)req->transport) {
	case VB_MAD_TRANSPORT_RC:
		*transport = VB_CM_RC;
		return true;
	case VB_MAD_TRANSPORT_UC:
		*transport = VB_CM_UC;
		return true;
	case VB_MAD_TRANSPORT_EXTENDED:
		*transport = VB_CM_XRC;
		return req->extended_transport == VB_MAD_EXTENDED_XRC;
	case VB_MAD_TRANSPORT_RD:
		break;
	}
	return false;
}

static struct vb_cm_qp qp_from_req(const struct vb_mad_req *req, enum vb_cm_transport transport)
{
	const struct vb_mad_path *path = &req->primary;

	return (struct vb_cm_qp){
		.transport = transport,
		.flow = {
			.source = path->remote_gid,
			.destination = path->local_gid,
			.flow_label = path->flow_label,
			.traffic_class = path->traffic_class,
			.hop_limit = path->hop_limit ? path->hop_limit : VB_CM_HOP_LIMIT,
		},
		.remote_qpn = req->qpn,
		.send_psn = req->starting_psn,
		.pkey = req->pkey,
		.mtu = req->mtu,
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.ack_timeout = path->ack_timeout,
		.service_level = path->service_level,
		.packet_rate = path->packet_rate,
	};
}

struct vb_cm_connection *vb_cm_take_in(struct vb_cm *cm, const struct vb_cm_arrival *arrival,
				       struct vb_cm_listener *listener)
{
	struct vb_cm_connection *connection =
		vb_cm_listener_is_full(listener) ? NULL : vb_cm_connection_make(cm);

	if (!connection) {
		cm->counters.over_backlog++;
		return NULL;
	}
	vb_cm_listener_admit(listener, connection);
	connection->is_unseen = true;
	connection->self.remote_id = arrival->mad->local_id;
	connection->self.transaction = arrival->mad->transaction;
	connection->self.flow = arrival->reply;
	connection->self.peer_qpn = arrival->source;
	memcpy(connection->opening, arrival->bytes, VB_MAD_SIZE);
	return connection;
}

static void begin_passive(struct vb_cm *cm, const struct vb_cm_arrival *arrival,
			  struct vb_cm_listener *listener, enum vb_cm_transport transport)
{
	const struct vb_mad_req *req = &arrival->mad->req;
	struct vb_cm_connection *connection = vb_cm_take_in(cm, arrival, listener);
	uint64_t life_time_ns = vb_mad_timeout_ns(req->primary.ack_timeout) / 2;

	if (!connection)
		return;
	connection->qp = qp_from_req(req, transport);
	connection->self.remote_qpn = req->qpn;
	connection->retry_ns = 2 * life_time_ns + vb_mad_timeout_ns(req->local_response_timeout);
	connection->retries_max = req->cm_retries_max;
	vb_cm_index_add(connection, VB_CM_BY_REMOTE_ID,
			vb_cm_key_of_peer(arrival, connection->self.remote_id, req->ca_guid));
	vb_cm_index_add(connection, VB_CM_BY_REMOTE_QPN,
			vb_cm_key_of_peer(arrival, req->qpn.v, req->ca_guid));
	vb_cm_set_state(connection, VB_CM_REQ_RCVD);
	vb_cm_note_event(connection, VB_CM_REQUEST);
}

/*
 * The connection was over before the peer received our REP. The peer does not know our ID yet, so
 * the earlier answer is repeated as an answer to the REQ. (A REJ for a timeout is found by an ID
 * that the peer does not know.)
 */
static void reject_late_req(struct vb_cm_connection *connection,
			    const struct vb_cm_arrival *arrival)
{
	struct vb_mad mad;

	if (!connection->has_answer || connection->answer_kind != VB_MAD_REJ ||
	    vb_mad_parse(connection->answer, VB_MAD_SIZE, &mad) != VB_MAD_PARSED ||
	    mad.rej.reason == VB_MAD_TIMEOUT) {
		vb_cm_send_rej(connection->cm, arrival, VB_MAD_STALE_CONNECTION);
		return;
	}
	mad.rej.about = VB_MAD_ABOUT_REQ;
	vb_cm_send_refusal(connection->cm, &arrival->reply, arrival->source, &mad);
}

static void on_duplicate_req(struct vb_cm_connection *connection,
			     const struct vb_cm_arrival *arrival)
{
	struct vb_mad mra = vb_cm_compose_mra(&connection->self, VB_MAD_ABOUT_REQ);

	connection->cm->counters.duplicates++;
	switch ((enum vb_cm_state)connection->self.state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
		/* The program is slow. */
		vb_cm_set_state(connection, VB_CM_MRA_REQ_SENT);
		vb_cm_send_answer(connection, &mra);
		break;
	case VB_CM_REP_SENT:
		/* The REP was lost or is late: there is no need to wait for its retry. */
		vb_cm_send_request_again(connection);
		break;
	case VB_CM_TIMEWAIT:
	case VB_CM_CLOSED:
		reject_late_req(connection, arrival);
		break;
	case VB_CM_MRA_REP_RCVD:
	case VB_CM_CONNECTED:
	case VB_CM_DREQ_SENT:
	case VB_CM_DREQ_RCVD:
	case VB_CM_IDLE:
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
		break;
	}
}

/*
 * The peer's QP is in one of our connections that the peer no longer knows (IBA 12.9.8.3.1). The
 * new connection is refused, the old one ended, and the peer may try again. Only the peer itself
 * may cause this: GUID and QPN are no secrets. A sender that names them from another address is not
 * the peer and gets its own connection, if any: if it were refused, it could still keep the peer
 * from its next connection.
 */
static void on_stale(struct vb_cm_connection *old, const struct vb_cm_arrival *arrival)
{
	vb_cm_send_rej(old->cm, arrival, VB_MAD_STALE_CONNECTION);
	if (old->self.state == VB_CM_CONNECTED)
		vb_cm_hang_up(old, arrival->now_ns);
}

bool vb_cm_on_req(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	const struct vb_mad_req *req = &arrival->mad->req;
	struct vb_cm_key by_id = vb_cm_key_of_peer(arrival, arrival->mad->local_id, req->ca_guid);
	struct vb_cm_key by_qpn = vb_cm_key_of_peer(arrival, req->qpn.v, req->ca_guid);
	struct vb_cm_connection *other = vb_cm_index_find(cm, VB_CM_BY_REMOTE_ID, by_id);
	struct vb_cm_addressee addressee;
	struct vb_cm_listener *listener;
	enum vb_cm_transport transport;

	if (other) {
		on_duplicate_req(other, arrival);
		return true;
	}
	vb_cm_addressee_of(arrival->mad, &addressee);
	listener = vb_cm_listener_find(cm, &addressee);
	if (!listener)
		return false;
	other = vb_cm_index_find(cm, VB_CM_BY_REMOTE_QPN, by_qpn);
	if (other)
		on_stale(other, arrival);
	else if (!transport_of(req, &transport))
		vb_cm_send_rej(cm, arrival, VB_MAD_INVALID_TRANSPORT_TYPE);
	else
		begin_passive(cm, arrival, listener, transport);
	return true;
}

/* --- MRA -------------------------------------------------------------------------------------- */

/* The remaining retries wait for the peer's own estimate. */
static void wait_longer(struct vb_cm_connection *connection, const struct vb_cm_arrival *arrival,
			enum vb_cm_state state)
{
	connection->retry_ns = vb_mad_timeout_ns(arrival->mad->mra.service_timeout) +
			       vb_mad_timeout_ns(connection->qp.ack_timeout);
	vb_timer_start(&connection->cm->timers, &connection->timer,
		       arrival->now_ns + connection->retry_ns);
	vb_cm_set_state(connection, state);
}

bool vb_cm_on_mra(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;
	struct vb_cm_connection *connection = vb_cm_find_receiver(cm, arrival, &is_pair);
	uint8_t about = arrival->mad->mra.about;

	if (!connection)
		return false;
	if (connection->self.state == VB_CM_REQ_SENT && about == VB_MAD_ABOUT_REQ)
		wait_longer(connection, arrival, VB_CM_MRA_REQ_RCVD);
	else if (connection->self.state == VB_CM_REP_SENT && about == VB_MAD_ABOUT_REP && is_pair)
		wait_longer(connection, arrival, VB_CM_MRA_REP_RCVD);
	else
		cm->counters.ignored++;
	return true;
}

/* --- REP -------------------------------------------------------------------------------------- */

static vb_qpn qpn_of(const struct vb_mad_rep *rep, enum vb_cm_transport transport)
{
	return transport == VB_CM_XRC ? (vb_qpn){ rep->eecn } : rep->qpn;
}

static void learn_from_rep(struct vb_cm_connection *connection, const struct vb_mad *mad)
{
	const struct vb_mad_rep *rep = &mad->rep;
	struct vb_cm_qp *qp = &connection->qp;

	connection->self.remote_id = mad->local_id;
	connection->self.remote_qpn = qpn_of(rep, qp->transport);
	qp->remote_qpn = connection->self.remote_qpn;
	qp->send_psn = rep->starting_psn;
	qp->initiator_depth = rep->responder_resources;
	qp->responder_resources = rep->initiator_depth;
	qp->rnr_retry_count = rep->rnr_retry_count;
	qp->ack_timeout = vb_cm_ack_timeout(rep->target_ack_delay, qp->ack_timeout - 1);
}

/*
 * The peer that answered has another connection with us on the same QP, and must have forgotten it.
 */
static void on_stale_rep(struct vb_cm_connection *connection, struct vb_cm_connection *old,
			 const struct vb_cm_arrival *arrival)
{
	struct vb_mad rej;

	learn_from_rep(connection, arrival->mad);
	vb_cm_set_state(connection, VB_CM_REP_RCVD);
	rej = vb_cm_compose_rej(connection->cm, &connection->self, VB_MAD_STALE_CONNECTION);
	vb_cm_close(connection);
	vb_cm_send_answer(connection, &rej);
	vb_mad_store(connection->closing, &rej);
	connection->has_closing = true;
	vb_cm_note_event(connection, VB_CM_REJECTED);
	if (old->self.state == VB_CM_CONNECTED)
		vb_cm_hang_up(old, arrival->now_ns);
}

static void on_first_rep(struct vb_cm_connection *connection, const struct vb_cm_arrival *arrival)
{
	const struct vb_mad_rep *rep = &arrival->mad->rep;
	vb_qpn qpn = qpn_of(rep, connection->qp.transport);
	struct vb_cm_key by_qpn = vb_cm_key_of_peer(arrival, qpn.v, rep->ca_guid);
	struct vb_cm_connection *old =
		vb_cm_index_find(connection->cm, VB_CM_BY_REMOTE_QPN, by_qpn);

	if (old) {
		on_stale_rep(connection, old, arrival);
		return;
	}
	vb_cm_stop_request(connection);
	learn_from_rep(connection, arrival->mad);
	vb_cm_index_add(connection, VB_CM_BY_REMOTE_QPN, by_qpn);
	vb_cm_index_add(connection, VB_CM_BY_REMOTE_ID,
			vb_cm_key_of_peer(arrival, arrival->mad->local_id, rep->ca_guid));
	memcpy(connection->opening, arrival->bytes, VB_MAD_SIZE);
	vb_cm_set_state(connection, VB_CM_REP_RCVD);
	vb_cm_note_event(connection, VB_CM_RESPONSE);
}

static void on_duplicate_rep(struct vb_cm_connection *connection)
{
	struct vb_mad mra = vb_cm_compose_mra(&connection->self, VB_MAD_ABOUT_REP);

	connection->cm->counters.duplicates++;
	if (connection->self.state == VB_CM_REP_RCVD ||
	    connection->self.state == VB_CM_MRA_REP_SENT) {
		vb_cm_set_state(connection, VB_CM_MRA_REP_SENT);
		vb_cm_send_answer(connection, &mra);
	} else if (connection->has_answer && (connection->answer_kind == VB_MAD_RTU ||
					      connection->answer_kind == VB_MAD_REJ)) {
		vb_cm_send_again(connection); /* the earlier answer was lost */
	}
}

bool vb_cm_on_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;
	struct vb_cm_connection *connection = vb_cm_find_receiver(cm, arrival, &is_pair);

	if (!connection)
		return false;
	if (connection->self.state == VB_CM_REQ_SENT ||
	    connection->self.state == VB_CM_MRA_REQ_RCVD)
		on_first_rep(connection, arrival);
	else if (is_pair)
		on_duplicate_rep(connection);
	/* too late: given up, or another peer answered */
	else
		vb_cm_refuse_arrival(cm, arrival);
	return true;
}

/* --- RTU -------------------------------------------------------------------------------------- */

bool vb_cm_on_rtu(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;
	struct vb_cm_connection *connection = vb_cm_find_receiver(cm, arrival, &is_pair);

	if (!connection)
		return false;
	if (!is_pair) {
		vb_cm_refuse_arrival(cm, arrival);
	} else if (connection->self.state == VB_CM_REP_SENT ||
		   connection->self.state == VB_CM_MRA_REP_RCVD) {
		vb_cm_on_communication(connection, arrival->now_ns);
	} else {
		cm->counters.duplicates++;
		/* This side gave up: the peer must not believe that it is connected. */
		if (connection->has_answer && connection->answer_kind == VB_MAD_REJ)
			vb_cm_send_again(connection);
	}
	return true;
}
