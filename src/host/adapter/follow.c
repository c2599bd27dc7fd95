/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracking of the interface: when the watch reports a change, the helper looks at the device again,
 * corrects the engine's tables, and notifies the adapter's owner of the differences. Only the
 * helper thread does this: no poller pays for it, and the helper stays in the network namespace of
 * the interface. A thread that asks for the port or a GID waits for the helper, if there is
 * something to look at.
 */
#include "host/adapter/adapter_priv.h"

#include "host/sys/clock.h"
#include "host/sys/log.h"
#include "link/fd.h"

#include <inttypes.h>
#include <poll.h>

/*
 * A thread that asks waits no longer than this for the helper, and then gets what is known. Only a
 * machine that hardly runs reaches this limit.
 */
#define ANSWER_MAX_NS 1000000000u

static void update_engine(struct vb_adapter *adapter, const struct vb_device *device,
			  const struct vb_device_changes *changes)
{
	if (!(changes->what & (VB_DEVICE_GID_CHANGE | VB_DEVICE_MTU_CHANGE)))
		return;
	vb_lock_take(&adapter->owner);
	for (uint32_t i = 0; i < VB_GID_COUNT; i++)
		if (changes->gids[i])
			VB_CHECK(!vb_nic_set_gid(adapter->nic, i, &device->gids[i].gid));
	vb_adapter_set_host_gid(adapter, device);
	if (device->path_mtu)
		VB_CHECK(!vb_nic_set_port_mtu(adapter->nic, device->path_mtu));
	vb_lock_give(&adapter->owner);
}

static void log_changes(struct vb_adapter *adapter, uint32_t what)
{
	if (what & VB_DEVICE_GID_CHANGE)
		vb_async_log_add(&adapter->events, "GID_CHANGE", 0);
	if (what & VB_DEVICE_PORT_ERROR)
		vb_async_log_add(&adapter->events, "PORT_ERR", 0);
	if (what & VB_DEVICE_PORT_ACTIVE)
		vb_async_log_add(&adapter->events, "PORT_ACTIVE", 0);
	if (what & VB_DEVICE_GONE)
		vb_async_log_add(&adapter->events, "DEVICE_FATAL", 0);
}

static void report_changes(struct vb_adapter *adapter, const struct vb_device *device,
			   uint32_t what)
{
	vb_log_about(VB_LOG_INFO, VB_LOG_ABOUT(.phase = "run", .device = adapter->device.name),
		     "%s: interface %s has changed: port %s, MTU %" PRIu32 "%s", device->name,
		     device->ifname, vb_device_is_active(device) ? "active" : "down",
		     device->path_mtu, what & VB_DEVICE_GID_CHANGE ? ", other GIDs" : "");
	log_changes(adapter, what);
	if (adapter->init.on_change)
		adapter->init.on_change(adapter->init.owner, what);
}

static void set_device(struct vb_adapter *adapter, const struct vb_device *device)
{
	pthread_mutex_lock(&adapter->device_lock);
	adapter->device = *device;
	pthread_mutex_unlock(&adapter->device_lock);
}

static void get_device(struct vb_adapter *adapter, struct vb_device *device_out)
{
	pthread_mutex_lock(&adapter->device_lock);
	*device_out = adapter->device;
	pthread_mutex_unlock(&adapter->device_lock);
}

/*
 * Returns what has changed. An interface that no longer exists never comes back: that is reported
 * once.
 */
static uint32_t refresh(struct vb_adapter *adapter)
{
	struct vb_device device;
	struct vb_device_changes changes;

	get_device(adapter, &device);
	if (vb_device_refresh(&device, adapter->init.config, &changes))
		return 0;
	if (adapter->is_gone)
		changes.what &= ~(uint32_t)VB_DEVICE_GONE;
	adapter->is_gone |= changes.what & VB_DEVICE_GONE;
	update_engine(adapter, &device, &changes);
	set_device(adapter, &device);
	return changes.what;
}

