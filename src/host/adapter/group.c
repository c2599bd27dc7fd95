/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of the link. The link is in a group exactly as long as any QP of its engine is,
 * and for that time this is published to local peers.
 */
#include "host/adapter/group.h"

#include "host/adapter/adapter_priv.h"
#include "host/local/local_peer.h"
#include "host/sys/log.h"
#include "link/udp.h"
#include "nic/nic.h"
#include "nic/qp.h"

#include <string.h>

static struct vb_udp_address address_of(const struct vb_gid *gid)
{
	struct vb_udp_address address = { .scope = 0 };

	memcpy(address.ip, gid->raw, sizeof(address.ip));
	return address;
}

static vb_err join(struct vb_adapter *adapter, const struct vb_gid *gid)
{
	struct vb_udp_address address = address_of(gid);
	struct vb_udp *link = vb_adapter_link(adapter);
	vb_err err = link ? vb_udp_join(link, &address) : VB_ENOMEM;
	char text[48];

	if (!err)
		return VB_OK;
	vb_gid_describe(gid, text);
	/*
	 * Without IPv6, programs of this host still reach each other by the GID that is no address.
	 */
	if (err == VB_EOPNOTSUPP) {
		vb_log_about(
			VB_LOG_WARN, VB_LOG_ABOUT(.phase = "join_group"),
			"multicast group %s: this machine has no IPv6; only this host reaches it",
			text);
		return VB_OK;
	}
	vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "join_group"),
		     "multicast group %s: cannot be joined (%s)", text,
		     err == VB_ENOSPC ? "too many groups" : "the kernel refuses");
	return err;
}

static void leave_if_empty(struct vb_adapter *adapter, const struct vb_gid *gid)
{
	struct vb_udp_address address = address_of(gid);
	struct vb_udp *link = vb_adapter_link(adapter);

	if (vb_nic_has_group(vb_adapter_nic(adapter), gid))
		return;
	if (link)
		vb_udp_leave(link, &address);
	if (adapter->peers)
		vb_local_peers_on_left(adapter->peers, gid);
}

vb_err vb_group_attach(struct vb_adapter *adapter, struct vb_qp *qp, const struct vb_gid *gid)
{
	bool is_first = !vb_nic_has_group(vb_adapter_nic(adapter), gid);
	vb_err err = vb_qp_attach(qp, gid);

	if (err)
		return err;
	err = join(adapter, gid);
	if (err)
		VB_CHECK(vb_qp_detach(qp, gid) == VB_OK);
	else if (is_first && adapter->peers)
		vb_local_peers_on_joined(adapter->peers, gid);
	return err;
}

vb_err vb_group_detach(struct vb_adapter *adapter, struct vb_qp *qp, const struct vb_gid *gid)
{
	vb_err err = vb_qp_detach(qp, gid);

	if (!err)
		leave_if_empty(adapter, gid);
	return err;
}
