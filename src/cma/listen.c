/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening, and taking a request synchronously. */
#include "cma/cma_priv.h"

#define BACKLOG_MAX 1024

static uint32_t backlog_of(int backlog)
{
	return backlog > 0 && backlog < BACKLOG_MAX ? (uint32_t)backlog : BACKLOG_MAX;
}

static int bind_any(struct vb_cma_id *id)
{
	struct sockaddr_storage any;

	vb_cma_address_any(&any, AF_INET);
	return vb_cma_bind(id, (struct sockaddr *)&any, true);
}

static int begin(struct vb_cma_id *id, uint32_t backlog)
{
	struct vb_cm_service service = vb_cma_port_service(id);
	vb_err err;

	vb_cma_lock();
	err = vb_cm_listen(vb_cma_machine(), &service, backlog, id, &id->listener);
	if (err == VB_OK)
		id->state = VB_CMA_LISTENING;
	vb_cma_unlock();
	return vb_cma_errno(err);
}

static int listen_on(struct vb_cma_id *id, int backlog)
{
	char text[VB_CMA_ADDRESS_TEXT];
	int error = 0;

	if (id->state == VB_CMA_IDLE)
		error = bind_any(id);
	if (error)
		return error;
	if (id->state != VB_CMA_BOUND)
		return vb_cma_refuse(EINVAL,
				     "rdma_listen: it listens already, or is for connecting");
	error = vb_cma_machine_start();
	if (!error)
		error = vb_cma_port_take_name(id);
	if (!error)
		error = begin(id, backlog_of(backlog));
	if (error)
		vb_cma_log(VB_LOG_WARN, error, "rdma_listen: %s: errno %d",
			   vb_cma_address_describe(&id->id.route.addr.src_addr, text), error);
	return error;
}

VB_CMA_EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_listen");

	return vb_cma_return(error ? error : listen_on(vb_cma_id_of(id), backlog));
}

/* --- taking a request ------------------------------------------------------------------------- */

static int take_event(struct vb_cma_id *listener, struct rdma_cm_event **event)
{
	while (rdma_get_cm_event(listener->id.channel, event)) {
		if (errno != EINTR)
			return errno;
	}
	if (!(*event)->status && (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	rdma_ack_cm_event(*event);
	return EINVAL;
}

static int create_child_qp(const struct vb_cma_id *listener, struct rdma_cm_id *child)
{
	struct ibv_qp_init_attr attr;

	if (!listener->child_qp)
		return 0;
	attr = *listener->child_qp;
	attr.qp_type = child->qp_type;
	return rdma_create_qp(child, listener->child_pd, &attr) ? errno : 0;
}

static int get_request(struct vb_cma_id *listener, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	int error;

	if (!id || !listener->is_sync || listener->state != VB_CMA_LISTENING)
		return vb_cma_refuse(EINVAL,
				     "rdma_get_request: it does not listen, or has a channel");
	error = take_event(listener, &event);
	if (error)
		return error;
	error = create_child_qp(listener, event->id);
	if (error) {
		struct rdma_cm_id *child = event->id;

		rdma_ack_cm_event(event);
		rdma_destroy_id(child);
		return error;
	}
	*id = event->id;
	event->id->event = event;
	return 0;
}

VB_CMA_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	int error = vb_cma_id_ensure_ours(listen, "rdma_get_request");

	return vb_cma_return(error ? error : get_request(vb_cma_id_of(listen), id));
}
