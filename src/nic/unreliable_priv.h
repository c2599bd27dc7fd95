/* SPDX-License-Identifier: BSD-2-Clause */
/* The unreliable transports, and the parts of the work that UC shares with RC. */
#ifndef VB_NIC_UNRELIABLE_PRIV_H
#define VB_NIC_UNRELIABLE_PRIV_H

#include "nic/payload_priv.h"
#include "nic/qp_priv.h"

/* uc.c */
bool vb_uc_emit(struct vb_qp *qp, struct vb_slot *slot);
void vb_uc_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet);

/* unreliable.c: the end of a request that has no acknowledgement */
void vb_unreliable_on_sent(struct vb_qp *qp); /* the request at send_index is sent, or done */
void vb_unreliable_complete_sent(struct vb_qp *qp);
/*
 * The request at send_index cannot be sent. False if reporting it must wait for the completion of
 * the requests before it.
 */
bool vb_unreliable_fail(struct vb_qp *qp, enum vb_status status);

/* ud.c. vb_ud_emit() returns false if it put nothing in the slot, also if the request failed. */
bool vb_ud_emit(struct vb_qp *qp, struct vb_slot *slot);
void vb_ud_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet);

/* request.c: packets of a request */
void vb_request_start(struct vb_qp *qp, struct vb_wqe *wqe); /* assigns its PSNs */
enum vb_status vb_request_execute_local(struct vb_qp *qp, struct vb_wqe *wqe);
/*
 * Builds a SEND of RC that is about to start by copying it into one packet, which asks for an ACK.
 * False if it takes vb_request_build().
 */
bool vb_request_build_short(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_slot *slot);
enum vb_verdict vb_request_build(struct vb_qp *qp, const struct vb_wqe *wqe, bool ask_for_ack,
				 struct vb_cursor *cursor, struct vb_slot *slot);
/*
 * Builds a train of the next packets of a SEND, which asks for an ACK. False: its buffers cannot be
 * referred to.
 */
bool vb_request_build_train(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t packet_count,
			    struct vb_cursor *cursor, struct vb_slot *slot);

/* message.c: executing SENDs and WRITEs */
enum vb_verdict vb_message_admit(struct vb_qp *qp, const struct vb_frame *frame,
				 const struct vb_packet *packet);
enum vb_verdict vb_message_send(struct vb_qp *qp, const struct vb_frame *frame,
				const struct vb_packet *packet);
enum vb_verdict vb_message_write(struct vb_qp *qp, const struct vb_frame *frame,
				 const struct vb_packet *packet);

#endif
