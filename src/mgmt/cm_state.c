/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of every change of a connection: its state with the published row, due messages,
 * events, and time. A request is sent retries_max + 1 times; then the connection gives up and
 * notifies the peer, in case only one direction is broken.
 */
#include "mgmt/cm_priv.h"

/*
 * Publishes the row for readers in other processes. The generation is odd during the write, so a
 * half-written row never has an even one.
 */
static void publish(const struct vb_cm_connection *connection)
{
	struct vb_cm_row *row = connection->cm->config.rows;
	struct vb_cm_row content = connection->self;

	if (!row)
		return;
	row += connection->slot;
	content.generation = row->generation + 1;
	if (content.state == VB_CM_TIMEWAIT || content.state == VB_CM_CLOSED)
		content.state = VB_CM_IDLE; /* its peer needs no notice any more */
	__atomic_store_n(&row->generation, content.generation, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*row = content;
	__atomic_store_n(&row->generation, content.generation + 1, __ATOMIC_RELEASE);
}

void vb_cm_set_state(struct vb_cm_connection *connection, enum vb_cm_state state)
{
	connection->self.state = (uint8_t)state;
	publish(connection);
}

void vb_cm_set_rows(struct vb_cm *cm, struct vb_cm_row *rows)
{
	cm->config.rows = rows;
	for (uint32_t i = 0; i < cm->config.connection_max; i++)
		if (cm->slots[i])
			publish(cm->slots[i]);
}

static void note_due(struct vb_cm_connection *connection)
{
	if (!vb_list_is_linked(&connection->sending))
		vb_list_append(&connection->cm->sending, &connection->sending);
}

static void start_retry_timer(struct vb_cm_connection *connection, uint64_t now_ns)
{
	uint64_t retry_ns = connection->retry_ns;

	if (retry_ns < VB_CM_RETRY_NS_MIN)
		retry_ns = VB_CM_RETRY_NS_MIN;
	vb_timer_start(&connection->cm->timers, &connection->timer, now_ns + retry_ns);
}

void vb_cm_send_request(struct vb_cm_connection *connection, const struct vb_mad *mad,
			uint64_t now_ns)
{
	vb_mad_store(connection->request, mad);
	connection->is_request_due = true;
	connection->is_retry = false;
	connection->retries_left = connection->retries_max;
	start_retry_timer(connection, now_ns);
	note_due(connection);
}

void vb_cm_send_request_again(struct vb_cm_connection *connection)
{
	connection->is_request_due = true;
	connection->is_retry = true;
	note_due(connection);
}

void vb_cm_stop_request(struct vb_cm_connection *connection)
{
	connection->is_request_due = false;
	vb_timer_stop(&connection->timer);
	if (!connection->is_answer_due)
		vb_list_remove(&connection->sending);
}

void vb_cm_send_answer(struct vb_cm_connection *connection, const struct vb_mad *mad)
{
	vb_mad_store(connection->answer, mad);
	connection->has_answer = true;
	connection->answer_kind = mad->kind;
	vb_cm_send_again(connection);
}

void vb_cm_send_again(struct vb_cm_connection *connection)
{
	connection->is_answer_due = true;
	note_due(connection);
}

void vb_cm_note_event(struct vb_cm_connection *connection, enum vb_cm_event_kind kind)
{
	if (connection->is_orphan)
		return;
	/* A response withdrawn before the program saw it counts as never received. */
	if (kind == VB_CM_REJECTED)
		connection->events &= ~(1u << VB_CM_RESPONSE);
	connection->events |= 1u << kind;
	if (!vb_list_is_linked(&connection->talking))
		vb_list_append(&connection->cm->talking, &connection->talking);
}

/*
 * A new connection with the peer's QP, or a REQ with its ID, must not be taken for this connection.
 */
static void forget_peer_qp(struct vb_cm_connection *connection)
{
	vb_cm_index_remove(connection, VB_CM_BY_REMOTE_QPN);
}

void vb_cm_enter_timewait(struct vb_cm_connection *connection, uint64_t now_ns)
{
	vb_cm_stop_request(connection);
	vb_cm_listener_release(connection);
	forget_peer_qp(connection);
	vb_timer_start(&connection->cm->timers, &connection->timer,
		       now_ns + vb_mad_timeout_ns(connection->qp.ack_timeout));
	vb_cm_set_state(connection, VB_CM_TIMEWAIT);
}

void vb_cm_close(struct vb_cm_connection *connection)
{
	vb_cm_stop_request(connection);
	vb_cm_listener_release(connection);
	forget_peer_qp(connection);
	vb_cm_set_state(connection, VB_CM_CLOSED);
}

void vb_cm_give_up(struct vb_cm_connection *connection, uint64_t now_ns)
{
	struct vb_mad rej = vb_cm_compose_rej(connection->cm, &connection->self, VB_MAD_TIMEOUT);

	switch ((enum vb_cm_state)connection->self.state) {
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
		vb_cm_close(connection);
		vb_cm_send_answer(connection, &rej);
		vb_cm_note_event(connection, VB_CM_UNREACHABLE);
		break;
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
		vb_cm_enter_timewait(connection, now_ns);
		vb_cm_send_answer(connection, &rej);
		vb_cm_note_event(connection, VB_CM_UNREACHABLE);
		break;
	case VB_CM_DREQ_SENT:
		vb_cm_enter_timewait(connection, now_ns);
		connection->was_timeout = true;
		vb_cm_note_event(connection, VB_CM_DISCONNECTED);
		break;
	case VB_CM_SIDR_REQ_SENT:
		vb_cm_close(connection);
		vb_cm_note_event(connection, VB_CM_UNREACHABLE);
		break;
	case VB_CM_IDLE:
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
	case VB_CM_CONNECTED:
	case VB_CM_DREQ_RCVD:
	case VB_CM_TIMEWAIT:
	case VB_CM_SIDR_REQ_RCVD:
	case VB_CM_CLOSED:
		break;
	}
}

void vb_cm_on_unreachable(struct vb_cm *cm, const struct vb_gid *address, uint64_t now_ns)
{
	for (uint32_t i = 0; i < cm->config.connection_max; i++) {
		struct vb_cm_connection *connection = cm->slots[i];

		if (!connection || !vb_gid_equal(&connection->self.flow.destination, address))
			continue;
		vb_cm_give_up(connection, now_ns);
		vb_cm_free_if_over(connection);
	}
}

/* --- time ------------------------------------------------------------------------------------- */

uint64_t vb_cm_deadline(struct vb_cm *cm)
{
	return vb_timers_deadline(&cm->timers);
}

static void on_timer(struct vb_cm_connection *connection, uint64_t now_ns)
{
	if (connection->self.state == VB_CM_TIMEWAIT) {
		vb_cm_close(connection);
		vb_cm_note_event(connection, VB_CM_TIMEWAIT_EXIT);
		vb_cm_free_if_over(connection);
		return;
	}
	if (!connection->retries_left) {
		vb_cm_give_up(connection, now_ns);
		vb_cm_free_if_over(connection);
		return;
	}
	connection->retries_left--;
	start_retry_timer(connection, now_ns);
	vb_cm_send_request_again(connection);
}

void vb_cm_fire_timers(struct vb_cm *cm, uint64_t now_ns)
{
	struct vb_timer *timer;

	while ((timer = vb_timers_take_due(&cm->timers, now_ns)))
		on_timer(VB_CONTAINER(timer, struct vb_cm_connection, timer), now_ns);
}
