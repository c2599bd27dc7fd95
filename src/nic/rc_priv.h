/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable transports: RC, and XRC_SEND and XRC_RECV, which are the two halves of RC, requester
 * and responder, on their own.
 */
#ifndef VB_NIC_RC_PRIV_H
#define VB_NIC_RC_PRIV_H

#include "nic/qp_priv.h"

/*
 * Whether the QP has a request to send, or a turn to pass on. Most QPs have neither and can be
 * skipped.
 */
static inline bool vb_rc_has_request(const struct vb_qp *qp)
{
	return qp->requester.send_index != vb_queue_published(&qp->sq) ||
	       vb_list_is_linked(&qp->waiting);
}

static inline bool vb_rc_owes_reply(const struct vb_responder *responder)
{
	return responder->reply != VB_REPLY_NONE || responder->resources_pending;
}

/* Whether the message lies beyond the peer's credits. */
static inline bool vb_rc_is_beyond_credits(const struct vb_requester *requester,
					   const struct vb_wqe *wqe)
{
	uint32_t ssn = wqe->progress == VB_WQE_NOT_STARTED ? requester->next_ssn : wqe->ssn;

	return requester->has_credits && vb_wqe_needs_receive(wqe) &&
	       (int32_t)((ssn - requester->credit_limit) << 8) > 0;
}

/* Full packets that may be in flight now; at least 1. */
static inline uint32_t vb_rc_window(const struct vb_qp *qp)
{
	return qp->window_packets_max - qp->requester.window_reduction;
}

static inline uint32_t vb_rc_packets_in_flight(const struct vb_requester *requester)
{
	uint32_t psns = vb_psn_distance(requester->next_psn, requester->unacked);

	return psns > requester->read_psns_out ? psns - requester->read_psns_out : 0;
}

/* rc_requester.c */
bool vb_rc_emit_request(struct vb_qp *qp, struct vb_slot *slot);
/*
 * The same for a posted request of a quiet QP in RTS, if it is a short SEND. It costs less than
 * half. False: nothing was done.
 */
bool vb_rc_emit_quiet_send(struct vb_qp *qp, struct vb_slot *slot);
void vb_rc_on_acknowledged(struct vb_qp *qp); /* fewer packets are in flight */
void vb_rc_seek(struct vb_qp *qp, vb_psn psn); /* sets the next packet to send */
/* Completes a request that could not be sent, once those before it are done. */
void vb_rc_conclude_failure(struct vb_qp *qp);
bool vb_rc_is_drained(const struct vb_qp *qp);
/* SQD: raises the event once when nothing is under way any more. */
void vb_rc_report_drained(struct vb_qp *qp);

/* rc_response.c */
void vb_rc_on_response(struct vb_qp *qp, const struct vb_frame *frame,
		       const struct vb_packet *packet);
/*
 * Whether this is the ACK of the only request in flight and nothing else needs handling. The second
 * function then takes it.
 */
bool vb_rc_is_expected_ack(const struct vb_qp *qp, vb_psn psn, const struct vb_aeth *aeth);
void vb_rc_take_expected_ack(struct vb_qp *qp, const struct vb_aeth *aeth);
/* The oldest request ends with this status; the rest is flushed. */
void vb_rc_fail(struct vb_qp *qp, enum vb_status status);

/* rc_responder.c */
void vb_rc_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet);
/*
 * Executes a SEND of one packet, if it is the next message and goes into the one buffer of the next
 * receive. False: nothing was done.
 */
bool vb_rc_try_expected_send(struct vb_qp *qp, const struct vb_frame *frame,
			     const struct vb_bth *bth);
void vb_rc_refuse(struct vb_qp *qp, enum vb_verdict verdict, vb_psn psn);

/* rc_reply.c */
bool vb_rc_emit_reply(struct vb_qp *qp, struct vb_slot *slot);
/* Builds the ACK that is owed. */
void vb_rc_emit_ack(struct vb_qp *qp, struct vb_slot *slot);
/* Piggybacks the ACK that is owed on a request. */
void vb_rc_piggyback_ack(struct vb_qp *qp, struct vb_slot *slot);

/* rc_resource.c */
VB_MUST_USE vb_err vb_rc_resize_resources(struct vb_qp *qp, uint32_t count);
/* False: the peer has too many in flight. */
bool vb_rc_has_room(const struct vb_responder *responder);
/* Only when there is room. */
struct vb_resource *vb_rc_claim_resource(struct vb_responder *responder);
struct vb_resource *vb_rc_find_resource(struct vb_responder *responder, vb_psn psn);
struct vb_resource *vb_rc_next_pending(struct vb_responder *responder);
void vb_rc_drop_pending(struct vb_responder *responder);

/* rc_timers.c: the only place that knows how a protocol event changes the deadline */
void vb_rc_timers_on_packet_sent(struct vb_qp *qp);
void vb_rc_timers_on_progress(struct vb_qp *qp);
void vb_rc_timers_on_no_credits(struct vb_qp *qp); /* and nothing is in flight */
void vb_rc_timers_on_credits(struct vb_qp *qp);
void vb_rc_timers_on_rnr_nak(struct vb_qp *qp, uint8_t code);
void vb_rc_on_timer(struct vb_qp *qp);

/* Goes back to a PSN, unless the QP waits anyway. */
void vb_rc_repeat(struct vb_qp *qp, vb_psn psn);
/* The same because a packet or its response was lost, unless the retries are used up. */
void vb_rc_retry(struct vb_qp *qp, vb_psn psn);

#endif
