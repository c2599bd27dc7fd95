/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work left to do when a program takes an event: verbs, which the thread that queued the event
 * could not call. A request is bound to its device; the answer to a connect brings the QP to RTS
 * and is confirmed; a group gets its QP.
 */
#include "cma/cma_priv.h"

#include "base/heap.h"

static bool drop(struct vb_cma_event *event)
{
	vb_cma_lock();
	event->counted->events_taken--;
	vb_cma_wake_all();
	vb_cma_unlock();
	vb_heap_free(event);
	return false;
}

/* --- a request -------------------------------------------------------------------------------- */

static uint8_t mtu_of(struct vb_cma_id *id)
{
	struct vb_cm_qp qp = { 0 };

	vb_cma_lock();
	if (id->connection)
		vb_cm_connection_qp(id->connection, &qp);
	vb_cma_unlock();
	return qp.mtu;
}

static void set_scope(struct sockaddr_storage *address, uint32_t ifindex)
{
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)(void *)address;

	if (address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr))
		ipv6->sin6_scope_id = ifindex;
}

static bool complete_request(struct vb_cma_event *event)
{
	struct vb_cma_id *child = vb_cma_id_of(event->event.id);
	struct vb_cma_place place;
	int error = vb_cma_device_find(&event->flow.source, 0, &place);

	if (!error && event->counted->is_sync)
		error = vb_cma_id_migrate(child, NULL);
	if (error) {
		vb_cma_log(
			VB_LOG_WARN, error,
			"a request for a connection is refused: no device, or no memory (errno %d)",
			error);
		vb_cma_lock();
		vb_cma_event_drop_all(child);
		vb_cma_id_discard(child);
		vb_cma_unlock();
		vb_cma_machine_kick();
		return drop(event);
	}
	set_scope(&child->id.route.addr.src_storage, place.ifindex);
	set_scope(&child->id.route.addr.dst_storage, place.ifindex);
	child->psn.v = vb_cma_random() & VB_PSN_MASK;
	vb_cma_id_set_place(child, &place);
	vb_cma_id_set_path(child, &event->flow, mtu_of(child));
	return true;
}

/* --- an answer -------------------------------------------------------------------------------- */

static vb_err establish(struct vb_cma_id *id)
{
	vb_err err;

	vb_cma_lock();
	err = vb_cm_establish(id->connection, NULL, vb_clock_now());
	vb_cma_unlock();
	vb_cma_machine_kick();
	return err;
}

static void refuse_answer(struct vb_cma_id *id)
{
	struct vb_cm_rejection rejection = { .reason = VB_MAD_CONSUMER_DEFINED };

	vb_cma_lock();
	if (vb_cm_reject(id->connection, &rejection, vb_clock_now()) != VB_OK)
		vb_cma_log(VB_LOG_DEBUG, 0,
			   "an answer that nobody can use was withdrawn meanwhile");
	vb_cma_unlock();
	vb_cma_machine_kick();
}

/* The peer may have withdrawn its answer before the program took it. */
static bool is_answered(struct vb_cma_id *id)
{
	enum vb_cm_state state;

	vb_cma_lock();
	state = vb_cm_connection_state(id->connection);
	vb_cma_unlock();
	return state == VB_CM_REP_RCVD || state == VB_CM_MRA_REP_SENT;
}

static bool complete_response(struct vb_cma_event *event)
{
	struct vb_cma_id *id = event->counted;
	int error;

	if (!id->id.qp)
		return true; /* the program has its own QP and calls rdma_establish() */
	error = vb_cma_qp_connect(id);
	if (error && !is_answered(id))
		return drop(event); /* the next event reports the withdrawal */
	if (error) {
		vb_cma_log(VB_LOG_WARN, error,
			   "rdma_connect: QP 0x%06x cannot be connected (errno %d)",
			   id->id.qp->qp_num, error);
		refuse_answer(id);
		vb_cma_qp_fail(id);
		event->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
		event->event.status = -error;
		return true;
	}
	if (establish(id) != VB_OK)
		return drop(event);
	event->event.event = RDMA_CM_EVENT_ESTABLISHED;
	return true;
}

static void complete_join(struct vb_cma_event *event)
{
	int error = vb_cma_group_complete(event->counted, event->group);

	event->group = NULL;
	if (!error)
		return;
	event->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->event.status = -error;
}

bool vb_cma_event_complete(struct vb_cma_event *event)
{
	switch (event->event.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return complete_request(event);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return complete_response(event);
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		complete_join(event);
		return true;
	case RDMA_CM_EVENT_REJECTED:
		vb_cma_qp_fail(event->counted);
		return true;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	}
	return true;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int errno_of(const struct rdma_cm_event *event)
{
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED || event->status > 0)
		return ECONNREFUSED;
	return -event->status;
}

int vb_cma_wait(struct vb_cma_id *id)
{
	if (!id->is_sync)
		return 0;
	if (id->id.event)
		rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
	while (rdma_get_cm_event(id->id.channel, &id->id.event)) {
		if (errno != EINTR)
			return errno;
	}
	return errno_of(id->id.event);
}
