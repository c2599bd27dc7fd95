/* SPDX-License-Identifier: BSD-2-Clause */
/* The reliable transports: RC, and XRC_SEND and XRC_RECV, which are RC's requester and responder apart. */
#ifndef VB_NIC_RC_PRIV_H
#define VB_NIC_RC_PRIV_H

#include "nic/qp_priv.h"

/* Whether there is one to send, or its turn to pass on; most have neither, and need not be asked. */
static inline bool vb_rc_has_request(const struct vb_qp *qp)
{
	return qp->requester.send_index != vb_queue_posted(&qp->sq) ||
	       vb_link_is_linked(&qp->waiting);
}

static inline bool vb_rc_owes_reply(const struct vb_responder *responder)
{
	return responder->reply != VB_REPLY_NONE || responder->resources_pending;
}

/* Nothing of what was posted is out, or was held up. */
bool vb_rc_is_idle(const struct vb_qp *qp);

/* And nothing that is more urgent. */
static inline bool vb_rc_owes_mere_ack(const struct vb_responder *responder)
{
	return responder->reply == VB_REPLY_ACK && !responder->resources_pending;
}

/* rc_requester.c */
bool vb_rc_emit_request(struct vb_qp *qp, struct vb_slot *slot);
/* The short way for a short SEND of a QP with nothing else on its mind; the same comes of it. False: nothing was done. */
bool vb_rc_emit_short_send(struct vb_qp *qp, struct vb_slot *slot);
/* All that is posted, if it is short and the initiator's own to execute. False: there is more, for packets or for a turn. */
bool vb_rc_execute_at_once(struct vb_qp *qp);
void vb_rc_on_acknowledged(struct vb_qp *qp); /* fewer packets are on their way */
void vb_rc_seek(struct vb_qp *qp, vb_psn psn); /* the next packet to send is this one */
void vb_rc_conclude_failure(
	struct vb_qp *qp); /* of a request that could not be sent, if its turn has come */
uint32_t vb_rc_flight_max(const struct vb_qp *qp); /* full packets that may be out now; at least 1 */
bool vb_rc_is_drained(const struct vb_qp *qp);
void vb_rc_check_drained(struct vb_qp *qp); /* SQD: tell once when nothing is under way any more */

/* rc_response.c */
void vb_rc_on_response(struct vb_qp *qp, const struct vb_frame *frame,
		       const struct vb_packet *packet);
/* Whether it is the ACK of the one request that is out, and nothing else is to be thought of; and what then comes of it. */
bool vb_rc_is_expected_ack(const struct vb_qp *qp, vb_psn psn, const struct vb_aeth *aeth);
void vb_rc_take_expected_ack(struct vb_qp *qp, const struct vb_aeth *aeth);
void vb_rc_fail(struct vb_qp *qp,
		enum vb_status status); /* the oldest request ends with it, the rest is flushed */

/* rc_responder.c */
void vb_rc_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet);
/* If it is the next message, and goes into the one buffer of the next receive. False: nothing was done. */
bool vb_rc_take_expected_send(struct vb_qp *qp, const struct vb_frame *frame,
			      const struct vb_bth *bth);
void vb_rc_on_receives(
	struct vb_qp
		*qp); /* some were posted: tells the peer, if it has heard that there were none */
void vb_rc_refuse(struct vb_qp *qp, enum vb_verdict verdict, vb_psn psn);

/* rc_reply.c */
bool vb_rc_emit_reply(struct vb_qp *qp, struct vb_slot *slot);
/* The ACK that is owed. */
void vb_rc_emit_ack(struct vb_qp *qp, struct vb_slot *slot);
void vb_rc_let_ack_ride(struct vb_qp *qp,
			struct vb_slot *slot); /* the ACK that is owed, on a request */

/* rc_resource.c */
VB_MUST_USE vb_err vb_rc_resize_resources(struct vb_qp *qp, uint32_t count);
bool vb_rc_has_room(const struct vb_responder *responder); /* false: the peer has too many out */
struct vb_resource *vb_rc_claim_resource(struct vb_responder *responder); /* when there is room */
struct vb_resource *vb_rc_find_resource(struct vb_responder *responder, vb_psn psn);
struct vb_resource *vb_rc_next_pending(struct vb_responder *responder);
void vb_rc_drop_pending(struct vb_responder *responder);

/* rc_timers.c: the only place that knows what an event of the protocol does to the deadline */
void vb_rc_timers_on_packet_sent(struct vb_qp *qp);
void vb_rc_timers_on_progress(struct vb_qp *qp);
void vb_rc_timers_on_no_credits(struct vb_qp *qp); /* and nothing is out */
void vb_rc_timers_on_credits(struct vb_qp *qp);
void vb_rc_timers_on_rnr_nak(struct vb_qp *qp, uint8_t code);
void vb_rc_on_timer(struct vb_qp *qp);

/* Goes back to a PSN because a packet or its answer was lost, unless the retries are used up. */
void vb_rc_retry(struct vb_qp *qp, vb_psn psn);

#endif
