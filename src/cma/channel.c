/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels. Events wait in a list. The descriptor is readable as long as the list is not
 * empty; both change together under the lock. One identifier counts each event until it is
 * acknowledged, and rdma_destroy_id() waits for that.
 */
#include "cma/cma_priv.h"

#include "base/heap.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct vb_list_node channels = { &channels,
					&channels }; /* channels that are not destroyed */

/*
 * The channel in which this thread last waited for events, NULL if this thread has destroyed it.
 * For comparison only: another thread may have destroyed the channel. Of the model that needs no
 * function of the dynamic loader, because the library is to need only libc and libibverbs.
 */
static _Thread_local __attribute__((tls_model("initial-exec")))
const struct vb_cma_channel *last_waited_in;

static struct vb_cma_channel *channel_of(struct rdma_event_channel *channel)
{
	return VB_CONTAINER(channel, struct vb_cma_channel, channel);
}

/* Call with the lock. Only compares: a program may pass a channel that it destroyed. */
static bool is_there(const struct vb_cma_channel *channel)
{
	for (const struct vb_list_node *node = channels.next; node != &channels; node = node->next)
		if (node == &channel->node)
			return true;
	return false;
}

/* --- making ----------------------------------------------------------------------------------- */

VB_CMA_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct vb_cma_channel *channel = vb_heap_alloc(1, sizeof(*channel));

	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	channel->channel.fd = (int)syscall(SYS_eventfd2, 0, EFD_CLOEXEC);
	if (channel->channel.fd < 0) {
		vb_heap_free(channel);
		return NULL;
	}
	vb_list_init(&channel->events);
	channel->generation = vb_cma_generation();
	vb_cma_lock();
	vb_list_append(&channels, &channel->node);
	vb_cma_unlock();
	return &channel->channel;
}

static void free_channel(struct vb_cma_channel *channel)
{
	while (vb_list_is_linked(&channel->events)) {
		struct vb_cma_event *event =
			VB_CONTAINER(channel->events.next, struct vb_cma_event, node);

		vb_list_remove(&event->node);
		vb_heap_free(event);
	}
	syscall(SYS_close, channel->channel.fd);
	vb_heap_free(channel);
}

/*
 * Programs destroy a channel while one of their threads still waits for events. As in the kernel,
 * that thread waits forever.
 */
VB_CMA_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct vb_cma_channel *own = channel_of(channel);
	bool is_waited_on;

	if (last_waited_in == own)
		last_waited_in = NULL;
	vb_cma_lock();
	vb_list_remove(&own->node);
	own->is_abandoned = true;
	is_waited_on = own->waiter_count;
	vb_cma_unlock();
	if (!is_waited_on)
		free_channel(own);
}

/* --- waiting events --------------------------------------------------------------------------- */

static void raise_flag(struct vb_cma_channel *channel)
{
	uint64_t one = 1;

	(void)!syscall(SYS_write, channel->channel.fd, &one, sizeof(one));
}

/* Polls first: a program may have read the descriptor itself, so the read could block. */
static void lower_flag(struct vb_cma_channel *channel)
{
	struct pollfd look = { .fd = channel->channel.fd, .events = POLLIN };
	uint64_t count;

	if (syscall(SYS_poll, &look, 1, 0) == 1)
		(void)!syscall(SYS_read, channel->channel.fd, &count, sizeof(count));
}

static void append(struct vb_cma_channel *channel, struct vb_cma_event *event)
{
	if (!vb_list_is_linked(&channel->events))
		raise_flag(channel);
	vb_list_append(&channel->events, &event->node);
}

static void detach(struct vb_cma_channel *channel, struct vb_cma_event *event)
{
	vb_list_remove(&event->node);
	if (!vb_list_is_linked(&channel->events))
		lower_flag(channel);
}

struct vb_cma_event *vb_cma_event_make(struct vb_cma_id *id, enum rdma_cm_event_type type,
				       int status)
{
	struct vb_cma_event *event = vb_heap_alloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->event.id = &id->id;
	event->event.event = type;
	event->event.status = status;
	event->counted = id;
	vb_list_init(&event->node);
	return event;
}

void vb_cma_event_queue(struct vb_cma_event *event)
{
	append(channel_of(event->counted->id.channel), event);
}

int vb_cma_event_report(struct vb_cma_id *id, enum rdma_cm_event_type type, int status)
{
	struct vb_cma_event *event = vb_cma_event_make(id, type, status);

	if (!event)
		return ENOMEM;
	vb_cma_lock();
	vb_cma_event_queue(event);
	vb_cma_unlock();
	return 0;
}

static void drop(struct vb_cma_channel *channel, struct vb_cma_event *event)
{
	struct vb_cma_id *brought = vb_cma_id_of(event->event.id);

	detach(channel, event);
	if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		vb_cma_event_drop_all(brought);
		vb_cma_id_discard(brought);
	}
	vb_heap_free(event);
}

/* The first waiting event of this identifier, of this group if one is given. */
static struct vb_cma_event *find(struct vb_cma_channel *channel, const struct vb_cma_id *id,
				 const struct vb_cma_group *group)
{
	for (struct vb_list_node *node = channel->events.next; node != &channel->events;
	     node = node->next) {
		struct vb_cma_event *event = VB_CONTAINER(node, struct vb_cma_event, node);

		if (event->counted == id && (!group || event->group == group))
			return event;
	}
	return NULL;
}

void vb_cma_event_drop_all(struct vb_cma_id *id)
{
	struct vb_cma_channel *channel = channel_of(id->id.channel);
	struct vb_cma_event *event;

	while ((event = find(channel, id, NULL)))
		drop(channel, event);
}

