/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels, asynchronous events, and their acknowledgement. */
#include "abi/driver_priv.h"
#include "abi/events_priv.h"
#include "abi/export_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

void vb_abi_acks_add(struct vb_abi_acks acks, uint32_t count)
{
	pthread_mutex_lock(acks.mutex);
	*acks.count += count;
	pthread_cond_signal(acks.cond);
	pthread_mutex_unlock(acks.mutex);
}

void vb_abi_acks_wait(struct vb_abi_acks acks, uint32_t reported)
{
	pthread_mutex_lock(acks.mutex);
	while (*acks.count != reported)
		pthread_cond_wait(acks.cond, acks.mutex);
	pthread_mutex_unlock(acks.mutex);
}

VB_ABI_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel;
	int error = vb_abi_channel_create(context, &channel);

	if (error)
		return vb_abi_return_null(error);
	channel->context = context;
	channel->refcnt = 0;
	return channel;
}

VB_ABI_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context = channel->context;
	int error;

	pthread_mutex_lock(&context->mutex);
	error = channel->refcnt
			? vb_abi_refuse(EBUSY,
					"ibv_destroy_comp_channel: descriptor %d still has %d CQs",
					channel->fd, channel->refcnt)
			: vb_abi_channel_destroy(channel);
	pthread_mutex_unlock(&context->mutex);
	return vb_abi_return_errno(error);
}

VB_ABI_VERSION(ibv_get_cq_event, "ibv_get_cq_event@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
				   void **cq_context)
{
	int error = vb_abi_channel_take_event(channel, cq);

	if (error)
		return vb_abi_return_minus_one(error);
	*cq_context = (*cq)->cq_context;
	return 0;
}

VB_ABI_VERSION(ibv_ack_cq_events, "ibv_ack_cq_events@@@IBVERBS_1.1");
VB_ABI_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	vb_abi_acks_add((struct vb_abi_acks){ &cq->mutex, &cq->cond, &cq->comp_events_completed },
			nevents);
}

VB_ABI_VERSION(ibv_get_async_event, "ibv_get_async_event@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return vb_abi_return_minus_one(vb_abi_context_take_event(context, event));
}

/*
 * The counter of the object that an event names; false if the event names no object that waits for
 * it.
 */
static bool find_acks(const struct ibv_async_event *event, struct vb_abi_acks *acks_out)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;
	struct ibv_wq *wq = event->element.wq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		*acks_out =
			(struct vb_abi_acks){ &cq->mutex, &cq->cond, &cq->async_events_completed };
		return true;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*acks_out = (struct vb_abi_acks){ &qp->mutex, &qp->cond, &qp->events_completed };
		return true;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*acks_out = (struct vb_abi_acks){ &srq->mutex, &srq->cond, &srq->events_completed };
		return true;
	case IBV_EVENT_WQ_FATAL:
		*acks_out = (struct vb_abi_acks){ &wq->mutex, &wq->cond, &wq->events_completed };
		return true;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return false;
	}
	return false;
}

VB_ABI_VERSION(ibv_ack_async_event, "ibv_ack_async_event@@@IBVERBS_1.1");
VB_ABI_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct vb_abi_acks acks;

	if (find_acks(event, &acks))
		vb_abi_acks_add(acks, 1);
}
