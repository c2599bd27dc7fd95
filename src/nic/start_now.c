/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes at once: requests of a quiet QP, started by the thread that posts them while the engine
 * has nothing else to do. A program that waits for each of its requests does this. They go past
 * doorbells and turns, but through the functions that a turn uses and with the same result
 * (docs/adr/0007-what-goes-at-once.md). Whatever does not fit is left alone, for the long way.
 */
#include "nic/ack_policy_priv.h"
#include "base/probe.h"
#include "nic/direct_priv.h"
#include "nic/peer_memory.h"
#include "nic/quiet_priv.h"

bool vb_qp_may_write_now(const struct vb_qp *qp, const struct vb_send_request *request)
{
	return request->opcode == VB_WR_WRITE && request->sge_count == 1 &&
	       atomic_load_explicit(&qp->has_peer_memory, memory_order_relaxed);
}

static bool has_posted(const struct vb_qp *qp)
{
	return qp->requester.send_index != vb_queue_published(&qp->sq);
}

/*
 * Whether the QP may execute requests itself, given that no other QP has a turn to take. If this QP
 * has, it owes a reply, which would be left behind: an executed request has no packet that the
 * reply could follow.
 */
static bool can_execute(const struct vb_qp *qp)
{
	return qp->peer_memory && !vb_list_is_linked(&qp->nic->active);
}

/* --- posted requests that the initiator executes --- */

static bool execute_next(struct vb_qp *qp)
{
	const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, qp->requester.send_index);

	return wqe->progress == VB_WQE_NOT_STARTED && vb_qp_can_execute(qp, wqe) &&
	       wqe->length <= VB_DIRECT_SHORT_MAX && qp->nic->direct_left >= VB_DIRECT_PART_MIN &&
	       vb_qp_execute_alone(qp, wqe) == VB_DIRECT_DONE;
}

/* Ends with the first request that must go another way. False: nothing was executed. */
static bool execute_posted(struct vb_qp *qp)
{
	qp->nic->direct_left = VB_DIRECT_TURN;
	if (!execute_next(qp))
		return false;
	while (has_posted(qp) && vb_qp_can_start(qp) && execute_next(qp))
		;
	vb_nic_fail_overruns(qp->nic);
	return true;
}

/* --- a posted SEND --- */

static void count_packets(const struct vb_qp *qp, const struct vb_slot *slots, uint32_t count)
{
	struct vb_nic *nic = qp->nic;

	for (uint32_t i = 0; i < count; i++) {
		VB_PROBE3(transmit, qp->number.v, (const void *)slots[i].head, slots[i].length);
		nic->counters->counts[VB_COUNTER_TX_BYTES] += slots[i].length;
	}
	nic->counters->counts[VB_COUNTER_TX_PACKETS] += count;
}

/* Sends the ACK that is owed with the request, or behind it. Returns how many slots that takes. */
static uint32_t add_ack(struct vb_qp *qp, struct vb_slot slots[2])
{
	vb_ack_join_request(qp, &slots[0]);
	if (!vb_ack_is_all_owed(qp))
		return 1;
	vb_rc_emit_ack(qp, &slots[1]);
	return 2;
}

/* The turn of a QP that sends one SEND and the ACK that it owes. Returns how many slots it took. */
static uint32_t send_posted(struct vb_qp *qp, struct vb_slot slots[2])
{
	struct vb_nic *nic = qp->nic;
	uint32_t count = 0;

	if (qp->type != VB_QP_RC || !nic->link_room[qp->path.link])
		return 0;
	vb_framing_end_batch(&nic->framing);
	if (vb_rc_emit_quiet_send(qp, slots))
		count = add_ack(qp, slots);
	if (!count)
		return 0;
	qp->has_replied = false;
	nic->link_room[qp->path.link] -= qp->path.link ? 1 : 0;
	count_packets(qp, slots, count);
	return count;
}

/* Gives the QP a turn if it has more to send. True if it has none. */
static bool conclude(struct vb_qp *qp)
{
	if (vb_rc_has_request(qp) || vb_rc_owes_reply(&qp->responder)) {
		vb_qp_schedule(qp);
		return false;
	}
	vb_list_remove(&qp->active);
	return true;
}

/* Whether requests of the QP may go past doorbells and turns. */
static bool may_start(const struct vb_qp *qp)
{
	return vb_qp_can_start(qp) && vb_nic_is_quiet_but_for(qp->nic, qp);
}

bool vb_qp_start_now(struct vb_qp *qp, uint64_t now_ns, struct vb_slot slots[2],
		     uint32_t *slot_count)
{
	*slot_count = 0;
	/* Until something is posted, another thread may be writing the next request. */
	if (!may_start(qp) || !vb_qp_is_reliable(qp) || !has_posted(qp))
		return false;
	qp->nic->now_ns = now_ns;
	if (can_execute(qp) && execute_posted(qp)) {
		if (!has_posted(qp))
			return true;
		if (!vb_qp_can_start(qp)) /* executing may have ended the QP */
			return false;
	}
	*slot_count = send_posted(qp, slots);
	return *slot_count && conclude(qp);
}

/* --- a WRITE that is not posted yet --- */

VB_INLINE void vb_qp_expect_write(const struct vb_qp *qp, const struct vb_send_request *request)
{
	vb_dma_peer_expect_write(&qp->initiator, request->remote_address);
}

VB_INLINE bool vb_qp_write_now(struct vb_qp *qp, const struct vb_send_request *request)
{
	return may_start(qp) && can_execute(qp) && vb_qp_write_directly(qp, request);
}
