/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The codes of the AETH. Credits and waiting times grow in the same steps (1, 2, 3, 4, 6, 8, 12,
 * …). The times are in units of 10 us, and code 0 stands for the longest (IBA 9.7.5.2.8, table 45).
 */
#include "wire/syndrome.h"

#include "base/err.h"

#include <stdio.h>

#define CREDIT_CODE_MAX 30
#define RNR_TIMER_UNIT_NS 10000

static const uint16_t credit_counts[] = {
	/*  0 */ 0,    1,    2,	   3,	  4,	 6,	8,     12,
	/*  8 */ 16,   24,   32,   48,	  64,	 96,	128,   192,
	/* 16 */ 256,  384,  512,  768,	  1024,	 1536,	2048,  3072,
	/* 24 */ 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static const uint32_t rnr_timer_units[] = {
	/*  0 */ 65536, 1,    2,    3,	   4,	  6,	 8,	12,
	/*  8 */ 16,	24,   32,   48,	   64,	  96,	 128,	192,
	/* 16 */ 256,	384,  512,  768,   1024,  1536,	 2048,	3072,
	/* 24 */ 4096,	6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint8_t vb_credit_code(uint32_t credits)
{
	uint32_t power;

	if (credits < 2)
		return (uint8_t)credits;
	if (credits >= credit_counts[CREDIT_CODE_MAX])
		return CREDIT_CODE_MAX;
	/* Two codes for every power of two: the power itself and one and a half times it. */
	power = 31 - (uint32_t)__builtin_clz(credits);
	return (uint8_t)(2 * power + (credits >> (power - 1) & 1));
}

uint32_t vb_credit_count(uint8_t code)
{
	VB_CHECK(code <= CREDIT_CODE_MAX);
	return credit_counts[code];
}

uint64_t vb_rnr_timer_ns(uint8_t code)
{
	return (uint64_t)rnr_timer_units[code & 0x1f] * RNR_TIMER_UNIT_NS;
}

static const char *nak_name(uint8_t code)
{
	switch ((enum vb_nak)code) {
	case VB_NAK_SEQUENCE:
		return "sequence";
	case VB_NAK_INVALID_REQUEST:
		return "invalid request";
	case VB_NAK_REMOTE_ACCESS:
		return "remote access";
	case VB_NAK_REMOTE_OPERATION:
		return "remote operation";
	case VB_NAK_INVALID_RD:
		return "invalid RD";
	}
	return "?";
}

int vb_syndrome_describe(uint8_t syndrome, char *text, uint32_t size)
{
	uint8_t code = vb_syndrome_code(syndrome);
	uint32_t units;

	switch (vb_syndrome_kind(syndrome)) {
	case VB_SYNDROME_ACK:
		if (code == VB_CREDIT_CODE_INVALID)
			return snprintf(text, size, "ACK credits=none");
		return snprintf(text, size, "ACK credits=%u", vb_credit_count(code));
	case VB_SYNDROME_RNR_NAK:
		units = rnr_timer_units[code];
		return snprintf(text, size, "RNR_NAK %u.%02u ms", units / 100, units % 100);
	case VB_SYNDROME_NAK:
		return snprintf(text, size, "NAK %s", nak_name(code));
	case VB_SYNDROME_RESERVED:
		break;
	}
	return snprintf(text, size, "reserved 0x%02x", syndrome);
}
