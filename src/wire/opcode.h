/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BTH opcodes and what each one carries. opcode.c is the only place that knows which headers
 * follow the BTH; lengths and offsets are computed from its table.
 */
#ifndef VB_WIRE_OPCODE_H
#define VB_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* The upper three bits of the opcode. */
enum vb_service {
	VB_SERVICE_RC = 0,
	VB_SERVICE_UC = 1,
	VB_SERVICE_RD = 2, /* unused in practice; recognised so that it can be refused */
	VB_SERVICE_UD = 3,
	VB_SERVICE_CNP = 4, /* congestion notification: 0x81 */
	VB_SERVICE_XRC = 5,
};

/* The lower five bits. */
enum vb_packet_op {
	VB_OP_SEND_FIRST = 0x00,
	VB_OP_SEND_MIDDLE = 0x01,
	VB_OP_SEND_LAST = 0x02,
	VB_OP_SEND_LAST_IMM = 0x03,
	VB_OP_SEND_ONLY = 0x04,
	VB_OP_SEND_ONLY_IMM = 0x05,
	VB_OP_WRITE_FIRST = 0x06,
	VB_OP_WRITE_MIDDLE = 0x07,
	VB_OP_WRITE_LAST = 0x08,
	VB_OP_WRITE_LAST_IMM = 0x09,
	VB_OP_WRITE_ONLY = 0x0a,
	VB_OP_WRITE_ONLY_IMM = 0x0b,
	VB_OP_READ_REQUEST = 0x0c,
	VB_OP_READ_RESPONSE_FIRST = 0x0d,
	VB_OP_READ_RESPONSE_MIDDLE = 0x0e,
	VB_OP_READ_RESPONSE_LAST = 0x0f,
	VB_OP_READ_RESPONSE_ONLY = 0x10,
	VB_OP_ACKNOWLEDGE = 0x11,
	VB_OP_ATOMIC_ACKNOWLEDGE = 0x12,
	VB_OP_COMPARE_SWAP = 0x13,
	VB_OP_FETCH_ADD = 0x14,
	VB_OP_SEND_LAST_INV = 0x16,
	VB_OP_SEND_ONLY_INV = 0x17,
	VB_OP_ATOMIC_WRITE = 0x1d,
};

#define VB_OPCODE(service, op) ((uint8_t)((service) << 5 | (op)))
#define VB_OPCODE_CNP 0x81

static inline enum vb_service vb_opcode_service(uint8_t opcode)
{
	return (enum vb_service)(opcode >> 5);
}

static inline enum vb_packet_op vb_opcode_op(uint8_t opcode)
{
	return (enum vb_packet_op)(opcode & 0x1f);
}

/*
 * The content of a row of the opcode table. The headers follow the BTH in the order of these bits.
 * A request of one packet is both FIRST and LAST, whether it is an ONLY, a READ_REQUEST or an
 * atomic; acknowledgements are neither.
 */
enum vb_opcode_trait {
	VB_HAS_DETH = 1 << 0,
	VB_HAS_XRCETH = 1 << 1,
	VB_HAS_RETH = 1 << 2,
	VB_HAS_ATOMICETH = 1 << 3,
	VB_HAS_AETH = 1 << 4,
	VB_HAS_ATOMICACKETH = 1 << 5,
	VB_HAS_IMM = 1 << 6,
	VB_HAS_IETH = 1 << 7,
	VB_HAS_EXTENSIONS = (1 << 8) - 1, /* any of these */
	VB_HAS_PAYLOAD = 1 << 8,
	VB_IS_KNOWN = 1 << 9,
	VB_IS_FIRST = 1 << 10, /* begins a message */
	VB_IS_LAST = 1 << 11, /* ends a message */
	VB_IS_SEND = 1 << 12,
	VB_IS_WRITE = 1 << 13,
	VB_IS_READ = 1 << 14, /* the request */
	VB_IS_ATOMIC = 1 << 15, /* COMPARE_SWAP or FETCH_ADD */
	VB_IS_ATOMIC_WRITE = 1 << 16,
	VB_IS_RESPONSE = 1 << 17, /* goes to the requester */
	VB_IS_READ_RESPONSE = 1 << 18,
};

/* Traits of an opcode; 0 for one that does not exist. */
uint32_t vb_opcode_traits(uint8_t opcode);

/* Bytes of all headers, including the BTH. */
uint32_t vb_opcode_header_length(uint8_t opcode);

/* "SEND_FIRST", "READ_RESPONSE_ONLY", "UD SEND_ONLY", … ; "?" for one that does not exist. */
const char *vb_opcode_describe(uint8_t opcode);

#endif
