/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of fuzz_shm_link: ours, an engine with its local peers and one RC QP, and a peer
 * that consists only of the files that it gives away. Mail goes from call to call; what our end
 * sends is read from the peer's box.
 */
#ifndef VB_TESTS_FUZZ_SUPPORT_LOCAL_PEER_H
#define VB_TESTS_FUZZ_SUPPORT_LOCAL_PEER_H

#include "host/local/local_peer_priv.h"
#include "nic/request.h"

#define LOCAL_PEER_SELF 3u
#define LOCAL_PEER_PEER 7u /* the numbers of the two ends */
#define LOCAL_PEER_RING 0x1122334455667788u /* the ring that the peer gives */
#define LOCAL_PEER_SEGMENT 5u
#define LOCAL_PEER_ADDRESS 0x7000000000u /* where the peer has its segment … */
#define LOCAL_PEER_LENGTH 8192u /* … and its length */

void local_peer_begin(void);
void local_peer_end(void);

/* The peer's descriptors, which it keeps. */
int local_peer_block_fd(void);
int local_peer_ring_fd(void);
int local_peer_wake_fd(void);
int local_peer_segment_fd(void);
uint64_t local_peer_incarnation(void);
uint64_t local_peer_answer(void); /* the ring that our end has given; 0: none yet */
struct vb_ring_memory *local_peer_ring(void); /* the ring that the peer writes */
uint32_t local_peer_ring_next(void); /* where the peer's next record begins */
/* the ring that the peer reads; NULL: it was given none */
struct vb_ring_memory *local_peer_their_ring(void);
struct vb_export_head *local_peer_head(void);
struct vb_key_row *local_peer_key_row(void); /* the rows that our requests meet … */
struct vb_qp_row *local_peer_qp_row(void);
void local_peer_make_rows(void); /* … which permit them now */

/* Gives our end a message from the peer. Takes the descriptors. */
void local_peer_mail(const void *bytes, size_t length, const int *fds, uint32_t fd_count);
/*
 * Writes a packet to our QP as the peer would, but without the flow at its end; returns its length,
 * 64 at most.
 */
uint32_t local_peer_packet(uint8_t *bytes, uint8_t opcode, uint8_t psn, bool has_right_flow);
/* The same with a train before it, and nothing but headers. Returns its length, 1024 at most. */
uint32_t local_peer_train(uint8_t *bytes, const struct vb_train *train,
			  const struct vb_reference *references, uint8_t opcode, uint8_t psn);
uint32_t local_peer_key(void); /* the key of the peer's memory */
/* Puts a record into the ring, if there is room. */
void local_peer_put(const uint8_t *bytes, uint32_t length);

/* Our end. */
void local_peer_receive(void);
void local_peer_post(enum vb_wr_opcode opcode, uint64_t offset, uint32_t length);
void local_peer_transmit(void);
void local_peer_look(bool buries); /* goes to sleep and wakes, or drops dead peers */

#endif
