/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operation table against the facts of the specification and of the verbs API. They are stated
 * here the other way round, as the operations that have a property, and with numbers for names.
 */
#include "harness.h"
#include "nic/operation_priv.h"
#include "nic/qp.h"
#include "wire/opcode.h"

#include <string.h>

#define SET(opcode) (1u << VB_WR_##opcode)
#define SENDS (SET(SEND) | SET(SEND_IMM) | SET(SEND_INV))
#define WRITES (SET(WRITE) | SET(WRITE_IMM))
#define ATOMICS (SET(COMPARE_SWAP) | SET(FETCH_ADD))
#define LOCALS (SET(LOCAL_INV) | SET(BIND_MW))
#define EVERYTHING (SENDS | WRITES | SET(READ) | ATOMICS | SET(ATOMIC_WRITE) | LOCALS)

/* The set of all operations that the function is true for. */
static uint32_t those(bool (*is_one)(uint8_t traits))
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < VB_OPERATION_COUNT; i++)
		if (vb_operations[i].types && is_one(vb_operations[i].traits))
			set |= 1u << i;
	return set;
}

static uint32_t those_of(enum vb_qp_type type)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < VB_OPERATION_COUNT; i++)
		set |= (vb_operations[i].types >> type & 1u) << i;
	return set;
}

static uint32_t those_with_right(uint32_t right)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < VB_OPERATION_COUNT; i++)
		if (vb_operations[i].types && vb_operations[i].right == right)
			set |= 1u << i;
	return set;
}

static uint32_t those_with_response(enum vb_response response)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < VB_OPERATION_COUNT; i++)
		if (vb_operations[i].types &&
		    vb_traits_response(vb_operations[i].traits) == response)
			set |= 1u << i;
	return set;
}

static uint32_t those_with(enum vb_operation_trait trait)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < VB_OPERATION_COUNT; i++)
		if (vb_operations[i].traits & trait)
			set |= 1u << i;
	return set;
}

TEST(a_type_of_qp_has_the_operations_of_its_service)
{
	EXPECT_EQ(those_of(VB_QP_RC), EVERYTHING);
	EXPECT_EQ(those_of(VB_QP_XRC_SEND), EVERYTHING & ~SET(ATOMIC_WRITE));
	EXPECT_EQ(those_of(VB_QP_UC), SET(SEND) | SET(SEND_IMM) | WRITES | LOCALS);
	EXPECT_EQ(those_of(VB_QP_UD), SET(SEND) | SET(SEND_IMM));
	EXPECT_EQ(those_of(VB_QP_XRC_RECV), 0);
}

TEST(a_remote_key_must_grant_what_the_operation_does)
{
	EXPECT_EQ(those_with_right(VB_ACCESS_REMOTE_WRITE), WRITES | SET(ATOMIC_WRITE));
	EXPECT_EQ(those_with_right(VB_ACCESS_REMOTE_READ), SET(READ));
	EXPECT_EQ(those_with_right(VB_ACCESS_REMOTE_ATOMIC), ATOMICS);
	EXPECT_EQ(those_with_right(0), SENDS | LOCALS);
}

TEST(reads_and_atomics_have_a_response)
{
	EXPECT_EQ(those_with_response(VB_RESPONSE_DATA), SET(READ));
	EXPECT_EQ(those_with_response(VB_RESPONSE_VALUE), ATOMICS);
	EXPECT_EQ(those_with_response(VB_RESPONSE_EMPTY), SET(ATOMIC_WRITE));
	EXPECT_EQ(those_with_response(VB_RESPONSE_NONE), SENDS | WRITES | LOCALS);
}

TEST(sends_and_writes_with_immediate_take_a_receive)
{
	EXPECT_EQ(those_with(VB_OPERATION_NEEDS_RECEIVE), SENDS | SET(WRITE_IMM));
}

TEST(atomics_and_atomic_writes_are_on_eight_bytes)
{
	EXPECT_EQ(those_with(VB_OPERATION_IS_WORD), ATOMICS | SET(ATOMIC_WRITE));
}

TEST(buffers_are_a_source_or_a_sink_or_not_used)
{
	EXPECT_EQ(those(vb_traits_have_source), SENDS | WRITES | SET(ATOMIC_WRITE));
	EXPECT_EQ(those(vb_traits_have_sink), SET(READ) | ATOMICS);
	EXPECT_EQ(those_with(VB_OPERATION_IS_LOCAL), LOCALS);
}

/* Its target runs no code and so takes no receive. */
TEST(what_the_initiator_executes_itself_is_one_sided)
{
	EXPECT_EQ(those_with(VB_OPERATION_MAY_BE_DIRECT), SET(WRITE) | SET(READ) | ATOMICS);
}

