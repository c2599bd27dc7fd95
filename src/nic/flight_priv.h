/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RC's requests have on their way to one receiver, across all QPs: a receiver's buffer is one, and RC has no window
 * of its own. A receiver is a GID and the bits of the QPN that it steers by. They share a table by their hash; two that meet in
 * one entry share its bound, which harms nothing. When an entry is full, QPs stand in line, and only the one
 * whose turn it is may send.
 */
#ifndef VB_NIC_FLIGHT_PRIV_H
#define VB_NIC_FLIGHT_PRIV_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_FLIGHT_COUNT 1024
#define VB_FLIGHT_PACKET_OVERHEAD \
	1024 /* what a receiver's kernel keeps beside the bytes of a packet, or less */

struct vb_nic;
struct vb_qp;

struct vb_flight {
	uint64_t bytes; /* on their way; a packet counts as if it were full */
	struct vb_link waiting; /* QPs that found it full, first come first */
	struct vb_qp *turn; /* the one of them that may send now */
};

void vb_flight_init(struct vb_flight *flight);

/* The QP's receiver, MTU and timeout are known now: so is what it may have out, alone and with others. */
void vb_flight_enter(struct vb_qp *qp);
/* It has nothing on its way any more and waits for nothing. */
void vb_flight_leave(struct vb_qp *qp);

/* It was held by a flight that is full and stands in line; or it was not, and the next one may use what room there is. */
void vb_flight_wait(struct vb_qp *qp);
void vb_flight_pass(struct vb_qp *qp);

/* Gives the turn to the first in line, if there is room and nobody has it. */
void vb_flight_wake(const struct vb_nic *nic, struct vb_flight *flight);

#endif
