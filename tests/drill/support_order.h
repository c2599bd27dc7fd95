/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The orders that a script may give its peer, and the layout of the peer's one region. An order is
 * a line: a word or two, and words with values. The answer is also a line; it begins with "no: " if
 * the order failed.
 *
 * 	open UC mtu=1024 …     a QP that is connected to the drill's  "qpn=… address=… rkey=…"
 * 	reset                  the QP is in RESET                     "done"
 * 	connect …              from RESET to RTS, as open does        "done"
 * 	post recv 1 len=64     a request with that number             "done"
 * 	poll                   one completion                         "wr=1 SUCCESS …", or "none"
 * 	state                  of the QP                              "RTS"
 * 	store offset=0 word=7  8 bytes, in the CPU's byte order       "done"
 * 	load offset=0 len=8    bytes of the region                    "0011223344556677"
 */
#ifndef VB_TESTS_DRILL_SUPPORT_ORDER_H
#define VB_TESTS_DRILL_SUPPORT_ORDER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	REGION_LENGTH = 0x10000, /* the target of the drill's requests begins at 0 */
	SOURCE = 0x4000, /* the source of the peer's requests */
	SINK = 0x8000, /* where READs and atomics of the peer put their results */
	RECV = 0xc000, /* receive number n uses RECV + n * RECV_STEP */
	RECV_STEP = 0x800,
	LOAD_MAX = 0x1000,
	ORDER_MAX = 2 * LOAD_MAX + 256, /* the longest line */
	QUEUE_DEPTH = 32,
};

/*
 * The drill's QP, which exists only in packets, and the address at which it pretends to have
 * memory.
 */
#define DRILL_QPN 0x1234abu
#define DRILL_ADDRESS 0x7000000000ull
#define DRILL_RKEY 0x5eedu
#define USUAL_QKEY 0x11111111u /* of the QPs at both ends */

/* The initial contents of the region. */
uint8_t pattern_byte(uint32_t offset);

/* The value of a word such as "len=8", or `usual` if there is none. */
uint64_t order_value(const char *order, const char *name, uint64_t usual);
bool order_has(const char *order, const char *word);
bool order_begins(const char *order, const char *words);

/*
 * Attributes of "open" and "connect", with their defaults. All numbers are those of verbs, which
 * are also the engine's.
 */
struct order_attr {
	enum ibv_qp_type service; /* RC unless the order has "UC" or "UD" */
	uint32_t access; /* remote rights of the QP: 2 WRITE, 4 READ, 8 atomics */
	uint32_t mtu; /* in bytes */
	/* 0: for ever, so that time does not disturb a script that is not about it */
	uint8_t timeout;
	uint8_t retry;
	uint8_t rnr_retry;
	uint8_t min_rnr;
	uint32_t reads_in;
	uint32_t reads_out;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t qkey;
};
struct order_attr order_attr(const char *order);

/* "post": what is posted. Operands that it does not have are 0. */
struct order_post {
	bool is_known; /* false: the order names nothing that can be posted */
	bool is_receive;
	enum ibv_wr_opcode opcode;
	uint64_t number; /* wr_id */
	uint32_t offset; /* of the local buffer in the region */
	uint32_t length;
	uint32_t imm;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t qkey;
	bool is_fenced;
};
struct order_post order_post(const char *order);

#endif
