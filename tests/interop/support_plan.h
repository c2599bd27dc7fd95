/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of the two ends of an exchange in a round. Both ends compute the plans of both
 * ends from one seed, so each knows what the other will send, read and add, and which bytes must be
 * where afterwards.
 */
#ifndef VB_TESTS_INTEROP_SUPPORT_PLAN_H
#define VB_TESTS_INTEROP_SUPPORT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define OPERATIONS 16 /* of one end in a round */

enum kind {
	KIND_SEND,
	KIND_SEND_IMM,
	KIND_WRITE,
	KIND_WRITE_IMM,
	KIND_READ,
	KIND_FETCH_ADD,
	KIND_COMPARE_SWAP,
	KIND_COUNT,
};

enum transport { TRANSPORT_RC, TRANSPORT_UC, TRANSPORT_UD };

struct operation {
	enum kind kind;
	uint32_t length;
	uint32_t immediate;
	uint64_t operand; /* the value that is added or swapped in */
	uint64_t compare;
};

struct plan {
	struct operation operations[OPERATIONS];
	uint64_t pattern; /* of the bytes that this end offers in this round */
	uint64_t counter; /* the initial value at the other end */
};

struct plan_limits {
	enum transport transport;
	uint32_t mtu;
	uint32_t length_max;
};

void plan_make(struct plan *plan, const struct plan_limits *limits, uint64_t seed, uint32_t round,
	       bool is_client);

bool kind_has_receive(enum kind kind); /* uses a receive of the other end */
bool kind_is_atomic(enum kind kind);

/* Fills a buffer with this pattern; each byte depends on its offset. */
void pattern_fill(uint8_t *bytes, uint64_t length, uint64_t pattern, uint64_t offset);
/* The offset of the first wrong byte; `length` if there is none. */
uint64_t pattern_check(const uint8_t *bytes, uint64_t length, uint64_t pattern, uint64_t offset);

#endif
