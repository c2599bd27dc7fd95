/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of one host: B shows A its tables, and A's QP has a line to B; B's has none. The pair's wire carries what goes by the line, too. How far that was
 * written and read the test says itself, before the packets go that are meant.
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_DIRECT_H
#define VB_TESTS_CONVERSATION_SUPPORT_DIRECT_H

#include "support_pair.h"

#include "host/dma_reach.h"

enum { LINE = 7, ROOM = 50 };

extern struct vb_reach direct_reach; /* A's */
extern _Atomic uint32_t direct_busy;

struct pair *connect_directly(enum vb_qp_type type);
struct pair *connect_directly_as(struct setup setup);
struct pair *connect_directly_to_rtr(enum vb_qp_type type); /* B's QP has had no request yet */
/* B shows its tables in other memory. */
void show_anew(struct pair *p);

/* The packets that A sends next are on the line; B has read all that was on it; what was on it is lost, and it is another one. */
void write_line(void);
void read_line(void);
void renew_line(void);

/* A WRITE to a window of B's at TARGET, or to a region of its own there, which is B's to drop. */
struct vb_send_request write_to_window(struct pair *p, uint64_t wr_id, uint32_t length);
struct vb_send_request write_to_region(struct pair *p, uint64_t wr_id, uint32_t length,
				       struct vb_mr **mr_out);
/* A WRITE of 10 bytes that was executed once. Then B dropped its region, in whose memory is 0x55 now. */
struct vb_send_request write_to_dropped_region(struct pair *p);
/* The first part of a WRITE that is longer than a turn. */
void begin_long_write(struct pair *p, struct vb_send_request request);

/* All that A has to do it does without a packet, and this completes. */
#define expect_executed(p, ...)                        \
	do {                                           \
		expect_silence(p, A);                  \
		expect_completions(p, A, __VA_ARGS__); \
	} while (0)

#endif