void vb_cma_event_drop_group(struct vb_cma_id *id, const struct vb_cma_group *group)
{
	struct vb_cma_channel *channel = channel_of(id->id.channel);
	struct vb_cma_event *event;

	while ((event = find(channel, id, group)))
		drop(channel, event);
}

bool vb_cma_event_is_waiting(const struct vb_cma_id *id, enum rdma_cm_event_type type)
{
	struct vb_cma_channel *channel = channel_of(id->id.channel);

	for (struct vb_list_node *node = channel->events.next; node != &channel->events;
	     node = node->next) {
		struct vb_cma_event *event = VB_CONTAINER(node, struct vb_cma_event, node);

		if (event->counted == id && event->event.event == type)
			return true;
	}
	return false;
}

void vb_cma_event_move_all(struct vb_cma_id *id, struct rdma_event_channel *to)
{
	struct vb_cma_channel *from = channel_of(id->id.channel);
	struct vb_cma_event *event;

	while ((event = find(from, id, NULL))) {
		detach(from, event);
		if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			vb_cma_event_move_all(vb_cma_id_of(event->event.id), to);
			event->event.id->channel = to;
		}
		append(channel_of(to), event);
	}
}

/* --- taking ----------------------------------------------------------------------------------- */

static struct vb_cma_event *take(struct vb_cma_channel *channel)
{
	struct vb_cma_event *event = NULL;

	vb_cma_lock();
	if (is_there(channel) && vb_list_is_linked(&channel->events)) {
		event = VB_CONTAINER(channel->events.next, struct vb_cma_event, node);
		detach(channel, event);
		event->counted->events_taken++;
	}
	vb_cma_unlock();
	return event;
}

/* True if the channel dates from before a fork. */
static bool is_inherited(const struct vb_cma_channel *channel)
{
	bool is_inherited;

	vb_cma_lock();
	is_inherited = is_there(channel) && !vb_cma_is_ours(channel->generation);
	vb_cma_unlock();
	return is_inherited;
}

static bool is_nonblocking(int fd)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

/*
 * Without an adapter there is nothing to drive while waiting. As with one, the thread may be
 * cancelled here.
 */
static int wait_readable(int fd)
{
	struct ibv_context *home = vb_cma_machine_home();
	struct pollfd look = { .fd = fd, .events = POLLIN };
	int type, error;

	if (home)
		return vb_abi_qp1_wait(home, fd);
	if (is_nonblocking(fd))
		return EAGAIN;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	error = syscall(SYS_poll, &look, 1, -1) < 0 ? errno : 0;
	pthread_setcanceltype(type, NULL);
	return error;
}

/*
 * Imitates a thread that waits in the kernel on a descriptor closed meanwhile: waits until it is
 * cancelled or the process ends.
 */
static void wait_for_ever(void)
{
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	for (;;)
		syscall(SYS_poll, NULL, 0, -1);
}

static bool is_abandoned(const struct vb_cma_channel *channel)
{
	bool is_abandoned;

	vb_cma_lock();
	is_abandoned = channel->is_abandoned;
	vb_cma_unlock();
	return is_abandoned;
}

/*
 * Keeps the channel alive until the caller leaves it, even if it is destroyed meanwhile. False if
 * the channel no longer exists.
 */
static bool enter(struct vb_cma_channel *channel)
{
	bool is_here;

	vb_cma_lock();
	is_here = is_there(channel);
	if (is_here)
		channel->waiter_count++;
	vb_cma_unlock();
	return is_here;
}

static void leave(void *argument)
{
	struct vb_cma_channel *channel = argument;
	bool is_last;

	vb_cma_lock();
	is_last = !--channel->waiter_count && channel->is_abandoned;
	vb_cma_unlock();
	if (is_last)
		free_channel(channel);
}

static int get_event(struct vb_cma_channel *channel, struct rdma_cm_event **event)
{
	bool was_driven = false;

	for (;;) {
		struct vb_cma_event *taken = take(channel);
		int error;

		if (taken && vb_cma_event_complete(taken)) {
			*event = &taken->event;
			return 0;
		}
		if (taken)
			continue;
		error = wait_readable(channel->channel.fd);
		/*
		 * The wakeup may have been for an identifier that was destroyed, and the channel
		 * with it.
		 */
		if (error != EAGAIN && is_abandoned(channel))
			wait_for_ever();
		/* An event may have arrived during the check. */
		if (error == EAGAIN && !was_driven)
			was_driven = true;
		else if (error)
			return error;
	}
}

VB_CMA_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				    struct rdma_cm_event **event)
{
	struct vb_cma_channel *own;
	int error;

	if (!channel || !event)
		return vb_cma_return(vb_cma_refuse(EINVAL, "rdma_get_cm_event: no %s",
						   channel ? "place for the event" : "channel"));
	own = channel_of(channel);
	/* If the takeover fails, identifiers of this process may still use the channel. */
	if (is_inherited(own))
		(void)vb_cma_machine_inherit();
	if (!enter(own)) {
		/*
		 * Another thread destroyed the channel since this one last waited. Had this thread
		 * been a little faster, it would be waiting there.
		 */
		if (last_waited_in == own)
			wait_for_ever();
		return vb_cma_return(EBADF);
	}
	last_waited_in = is_nonblocking(channel->fd) ? NULL : own;
	pthread_cleanup_push(leave, own);
	error = get_event(own, event);
	pthread_cleanup_pop(true);
	return vb_cma_return(error);
}

VB_CMA_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct vb_cma_event *own;

	if (!event)
		return vb_cma_return(vb_cma_refuse(EINVAL, "rdma_ack_cm_event: no event"));
	own = VB_CONTAINER(event, struct vb_cma_event, event);
	vb_cma_lock();
	own->counted->events_taken--;
	vb_cma_wake_all();
	vb_cma_unlock();
	vb_heap_free(own);
	return 0;
}