void vb_adapter_open_watch(struct vb_adapter *adapter)
{
	int fd;

	atomic_store_explicit(&adapter->watch_fd, vb_device_watch_open(&fd) ? -1 : fd,
			      memory_order_relaxed);
}

static bool take_news(struct vb_adapter *adapter)
{
	int fd = atomic_load_explicit(&adapter->watch_fd, memory_order_relaxed);

	if (fd < 0)
		return false;
	switch (vb_device_watch_take(fd)) {
	case VB_DEVICE_NO_NEWS:
		return false;
	case VB_DEVICE_NEWS:
		break;
	case VB_DEVICE_WATCH_LOST:
		vb_adapter_open_watch(adapter);
		break;
	}
	return true;
}

bool vb_adapter_is_asked(const struct vb_adapter *adapter)
{
	return atomic_load_explicit(&adapter->asked, memory_order_seq_cst) != adapter->answered;
}

/* Answers the threads that asked before the helper looked. */
static void answer(struct vb_adapter *adapter, uint32_t asked)
{
	pthread_mutex_lock(&adapter->device_lock);
	adapter->answered = asked;
	pthread_cond_broadcast(&adapter->has_answered);
	pthread_mutex_unlock(&adapter->device_lock);
}

void vb_adapter_follow(struct vb_adapter *adapter)
{
	uint32_t asked = atomic_load_explicit(&adapter->asked, memory_order_seq_cst);
	bool is_asked = asked != adapter->answered;
	uint32_t what = 0;
	struct vb_device device;

	/* A thread that sees that no news is left also sees this flag, until the device is set. */
	atomic_store_explicit(&adapter->is_following, true, memory_order_seq_cst);
	if (take_news(adapter) || is_asked)
		what = refresh(adapter);
	atomic_store_explicit(&adapter->is_following, false, memory_order_seq_cst);
	if (is_asked)
		answer(adapter, asked);
	get_device(adapter, &device);
	if (what)
		report_changes(adapter, &device, what);
}

/* Whether the kernel has reported a change that is not in the device yet. */
static bool is_behind(const struct vb_adapter *adapter)
{
	struct pollfd watch = {
		.fd = atomic_load_explicit(&adapter->watch_fd, memory_order_relaxed),
		.events = POLLIN,
	};

	return (vb_fd_is_ours(watch.fd) && vb_adapter_sleep(&watch, 1, 0) > 0) ||
	       atomic_load_explicit(&adapter->is_following, memory_order_seq_cst);
}

/* Waits until the helper has looked at the interface. */
static void wait_for_look(struct vb_adapter *adapter)
{
	uint64_t end_ns = vb_clock_now() + ANSWER_MAX_NS;
	struct timespec end = { (time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u) };
	uint32_t asked;
	int before, error = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&adapter->device_lock);
	asked = atomic_fetch_add_explicit(&adapter->asked, 1, memory_order_seq_cst) + 1;
	vb_adapter_wake_helper(adapter);
	while ((int32_t)(adapter->answered - asked) < 0 && !error)
		error = pthread_cond_timedwait(&adapter->has_answered, &adapter->device_lock, &end);
	pthread_mutex_unlock(&adapter->device_lock);
	pthread_setcancelstate(before, NULL);
}

static bool has_helper(const struct vb_adapter *adapter)
{
	return !atomic_load_explicit(&adapter->is_inherited, memory_order_acquire);
}

void vb_adapter_device(struct vb_adapter *adapter, struct vb_device *device_out)
{
	if (has_helper(adapter) && is_behind(adapter))
		wait_for_look(adapter);
	get_device(adapter, device_out);
}

void vb_adapter_device_with_link_state(struct vb_adapter *adapter, struct vb_device *device_out)
{
	vb_adapter_device(adapter, device_out);
	if (vb_device_is_active(device_out) || !has_helper(adapter))
		return;
	wait_for_look(adapter);
	get_device(adapter, device_out);
}
