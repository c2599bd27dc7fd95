/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: which UD QPs receive the packets that are sent to a group's GID. */
#include "base/heap.h"
#include "nic/multicast_dedup_priv.h"
#include "nic/unreliable_priv.h"

#define MEMBERS_FIRST 4u

struct vb_group {
	struct vb_list_node node;
	struct vb_gid gid;
	struct vb_qp **members;
	uint32_t count;
	uint32_t capacity;
};

static struct vb_group *find_group(const struct vb_nic *nic, const struct vb_gid *gid)
{
	for (struct vb_list_node *node = nic->groups.next; node != &nic->groups;
	     node = node->next) {
		struct vb_group *group = VB_CONTAINER(node, struct vb_group, node);

		if (vb_gid_equal(&group->gid, gid))
			return group;
	}
	return NULL;
}

static uint32_t find_member(const struct vb_group *group, const struct vb_qp *qp)
{
	uint32_t i = 0;

	while (i < group->count && group->members[i] != qp)
		i++;
	return i;
}

static vb_err make_room(struct vb_group *group)
{
	uint32_t capacity = group->capacity ? group->capacity * 2 : MEMBERS_FIRST;
	struct vb_qp **members;

	if (group->count < group->capacity)
		return VB_OK;
	members = vb_heap_alloc(capacity, sizeof(struct vb_qp *));
	if (!members)
		return VB_ENOMEM;
	if (group->count)
		memcpy(members, group->members, group->count * sizeof(struct vb_qp *));
	vb_heap_free(group->members);
	group->members = members;
	group->capacity = capacity;
	return VB_OK;
}

static struct vb_group *add_group(struct vb_nic *nic, const struct vb_gid *gid)
{
	struct vb_group *group = vb_heap_alloc(1, sizeof(*group));

	if (group && !nic->dedup)
		nic->dedup = vb_multicast_dedup_create();
	if (!group || !nic->dedup) {
		vb_heap_free(group);
		return NULL;
	}
	group->gid = *gid;
	vb_list_append(&nic->groups, &group->node);
	return group;
}

static void drop_if_empty(struct vb_nic *nic, struct vb_group *group)
{
	if (group->count)
		return;
	vb_list_remove(&group->node);
	vb_heap_free(group->members);
	vb_heap_free(group);
	if (vb_list_is_linked(&nic->groups))
		return;
	vb_multicast_dedup_destroy(nic->dedup);
	nic->dedup = NULL;
}

bool vb_nic_has_group(const struct vb_nic *nic, const struct vb_gid *gid)
{
	return find_group(nic, gid);
}

vb_err vb_qp_attach(struct vb_qp *qp, const struct vb_gid *gid)
{
	struct vb_group *group = find_group(qp->nic, gid);
	vb_err err;

	if (qp->type != VB_QP_UD || !vb_gid_is_multicast(gid))
		return VB_EINVAL;
	if (!group) {
		group = add_group(qp->nic, gid);
		if (!group)
			return VB_ENOMEM;
	}
	if (find_member(group, qp) < group->count)
		return VB_OK; /* once is enough */
	err = make_room(group);
	if (err) {
		drop_if_empty(qp->nic, group);
		return err;
	}
	group->members[group->count++] = qp;
	qp->group_count++;
	return VB_OK;
}

vb_err vb_qp_detach(struct vb_qp *qp, const struct vb_gid *gid)
{
	struct vb_group *group = find_group(qp->nic, gid);
	uint32_t index = group ? find_member(group, qp) : 0;

	if (!group || index == group->count)
		return VB_EINVAL;
	group->count--;
	for (; index < group->count; index++)
		group->members[index] = group->members[index + 1];
	qp->group_count--;
	drop_if_empty(qp->nic, group);
	return VB_OK;
}

void vb_multicast_deliver(struct vb_nic *nic, const struct vb_frame *frame,
			  const struct vb_packet *packet)
{
	struct vb_flow flow = vb_frame_flow(frame);
	const struct vb_group *group = find_group(nic, &flow.destination);

	if (!group || vb_opcode_service(packet->bth.opcode) != VB_SERVICE_UD) {
		vb_nic_drop(nic, VB_DROP_NO_MEMBER);
		return;
	}
	if (frame->path.link) {
		vb_multicast_dedup_expect(nic->dedup, &flow, packet);
	} else if (vb_multicast_dedup_forget_if_expected(nic->dedup, &flow, packet)) {
		vb_nic_drop(nic, VB_DROP_COPY);
		return;
	}
	/* Delivery changes no group: a member that fails only changes its own state. */
	for (uint32_t i = 0; i < group->count; i++)
		vb_qp_on_packet(group->members[i], frame, packet);
}
