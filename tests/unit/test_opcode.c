/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table against a second one, written as header lengths per service, and against itself:
 * a row's name, traits and length must agree.
 */
#include "harness.h"
#include "wire/header.h"
#include "wire/opcode.h"

#include <string.h>

/* What follows the BTH, in bytes, for the 32 operations of RC; -1 for those that do not exist. */
/* clang-format off */
static const int rc_extension_sizes[32] = {
	0, 0, 0, 4, 0, 4,	/* SEND: first, middle, last, last imm, only, only imm */
	16, 0, 0, 4, 16, 20,	/* WRITE, likewise */
	16,			/* READ request */
	4, 0, 4, 4,		/* READ response: first, middle, last, only */
	4, 12,			/* acknowledge, atomic acknowledge */
	28, 28,			/* compare and swap, fetch and add */
	-1, 4, 4,		/* SEND with invalidate: last, only */
	-1, -1, -1, -1, -1,	/* 0x1c is FLUSH, which is not supported */
	16,			/* atomic write */
	-1, -1,
};
/* clang-format on */

static bool is_response(int op)
{
	return op >= 0x0d && op <= 0x12;
}

static int expected_length(uint8_t opcode)
{
	int op = opcode & 0x1f;
	int size = rc_extension_sizes[op];

	if (opcode == 0x81)
		return 12;
	switch (opcode >> 5) {
	case 0:
		break;
	case 1:
		size = op <= 0x0b ? size : -1;
		break;
	case 3:
		size = op == 4 || op == 5 ? size + 8 : -1;
		break;
	case 5:
		size = op == 0x1d || size < 0 ? -1 : size + (is_response(op) ? 0 : 4);
		break;
	default:
		size = -1;
	}
	return size < 0 ? 0 : 12 + size;
}

TEST(every_opcode_has_the_header_length_of_the_specification)
{
	for (int opcode = 0; opcode < 256; opcode++)
		EXPECT_EQ(vb_opcode_header_length((uint8_t)opcode),
			  expected_length((uint8_t)opcode));
}

TEST(an_opcode_exists_exactly_if_it_has_traits_a_length_and_a_name)
{
	int count = 0;

	for (int i = 0; i < 256; i++) {
		uint8_t opcode = (uint8_t)i;
		bool exists = expected_length(opcode) != 0;

		EXPECT_EQ(vb_opcode_traits(opcode) != 0, exists);
		EXPECT_EQ((vb_opcode_traits(opcode) & VB_IS_KNOWN) != 0, exists);
		EXPECT_EQ(strcmp(vb_opcode_describe(opcode), "?") != 0, exists);
		count += exists;
	}
	EXPECT_EQ(count, 24 + 12 + 2 + 23 + 1); /* RC, UC, UD, XRC, CNP */
}

static uint32_t size_if(uint32_t traits, uint32_t trait, uint32_t size)
{
	return traits & trait ? size : 0;
}

TEST(the_length_is_the_sum_of_the_headers_that_the_traits_name)
{
	for (int i = 0; i < 256; i++) {
		uint32_t t = vb_opcode_traits((uint8_t)i);

		if (!t)
			continue;
		EXPECT_EQ(vb_opcode_header_length((uint8_t)i),
			  12 + size_if(t, VB_HAS_DETH, 8) + size_if(t, VB_HAS_XRCETH, 4) +
				  size_if(t, VB_HAS_RETH, 16) + size_if(t, VB_HAS_ATOMICETH, 28) +
				  size_if(t, VB_HAS_AETH, 4) + size_if(t, VB_HAS_ATOMICACKETH, 8) +
				  size_if(t, VB_HAS_IMM, 4) + size_if(t, VB_HAS_IETH, 4));
	}
}

static bool has(uint8_t opcode, const char *word)
{
	return strstr(vb_opcode_describe(opcode), word) != NULL;
}

