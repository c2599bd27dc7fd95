/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trains: long SENDs of RC and XRC to a local peer. The peer's engine copies the data from the
 * sender's memory, so that it is copied once and not through the shared-memory link.
 */
#ifndef VB_NIC_TRAIN_PRIV_H
#define VB_NIC_TRAIN_PRIV_H

#include "nic/payload_priv.h"
#include "nic/qp_priv.h"

#define VB_TRAIN_LENGTH_LIMIT (1u << 20) /* of the data of a train, in bytes */

/* How many packets of the SEND, from next_psn on, go as a train now; 0: none. */
uint32_t vb_train_choose(struct vb_qp *qp, const struct vb_wqe *wqe);
/* The train in the slot goes out; next_psn is behind it. */
void vb_train_on_sent(struct vb_qp *qp, const struct vb_slot *slot);
/*
 * The peer wants the packets from `unacked` on again. True if they went in trains: then the peer
 * could not read them, and no packet was lost.
 */
bool vb_train_on_nak(struct vb_qp *qp);
/* For a QP whose messages are timed: the request at done_index was acknowledged. */
void vb_train_on_acknowledged(struct vb_qp *qp, const struct vb_wqe *wqe);
/* … and: it goes back to send packets again. */
void vb_train_on_repeat(struct vb_qp *qp);

/* A train has come. */
void vb_train_receive(struct vb_nic *nic, const struct vb_frame *frame);
/*
 * Copies the data of a train to the buffers of a receive, from the responder's cursor on, and
 * advances the cursor. False if that cannot be done; some bytes may have been written.
 */
bool vb_train_fetch(struct vb_qp *qp, const struct vb_frame *frame, const struct vb_sgl *sgl,
		    uint32_t length);

#endif
