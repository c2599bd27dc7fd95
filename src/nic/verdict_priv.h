/* SPDX-License-Identifier: BSD-2-Clause */
/* The outcome of checking a request, and what follows from it on the wire and in the completion. */
#ifndef VB_NIC_VERDICT_PRIV_H
#define VB_NIC_VERDICT_PRIV_H

#include <stdint.h>

enum vb_verdict {
	VB_PASS = 0,
	VB_NOT_READY, /* no receive is posted: RNR NAK */
	VB_NOT_FETCHED, /* the data of a train could not be read: the peer sends it in packets */
	VB_INVALID_REQUEST, /* not well-formed, or not supported by the QP */
	VB_ACCESS_REFUSED, /* key, range, rights or PD */
	VB_OPERATION_FAILED, /* allowed, but the memory was gone */
	VB_RECEIVE_TOO_SHORT, /* the message does not fit into the posted receive (IBA 11.6.2) */
	VB_RECEIVE_REFUSED, /* the posted receive's own buffers failed the check */
};

/* How a responder acts on a verdict that ends its QP. */
struct vb_refusal {
	uint8_t nak; /* enum vb_nak */
	uint8_t receive_status; /* enum vb_status of the receive in use */
	uint8_t event; /* enum vb_event_kind, or VB_NO_EVENT */
	uint8_t counter; /* enum vb_counter */
};

#define VB_NO_EVENT 0xff

/* The row of the table for a verdict from VB_INVALID_REQUEST on. */
const struct vb_refusal *vb_refusal_of(enum vb_verdict verdict);

#endif
