/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of fuzz_shm_link: ours, an engine with its local peers and one RC QP, and a peer
 * that consists only of the files that it gives away. Mail goes from call to call; what our end
 * sends is read from the peer's box.
 */
#ifndef VB_TESTS_FUZZ_SUPPORT_NEIGHBOR_H
#define VB_TESTS_FUZZ_SUPPORT_NEIGHBOR_H

#include "host/neighbor_priv.h"
#include "nic/request.h"

#define NEIGHBOR_SELF 3u
#define NEIGHBOR_PEER 7u /* the numbers of the two ends */
#define NEIGHBOR_RING 0x1122334455667788u /* the ring that the peer gives */
#define NEIGHBOR_SEGMENT 5u
#define NEIGHBOR_ADDRESS 0x7000000000u /* where the peer has its segment … */
#define NEIGHBOR_LENGTH 8192u /* … and its length */

void neighbor_begin(void);
void neighbor_end(void);

/* The peer's descriptors, which it keeps. */
int neighbor_block_fd(void);
int neighbor_ring_fd(void);
int neighbor_wake_fd(void);
int neighbor_segment_fd(void);
uint64_t neighbor_incarnation(void);
uint64_t neighbor_answer(void); /* the ring that our end has given; 0: none yet */
struct vb_ring_memory *neighbor_ring(void); /* the ring that the peer writes */
uint32_t neighbor_ring_next(void); /* where the peer's next record begins */
/* the ring that the peer reads; NULL: it was given none */
struct vb_ring_memory *neighbor_their_ring(void);
struct vb_export_head *neighbor_head(void);
struct vb_key_row *neighbor_key_row(void); /* the rows that our requests meet … */
struct vb_qp_row *neighbor_qp_row(void);
void neighbor_make_rows(void); /* … which permit them now */

/* Gives our end a message from the peer. Takes the descriptors. */
void neighbor_mail(const void *bytes, size_t length, const int *fds, uint32_t fd_count);
/*
 * Writes a packet to our QP as the peer would, but without the flow at its end; returns its length,
 * 64 at most.
 */
uint32_t neighbor_packet(uint8_t *bytes, uint8_t opcode, uint8_t psn, bool has_right_flow);
/* Puts a record into the ring, if there is room. */
void neighbor_put(const uint8_t *bytes, uint32_t length);

/* Our end. */
void neighbor_receive(void);
void neighbor_post(enum vb_wr_opcode opcode, uint64_t offset, uint32_t length);
void neighbor_transmit(void);
void neighbor_look(bool buries); /* goes to sleep and wakes, or drops dead peers */

#endif
