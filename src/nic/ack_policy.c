/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the ACK policy that no packet waits for. The policy itself is in the header. */
#include "nic/ack_policy_priv.h"
#include "nic/quiet_priv.h"

/* PSNs wrap at 2^24: the peer could take an ACK for a much older PSN for one of a new PSN. */
#define ACK_PSN_AGE_MAX (1u << 22)

/* A peer waits for each of them, and the time to send them grows with their number. */
#define DEFERRED_ACKS_MAX 4u

void vb_ack_on_receives_posted(struct vb_qp *qp)
{
	const struct vb_responder *responder = &qp->responder;

	if (!atomic_load_explicit(&qp->has_announced_no_credits, memory_order_relaxed) ||
	    vb_queue_published(&qp->rq) == qp->rq.taken || responder->refusal)
		return;
	/*
	 * READs and atomics alone have moved the PSN so far that the peer could take ack_psn for a
	 * new one.
	 */
	if (vb_psn_distance(responder->expected, responder->ack_psn) > ACK_PSN_AGE_MAX)
		return;
	vb_ack_owe(qp); /* repeats the last ACK with the current credits */
}

static bool has_only_ack_to_send(const struct vb_qp *qp)
{
	return vb_qp_is_reliable(qp) && vb_ack_is_all_owed(qp) &&
	       qp->requester.send_index == vb_queue_published(&qp->sq);
}

bool vb_nic_can_defer_acks(const struct vb_nic *nic)
{
	uint32_t count = 0;

	if (vb_nic_has_work_beside_turns(nic))
		return false;
	for (struct vb_list_node *node = nic->active.next; node != &nic->active; node = node->next)
		if (++count > DEFERRED_ACKS_MAX ||
		    !has_only_ack_to_send(VB_CONTAINER(node, struct vb_qp, active)))
			return false;
	return count;
}
