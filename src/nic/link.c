/* SPDX-License-Identifier: BSD-2-Clause */
/* The room of links, and the QPs that take them. To the engine a link is a number. */
#include "nic/qp_priv.h"

#include "nic/peer_memory.h"

bool vb_nic_has_moved_enough(const struct vb_nic *nic)
{
	return !nic->direct_left;
}

void vb_qp_set_link(struct vb_qp *qp, uint32_t link, struct vb_peer_memory *peer_memory)
{
	VB_CHECK(link < VB_LINK_COUNT);
	if (qp->path.kind != VB_PATH_IP)
		vb_qp_fill_path(qp);
	if (vb_list_is_linked(&qp->active)) { /* perhaps among those that wait for room */
		vb_list_remove(&qp->active);
		vb_qp_schedule(qp);
	}
	qp->path.link = (uint16_t)link;
	qp->peer_link = (uint16_t)link;
	qp->peer_memory = link ? peer_memory : NULL;
	atomic_store_explicit(&qp->has_peer_memory, qp->peer_memory != NULL, memory_order_relaxed);
	qp->initiator = (struct vb_peer_memory_initiator){
		.service = qp->service,
		.target = qp->peer,
		.initiator = qp->number,
		.target_gid = &qp->path.ip.destination,
		.initiator_gid = &qp->path.ip.source,
	};
	qp->requester.direct_offset = 0; /* a request that was begun starts again */
	vb_qp_publish_row(qp);
}

void vb_qp_set_stream(struct vb_qp *qp, uint32_t link)
{
	VB_CHECK(link && qp->type == VB_QP_RC);
	vb_qp_set_link(qp, link, NULL);
	qp->path = (struct vb_path){ .kind = VB_PATH_STREAM, .link = (uint16_t)link };
	vb_qp_publish_row(qp);
}

void vb_qp_expect_link(struct vb_qp *qp, uint32_t link)
{
	VB_CHECK(link < VB_LINK_COUNT);
	qp->peer_link = (uint16_t)link;
}

uint32_t vb_qp_link(const struct vb_qp *qp)
{
	return qp->path.link;
}

void vb_nic_set_link_room(struct vb_nic *nic, uint32_t link, uint32_t packets)
{
	struct vb_list_node waiting;

	VB_CHECK(link < VB_LINK_COUNT);
	nic->link_room[link] = packets;
	if (!packets || !vb_list_is_linked(&nic->without_room))
		return;
	vb_list_init(&waiting);
	vb_list_append_all(&waiting, &nic->without_room);
	while (vb_list_is_linked(&waiting)) {
		struct vb_qp *qp = VB_CONTAINER(waiting.next, struct vb_qp, active);

		vb_list_remove(&qp->active);
		vb_list_append(qp->path.link == link ? &nic->active : &nic->without_room,
			       &qp->active);
	}
}

uint32_t vb_nic_link_room(const struct vb_nic *nic, uint32_t link)
{
	return nic->link_room[link];
}

bool vb_nic_has_qps_without_room(const struct vb_nic *nic)
{
	return vb_list_is_linked(&nic->without_room);
}

void vb_nic_drop_link(struct vb_nic *nic, uint32_t link)
{
	for (uint32_t i = 0; i < nic->config.qp_row_count; i++)
		if (nic->qps[i] && nic->qps[i]->path.link == link)
			vb_qp_set_link(nic->qps[i], 0, NULL);
	vb_nic_set_link_room(nic, link, 1);
}
