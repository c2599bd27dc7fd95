/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plug of an adapter: its port membership, link and port, which are all parts that have
 * descriptors and can be made again. A program may close the descriptors, and a forked child has
 * none. To the engine this looks like lost packets. An adapter that is plugged in again keeps its
 * member number and its source ports, on which its QPs and their peers rely.
 */
#include "host/adapter/adapter_priv.h"

#include "base/heap.h"
#include "host/port/port.h"
#include "host/local/local_peer.h"
#include "host/port/carrier_udp.h"
#include "host/qp1/qp1.h"
#include "host/registry/port_member.h"
#include "host/registry/receivers.h"
#include "host/sys/config.h"
#include "host/sys/log.h"
#include "link/fd.h"
#include "link/sys.h"
#include "link/udp.h"
#include "nic/qp.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

/*
 * Remembers the groups that the link is in. If there is no memory for that, the adapter is in no
 * group afterwards.
 */
static void keep_groups(struct vb_adapter *adapter)
{
	uint32_t count = vb_udp_group_count(adapter->udp);

	vb_heap_free(adapter->groups);
	adapter->groups = vb_heap_alloc(count + 1, sizeof(*adapter->groups));
	adapter->group_count = adapter->groups ? count : 0;
	for (uint32_t i = 0; i < adapter->group_count; i++)
		adapter->groups[i] = vb_udp_group(adapter->udp, i);
}

static void join_groups(struct vb_adapter *adapter)
{
	for (uint32_t i = 0; i < adapter->group_count; i++) {
		struct vb_gid gid;

		memcpy(gid.raw, adapter->groups[i].ip, sizeof(gid.raw));
		if (vb_nic_has_group(adapter->nic, &gid) &&
		    vb_udp_join(adapter->udp, &adapter->groups[i]))
			vb_log_about(VB_LOG_WARN,
				     VB_LOG_ABOUT(.phase = "run", .device = adapter->device.name),
				     "%s: a multicast group is lost", adapter->device.name);
	}
}

/* The receiving sockets are shared by all adapters of this process; the link may have its own. */
static void enable_ip_fields(struct vb_adapter *adapter)
{
	if (adapter->member)
		vb_receivers_enable_ip_fields();
	if (adapter->udp)
		vb_udp_enable_ip_fields(adapter->udp);
}

vb_err vb_adapter_make_port(struct vb_adapter *adapter)
{
	struct vb_port_parts parts = {
		.nic = adapter->nic,
		.qp1 = adapter->qp1,
		.peers = adapter->peers,
		.member = adapter->member,
		.host_gid = &adapter->host_gid,
		.device_name = adapter->name,
		.events = &adapter->events,
		.recorder = &adapter->recorder,
	};
	vb_err err =
		vb_carrier_udp_create(adapter->nic, adapter->udp, adapter->member, &adapter->wire);

	if (err)
		return err;
	parts.wire = vb_carrier_udp_base(adapter->wire);
	if (adapter->peers) {
		vb_carrier_shm_init(&adapter->shm, adapter->peers);
		parts.links = &adapter->shm.carrier;
	}
	err = vb_port_create(&parts, &adapter->port);
	if (!err && adapter->init.config->self_check) {
		vb_self_check_init(&adapter->self_check, adapter->nic);
		err = vb_port_add_tap(adapter->port, &adapter->self_check.tap);
	}
	if (!err)
		vb_port_offer_recording(adapter->port, vb_clock_now());
	return err;
}

void vb_adapter_report_self_check(const struct vb_adapter *adapter)
{
	if (adapter->port && adapter->init.config->self_check)
		vb_self_check_report(&adapter->self_check, adapter->nic, adapter->device.name);
}

