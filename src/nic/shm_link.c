/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared-memory links to local peers. To the engine a link is a number and its room. */
#include "nic/qp_priv.h"

#include "nic/peer_memory.h"

bool vb_nic_has_moved_enough(const struct vb_nic *nic)
{
	return !nic->direct_left;
}

void vb_qp_set_shm_link(struct vb_qp *qp, uint32_t shm_link, struct vb_peer_memory *peer_memory)
{
	VB_CHECK(shm_link < VB_SHM_LINK_COUNT);
	if (vb_list_is_linked(&qp->active)) { /* perhaps among those that wait for room */
		vb_list_remove(&qp->active);
		vb_qp_schedule(qp);
	}
	qp->shm_link = (uint16_t)shm_link;
	qp->peer_shm_link = (uint16_t)shm_link;
	qp->peer_memory = shm_link ? peer_memory : NULL;
	atomic_store_explicit(&qp->has_peer_memory, qp->peer_memory != NULL, memory_order_relaxed);
	qp->initiator = (struct vb_peer_memory_initiator){
		.service = qp->service,
		.target = qp->peer,
		.initiator = qp->number,
		.target_gid = &qp->flow.destination,
		.initiator_gid = &qp->flow.source,
	};
	qp->requester.direct_offset = 0; /* a request that was begun starts again */
	vb_qp_publish_row(qp);
}

void vb_qp_expect_shm_link(struct vb_qp *qp, uint32_t shm_link)
{
	VB_CHECK(shm_link < VB_SHM_LINK_COUNT);
	qp->peer_shm_link = (uint16_t)shm_link;
}

uint32_t vb_qp_shm_link(const struct vb_qp *qp)
{
	return qp->shm_link;
}

void vb_nic_set_shm_room(struct vb_nic *nic, uint32_t shm_link, uint32_t packets)
{
	struct vb_list_node waiting;

	VB_CHECK(shm_link < VB_SHM_LINK_COUNT);
	nic->shm_room[shm_link] = packets;
	if (!packets || !vb_list_is_linked(&nic->without_room))
		return;
	vb_list_init(&waiting);
	vb_list_append_all(&waiting, &nic->without_room);
	while (vb_list_is_linked(&waiting)) {
		struct vb_qp *qp = VB_CONTAINER(waiting.next, struct vb_qp, active);

		vb_list_remove(&qp->active);
		vb_list_append(qp->shm_link == shm_link ? &nic->active : &nic->without_room,
			       &qp->active);
	}
}

uint32_t vb_nic_shm_room(const struct vb_nic *nic, uint32_t shm_link)
{
	return nic->shm_room[shm_link];
}

bool vb_nic_has_qps_without_room(const struct vb_nic *nic)
{
	return vb_list_is_linked(&nic->without_room);
}

void vb_nic_drop_shm_link(struct vb_nic *nic, uint32_t shm_link)
{
	for (uint32_t i = 0; i < nic->config.qp_row_count; i++)
		if (nic->qps[i] && nic->qps[i]->shm_link == shm_link)
			vb_qp_set_shm_link(nic->qps[i], 0, NULL);
	vb_nic_set_shm_room(nic, shm_link, 1);
}
