/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair on one host: B publishes its tables to A, and A's QP has a shared-memory link to B; B's QP
 * has none. The pair's wire also carries what goes over the link. The test itself sets how far the
 * link was written and read, before it sends the packets in question.
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_DIRECT_H
#define VB_TESTS_CONVERSATION_SUPPORT_DIRECT_H

#include "support_pair.h"

#include "host/local/dma_peer.h"

enum { SHM_LINK = 7, ROOM = 50 };

extern struct vb_peer_memory direct_peer_memory; /* A's */
extern _Atomic uint32_t direct_busy;

struct pair *connect_directly(enum vb_qp_type type);
struct pair *connect_directly_as(struct setup setup);
struct pair *connect_directly_to_rtr(enum vb_qp_type type); /* B's QP has received no request yet */
/* B publishes its tables in other memory. */
void publish_again(struct pair *p);

/*
 * write_shm_link(): the packets that A sends next are on the link. read_shm_link(): B has read
 * everything on it. renew_shm_link(): what was on it is lost, and the link is a new one.
 */
void write_shm_link(void);
void read_shm_link(void);
void renew_shm_link(void);

/* A WRITE to a window of B at TARGET, or to a separate region there, which B can drop. */
struct vb_send_request write_to_window(struct pair *p, uint64_t wr_id, uint32_t length);
struct vb_send_request write_to_region(struct pair *p, uint64_t wr_id, uint32_t length,
				       struct vb_mr **mr_out);
/*
 * A WRITE of 10 bytes that was executed once. B then dropped the region; its memory holds 0x55 now.
 */
struct vb_send_request write_to_dropped_region(struct pair *p);
/* Executes the first part of a WRITE that is longer than a turn. */
void begin_long_write(struct pair *p, struct vb_send_request request);

/* A does all its work without sending a packet, and these completions arrive. */
#define expect_executed(p, ...)                        \
	do {                                           \
		expect_silence(p, A);                  \
		expect_completions(p, A, __VA_ARGS__); \
	} while (0)

#endif
