/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table: one row for every opcode that exists, indexed by the opcode. The rows of a
 * service are written once and repeated for every service that has them; XRC differs from RC in
 * that its requests name an SRQ. RD and everything unassigned have an empty row. A row's header
 * length is computed by the compiler.
 */
#include "wire/opcode.h"

#include "wire/header.h"

struct row {
	uint32_t traits;
	uint32_t header_length;
	const char *name;
};

#define SIZE_IF(traits, trait, size) ((traits) & (trait) ? (size) : 0)

#define HEADER_LENGTH(t)                                                                           \
	(VB_BTH_SIZE + SIZE_IF(t, VB_HAS_DETH, VB_DETH_SIZE) +                                     \
	 SIZE_IF(t, VB_HAS_XRCETH, VB_XRCETH_SIZE) + SIZE_IF(t, VB_HAS_RETH, VB_RETH_SIZE) +       \
	 SIZE_IF(t, VB_HAS_ATOMICETH, VB_ATOMICETH_SIZE) + SIZE_IF(t, VB_HAS_AETH, VB_AETH_SIZE) + \
	 SIZE_IF(t, VB_HAS_ATOMICACKETH, VB_ATOMICACKETH_SIZE) +                                   \
	 SIZE_IF(t, VB_HAS_IMM, VB_IMM_SIZE) + SIZE_IF(t, VB_HAS_IETH, VB_IETH_SIZE))

#define ROW(opcode, text, t)                            \
	[opcode] = { .traits = (t) | VB_IS_KNOWN,       \
		     .header_length = HEADER_LENGTH(t), \
		     .name = (text) }

#define SERVICE_ROW(service, prefix, op, t) ROW(VB_OPCODE(service, VB_OP_##op), prefix #op, t)

/* Short names for the rows below. */
enum {
	FIRST = VB_IS_FIRST,
	LAST = VB_IS_LAST,
	ONLY = VB_IS_FIRST | VB_IS_LAST,
	SEND = VB_IS_SEND | VB_HAS_PAYLOAD,
	WRITE = VB_IS_WRITE | VB_HAS_PAYLOAD,
	READ_RESPONSE = VB_IS_RESPONSE | VB_IS_READ_RESPONSE | VB_HAS_PAYLOAD,
	ATOMIC = VB_IS_ATOMIC | VB_HAS_ATOMICETH | ONLY,
	RETH = VB_HAS_RETH,
	AETH = VB_HAS_AETH,
	RESULT = VB_HAS_ATOMICACKETH,
	IMM = VB_HAS_IMM,
	IETH = VB_HAS_IETH,
};

/* One row on each line. */
/* clang-format off */

/* What RC, UC and XRC have in common; `x` is the extra header of XRC's requests. */
#define SEND_AND_WRITE_ROWS(service, prefix, x)                                           \
	SERVICE_ROW(service, prefix, SEND_FIRST, (x) | SEND | FIRST),                     \
	SERVICE_ROW(service, prefix, SEND_MIDDLE, (x) | SEND),                            \
	SERVICE_ROW(service, prefix, SEND_LAST, (x) | SEND | LAST),                       \
	SERVICE_ROW(service, prefix, SEND_LAST_IMM, (x) | SEND | LAST | IMM),             \
	SERVICE_ROW(service, prefix, SEND_ONLY, (x) | SEND | ONLY),                       \
	SERVICE_ROW(service, prefix, SEND_ONLY_IMM, (x) | SEND | ONLY | IMM),             \
	SERVICE_ROW(service, prefix, WRITE_FIRST, (x) | WRITE | FIRST | RETH),            \
	SERVICE_ROW(service, prefix, WRITE_MIDDLE, (x) | WRITE),                          \
	SERVICE_ROW(service, prefix, WRITE_LAST, (x) | WRITE | LAST),                     \
	SERVICE_ROW(service, prefix, WRITE_LAST_IMM, (x) | WRITE | LAST | IMM),           \
	SERVICE_ROW(service, prefix, WRITE_ONLY, (x) | WRITE | ONLY | RETH),              \
	SERVICE_ROW(service, prefix, WRITE_ONLY_IMM, (x) | WRITE | ONLY | RETH | IMM)

/* What only the reliable services have. */
#define RELIABLE_ROWS(service, prefix, x)                                                 \
	SERVICE_ROW(service, prefix, READ_REQUEST, (x) | VB_IS_READ | ONLY | RETH),       \
	SERVICE_ROW(service, prefix, READ_RESPONSE_FIRST, READ_RESPONSE | FIRST | AETH),  \
	SERVICE_ROW(service, prefix, READ_RESPONSE_MIDDLE, READ_RESPONSE),                \
	SERVICE_ROW(service, prefix, READ_RESPONSE_LAST, READ_RESPONSE | LAST | AETH),    \
	SERVICE_ROW(service, prefix, READ_RESPONSE_ONLY, READ_RESPONSE | ONLY | AETH),    \
	SERVICE_ROW(service, prefix, ACKNOWLEDGE, VB_IS_RESPONSE | AETH),                 \
	SERVICE_ROW(service, prefix, ATOMIC_ACKNOWLEDGE, VB_IS_RESPONSE | AETH | RESULT), \
	SERVICE_ROW(service, prefix, COMPARE_SWAP, (x) | ATOMIC),                         \
	SERVICE_ROW(service, prefix, FETCH_ADD, (x) | ATOMIC),                            \
	SERVICE_ROW(service, prefix, SEND_LAST_INV, (x) | SEND | LAST | IETH),            \
	SERVICE_ROW(service, prefix, SEND_ONLY_INV, (x) | SEND | ONLY | IETH)

static const struct row rows[256] = {
	SEND_AND_WRITE_ROWS(VB_SERVICE_RC, "", 0),
	RELIABLE_ROWS(VB_SERVICE_RC, "", 0),
	SERVICE_ROW(VB_SERVICE_RC, "", ATOMIC_WRITE,
		    VB_IS_ATOMIC_WRITE | ONLY | RETH | VB_HAS_PAYLOAD),

	SEND_AND_WRITE_ROWS(VB_SERVICE_UC, "UC ", 0),

	SERVICE_ROW(VB_SERVICE_UD, "UD ", SEND_ONLY, VB_HAS_DETH | SEND | ONLY),
	SERVICE_ROW(VB_SERVICE_UD, "UD ", SEND_ONLY_IMM, VB_HAS_DETH | SEND | ONLY | IMM),

	SEND_AND_WRITE_ROWS(VB_SERVICE_XRC, "XRC ", VB_HAS_XRCETH),
	RELIABLE_ROWS(VB_SERVICE_XRC, "XRC ", VB_HAS_XRCETH),

	/* The 16 reserved bytes after a CNP's BTH (IBA A17.9.3) count as its payload. */
	ROW(VB_OPCODE_CNP, "CNP", VB_HAS_PAYLOAD),
};

/* clang-format on */

uint32_t vb_opcode_traits(uint8_t opcode)
{
	return rows[opcode].traits;
}

uint32_t vb_opcode_header_length(uint8_t opcode)
{
	return rows[opcode].header_length;
}

const char *vb_opcode_describe(uint8_t opcode)
{
	return rows[opcode].name ? rows[opcode].name : "?";
}
