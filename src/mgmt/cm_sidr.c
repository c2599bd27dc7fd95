/* SPDX-License-Identifier: BSD-2-Clause */
/* Service ID resolution for UD: one question, one answer, no lasting state. */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"

vb_err vb_cm_resolve(struct vb_cm_connection *connection, const struct vb_cm_resolution *resolution,
		     uint64_t now_ns)
{
	struct vb_mad mad = vb_cm_compose(&connection->self, VB_MAD_SIDR_REQ);

	if (connection->self.state != VB_CM_IDLE ||
	    vb_cm_put_private_ip(&mad, resolution->ip, &resolution->private_data) != VB_OK)
		return VB_EINVAL;
	mad.transaction = connection->cm->transaction_base | connection->self.local_id;
	mad.sidr_req = (struct vb_mad_sidr_req){ .pkey = resolution->pkey,
						 .service = resolution->service };
	connection->self.flow = resolution->flow;
	connection->self.transaction = mad.transaction;
	connection->retry_ns = vb_mad_timeout_ns(resolution->response_timeout);
	connection->retries_max = resolution->retries_max;
	vb_cm_set_state(connection, VB_CM_SIDR_REQ_SENT);
	vb_cm_send_request(connection, &mad, now_ns);
	return VB_OK;
}

vb_err vb_cm_answer(struct vb_cm_connection *connection, const struct vb_cm_sidr *answer,
		    uint64_t now_ns)
{
	struct vb_mad mad = vb_cm_compose(&connection->self, VB_MAD_SIDR_REP);
	struct vb_mad asked;

	(void)now_ns;
	if (connection->self.state != VB_CM_SIDR_REQ_RCVD ||
	    vb_cm_put_private(&mad, &answer->private_data) != VB_OK ||
	    vb_mad_parse(connection->opening, VB_MAD_SIZE, &asked) != VB_MAD_PARSED)
		return VB_EINVAL;
	mad.modifier = answer->ece.options;
	mad.sidr_rep = (struct vb_mad_sidr_rep){
		.status = answer->status,
		.qpn = answer->qpn,
		.service = asked.sidr_req.service,
		.qkey = answer->qkey,
	};
	store24(mad.sidr_rep.vendor, answer->ece.vendor);
	vb_cm_close(connection);
	vb_cm_send_answer(connection, &mad);
	return VB_OK;
}

static struct vb_cm_key key_of(const struct vb_cm_arrival *arrival)
{
	return vb_cm_key_of_peer(arrival, arrival->mad->local_id, 0);
}

bool vb_cm_on_sidr_req(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	struct vb_cm_connection *connection = vb_cm_index_find(cm, VB_CM_BY_SIDR, key_of(arrival));
	struct vb_cm_listener *listener;
	struct vb_cm_addressee addressee;

	if (connection) {
		cm->counters.duplicates++;
		if (connection->has_answer)
			vb_cm_send_again(connection);
		return true;
	}
	vb_cm_addressee_of(arrival->mad, &addressee);
	listener = vb_cm_listener_find(cm, &addressee);
	if (!listener)
		return false;
	connection = vb_cm_take_in(cm, arrival, listener);
	if (!connection)
		return true;
	vb_cm_index_add(connection, VB_CM_BY_SIDR, key_of(arrival));
	vb_cm_set_state(connection, VB_CM_SIDR_REQ_RCVD);
	vb_cm_note_event(connection, VB_CM_SIDR_REQUEST);
	return true;
}

bool vb_cm_on_sidr_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;
	struct vb_cm_connection *connection = vb_cm_find_receiver(cm, arrival, &is_pair);

	if (!connection)
		return false;
	if (connection->self.state != VB_CM_SIDR_REQ_SENT) {
		cm->counters.ignored++;
		return true;
	}
	memcpy(connection->opening, arrival->bytes, VB_MAD_SIZE);
	vb_cm_close(connection);
	vb_cm_note_event(connection, VB_CM_SIDR_RESPONSE);
	vb_cm_free_if_over(connection);
	return true;
}
