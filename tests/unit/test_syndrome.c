/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the AETH, computed in another way than they are written. */
#include "harness.h"
#include "wire/syndrome.h"

#include <string.h>

/* The RNR waiting times as the specification lists them, in hundredths of a millisecond. */
static uint64_t rnr_timer_hundredths(int code)
{
	uint64_t power = 1;

	if (code == 0)
		return 65536;
	if (code == 1)
		return 1;
	for (int i = 2; i <= code; i += 2)
		power *= 2;
	return code % 2 ? power + power / 2 : power;
}

TEST(rnr_timers_double_with_every_second_code_and_code_0_is_the_longest)
{
	for (int code = 0; code < 32; code++)
		EXPECT_EQ(vb_rnr_timer_ns((uint8_t)code), rnr_timer_hundredths(code) * 10000);
	EXPECT_EQ(vb_rnr_timer_ns(0), 655360000);
	EXPECT_EQ(vb_rnr_timer_ns(1), 10000);
	EXPECT_EQ(vb_rnr_timer_ns(12), 640000);
	EXPECT_EQ(vb_rnr_timer_ns(31), 491520000);
}

TEST(credits_double_with_every_second_code)
{
	for (uint8_t code = 0; code < 4; code++)
		EXPECT_EQ(vb_credit_count(code), code);
	for (uint8_t code = 4; code <= 30; code++)
		EXPECT_EQ(vb_credit_count(code), 2 * vb_credit_count((uint8_t)(code - 2)));
	EXPECT_EQ(vb_credit_count(30), 32768);
}

/* By linear search, in the order of the codes. */
static uint8_t search_credit_code(uint32_t credits)
{
	uint8_t code = 0;

	while (code < 30 && vb_credit_count((uint8_t)(code + 1)) <= credits)
		code++;
	return code;
}

TEST(the_credit_code_never_promises_more_than_there_is)
{
	for (uint32_t credits = 0; credits < 70000; credits++)
		EXPECT_EQ(vb_credit_code(credits), search_credit_code(credits));
	EXPECT_EQ(vb_credit_code(UINT32_MAX), 30);
}

static void expect_text(uint8_t syndrome, const char *expected)
{
	char text[40];

	EXPECT_EQ(vb_syndrome_describe(syndrome, text, sizeof(text)), strlen(expected));
	EXPECT_STR(text, expected);
}

TEST(syndromes_are_told_in_words)
{
	expect_text(0x04, "ACK credits=4");
	expect_text(0x1e, "ACK credits=32768");
	expect_text(0x1f, "ACK credits=none");
	expect_text(0x20, "RNR_NAK 655.36 ms");
	expect_text(0x21, "RNR_NAK 0.01 ms");
	expect_text(0x2c, "RNR_NAK 0.64 ms");
	expect_text(0x60, "NAK sequence");
	expect_text(0x61, "NAK invalid request");
	expect_text(0x62, "NAK remote access");
	expect_text(0x63, "NAK remote operation");
	expect_text(0x64, "NAK invalid RD");
	expect_text(0x65, "NAK ?");
	expect_text(0x45, "reserved 0x45");
}

TEST(every_syndrome_has_a_kind_and_a_code)
{
	for (int i = 0; i < 128; i++) {
		uint8_t syndrome = (uint8_t)i;
		char text[40];

		EXPECT_EQ(vb_syndrome_kind(syndrome) | vb_syndrome_code(syndrome), syndrome);
		EXPECT(vb_syndrome_describe(syndrome, text, sizeof(text)) < (int)sizeof(text));
	}
}
