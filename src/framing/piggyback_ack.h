/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A piggybacked ACK for the QP that a request is for. On a shared-memory link an ACK need not be a
 * packet of its own, which would cost as much as the request does: it travels in front of the
 * request, as two words in the CPU's byte order.
 */
#ifndef VB_FRAMING_PIGGYBACK_ACK_H
#define VB_FRAMING_PIGGYBACK_ACK_H

#include "wire/header.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VB_PIGGYBACK_ACK_SIZE 8
/* A bit above the PSN. A link may use those between: they are stored as 0, and not looked at. */
#define VB_NO_PIGGYBACK_ACK 0x80000000u

struct vb_piggyback_ack {
	bool is_there;
	vb_psn psn;
	struct vb_aeth aeth;
};

static inline void vb_piggyback_ack_store(uint8_t p[VB_PIGGYBACK_ACK_SIZE],
					  const struct vb_piggyback_ack *ack)
{
	uint32_t words[2] = { VB_NO_PIGGYBACK_ACK, 0 };

	if (ack->is_there) {
		words[0] = ack->psn.v;
		words[1] = (uint32_t)ack->aeth.syndrome << 24 | ack->aeth.msn;
	}
	memcpy(p, words, sizeof(words));
}

/* Any bytes are an ACK or none. */
static inline struct vb_piggyback_ack vb_piggyback_ack_load(const uint8_t p[VB_PIGGYBACK_ACK_SIZE])
{
	uint32_t words[2];

	memcpy(words, p, sizeof(words));
	return (struct vb_piggyback_ack){
		.is_there = !(words[0] & VB_NO_PIGGYBACK_ACK),
		.psn = { words[0] & VB_PSN_MASK },
		.aeth = { (uint8_t)(words[1] >> 24), words[1] & 0xffffff },
	};
}

#endif