/* Its target runs code, which can read the data. */
TEST(what_a_local_peer_may_read_by_reference_is_a_send)
{
	EXPECT_EQ(those_with(VB_OPERATION_MAY_BE_TRAIN), SENDS);
}

/* clang-format off */
static const struct {
	enum vb_wr_opcode opcode;
	const char *name;
	uint8_t completion;			/* enum ibv_wc_opcode */
	uint8_t first, middle, last, only;	/* the lower five bits of the BTH opcode */
} facts[] = {
	{ VB_WR_SEND,         "SEND",         0, 0x00, 0x01, 0x02, 0x04 },
	{ VB_WR_SEND_IMM,     "SEND_IMM",     0, 0x00, 0x01, 0x03, 0x05 },
	{ VB_WR_SEND_INV,     "SEND_INV",     0, 0x00, 0x01, 0x16, 0x17 },
	{ VB_WR_WRITE,        "WRITE",        1, 0x06, 0x07, 0x08, 0x0a },
	{ VB_WR_WRITE_IMM,    "WRITE_IMM",    1, 0x06, 0x07, 0x09, 0x0b },
	{ VB_WR_READ,         "READ",         2, 0,    0,    0x0c, 0x0c },
	{ VB_WR_COMPARE_SWAP, "COMPARE_SWAP", 3, 0,    0,    0x13, 0x13 },
	{ VB_WR_FETCH_ADD,    "FETCH_ADD",    4, 0,    0,    0x14, 0x14 },
	{ VB_WR_BIND_MW,      "BIND_MW",      5, 0,    0,    0,    0    },
	{ VB_WR_LOCAL_INV,    "LOCAL_INV",    6, 0,    0,    0,    0    },
	{ VB_WR_ATOMIC_WRITE, "ATOMIC_WRITE", 9, 0,    0,    0x1d, 0x1d },
};
/* clang-format on */

enum { FACT_COUNT = sizeof(facts) / sizeof(facts[0]) };

TEST(an_operation_has_the_packets_and_the_completion_of_the_specification)
{
	for (uint32_t i = 0; i < FACT_COUNT; i++) {
		const struct vb_operation *row = &vb_operations[facts[i].opcode];

		EXPECT_EQ(row->completion, facts[i].completion);
		EXPECT_EQ(row->packets[VB_POSITION_FIRST], facts[i].first);
		EXPECT_EQ(row->packets[VB_POSITION_MIDDLE], facts[i].middle);
		EXPECT_EQ(row->packets[VB_POSITION_LAST], facts[i].last);
		EXPECT_EQ(row->packets[VB_POSITION_ONLY], facts[i].only);
	}
}

TEST(only_operations_that_exist_have_a_row_and_a_name)
{
	for (uint32_t i = 0; i < VB_OPERATION_COUNT; i++)
		EXPECT_EQ(vb_operations[i].types != 0, EVERYTHING >> i & 1);
	for (uint32_t i = 0; i < 256; i++)
		EXPECT_EQ(strcmp(vb_wr_opcode_describe((uint8_t)i), "?") != 0,
			  i < 32 && EVERYTHING >> i & 1);
	for (uint32_t i = 0; i < FACT_COUNT; i++)
		EXPECT_STR(vb_wr_opcode_describe((uint8_t)facts[i].opcode), facts[i].name);
}

/* A remote key is in the first packet; the last one says whether an immediate follows. */
TEST(packets_carry_the_headers_that_their_operation_needs)
{
	for (uint32_t i = 0; i < FACT_COUNT; i++) {
		const struct vb_operation *row = &vb_operations[facts[i].opcode];
		uint32_t set = 1u << facts[i].opcode;
		uint8_t only = row->packets[VB_POSITION_ONLY];
		uint32_t traits = vb_opcode_traits(VB_OPCODE(VB_SERVICE_RC, only));

		if (set & LOCALS)
			continue;
		EXPECT_EQ((traits & (VB_HAS_RETH | VB_HAS_ATOMICETH)) != 0, row->right != 0);
		EXPECT_EQ((traits & VB_HAS_ATOMICETH) != 0, (set & ATOMICS) != 0);
		EXPECT_EQ((traits & VB_HAS_IMM) != 0,
			  (set & (SET(SEND_IMM) | SET(WRITE_IMM))) != 0);
		EXPECT_EQ((traits & VB_HAS_IETH) != 0, set == SET(SEND_INV));
		EXPECT_EQ((traits & VB_HAS_PAYLOAD) != 0, vb_traits_have_source(row->traits));
	}
}
