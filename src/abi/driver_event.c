/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events. A descriptor counts, as a semaphore, the events that
 * wait in its list, so that programs can poll it; both change together under one lock.
 */
#include "abi/objects_priv.h"

#include "base/heap.h"
#include "host/sys/pollable.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_nonblocking(int fd)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

int vb_abi_wait(struct vb_adapter *adapter, int fd)
{
	if (is_nonblocking(fd)) {
		vb_adapter_poll(adapter, NULL);
		return EAGAIN;
	}
	return vb_adapter_wait(adapter, fd);
}

int vb_abi_channel_create(struct ibv_context *context, struct ibv_comp_channel **channel_out)
{
	struct vb_abi_channel *channel = vb_heap_alloc(1, sizeof(*channel));

	if (!channel)
		return ENOMEM;
	channel->verbs.fd = vb_pollable_open();
	if (channel->verbs.fd < 0) {
		int error = -channel->verbs.fd;

		vb_heap_free(channel);
		return error;
	}
	channel->context = vb_abi_context_of(context);
	pthread_mutex_init(&channel->lock, NULL);
	vb_list_init(&channel->waiting);
	*channel_out = &channel->verbs;
	return 0;
}

int vb_abi_channel_destroy(struct ibv_comp_channel *channel)
{
	struct vb_abi_channel *own = VB_CONTAINER(channel, struct vb_abi_channel, verbs);

	vb_pollable_close(channel->fd);
	pthread_mutex_destroy(&own->lock);
	vb_heap_free(own);
	return 0;
}

static struct vb_abi_cq *take_waiting(struct vb_abi_channel *channel)
{
	struct vb_abi_cq *cq = NULL;

	pthread_mutex_lock(&channel->lock);
	if (vb_list_is_linked(&channel->waiting)) {
		cq = VB_CONTAINER(channel->waiting.next, struct vb_abi_cq, waiting);
		vb_list_remove(&cq->waiting);
		if (--cq->events_waiting)
			vb_list_append(&channel->waiting, &cq->waiting);
		cq->events_taken++;
		vb_pollable_down(channel->verbs.fd);
	}
	pthread_mutex_unlock(&channel->lock);
	return cq;
}

int vb_abi_channel_take_event(struct ibv_comp_channel *channel, struct ibv_cq **cq_out)
{
	struct vb_abi_channel *own = VB_CONTAINER(channel, struct vb_abi_channel, verbs);
	struct vb_abi_cq *cq;
	bool is_waited_on = false;

	if (!vb_adapter_ensure_usable(own->context->adapter))
		return EIO;
	while (!(cq = take_waiting(own))) {
		int err = vb_abi_wait(own->context->adapter, channel->fd);

		is_waited_on = err != EAGAIN;
		if (err == EAGAIN && (cq = take_waiting(own)))
			break;
		if (err)
			return err;
	}
	atomic_store_explicit(&own->is_waited_on, is_waited_on, memory_order_relaxed);
	*cq_out = (struct ibv_cq *)(void *)&cq->verbs;
	return 0;
}

static void notify_channel(struct vb_abi_cq *cq)
{
	struct vb_abi_channel *channel = cq->channel;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->lock);
	if (!cq->events_waiting++)
		vb_list_append(&channel->waiting, &cq->waiting);
	vb_pollable_up(channel->verbs.fd);
	pthread_mutex_unlock(&channel->lock);
}

static void add_async(struct vb_abi_context *context, const struct ibv_async_event *event)
{
	struct vb_abi_async_event *entry = vb_heap_alloc(1, sizeof(*entry));

	if (!entry)
		return; /* the object's state shows the same */
	entry->event = *event;
	pthread_mutex_lock(&context->events_lock);
	vb_list_append(&context->events, &entry->node);
	vb_pollable_up(context->verbs.context.async_fd);
	pthread_mutex_unlock(&context->events_lock);
}

void vb_abi_on_event(void *owner, const struct vb_event *event)
{
	struct ibv_async_event async = { .event_type = (enum ibv_event_type)event->kind };
	struct ibv_context *context;

	(void)owner;
	if (event->kind == VB_EVENT_COMPLETION) {
		notify_channel(event->owner_context);
		return;
	}
	if (event->qp) {
		async.element.qp = &((struct vb_abi_qp *)event->owner_context)->verbs;
		context = async.element.qp->context;
	} else if (event->cq) {
		async.element.cq = (struct ibv_cq *)event->owner_context;
		context = async.element.cq->context;
	} else {
		async.element.srq = &((struct vb_abi_srq *)event->owner_context)->verbs;
		context = async.element.srq->context;
	}
	add_async(vb_abi_context_of(context), &async);
}

