/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages that prevent a connection or end it: REJ; DREQ and DREP (IBA 12.10.8). */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"

static void keep_closing(struct vb_cm_connection *connection, const struct vb_cm_arrival *arrival)
{
	memcpy(connection->closing, arrival->bytes, VB_MAD_SIZE);
	connection->has_closing = true;
}

/* --- REJ -------------------------------------------------------------------------------------- */

/*
 * As long as our REQ is unanswered, any REJ that names our ID is about it, even a REJ that has
 * overtaken its REP. After that a REJ must name both IDs; otherwise it is about an older try. The
 * sender of a REJ for a timeout may not know our ID.
 */
static struct vb_cm_connection *find_rejected(const struct vb_cm *cm,
					      const struct vb_cm_arrival *arrival, bool *is_known)
{
	const struct vb_mad *mad = arrival->mad;
	struct vb_cm_key key = vb_cm_key_of_peer(arrival, mad->local_id, load64(mad->rej.info));
	struct vb_cm_connection *connection = NULL;
	bool is_pair = true;

	if (mad->rej.reason == VB_MAD_TIMEOUT)
		connection = vb_cm_index_find(cm, VB_CM_BY_REMOTE_ID, key);
	if (!connection)
		connection = vb_cm_find_receiver(cm, arrival, &is_pair);
	*is_known = connection;
	if (connection && (connection->self.state == VB_CM_REQ_SENT ||
			   connection->self.state == VB_CM_MRA_REQ_RCVD))
		return connection;
	return is_pair ? connection : NULL;
}

/* Withdraws a request that the program has not seen. */
static void drop_unseen(struct vb_cm_connection *connection)
{
	vb_cm_close(connection);
	connection->is_orphan = true;
	connection->events = 0;
	vb_list_remove(&connection->talking);
	vb_cm_free_if_over(connection);
}

static void on_rejected(struct vb_cm_connection *connection, const struct vb_cm_arrival *arrival)
{
	switch ((enum vb_cm_state)connection->self.state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
		if (connection->is_unseen) {
			drop_unseen(connection);
			return;
		}
		vb_cm_close(connection);
		break;
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
		if (arrival->mad->rej.reason == VB_MAD_STALE_CONNECTION)
			vb_cm_enter_timewait(connection, arrival->now_ns);
		else
			vb_cm_close(connection);
		break;
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
	case VB_CM_CONNECTED:
		vb_cm_enter_timewait(connection, arrival->now_ns);
		break;
	case VB_CM_DREQ_SENT:
		vb_cm_enter_timewait(connection, arrival->now_ns);
		keep_closing(connection, arrival);
		vb_cm_note_event(connection, VB_CM_DISCONNECTED);
		return;
	case VB_CM_IDLE:
	case VB_CM_DREQ_RCVD:
	case VB_CM_TIMEWAIT:
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
	case VB_CM_CLOSED:
		connection->cm->counters.ignored++;
		return;
	}
	keep_closing(connection, arrival);
	vb_cm_note_event(connection, VB_CM_REJECTED);
	vb_cm_free_if_over(connection);
}

bool vb_cm_on_rej(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_known;
	struct vb_cm_connection *connection = find_rejected(cm, arrival, &is_known);

	if (connection)
		on_rejected(connection, arrival);
	else
		cm->counters.ignored += is_known;
	return is_known;
}

/* --- DREQ and DREP ---------------------------------------------------------------------------- */

static void send_drep(struct vb_cm_connection *connection, uint64_t transaction)
{
	struct vb_mad mad = vb_cm_compose(&connection->self, VB_MAD_DREP);

	if (connection->has_answer && connection->answer_kind == VB_MAD_DREP) {
		vb_cm_send_again(connection);
		return;
	}
	mad.transaction = transaction;
	vb_cm_send_answer(connection, &mad);
}

static void on_disconnect(struct vb_cm_connection *connection, const struct vb_cm_arrival *arrival)
{
	keep_closing(connection, arrival);
	connection->self.transaction = arrival->mad->transaction;
	vb_cm_stop_request(connection);
	vb_cm_set_state(connection, VB_CM_DREQ_RCVD);
	vb_cm_note_event(connection, VB_CM_DISCONNECTED);
}

bool vb_cm_on_dreq(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;
	struct vb_cm_connection *connection = vb_cm_find_receiver(cm, arrival, &is_pair);

	if (!connection)
		return false;
	if (!is_pair) {
		vb_cm_refuse_arrival(cm, arrival);
		return true;
	}
	if (arrival->mad->dreq.remote_qpn.v != connection->local_qpn.v) {
		cm->counters.ignored++;
		return true;
	}
	switch ((enum vb_cm_state)connection->self.state) {
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
	case VB_CM_CONNECTED:
		on_disconnect(connection, arrival);
		break;
	case VB_CM_DREQ_SENT:
		/* Both sides disconnect at the same time: this program has already asked to. */
		on_disconnect(connection, arrival);
		vb_cm_enter_timewait(connection, arrival->now_ns);
		send_drep(connection, arrival->mad->transaction);
		break;
	case VB_CM_TIMEWAIT:
	case VB_CM_CLOSED:
		cm->counters.duplicates++;
		send_drep(connection, arrival->mad->transaction);
		break;
	case VB_CM_DREQ_RCVD:
		cm->counters.duplicates++;
		break;
	case VB_CM_IDLE:
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
		cm->counters.ignored++;
		break;
	}
	return true;
}

bool vb_cm_on_drep(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;
	struct vb_cm_connection *connection = vb_cm_find_receiver(cm, arrival, &is_pair);

	if (!connection)
		return false;
	if (!is_pair || connection->self.state != VB_CM_DREQ_SENT) {
		cm->counters.ignored++;
		return true;
	}
	keep_closing(connection, arrival);
	vb_cm_enter_timewait(connection, arrival->now_ns);
	vb_cm_note_event(connection, VB_CM_DISCONNECTED);
	return true;
}
