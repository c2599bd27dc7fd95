/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The AETH syndrome: an ACK with end-to-end credits, an RNR NAK with a timer code, or a NAK with a
 * reason; and the two tables behind the codes.
 */
#ifndef VB_WIRE_SYNDROME_H
#define VB_WIRE_SYNDROME_H

#include <stdbool.h>
#include <stdint.h>

enum vb_syndrome_kind {
	VB_SYNDROME_ACK = 0x00, /* low five bits: credit code */
	VB_SYNDROME_RNR_NAK = 0x20, /* low five bits: timer code */
	VB_SYNDROME_RESERVED = 0x40,
	VB_SYNDROME_NAK = 0x60, /* low five bits: enum vb_nak */
};

/* IBA 9.7.5.2.2. */
enum vb_nak {
	VB_NAK_SEQUENCE = 0,
	VB_NAK_INVALID_REQUEST = 1,
	VB_NAK_REMOTE_ACCESS = 2,
	VB_NAK_REMOTE_OPERATION = 3,
	VB_NAK_INVALID_RD = 4,
};

/* The responder does no end-to-end flow control (it has an SRQ). */
#define VB_CREDIT_CODE_INVALID 31

static inline enum vb_syndrome_kind vb_syndrome_kind(uint8_t syndrome)
{
	return (enum vb_syndrome_kind)(syndrome & 0x60);
}

static inline uint8_t vb_syndrome_code(uint8_t syndrome)
{
	return syndrome & 0x1f;
}

/* The largest code whose credit count is not above `credits`. */
uint8_t vb_credit_code(uint32_t credits);

/* The credits that a code (0 to 30) stands for. */
uint32_t vb_credit_count(uint8_t code);

/* The waiting time that an RNR timer code (0 to 31) stands for; code 0 is the longest. */
uint64_t vb_rnr_timer_ns(uint8_t code);

/* "ACK credits=4", "RNR_NAK 0.64 ms", "NAK sequence", …; returns the length as snprintf does. */
int vb_syndrome_describe(uint8_t syndrome, char *text, uint32_t size);

#endif
