/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of a connected QP's path: the wire, or a shared-memory link to a local peer. It is
 * made once, when the peer's address is known. Meeting a local peer takes a moment, and the engine
 * is free meanwhile: the peer may be waiting for us in the same way.
 */
#include "host/adapter/adapter_priv.h"

#include "host/local/conversion.h"
#include "host/local/local_peer.h"
#include "host/registry/port_member.h"
#include "host/sys/clock.h"
#include "host/sys/log.h"
#include "link/udp.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEETING_NS 1000000000u
#define PAUSE_NS 1000000u
#define ACCESS_PAUSE_NS 50000 /* between looks at a peer that accesses our memory */

static bool is_on_this_host(const struct vb_adapter *adapter, const struct vb_gid *gid)
{
	struct vb_udp_address address = { .scope = adapter->device.ifindex };

	if (vb_nic_has_gid(adapter->nic, gid))
		return true;
	memcpy(address.ip, gid->raw, sizeof(address.ip));
	return vb_udp_address_is_local(&address);
}

/* Called as the owner. */
static enum vb_local_peer_state meet(struct vb_adapter *adapter, uint32_t number,
				     struct pollfd fds[VB_PORT_FDS_MAX], uint32_t *count_out)
{
	enum vb_local_peer_state state = VB_LOCAL_PEER_ABSENT;

	vb_adapter_enter(adapter);
	if (adapter->port)
		state = vb_local_peer_request_link(adapter->peers, number);
	*count_out = vb_adapter_fds(adapter, fds);
	vb_adapter_leave(adapter);
	return state;
}

void vb_adapter_prepare_path(struct vb_adapter *adapter, const struct vb_gid *gid, vb_qpn qpn)
{
	uint32_t number = vb_port_member_of_qpn(qpn);
	uint64_t end_ns = vb_clock_now() + MEETING_NS;
	struct pollfd fds[VB_PORT_FDS_MAX];
	uint32_t count;

	if (!adapter->peers || number >= VB_PORT_MEMBER_COUNT || !is_on_this_host(adapter, gid))
		return;
	while (meet(adapter, number, fds, &count) == VB_LOCAL_PEER_ASKED && vb_clock_now() < end_ns)
		(void)vb_adapter_sleep(fds, count, vb_clock_now() + PAUSE_NS);
}

void vb_adapter_choose_path(struct vb_adapter *adapter, struct vb_qp *qp)
{
	struct vb_qp_attr attr;
	uint32_t number;

	vb_qp_query(qp, &attr);
	number = vb_port_member_of_qpn(attr.destination);
	if (!adapter->peers || number >= VB_PORT_MEMBER_COUNT ||
	    !is_on_this_host(adapter, &attr.address.destination))
		return;
	vb_local_peer_attach_qp(adapter->peers, number, qp);
	if (!vb_qp_link(qp)) /* the peer may still meet us, and choose after that */
		vb_qp_expect_link(qp, vb_local_peer_shm_link(number));
	if (vb_local_peer_has_no_process(adapter->peers, number))
		vb_log_about(
			VB_LOG_WARN,
			VB_LOG_ABOUT(.phase = "connect", .device = adapter->device.name,
				     .qpn = vb_qp_number(qp).v),
			"%s: QP 0x%06x is connected to QP 0x%06x of this host, which no program of this user has: the peer belongs to another user or is gone",
			adapter->device.name, vb_qp_number(qp).v, attr.destination.v);
	vb_log_about(VB_LOG_DEBUG,
		     VB_LOG_ABOUT(.phase = "connect", .device = adapter->device.name,
				  .qpn = vb_qp_number(qp).v),
		     "%s: QP 0x%06x path: %s", adapter->device.name, vb_qp_number(qp).v,
		     vb_local_peer_describe(adapter->peers, number));
}

void vb_adapter_await_local_peers(struct vb_adapter *adapter)
{
	struct vb_local_peer_access access;

	if (!adapter->peers)
		return;
	while (vb_local_peers_find_access(adapter->peers, &access))
		while (vb_local_peers_poll_access(adapter->peers, &access)) {
			vb_adapter_leave(adapter);
			syscall(SYS_nanosleep, &(struct timespec){ 0, ACCESS_PAUSE_NS }, NULL);
			vb_adapter_enter(adapter);
		}
}

/*
 * Without the preloaded library, nothing would notify us of what the program does with its memory.
 */
static bool hook_in_conversion(const struct vb_adapter *adapter)
{
	return adapter->init.config->share == VB_SHARE_ON &&
	       vb_conversion_hook_in(vb_adapter_restore_memory);
}

uint32_t vb_adapter_share(struct vb_adapter *adapter, uint64_t address, uint64_t length,
			  bool is_remote)
{
	if (!adapter->peers)
		return 0;
	if (is_remote)
		return vb_local_peers_share(adapter->peers, address, length,
					    hook_in_conversion(adapter));
	return length >= VB_ADAPTER_TRAIN_MIN && vb_local_peers_has_spare_segments(adapter->peers)
		       ? vb_local_peers_share(adapter->peers, address, length, false)
		       : 0;
}

void vb_adapter_unshare(struct vb_adapter *adapter, uint32_t segment)
{
	if (adapter->peers)
		vb_local_peers_unshare(adapter->peers, segment);
}
