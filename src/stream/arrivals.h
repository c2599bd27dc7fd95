/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of what arrives on an iWARP stream (RFC 5040, RFC 5041): which message a segment
 * belongs to, and whether it may come now. The machine knows no memory: it says what a right
 * segment is for, and its owner places the data, or refuses it for a reason of memory. What is
 * wrong gets the words of a Terminate, and ends everything that arrives.
 *
 * A SEND, a READ response and WRITEs may be under way at the same time: their segments cannot be
 * mixed up. RFC 5041 sends messages one after the other, but does not ask a receiver to check it.
 */
#ifndef VB_STREAM_ARRIVALS_H
#define VB_STREAM_ARRIVALS_H

#include "wire/rdmap.h"

#include <stdbool.h>
#include <stdint.h>

/* A READ of ours that waits for its response. */
struct vb_awaited_read {
	uint32_t stag; /* of the sink, as is offset */
	uint64_t offset;
	uint32_t length;
};

struct vb_arrivals {
	uint16_t ird; /* READs of the peer at the same time */
	uint16_t ord; /* READs of ours, and the size of the ring */
	uint16_t reads_in; /* not answered yet */
	bool is_over; /* a Terminate or an error has come */
	bool has_begun_send;
	uint8_t send_opcode; /* of the message under way */
	uint32_t send_msn; /* of the message under way, or of the next */
	uint32_t send_offset;
	uint32_t read_msn; /* of the next READ request */
	uint32_t response_offset; /* of the response under way */
	uint32_t awaited_first; /* indices count up and wrap */
	uint32_t awaited_end;
	struct vb_awaited_read *awaited; /* the owner's, ord of them */
};

enum vb_arrival_kind {
	VB_ARRIVAL_NOTHING, /* after an error, or a WRITE without data */
	VB_ARRIVAL_SEND,
	VB_ARRIVAL_WRITE,
	VB_ARRIVAL_READ_REQUEST, /* vb_arrivals_on_answered() when its response has left */
	VB_ARRIVAL_READ_RESPONSE, /* of the oldest READ that waits */
	VB_ARRIVAL_TERMINATE,
	VB_ARRIVAL_REFUSED,
};

struct vb_arrival {
	enum vb_arrival_kind kind;
	struct vb_rdmap_error error; /* VB_ARRIVAL_REFUSED */
	struct vb_rdmap segment;
	bool is_first; /* of its SEND: it takes a receive */
	bool is_last; /* of its SEND or READ response */
};

/* The ring is lent for as long as the machine is used; it may be NULL if ord is 0. */
void vb_arrivals_init(struct vb_arrivals *arrivals, uint16_t ird, uint16_t ord,
		      struct vb_awaited_read *awaited);

/* What a ULPDU is for, or why it is refused. */
void vb_arrivals_take(struct vb_arrivals *arrivals, const uint8_t *ulpdu, uint32_t length,
		      struct vb_arrival *arrival);

/* The owner refuses the last segment, or has lost the stream: nothing is taken any more. */
void vb_arrivals_end(struct vb_arrivals *arrivals);

/* Whether one more READ request may be sent, and that one was. */
bool vb_arrivals_can_await(const struct vb_arrivals *arrivals);
void vb_arrivals_await(struct vb_arrivals *arrivals, const struct vb_rdmap_read *read);

/* The response to the oldest READ of the peer has left. */
void vb_arrivals_on_answered(struct vb_arrivals *arrivals);

#endif
