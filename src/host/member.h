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

struct vb_member;

/* Claims the lowest number that is free. VB_ENOSPC when all are taken. */
VB_MUST_USE vb_err vb_member_join(struct vb_member **member_out);
void vb_member_leave(struct vb_member *member);

uint32_t vb_member_number(const struct vb_member *member);
uint32_t vb_member_of_qpn(vb_qpn qpn);

/* Readable when somebody has handed a packet over. */
int vb_member_fd(const struct vb_member *member);

/* Hands a packet to its owner. False if there is none, or it does not keep up: then the packet is lost. */
bool vb_member_hand_over(struct vb_member *member, uint32_t to, const struct vb_frame *frame);

/*
 * The next packet that was handed to us, in `buffer`; its frame points into it. False when there is none. What comes from
 * another user, or is no such packet, is thrown away.
 */
bool vb_member_take(struct vb_member *member, uint8_t *buffer, uint32_t size,
		    struct vb_frame *frame);

#endif
