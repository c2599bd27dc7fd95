/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeping up with the interface: when the watch tells of a change, the device is looked at anew, the engine's tables are put
 * right, and the adapter's owner hears what was different. Only the helper thread does this, so nobody who polls
 * pays for it.
 */
#include "host/adapter_priv.h"

#include "host/log.h"

#include <inttypes.h>

static void put_engine_right(struct vb_adapter *adapter, const struct vb_device *device,
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

static void tell(struct vb_adapter *adapter, const struct vb_device *device, uint32_t what)
{
	vb_log(VB_LOG_INFO, "%s: interface %s has changed: port %s, MTU %" PRIu32 "%s",
	       device->name, device->ifname, vb_device_is_active(device) ? "active" : "down",
	       device->path_mtu, what & VB_DEVICE_GID_CHANGE ? ", other GIDs" : "");
	if (adapter->init.on_change)
		adapter->init.on_change(adapter->init.owner, what);
}

/* An interface that is gone stays gone: that is told once. */
static void refresh(struct vb_adapter *adapter)
{
	struct vb_device device;
	struct vb_device_changes changes;

	vb_adapter_device(adapter, &device);
	if (vb_device_refresh(&device, adapter->init.config, &changes))
		return;
	if (adapter->is_gone)
		changes.what &= ~(uint32_t)VB_DEVICE_GONE;
	adapter->is_gone |= changes.what & VB_DEVICE_GONE;
	put_engine_right(adapter, &device, &changes);
	pthread_mutex_lock(&adapter->device_lock);
	adapter->device = device;
	pthread_mutex_unlock(&adapter->device_lock);
	if (changes.what)
		tell(adapter, &device, changes.what);
}

void vb_adapter_follow(struct vb_adapter *adapter)
{
	switch (vb_device_watch_take(adapter->watch_fd)) {
	case VB_DEVICE_NO_NEWS:
		return;
	case VB_DEVICE_NEWS:
		break;
	case VB_DEVICE_WATCH_LOST:
		if (vb_device_watch_open(&adapter->watch_fd))
			adapter->watch_fd = -1;
		break;
	}
	refresh(adapter);
}

void vb_adapter_device(struct vb_adapter *adapter, struct vb_device *device_out)
{
	pthread_mutex_lock(&adapter->device_lock);
	*device_out = adapter->device;
	pthread_mutex_unlock(&adapter->device_lock);
}