void vb_adapter_unplug(struct vb_adapter *adapter)
{
	/* Without a port, plugging in has failed halfway, and the new link is in no group yet. */
	if (adapter->port) {
		keep_groups(adapter);
		vb_adapter_report_self_check(adapter);
		vb_port_destroy(adapter->port);
	}
	if (adapter->peers)
		vb_local_peers_unplug(adapter->peers);
	if (adapter->qp1)
		vb_qp1_unplug(adapter->qp1);
	if (adapter->wire)
		vb_carrier_udp_destroy(adapter->wire);
	if (adapter->udp)
		vb_udp_close(adapter->udp);
	if (adapter->member)
		vb_port_member_leave(adapter->member);
	adapter->port = NULL;
	adapter->wire = NULL;
	adapter->udp = NULL;
	adapter->member = NULL;
}

vb_err vb_adapter_replug(struct vb_adapter *adapter)
{
	vb_err err = vb_port_member_rejoin(adapter->number, vb_adapter_receive_buffer(adapter),
					   &adapter->member);

	if (!err)
		vb_adapter_take_row(adapter);
	if (!err)
		err = vb_adapter_open_link(adapter);
	if (!err)
		err = vb_qp1_plug_in(adapter->qp1);
	if (!err)
		vb_adapter_plug_in_local_peers(adapter);
	if (!err)
		err = vb_adapter_make_port(adapter);
	if (err) {
		vb_adapter_unplug(adapter);
		return err;
	}
	join_groups(adapter);
	if (adapter->has_ip_fields)
		enable_ip_fields(adapter);
	return VB_OK;
}

vb_err vb_adapter_open_wake_fd(struct vb_adapter *adapter)
{
	int fd = vb_fd_own(vb_sys_result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));

	atomic_store_explicit(&adapter->wake_fd, fd, memory_order_relaxed);
	vb_alarm_repair(&adapter->alarm);
	return fd < 0 ? VB_EMFILE : VB_OK;
}

void vb_adapter_enable_ip_fields(struct vb_adapter *adapter)
{
	vb_lock_take(&adapter->owner);
	adapter->has_ip_fields = true;
	enable_ip_fields(adapter);
	vb_lock_give(&adapter->owner);
}

static void drop_lost_connections(struct vb_adapter *adapter)
{
	if (adapter->member)
		vb_port_member_drop_lost_connections(adapter->member);
	if (adapter->qp1)
		vb_qp1_drop_lost_connections(adapter->qp1);
}

static bool is_intact(const struct vb_adapter *adapter)
{
	return adapter->port && vb_udp_is_intact(adapter->udp) &&
	       vb_port_member_is_intact(adapter->member) && vb_qp1_is_intact(adapter->qp1) &&
	       (!adapter->peers || vb_local_peers_are_intact(adapter->peers));
}

/*
 * While a thread still sleeps on the old sockets, their ports stay taken and this fails; the next
 * call tries again.
 */
static void repair_plug(struct vb_adapter *adapter)
{
	vb_lock_take(&adapter->owner);
	drop_lost_connections(adapter);
	if (!is_intact(adapter)) {
		vb_adapter_unplug(adapter);
		if (!vb_adapter_replug(adapter))
			vb_log_about(
				VB_LOG_WARN,
				VB_LOG_ABOUT(.phase = "run", .device = adapter->device.name),
				"%s: the program has closed descriptors of the adapter; it has new ones",
				adapter->device.name);
	}
	vb_lock_give(&adapter->owner);
}

void vb_adapter_repair(struct vb_adapter *adapter)
{
	int wake_fd = atomic_load_explicit(&adapter->wake_fd, memory_order_relaxed);

	if (!vb_fd_is_ours(wake_fd) && vb_adapter_open_wake_fd(adapter))
		vb_log_about(VB_LOG_ERROR,
			     VB_LOG_ABOUT(.phase = "run", .device = adapter->device.name,
					  .error = EMFILE),
			     "%s: no descriptor to wake the helper thread with",
			     adapter->device.name);
	vb_alarm_repair(&adapter->alarm);
	if (adapter->watch_fd >= 0 && !vb_fd_is_ours(adapter->watch_fd))
		vb_adapter_follow(adapter);
	repair_plug(adapter);
}
