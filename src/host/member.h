/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of one user in one network namespace that share the RoCE port. Each claims a number; its QPNs carry the
 * number in their upper bits, so that anybody who receives a packet knows whose it is and can hand it over. A number
 * is an abstract UNIX socket: it vanishes with its process, and nothing is left behind.
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
#define VB_MEMBER_BATCH 24 /* of the longest packets: what fits a stock kernel's socket buffer */

struct vb_member;

/* Claims the lowest number that is free. VB_ENOSPC when all are taken. */
VB_MUST_USE vb_err vb_member_join(struct vb_member **member_out);
void vb_member_leave(struct vb_member *member);

uint32_t vb_member_number(const struct vb_member *member);
uint32_t vb_member_of_qpn(vb_qpn qpn);

/* Readable when somebody has handed a packet over. */
int vb_member_fd(const struct vb_member *member);

/*
 * Hands packets, up to VB_MEMBER_BATCH, to their owner. The kernel queues few messages for a socket, so they go as one.
 * False if there is no such member, or it does not keep up: then the packets are lost.
 */
bool vb_member_hand_over(struct vb_member *member, uint32_t to, const struct vb_frame *frames,
			 uint32_t count);

/*
 * Packets that were handed to us, at most VB_MEMBER_BATCH; returns how many. They lie in the member's memory until the
 * next call. What comes from another user, or is not well-formed, is thrown away.
 */
uint32_t vb_member_take(struct vb_member *member, struct vb_frame frames[VB_MEMBER_BATCH]);

#endif
