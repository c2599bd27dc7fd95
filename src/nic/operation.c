/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operation table: one row for every opcode of a work request. Opcodes that do not exist have
 * an empty row. tests/unit/test_operation.c states the same facts from the specification.
 */
#include "nic/operation_priv.h"

#include "nic/qp.h"
#include "wire/opcode.h"

/* Short names for the rows below. */
enum {
	RC = 1 << VB_QP_RC,
	RELIABLE = RC | 1 << VB_QP_XRC_SEND,
	CONNECTED = RELIABLE | 1 << VB_QP_UC,
	ALL = CONNECTED | 1 << VB_QP_UD,

	WRITE = VB_ACCESS_REMOTE_WRITE,
	READ = VB_ACCESS_REMOTE_READ,
	ATOMIC = VB_ACCESS_REMOTE_ATOMIC,

	EMPTY = VB_RESPONSE_EMPTY,
	DATA = VB_RESPONSE_DATA,
	VALUE = VB_RESPONSE_VALUE,

	LOCAL = VB_OPERATION_IS_LOCAL,
	RECEIVE = VB_OPERATION_NEEDS_RECEIVE,
	WORD = VB_OPERATION_IS_WORD,
	DIRECT = VB_OPERATION_MAY_BE_DIRECT,
	TRAIN = VB_OPERATION_MAY_BE_TRAIN,
};

/* One row on each line. */
/* clang-format off */

#define ROW(opcode, types, right, response, traits, completion, packets)   \
	[VB_WR_##opcode] = { #opcode, types, right, (response) | (traits), \
			     VB_COMPLETION_##completion, packets }

/* As many packets as the data needs. The last one, or the only one, may have one more header. */
#define MANY(kind, header)                                          \
	{                                                           \
		[VB_POSITION_FIRST]  = VB_OP_##kind##_FIRST,        \
		[VB_POSITION_MIDDLE] = VB_OP_##kind##_MIDDLE,       \
		[VB_POSITION_LAST]   = VB_OP_##kind##_LAST##header, \
		[VB_POSITION_ONLY]   = VB_OP_##kind##_ONLY##header, \
	}

/* One packet. Issued again for the rest of its data, a READ is not at its first PSN. */
#define ONE(op) { [VB_POSITION_LAST] = VB_OP_##op, [VB_POSITION_ONLY] = VB_OP_##op }
#define NONE { 0 }

const struct vb_operation vb_operations[VB_OPERATION_COUNT] = {
	/*  opcode        QP types   right   response
	 *                                          traits           completion    packets */
	ROW(SEND,         ALL,       0,      0,     RECEIVE | TRAIN, SEND,         MANY(SEND, )),
	ROW(SEND_IMM,     ALL,       0,      0,     RECEIVE | TRAIN, SEND,         MANY(SEND, _IMM)),
	ROW(SEND_INV,     RELIABLE,  0,      0,     RECEIVE | TRAIN, SEND,         MANY(SEND, _INV)),
	ROW(WRITE,        CONNECTED, WRITE,  0,     DIRECT,          WRITE,        MANY(WRITE, )),
	ROW(WRITE_IMM,    CONNECTED, WRITE,  0,     RECEIVE,         WRITE,        MANY(WRITE, _IMM)),
	ROW(READ,         RELIABLE,  READ,   DATA,  DIRECT,          READ,         ONE(READ_REQUEST)),
	ROW(COMPARE_SWAP, RELIABLE,  ATOMIC, VALUE, DIRECT | WORD,   COMPARE_SWAP, ONE(COMPARE_SWAP)),
	ROW(FETCH_ADD,    RELIABLE,  ATOMIC, VALUE, DIRECT | WORD,   FETCH_ADD,    ONE(FETCH_ADD)),
	ROW(ATOMIC_WRITE, RC,        WRITE,  EMPTY, WORD,            ATOMIC_WRITE, ONE(ATOMIC_WRITE)),
	ROW(LOCAL_INV,    CONNECTED, 0,      0,     LOCAL,           LOCAL_INV,    NONE),
	ROW(BIND_MW,      CONNECTED, 0,      0,     LOCAL,           BIND_MW,      NONE),
};

/* clang-format on */

const char *vb_wr_opcode_describe(uint8_t opcode)
{
	return opcode < VB_OPERATION_COUNT && vb_operations[opcode].name
		       ? vb_operations[opcode].name
		       : "?";
}
