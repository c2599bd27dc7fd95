/* SPDX-License-Identifier: BSD-2-Clause */
/* Ways to peers on this host, as far as the engine knows them: a number, and room. */
#include "nic/direct_priv.h"
#include "nic/qp_priv.h"
#include "nic/rc_priv.h"

#include "nic/reach.h"

bool vb_nic_has_moved_enough(const struct vb_nic *nic)
{
	return !nic->direct_left;
}

void vb_qp_set_line(struct vb_qp *qp, uint32_t line, struct vb_reach *reach)
{
	VB_CHECK(line < VB_LINE_COUNT);
	if (vb_link_is_linked(&qp->active)) { /* perhaps among those that wait for room */
		vb_link_remove(&qp->active);
		vb_qp_schedule(qp);
	}
	qp->line = (uint16_t)line;
	qp->reach = line ? reach : NULL;
	atomic_store_explicit(&qp->has_reach, qp->reach != NULL, memory_order_relaxed);
	qp->asker = (struct vb_reach_asker){
		.service = qp->service,
		.target = qp->peer,
		.initiator = qp->number,
		.target_gid = &qp->flow.destination,
		.initiator_gid = &qp->flow.source,
	};
	qp->requester.direct_offset = 0; /* what was begun begins anew */
}

bool vb_qp_execute_at_once(struct vb_qp *qp, uint64_t now_ns)
{
	struct vb_nic *nic = qp->nic;
	bool is_done;

	if (!qp->reach || !vb_qp_is_reliable(qp) || vb_nic_has_work(nic))
		return false;
	nic->now_ns = now_ns;
	nic->direct_left = VB_DIRECT_TURN;
	is_done = vb_rc_execute_at_once(qp);
	vb_nic_settle(nic);
	return is_done;
}

/* Whether the engine has nothing to do but, perhaps, for this QP. */
static bool is_only_work(const struct vb_nic *nic, const struct vb_qp *qp)
{
	return (!vb_link_is_linked(&nic->active) ||
		(nic->active.next == &qp->active && nic->active.prev == &qp->active)) &&
	       !vb_link_is_linked(&nic->sent) && !vb_link_is_linked(&nic->overruns) &&
	       !vb_nic_is_rung(nic);
}

bool vb_qp_send_at_once(struct vb_qp *qp, uint64_t now_ns, struct vb_slot *slot)
{
	struct vb_nic *nic = qp->nic;
	bool is_sent;

	if (!qp->line || !nic->line_room[qp->line] || !is_only_work(nic, qp))
		return false;
	nic->now_ns = now_ns;
	nic->line_now = qp->line;
	is_sent = vb_rc_emit_short_send(qp, slot);
	nic->line_now = 0;
	if (!is_sent)
		return false;
	qp->has_replied = false;
	if (vb_rc_owes_mere_ack(&qp->responder))
		vb_rc_let_ack_ride(qp, slot);
	if (vb_rc_has_request(qp) || vb_rc_owes_reply(&qp->responder))
		vb_qp_schedule(qp);
	else
		vb_link_remove(&qp->active);
	nic->line_room[qp->line]--;
	nic->counters.counts[VB_COUNTER_TX_BYTES] += slot->length;
	nic->counters.counts[VB_COUNTER_TX_PACKETS]++;
	return true;
}

uint32_t vb_qp_line(const struct vb_qp *qp)
{
	return qp->line;
}

void vb_nic_set_line_room(struct vb_nic *nic, uint32_t line, uint32_t packets)
{
	struct vb_link waiting;

	VB_CHECK(line < VB_LINE_COUNT);
	nic->line_room[line] = packets;
	if (!packets || !vb_link_is_linked(&nic->roomless))
		return;
	vb_link_init(&waiting);
	vb_link_append_all(&waiting, &nic->roomless);
	while (vb_link_is_linked(&waiting)) {
		struct vb_qp *qp = VB_CONTAINER(waiting.next, struct vb_qp, active);

		vb_link_remove(&qp->active);
		vb_link_append(qp->line == line ? &nic->active : &nic->roomless, &qp->active);
	}
}

uint32_t vb_nic_line_room(const struct vb_nic *nic, uint32_t line)
{
	return nic->line_room[line];
}

bool vb_nic_has_waiting_lines(const struct vb_nic *nic)
{
	return vb_link_is_linked(&nic->roomless);
}

void vb_nic_drop_line(struct vb_nic *nic, uint32_t line)
{
	for (uint32_t i = 0; i < nic->config.qp_row_count; i++)
		if (nic->qps[i] && nic->qps[i]->line == line)
			vb_qp_set_line(nic->qps[i], 0, NULL);
	vb_nic_set_line_room(nic, line, 1);
}
