/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of membership, and the messages that members send each other. Both ends are this program, of one user on one
 * host, but perhaps of another version: each message begins with its kind, and what is not understood is thrown away.
 */
#ifndef VB_HOST_MEMBER_PRIV_H
#define VB_HOST_MEMBER_PRIV_H

#include "host/mail.h"
#include "host/member.h"
#include "host/receivers.h"

#define VB_MEMBER_MESSAGE_MAX (VB_MEMBER_BATCH * 8192u)

_Static_assert(VB_RECEIVERS_MAX == VB_MEMBER_COUNT, "a receiving socket for each member");

struct vb_member {
	struct vb_mail_box *box;
	int receiver;
	uint32_t number;
	struct vb_mail_user user;
	struct vb_receivers_set
		ungiven; /* members whose mailbox was full when we gave them our socket … */
	uint32_t next_ungiven; /* … the one to try next … */
	uint64_t give_ns; /* … and when */
	struct vb_neighbors *neighbors; /* or NULL */
	bool is_asked; /* for our state … */
	uint64_t asker; /* … by this connection */
	struct vb_member_counts counts;
	uint8_t message[VB_MEMBER_MESSAGE_MAX]; /* that was taken last */
};

enum vb_member_message_kind {
	VB_MEMBER_PACKETS = 0x76623101,
	VB_MEMBER_ASKS = 0x76623102, /* somebody joins and asks for receiving sockets */
	VB_MEMBER_SOCKETS = 0x76623106, /* receiving sockets: the answer, or a new one */
	VB_MEMBER_ASKS_STATE = 0x76623104, /* a person wants to know how we are */
	VB_MEMBER_STATE = 0x76623105, /* the answer */
};

struct vb_member_asks {
	uint32_t kind;
	struct vb_receivers_set held; /* that the sender has already */
};

struct vb_member_sockets {
	uint32_t kind;
	uint32_t count;
	uint32_t is_last; /* of an answer */
	uint32_t reserved;
	uint64_t guid; /* of the host, if the sender knows it; else 0 */
	uint8_t numbers[VB_MAIL_FDS_MAX]; /* of the sockets, in the order of the descriptors */
};

/* With text behind it. */
struct vb_member_state {
	uint32_t kind;
	uint32_t number; /* of the sender */
};

/* member_name.c */
struct vb_mail_name vb_member_name(const struct vb_mail_user *user, uint32_t number);
/* Of the lock that who joins has: sockets of the port come and go in no other way, but by death. */
struct vb_mail_name vb_member_joining_name(const struct vb_mail_user *user);

/* member_sockets.c: answers who asks, with what is in the table and he does not have. */
void vb_member_answer(const struct vb_member *member, const struct vb_mail *ask);
/* Takes them into the table. True at the end of an answer. */
bool vb_member_take_sockets(const void *bytes, struct vb_mail *mail);
/* Gives our own socket to the others, and to those whose mailbox was full when that has changed. */
void vb_member_give_to_all(struct vb_member *member);
void vb_member_give_more(struct vb_member *member);

#endif
