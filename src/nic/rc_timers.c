/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC's one timer: the local ACK timeout while packets are in flight, the wait that an RNR NAK asked
 * for, or the wait for credits. No other file knows how a protocol event changes the deadline. Each
 * timeout halves how many packets may be in flight: otherwise a slow peer would have to handle
 * every one of them again, and answer even later.
 */
#include "nic/rc_priv.h"

#include "base/probe.h"
#include "base/bytes.h"
#include "wire/syndrome.h"

/*
 * How long a peer that had no receives may take to announce new ones. A probe may cost an RNR NAK
 * and, for a program that allows none, the connection.
 */
#define CREDITS_WAIT_NS 1000000u
#define CREDITS_LONG_WAIT_NS 250000000u

#define BACKOFF_MAX 2u /* a timeout may be noticed up to four times its length late */

/*
 * 4.096 us * 2^timeout, or up to four times that (C9-140 to C9-142). A peer that did not answer may
 * be slow rather than gone: it gets more time with each retry.
 */
static uint64_t ack_timeout_ns(const struct vb_qp *qp)
{
	uint32_t retries = qp->attr.retry_count - qp->requester.retries_left;

	return 4096ull << qp->attr.timeout << min32(retries, BACKOFF_MAX);
}

static void restart(struct vb_qp *qp)
{
	if (qp->attr.timeout) /* 0: infinite */
		vb_timer_start(&qp->nic->timers, &qp->timer, qp->nic->now_ns + ack_timeout_ns(qp));
}

void vb_rc_timers_on_packet_sent(struct vb_qp *qp)
{
	if (qp->timer.deadline_ns == VB_NEVER)
		restart(qp);
}

void vb_rc_timers_on_progress(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	requester->retries_left = qp->attr.retry_count;
	requester->rnr_retries_left = qp->attr.rnr_retry;
	requester->has_recovered = false;
	if (requester->window_reduction)
		requester->window_reduction--;
	if (requester->waits_for_receiver)
		return; /* the timer runs for the RNR NAK */
	if (vb_psn_equal(requester->unacked, requester->new_psn))
		vb_timer_stop(&qp->timer);
	else
		restart(qp);
}

void vb_rc_timers_on_no_credits(struct vb_qp *qp)
{
	if (qp->timer.deadline_ns == VB_NEVER)
		vb_timer_start(&qp->nic->timers, &qp->timer,
			       qp->nic->now_ns + (qp->attr.rnr_retry ? CREDITS_WAIT_NS
								     : CREDITS_LONG_WAIT_NS));
}

void vb_rc_timers_on_credits(struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;

	if (!requester->waits_for_receiver && vb_psn_equal(requester->unacked, requester->new_psn))
		vb_timer_stop(&qp->timer);
}

void vb_rc_timers_on_rnr_nak(struct vb_qp *qp, uint8_t code)
{
	qp->requester.waits_for_receiver = true;
	vb_timer_start(&qp->nic->timers, &qp->timer, qp->nic->now_ns + vb_rnr_timer_ns(code));
}

VB_COLD void vb_rc_repeat(struct vb_qp *qp, vb_psn psn)
{
	if (qp->requester.waits_for_receiver)
		return; /* goes back anyway when the wait is over */
	vb_timer_stop(&qp->timer); /* starts with the first packet that is sent again */
	qp->repeat_count++;
	VB_PROBE3(retry, qp->number.v, psn.v, qp->requester.retries_left);
	vb_rc_seek(qp, psn);
}

VB_COLD void vb_rc_retry(struct vb_qp *qp, vb_psn psn)
{
	struct vb_requester *requester = &qp->requester;

	if (requester->waits_for_receiver)
		return;
	if (!requester->retries_left) {
		vb_nic_count(qp->nic, VB_COUNTER_RETRY_EXCEEDED_ERR);
		vb_rc_fail(qp, VB_STATUS_RETRY_EXC_ERR);
		return;
	}
	requester->retries_left--;
	vb_rc_repeat(qp, psn);
}

void vb_rc_on_timer(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;
	enum vb_qp_state state = vb_qp_state_now(qp);

	if (state != VB_STATE_RTS && state != VB_STATE_SQD)
		return;
	if (requester->waits_for_receiver) {
		requester->waits_for_receiver = false;
		requester->has_recovered = false;
		vb_rc_seek(qp, requester->unacked);
		return;
	}
	if (vb_psn_equal(requester->unacked, requester->new_psn)) {
		requester->may_probe = true;
		vb_qp_schedule(qp);
		return;
	}
	vb_nic_count(qp->nic, VB_COUNTER_LOCAL_ACK_TIMEOUT_ERR);
	requester->window_reduction += vb_rc_window(qp) / 2;
	/* A gap seen from now on concerns packets sent after this. */
	requester->has_recovered = false;
	vb_rc_retry(qp, requester->unacked);
}
