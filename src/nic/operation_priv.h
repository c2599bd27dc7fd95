/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations: what the opcode of a work request means. All properties of an operation are in
 * its row. Other files ask the row; they name an opcode only where it has code of its own.
 */
#ifndef VB_NIC_OPERATION_PRIV_H
#define VB_NIC_OPERATION_PRIV_H

#include "nic/request.h"

/* What a request needs from the peer, besides being acknowledged, to complete. */
enum vb_response {
	VB_RESPONSE_NONE = 0,
	VB_RESPONSE_EMPTY, /* a READ response without data */
	VB_RESPONSE_DATA, /* READ responses with as many bytes as it asked for */
	VB_RESPONSE_VALUE, /* the value that an atomic found */
};

enum vb_operation_trait {
	VB_OPERATION_RESPONSE = 3, /* enum vb_response, in these bits */
	VB_OPERATION_IS_LOCAL = 1 << 2, /* has no packets */
	VB_OPERATION_NEEDS_RECEIVE = 1 << 3, /* the peer takes a receive for it */
	VB_OPERATION_IS_WORD = 1 << 4, /* on 8 bytes, always */
	VB_OPERATION_MAY_BE_DIRECT = 1 << 5, /* nic/direct.c can execute it */
	VB_OPERATION_MAY_BE_TRAIN = 1 << 6, /* nic/train.c can send it */
	/* in no row: only in a request of the adapter's own (nic/rendezvous_priv.h) */
	VB_OPERATION_IS_OWN = 1 << 7,
};

/* The position of a packet in its request: in the middle, the last, the first, the only one. */
enum vb_position {
	VB_POSITION_MIDDLE = 0,
	VB_POSITION_LAST = 1,
	VB_POSITION_FIRST = 2,
	VB_POSITION_ONLY = VB_POSITION_FIRST | VB_POSITION_LAST,
	VB_POSITION_COUNT,
};

struct vb_operation {
	const char *name;
	uint16_t types; /* a bit for each enum vb_qp_type that has it; 0: there is no such opcode */
	uint8_t right; /* enum vb_access that the remote key must grant; 0: it has no remote key */
	uint8_t traits; /* enum vb_operation_trait */
	uint8_t completion; /* enum vb_completion_opcode */
	uint8_t packets[VB_POSITION_COUNT]; /* enum vb_packet_op, by position */
};

#define VB_OPERATION_COUNT (VB_WR_ATOMIC_WRITE + 1)

/* By enum vb_wr_opcode. A request with an opcode that has no row is never in a send queue. */
extern const struct vb_operation vb_operations[VB_OPERATION_COUNT];

static inline enum vb_response vb_traits_response(uint8_t traits)
{
	return (enum vb_response)(traits & VB_OPERATION_RESPONSE);
}

/* Whether the buffers of the request are where its response goes. */
static inline bool vb_traits_have_sink(uint8_t traits)
{
	return vb_traits_response(traits) >= VB_RESPONSE_DATA;
}

/* Whether the request sends what is in its buffers; this may be inline. */
static inline bool vb_traits_have_source(uint8_t traits)
{
	return !vb_traits_have_sink(traits) && !(traits & VB_OPERATION_IS_LOCAL);
}

#endif
