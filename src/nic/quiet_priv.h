/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quiet: nothing of a QP is in flight, held back or failed, and the engine has nothing else to do.
 * The short paths begin only then (nic/start_now.c, nic/direct.c), so that a request that takes one
 * overtakes no other. No other file decides this. The responder's half of the question is in
 * nic/rc_responder.c, because the peer decides when that half works.
 */
#ifndef VB_NIC_QUIET_PRIV_H
#define VB_NIC_QUIET_PRIV_H

#include "nic/qp_priv.h"

/* The QP only sends on: it repeats nothing, waits for no receive, and no request has failed. */
static inline bool vb_qp_is_undisturbed(const struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;

	return vb_psn_equal(requester->next_psn, requester->new_psn) &&
	       !requester->waits_for_receiver && !requester->has_failed;
}

/*
 * Everything before the request at send_index is complete, and the request may be next. UC packets
 * are not acknowledged: they may still be on their way.
 */
static inline bool vb_qp_is_quiet(const struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;

	return requester->send_index == requester->done_index &&
	       vb_psn_equal(requester->unacked, requester->new_psn) && vb_qp_is_undisturbed(qp);
}

/* A quiet QP that may start requests; SQD only finishes what was begun. */
static inline bool vb_qp_can_start(const struct vb_qp *qp)
{
	return vb_qp_state_now(qp) == VB_STATE_RTS && vb_qp_is_quiet(qp);
}

/* Whether something is to be done other than a QP's turn. */
static inline bool vb_nic_has_work_beside_turns(const struct vb_nic *nic)
{
	return vb_list_is_linked(&nic->sent) || vb_list_is_linked(&nic->overruns) ||
	       vb_nic_is_rung(nic);
}

/* Whether the engine has nothing to do, except perhaps for this QP. */
static inline bool vb_nic_is_quiet_but_for(const struct vb_nic *nic, const struct vb_qp *qp)
{
	return (!vb_list_is_linked(&nic->active) ||
		(nic->active.next == &qp->active && nic->active.prev == &qp->active)) &&
	       !vb_nic_has_work_beside_turns(nic);
}

#endif
