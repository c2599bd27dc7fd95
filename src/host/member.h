/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of one user in one network namespace that share the RoCE port; to be exact, their adapters. Each has a
 * number, which its QPNs carry in their upper bits and its receiving socket has among those of the port: the kernel steers
 * by it. What comes to a wrong one all the same is handed over to its owner, so that nothing but speed depends on the
 * steering. A number is an abstract UNIX socket: it vanishes with its process, and nothing is left behind.
 */
#ifndef VB_HOST_MEMBER_H
#define VB_HOST_MEMBER_H

#include "base/err.h"
#include "nic/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_MEMBER_COUNT \
	255 /* QPNs from 0xff0000 on belong to nobody: 0xffffff is every multicast member's */
#define VB_MEMBER_QPN_SHIFT 16
#define VB_MEMBER_QPN_MASK 0xffu
#define VB_MEMBER_BATCH 24 /* of the longest packets: what fits a stock kernel's socket buffer */

struct vb_member;
struct vb_neighbors;
struct vb_udp;

/*
 * Gets a number and its receiving socket: those of a member that is gone, or new ones. Asks the other members for the
 * sockets they know of; one that is stopped costs a tenth of a second, no more. VB_ENOSPC when all numbers
 * are taken. The caller ends it with vb_member_leave(), when nobody reads its socket any more.
 */
VB_MUST_USE vb_err vb_member_join(uint32_t receive_buffer_length, struct vb_member **member_out);
void vb_member_leave(struct vb_member *member);

/*
 * Lets go of what members left behind that are gone, as far as nobody else's place depends on it. To be called now and then, by any
 * thread.
 */
void vb_member_let_go(const struct vb_member *member);

/* With the number that an adapter of this process or its parent had. VB_EBUSY: somebody has it, perhaps still the parent. */
VB_MUST_USE vb_err vb_member_rejoin(uint32_t number, uint32_t receive_buffer_length,
				    struct vb_member **member_out);

/* False if the program has closed its descriptors: it needs to leave, and join anew. */
bool vb_member_is_intact(const struct vb_member *member);

uint32_t vb_member_number(const struct vb_member *member);
uint32_t vb_member_of_qpn(vb_qpn qpn);

/*
 * From now on packets come to the member that their QPN says, and those for QP 1, which every member can deal with, to this one. For
 * data it is for speed only; QP 1 needs a member that lives.
 */
void vb_member_steer(struct vb_udp *udp, uint32_t qp1_to);

/* Whether nobody else has a socket on the port, as far as we have heard. */
bool vb_member_is_alone(const struct vb_member *member);

/* The first of the others that there are; false if there are none. */
bool vb_member_find_other(const struct vb_member *member, uint32_t *number_out);

/* The socket to receive on; it is lent until the member leaves. */
const int *vb_member_receiver(const struct vb_member *member);

/*
 * False when somebody else held the RoCE port as the first member came: this one cannot reach, or be reached from, other hosts.
 * That lasts until all members are gone.
 */
bool vb_member_has_roce_port(const struct vb_member *member);

/* Offers of neighbors go there, or nowhere if NULL. */
void vb_member_set_neighbors(struct vb_member *member, struct vb_neighbors *neighbors);

/* Somebody wants to know how we are (host/state.h), and is told that. */
bool vb_member_is_asked(const struct vb_member *member);
void vb_member_answer_state(struct vb_member *member, const char *text, uint32_t length);

/* Readable when somebody has handed a packet over, or joins. */
int vb_member_fd(const struct vb_member *member);

/*
 * Hands packets, up to VB_MEMBER_BATCH, to their owner. The kernel queues few messages for a socket, so they go as one.
 * False if there is no such member, or it does not keep up: then the packets are lost.
 */
bool vb_member_hand_over(struct vb_member *member, uint32_t to, const struct vb_frame *frames,
			 uint32_t count);

/*
 * Packets that were handed to us, at most VB_MEMBER_BATCH; returns how many. They lie in the member's memory until the
 * next call. What comes from another user, or is not well-formed, is thrown away. Members that join get their answer
 * here: whoever drives the adapter must call it when vb_member_fd() is readable.
 */
uint32_t vb_member_take(struct vb_member *member, struct vb_frame frames[VB_MEMBER_BATCH]);

/* Packets, since the beginning. */
struct vb_member_counts {
	uint64_t handed_over; /* to others */
	uint64_t taken; /* that others handed to us */
	uint64_t lost; /* whose owner was not there, or did not keep up */
};

const struct vb_member_counts *vb_member_counts(const struct vb_member *member);

#endif
