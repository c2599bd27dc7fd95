/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flights: what RC requests have in flight to one receiver, across all QPs. They are bounded
 * because a receiver has one buffer for all QPs and RC has no window of its own. A receiver is a
 * GID and the bits of the QPN that it steers by. Receivers are hashed into a table; two that
 * collide in one entry share its bound, which does no harm. When an entry is full, QPs queue, and
 * only the QP that has the turn may send.
 */
#ifndef VB_NIC_FLIGHT_PRIV_H
#define VB_NIC_FLIGHT_PRIV_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_FLIGHT_COUNT 1024
/* Bytes that a receiver's kernel keeps beside the bytes of a packet; an upper estimate. */
#define VB_FLIGHT_PACKET_OVERHEAD 1024

struct vb_nic;
struct vb_qp;

struct vb_flight {
	uint64_t bytes; /* in flight; each packet counts as if it were full */
	struct vb_list_node waiting; /* QPs that found it full, in order of arrival */
	struct vb_qp *turn; /* the waiting QP that may send now */
};

void vb_flight_init(struct vb_flight *flight);

/*
 * The QP's receiver, MTU and timeout are known now. They determine how much it may have in flight,
 * alone and together with other QPs.
 */
void vb_flight_enter(struct vb_qp *qp);
/* The QP no longer has anything in flight and waits for nothing. */
void vb_flight_leave(struct vb_qp *qp);

/*
 * vb_flight_wait(): a full flight held the QP back, so it queues. vb_flight_end_turn(): the QP was
 * not held back, and the next QP may use the room that is left.
 */
void vb_flight_wait(struct vb_qp *qp);
void vb_flight_end_turn(struct vb_qp *qp);

/* Gives the turn to the first waiting QP, if there is room and no QP has the turn. */
void vb_flight_wake(const struct vb_nic *nic, struct vb_flight *flight);

#endif
