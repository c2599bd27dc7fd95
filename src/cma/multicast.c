/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups. Ethernet has no subnet manager to ask: the GID of a group is its IP address,
 * and the adapter joins it (IGMP, MLD) when a QP is attached. The thread that takes the event
 * attaches the QP.
 */
#include "cma/cma_priv.h"

#include "base/heap.h"

#include <string.h>

#define GROUP_QPN 0xffffff
#define GROUP_HOP_LIMIT 1

struct vb_cma_group {
	struct vb_list_node node;
	struct sockaddr_storage address;
	union ibv_gid gid;
	bool is_send_only;
	bool is_attached;
	bool is_attaching; /* in another thread */
};

int vb_cma_group_complete(struct vb_cma_id *id, struct vb_cma_group *group)
{
	bool is_attaching;
	int error;

	vb_cma_lock();
	is_attaching = group && id->id.qp && !group->is_send_only;
	if (is_attaching)
		group->is_attaching = true;
	vb_cma_unlock();
	if (!is_attaching)
		return 0;
	error = ibv_attach_mcast(id->id.qp, &group->gid, 0);
	vb_cma_lock();
	group->is_attached = !error;
	group->is_attaching = false;
	vb_cma_wake_all();
	vb_cma_unlock();
	return error;
}

/* --- joining ---------------------------------------------------------------------------------- */

static struct vb_cma_event *make_event(struct vb_cma_id *id, struct vb_cma_group *group,
				       const void *context)
{
	struct vb_cma_event *event = vb_cma_event_make(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	struct vb_flow flow = {
		.destination = vb_cma_address_gid((struct sockaddr *)&group->address),
		.traffic_class = id->tos,
		.hop_limit = GROUP_HOP_LIMIT,
	};

	if (!event)
		return NULL;
	event->group = group;
	event->event.param.ud.private_data = context;
	event->event.param.ud.ah_attr = vb_cma_ah_attr(id, &flow);
	event->event.param.ud.qp_num = GROUP_QPN;
	event->event.param.ud.qkey = RDMA_UDP_QKEY;
	return event;
}

static int check_join(const struct vb_cma_id *id, const struct sockaddr *address)
{
	char text[VB_CMA_ADDRESS_TEXT];

	if (!id->place.device || !vb_cma_is_datagram(id))
		return vb_cma_refuse(
			EINVAL,
			"rdma_join_multicast: it is not bound to a device, or not for datagrams");
	if (!address || !vb_cma_address_length(address))
		return vb_cma_refuse(EINVAL, "rdma_join_multicast: no address of IPv4 or IPv6");
	if (!vb_cma_address_is_multicast(address))
		return vb_cma_refuse(EINVAL, "rdma_join_multicast: %s: it is no group",
				     vb_cma_address_describe(address, text));
	return 0;
}

static int join(struct vb_cma_id *id, const struct sockaddr *address, bool is_send_only,
		const void *context)
{
	struct vb_cma_event *event;
	struct vb_cma_group *group;
	struct vb_gid gid;
	int error = check_join(id, address);

	if (error)
		return error;
	group = vb_heap_alloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	memcpy(&group->address, address, vb_cma_address_length(address));
	gid = vb_cma_address_gid(address);
	memcpy(group->gid.raw, gid.raw, sizeof(gid.raw));
	group->is_send_only = is_send_only;
	event = make_event(id, group, context);
	if (!event) {
		vb_heap_free(group);
		return ENOMEM;
	}
	vb_cma_lock();
	vb_list_append(&id->groups, &group->node);
	vb_cma_event_queue(event);
	vb_cma_unlock();
	return 0;
}

VB_CMA_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_join_multicast");

	if (!error)
		error = join(vb_cma_id_of(id), addr, false, context);
	return vb_cma_return(error ? error : vb_cma_wait(vb_cma_id_of(id)));
}

VB_CMA_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
					 struct rdma_cm_join_mc_attr_ex *mc_join_attr,
					 void *context)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_join_multicast_ex");

	if (!error && (!mc_join_attr || mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
		       !(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
		       !(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) ||
		       mc_join_attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED))
		error = vb_cma_refuse(
			EINVAL, "rdma_join_multicast_ex: address or flags are not as they must be");
	if (!error)
		error = join(vb_cma_id_of(id), mc_join_attr->addr,
			     mc_join_attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			     context);
	return vb_cma_return(error ? error : vb_cma_wait(vb_cma_id_of(id)));
}

/* --- leaving ---------------------------------------------------------------------------------- */

/* Call with the lock. */
static struct vb_cma_group *find(struct vb_cma_id *id, const struct sockaddr *address)
{
	for (struct vb_list_node *node = id->groups.next; node != &id->groups; node = node->next) {
		struct vb_cma_group *group = VB_CONTAINER(node, struct vb_cma_group, node);

		if (!address || vb_cma_address_equal((struct sockaddr *)&group->address, address))
			return group;
	}
	return NULL;
}

/* Leaves one group with this address; NULL: any group. ENOENT if there is none. */
static int leave(struct vb_cma_id *id, const struct sockaddr *address)
{
	struct vb_cma_group *group;

	vb_cma_lock();
	while ((group = find(id, address)) && group->is_attaching)
		vb_cma_sleep();
	if (group) {
		vb_list_remove(&group->node);
		vb_cma_event_drop_group(id, group);
	}
	vb_cma_unlock();
	if (!group)
		return ENOENT;
	if (group->is_attached && id->id.qp)
		ibv_detach_mcast(id->id.qp, &group->gid, 0);
	vb_heap_free(group);
	return 0;
}

void vb_cma_group_leave_all(struct vb_cma_id *id)
{
	while (!leave(id, NULL))
		;
}

VB_CMA_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_leave_multicast");

	if (!error && (!addr || !vb_cma_address_length(addr)))
		error = vb_cma_refuse(EINVAL, "rdma_leave_multicast: no address of IPv4 or IPv6");
	if (!error && leave(vb_cma_id_of(id), addr))
		error = vb_cma_refuse(EADDRNOTAVAIL,
				      "rdma_leave_multicast: it is in no such group");
	return vb_cma_return(error);
}