static bool is(uint8_t opcode, uint32_t trait)
{
	return (vb_opcode_traits(opcode) & trait) != 0;
}

TEST(traits_agree_with_the_name)
{
	for (int i = 0; i < 256; i++) {
		uint8_t opcode = (uint8_t)i;
		bool whole = has(opcode, "ONLY") || has(opcode, "READ_REQUEST") ||
			     has(opcode, "COMPARE_SWAP") || has(opcode, "FETCH_ADD") ||
			     has(opcode, "ATOMIC_WRITE");
		bool atomic_write = has(opcode, "ATOMIC_WRITE");
		bool write = has(opcode, "WRITE_") && !atomic_write;

		EXPECT_EQ(is(opcode, VB_IS_FIRST), has(opcode, "FIRST") || whole);
		EXPECT_EQ(is(opcode, VB_IS_LAST), has(opcode, "LAST") || whole);
		EXPECT_EQ(is(opcode, VB_IS_SEND), has(opcode, "SEND_"));
		EXPECT_EQ(is(opcode, VB_IS_WRITE), write);
		EXPECT_EQ(is(opcode, VB_IS_READ), has(opcode, "READ_REQUEST"));
		EXPECT_EQ(is(opcode, VB_IS_READ_RESPONSE), has(opcode, "READ_RESPONSE"));
		EXPECT_EQ(is(opcode, VB_IS_ATOMIC),
			  has(opcode, "COMPARE_SWAP") || has(opcode, "FETCH_ADD"));
		EXPECT_EQ(is(opcode, VB_IS_ATOMIC_WRITE), atomic_write);
		EXPECT_EQ(is(opcode, VB_IS_RESPONSE),
			  has(opcode, "RESPONSE") || has(opcode, "ACKNOWLEDGE"));
		EXPECT_EQ(is(opcode, VB_HAS_IMM), has(opcode, "_IMM"));
		EXPECT_EQ(is(opcode, VB_HAS_IETH), has(opcode, "_INV"));
		EXPECT_EQ(is(opcode, VB_HAS_DETH), has(opcode, "UD "));
		EXPECT_EQ(is(opcode, VB_HAS_PAYLOAD), has(opcode, "SEND") || write ||
							      atomic_write || has(opcode, "CNP") ||
							      has(opcode, "READ_RESPONSE"));
	}
}

TEST(xrc_requests_name_an_srq_and_xrc_responses_do_not)
{
	for (int op = 0; op < 32; op++) {
		uint8_t opcode = VB_OPCODE(VB_SERVICE_XRC, op);

		if (vb_opcode_traits(opcode))
			EXPECT_EQ(is(opcode, VB_HAS_XRCETH), !is(opcode, VB_IS_RESPONSE));
	}
}

TEST(names_are_those_of_the_operations)
{
	EXPECT_STR(vb_opcode_describe(VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_FIRST)), "SEND_FIRST");
	EXPECT_STR(vb_opcode_describe(0x10), "READ_RESPONSE_ONLY");
	EXPECT_STR(vb_opcode_describe(0x2b), "UC WRITE_ONLY_IMM");
	EXPECT_STR(vb_opcode_describe(0x64), "UD SEND_ONLY");
	EXPECT_STR(vb_opcode_describe(0xb3), "XRC COMPARE_SWAP");
	EXPECT_STR(vb_opcode_describe(VB_OPCODE_CNP), "CNP");
	EXPECT_STR(vb_opcode_describe(0x15), "?");
	EXPECT_STR(vb_opcode_describe(0x44), "?");
}

TEST(an_opcode_is_a_service_and_an_operation)
{
	for (int i = 0; i < 256; i++) {
		uint8_t opcode = (uint8_t)i;

		EXPECT_EQ(VB_OPCODE(vb_opcode_service(opcode), vb_opcode_op(opcode)), opcode);
	}
	EXPECT_EQ(vb_opcode_service(VB_OPCODE_CNP), VB_SERVICE_CNP);
}
