/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internals of port membership, and the messages that members exchange. Both ends are this
 * program, of one user on one host, but perhaps in different versions: each message begins with its
 * kind, and unknown messages are discarded.
 */
#ifndef VB_HOST_REGISTRY_PORT_MEMBER_PRIV_H
#define VB_HOST_REGISTRY_PORT_MEMBER_PRIV_H

#include "host/registry/mail.h"
#include "host/registry/port_member.h"
#include "host/registry/receivers.h"
#include "host/registry/recording.h"

/* Among the numbers of sockets, this one stands for the memory of the totals (totals.h). */
#define VB_PORT_MEMBER_TOTALS_NUMBER 0xffu

#define VB_PORT_MEMBER_MESSAGE_MAX (VB_PORT_MEMBER_BATCH * 8192u)

_Static_assert(VB_RECEIVERS_MAX == VB_PORT_MEMBER_COUNT, "a receiving socket for each member");

struct vb_port_member {
	struct vb_mail_box *box;
	int receiver;
	uint32_t number;
	struct vb_mail_user user;
	/* members with a full mailbox when we gave them our socket … */
	struct vb_receivers_set ungiven;
	uint32_t next_ungiven; /* … the one to try next … */
	uint64_t give_ns; /* … and when */
	vb_port_member_take_mail *take; /* of other mail, or NULL … */
	void *owner; /* … and its argument */
	enum vb_port_member_question question; /* about our state … */
	uint64_t asker; /* … over this connection */
	struct vb_recording_wish wish; /* … and what it wants to be recorded */
	/* It did not have all sockets before its own, which moves if one of those is closed. */
	bool is_place_in_doubt;
	struct vb_receivers_set read_also; /* sockets that its link reads beside its own */
	struct vb_port_member_counts counts;
	uint8_t message[VB_PORT_MEMBER_MESSAGE_MAX]; /* the message taken last */
};

enum vb_port_member_message_kind {
	VB_PORT_MEMBER_PACKETS = 0x76623101,
	/* a process joins and asks for receiving sockets */
	VB_PORT_MEMBER_SOCKETS_QUERY = 0x76623102,
	VB_PORT_MEMBER_SOCKETS = 0x76623106, /* receiving sockets: the answer, or a new one */
	VB_PORT_MEMBER_STATE_QUERY = 0x76623104, /* a person asks for our state */
	VB_PORT_MEMBER_STATE = 0x76623105, /* the answer */
	VB_PORT_MEMBER_REPORT_QUERY = 0x76623107, /* a program asks for it */
	VB_PORT_MEMBER_REPORT = 0x76623108, /* the answer, in memory that comes with it */
	VB_PORT_MEMBER_METER_QUERY = 0x7662310d, /* answered by a VB_PORT_MEMBER_REPORT, too */
	VB_PORT_MEMBER_RECORDING_QUERY = 0x76623110, /* an observer wants a recording */
	VB_PORT_MEMBER_RECORDING = 0x76623111, /* its memory, or a refusal; perhaps unasked */
};

struct vb_port_member_asks {
	uint32_t kind;
	struct vb_receivers_set held; /* the sockets the sender already has */
};

struct vb_port_member_sockets {
	uint32_t kind;
	uint32_t count;
	uint32_t is_last; /* of an answer */
	uint8_t from; /* the number of the sender */
	uint8_t is_out_of_order; /* vb_receivers_declare_disorder() */
	uint16_t reserved;
	uint64_t guid; /* of the host, if the sender knows it; else 0 */
	uint8_t numbers[VB_MAIL_FDS_MAX]; /* of the sockets, in the order of the descriptors */
};

/* Text follows this head. */
struct vb_port_member_state {
	uint32_t kind;
	uint32_t number; /* of the sender */
};

/* Its descriptor is sealed memory of that length (host/sys/sealed.h): text. */
struct vb_port_member_report {
	uint32_t kind;
	uint32_t number; /* of the sender */
	uint64_t length; /* 0: there is no memory for it */
};

struct vb_port_member_recording_query {
	uint32_t kind;
	struct vb_recording_wish wish;
};

/* Its descriptor is the memory. Without one, it records for another observer, or cannot. */
struct vb_port_member_recording {
	uint32_t kind;
	uint32_t number; /* of the sender */
};

/* port_member_name.c */
struct vb_mail_name vb_port_member_name(const struct vb_mail_user *user, uint32_t number);
/*
 * The name of the lock that a joining process holds. Sockets of the port come and go only under it,
 * or by death.
 */
struct vb_mail_name vb_port_member_joining_name(const struct vb_mail_user *user);

/*
 * port_member_sockets.c: answers a request with the sockets in the table that the asker does not
 * have.
 */
void vb_port_member_answer(const struct vb_port_member *member, const struct vb_mail *ask);
/* Adds the sockets to the table; false if the message makes no sense. */
bool vb_port_member_take_sockets(const void *bytes, struct vb_mail *mail,
				 struct vb_port_member_sockets *head_out);
/* The same for a member, which tells the sender about disorder if it does not know. */
void vb_port_member_on_sockets(struct vb_port_member *member, struct vb_mail *mail);
/*
 * Gives our own socket to the other members, and later to those with a full mailbox, once it has
 * room.
 */
void vb_port_member_give_to_all(struct vb_port_member *member);
void vb_port_member_give_more(struct vb_port_member *member);
/*
 * port_member_tail.c: finds out whether a member that joined without all sockets before its own has
 * them now, or sockets have moved.
 */
void vb_port_member_resolve_doubt(struct vb_port_member *member);
/* Tells this process and all others that the sockets are out of order. */
void vb_port_member_declare_disorder(struct vb_port_member *member);

#endif
