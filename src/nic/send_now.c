/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short path for a program that posts one short SEND and has nothing else under way, as in a
 * ping-pong. The SEND goes straight into its packet, past doorbells and turns, with the same
 * result.
 */
#include "nic/quiet_priv.h"
#include "nic/rc_priv.h"

static void count_packets(struct vb_nic *nic, const struct vb_slot *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		nic->counters.counts[VB_COUNTER_TX_BYTES] += slots[i].length;
	nic->counters.counts[VB_COUNTER_TX_PACKETS] += count;
}

/*
 * Adds the ACK that is owed: piggybacked on a shared-memory link, as the last segment on the wire.
 * Returns how many slots there are now.
 */
static uint32_t add_ack(struct vb_qp *qp, struct vb_slot slots[2])
{
	if (!vb_rc_owes_only_ack(&qp->responder))
		return 1;
	if (qp->shm_link) {
		vb_rc_piggyback_ack(qp, slots);
		return 1;
	}
	vb_rc_emit_ack(qp, &slots[1]);
	return 2;
}

uint32_t vb_qp_send_now(struct vb_qp *qp, uint64_t now_ns, struct vb_slot slots[2])
{
	struct vb_nic *nic = qp->nic;
	uint32_t count = 0;

	if (!nic->shm_room[qp->shm_link] || !vb_nic_is_quiet_but_for(nic, qp))
		return 0;
	nic->now_ns = now_ns;
	nic->batch.last = NULL;
	nic->shm_link_now = qp->shm_link;
	if (vb_rc_emit_short_send(qp, slots))
		count = add_ack(qp, slots);
	nic->shm_link_now = 0;
	if (!count)
		return 0;
	qp->has_replied = false;
	if (vb_rc_has_request(qp) || vb_rc_owes_reply(&qp->responder))
		vb_qp_schedule(qp);
	else
		vb_list_remove(&qp->active);
	nic->shm_room[qp->shm_link] -= qp->shm_link ? 1 : 0;
	count_packets(nic, slots, count);
	return count;
}