/* True if the newest waiting event already reports this. Repeating an event adds nothing. */
static bool is_newest_event(struct vb_abi_context *context, enum ibv_event_type type)
{
	bool is_same = false;

	pthread_mutex_lock(&context->events_lock);
	if (context->verbs.context.async_fd < 0)
		is_same = true; /* closed: no program asks */
	else if (vb_list_is_linked(&context->events))
		is_same = VB_CONTAINER(context->events.prev, struct vb_abi_async_event, node)
				  ->event.event_type == type;
	pthread_mutex_unlock(&context->events_lock);
	return is_same;
}

static void report_port_event(struct vb_abi_context *context, enum ibv_event_type type)
{
	if (!is_newest_event(context, type))
		add_async(context,
			  &(struct ibv_async_event){ .event_type = type, .element.port_num = 1 });
}

static void report_change(struct vb_abi_context *context, uint32_t what)
{
	if (what & VB_DEVICE_GID_CHANGE)
		report_port_event(context, IBV_EVENT_GID_CHANGE);
	if (what & VB_DEVICE_PORT_ERROR)
		report_port_event(context, IBV_EVENT_PORT_ERR);
	if (what & VB_DEVICE_PORT_ACTIVE)
		report_port_event(context, IBV_EVENT_PORT_ACTIVE);
	if (what & VB_DEVICE_GONE)
		report_port_event(context, IBV_EVENT_DEVICE_FATAL);
}

void vb_abi_on_change(void *owner, uint32_t what)
{
	struct vb_abi_opened *opened = owner;

	pthread_mutex_lock(&opened->contexts_lock);
	for (struct vb_list_node *node = opened->contexts.next; node != &opened->contexts;
	     node = node->next)
		report_change(VB_CONTAINER(node, struct vb_abi_context, node), what);
	pthread_mutex_unlock(&opened->contexts_lock);
	if (what & VB_DEVICE_GONE)
		vb_abi_report_removal(opened->verbs);
}

/* The counter of taken events of the object that an event names. */
static uint32_t *taken_counter_of(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &vb_abi_cq_of(event->element.cq)->async_taken;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &vb_abi_qp_of(event->element.qp)->async_taken;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &vb_abi_srq_of(event->element.srq)->async_taken;
	default:
		return NULL; /* an event of the port */
	}
}

static bool take_async(struct vb_abi_context *context, struct ibv_async_event *event_out)
{
	struct vb_abi_async_event *entry = NULL;
	uint32_t *taken;

	pthread_mutex_lock(&context->events_lock);
	if (vb_list_is_linked(&context->events)) {
		entry = VB_CONTAINER(context->events.next, struct vb_abi_async_event, node);
		vb_list_remove(&entry->node);
		vb_pollable_down(context->verbs.context.async_fd);
		*event_out = entry->event;
		taken = taken_counter_of(event_out);
		if (taken)
			++*taken;
	}
	pthread_mutex_unlock(&context->events_lock);
	vb_heap_free(entry);
	return entry;
}

int vb_abi_context_take_event(struct ibv_context *context, struct ibv_async_event *event_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);

	if (!vb_adapter_ensure_usable(own->adapter))
		return EIO;
	while (!take_async(own, event_out)) {
		int err = vb_abi_wait(own->adapter, context->async_fd);

		if (err == EAGAIN && take_async(own, event_out))
			return 0;
		if (err)
			return err;
	}
	return 0;
}

/*
 * Removes the object's events that are still in the list. Elements are compared as pointers,
 * whatever their type.
 */
static void forget_async(struct vb_abi_context *context, const void *object)
{
	struct vb_list_node *next;

	pthread_mutex_lock(&context->events_lock);
	for (struct vb_list_node *node = context->events.next; node != &context->events;
	     node = next) {
		struct vb_abi_async_event *entry =
			VB_CONTAINER(node, struct vb_abi_async_event, node);

		next = node->next;
		if (!taken_counter_of(&entry->event) ||
		    (const void *)entry->event.element.qp != object)
			continue;
		vb_list_remove(node);
		vb_pollable_down(context->verbs.context.async_fd);
		vb_heap_free(entry);
	}
	pthread_mutex_unlock(&context->events_lock);
}

void vb_abi_forget_events(struct vb_abi_context *context, const void *object)
{
	forget_async(context, object);
}

void vb_abi_forget_completions(struct vb_abi_cq *cq)
{
	struct vb_abi_channel *channel = cq->channel;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->lock);
	vb_list_remove(&cq->waiting);
	for (; cq->events_waiting; cq->events_waiting--)
		vb_pollable_down(channel->verbs.fd);
	pthread_mutex_unlock(&channel->lock);
}
