/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port members: the processes of one user in one network namespace that share the RoCE port; to
 * be exact, their adapters. Each member has a number. Its QPNs carry the number in their upper
 * bits, and its receiving socket has that place among those of the port: the kernel steers by it. A
 * packet that still arrives at a wrong member is handed over to its owner, so that only speed
 * depends on the steering. A number is an abstract UNIX socket: it vanishes with its process, and
 * nothing is left behind.
 */
#ifndef VB_HOST_REGISTRY_PORT_MEMBER_H
#define VB_HOST_REGISTRY_PORT_MEMBER_H

#include "base/err.h"
#include "framing/frame.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * QPNs from 0xff0000 on belong to no member: 0xffffff addresses every member of a multicast group.
 */
#define VB_PORT_MEMBER_COUNT 255
#define VB_PORT_MEMBER_QPN_SHIFT 16
#define VB_PORT_MEMBER_QPN_MASK 0xffu
#define VB_PORT_MEMBER_BATCH 24 /* of the longest packets: fits a stock kernel's socket buffer */

struct vb_port_member;
struct vb_mail;
struct vb_recording_wish;
struct vb_udp;

/*
 * Gets a number and its receiving socket: those of a member that is gone, or new ones. Asks the
 * other members for the sockets they know of; stopped members cost a fiftieth of a second.
 * VB_ENOSPC when all numbers are taken. The caller ends the membership with vb_port_member_leave()
 * when no thread reads its socket any more.
 */
VB_MUST_USE vb_err vb_port_member_join(uint32_t receive_buffer_length,
				       struct vb_port_member **member_out);
void vb_port_member_leave(struct vb_port_member *member);

/*
 * Closes the sockets that members which are gone left behind, unless another member's place depends
 * on them. Finds out whether this member has lost its place. To be called now and then.
 */
void vb_port_member_drop_tail(struct vb_port_member *member);

/*
 * Joins with the number that an adapter of this process or its parent had. VB_EBUSY: another
 * process has it, perhaps still the parent.
 */
VB_MUST_USE vb_err vb_port_member_rejoin(uint32_t number, uint32_t receive_buffer_length,
					 struct vb_port_member **member_out);

/* False if the program has closed the member's descriptors: then it must leave, and join again. */
bool vb_port_member_is_intact(const struct vb_port_member *member);
/* Forgets connections of its mail whose descriptors the program has closed. */
void vb_port_member_drop_lost_connections(struct vb_port_member *member);

uint32_t vb_port_member_number(const struct vb_port_member *member);
uint32_t vb_port_member_of_qpn(vb_qpn qpn);
/*
 * The number of the packet's owner. If it is unknown, our own: the engine has a reason to refuse
 * the packet.
 */
uint32_t vb_port_member_of_frame(const struct vb_port_member *member, const struct vb_frame *frame);

/*
 * From now on, packets come to the member that their QPN names, and those for QP 1, which every
 * member can handle, to `qp1_to`. For data this is only for speed; QP 1 needs a living member.
 */
void vb_port_member_steer(struct vb_udp *udp, uint32_t qp1_to);

/*
 * If the sockets of the port are out of order, lets the link read all of them: any may get our
 * packets, also one whose process is gone. The link must be closed before the member leaves.
 */
void vb_port_member_read_all(struct vb_port_member *member, struct vb_udp *udp);

/* Whether no other member has a socket on the port, as far as we know. */
bool vb_port_member_is_alone(const struct vb_port_member *member);

/* Finds the first of the other members; false if there are none. */
bool vb_port_member_find_other(const struct vb_port_member *member, uint32_t *number_out);

/* The socket to receive on, lent until the member leaves. */
const int *vb_port_member_receiver(const struct vb_port_member *member);

/*
 * False if another process held the RoCE port when the first member came: then this member cannot
 * reach other hosts, or be reached from them. That lasts until all members are gone.
 */
bool vb_port_member_has_roce_port(const struct vb_port_member *member);

/*
 * Messages of kinds that members do not know, which are those of local peers, go to this function;
 * until it is set they are discarded. The member closes the descriptors in `mail` afterwards.
 */
typedef void vb_port_member_take_mail(void *owner, const struct vb_port_member *member,
				      uint32_t kind, const void *bytes, struct vb_mail *mail);
void vb_port_member_set_taker(struct vb_port_member *member, vb_port_member_take_mail *take,
			      void *owner);
/* Sends such a message, with descriptors. Returns what vb_mail_send_fds() returns. */
int vb_port_member_send(struct vb_port_member *member, uint32_t to, const struct iovec *part,
			const int *fds, uint32_t fd_count);
/* Answers such a message without waiting. */
void vb_port_member_reply(const struct vb_port_member *member, const struct vb_mail *mail,
			  const struct iovec *part);
/* False if this process has become another user since it joined: its mail is not accepted then. */
bool vb_port_member_is_same_user(const struct vb_port_member *member);

/* A process asks for our state, and gets the answer. */
enum vb_port_member_question {
	VB_PORT_MEMBER_NOT_ASKED,
	VB_PORT_MEMBER_ASKED_STATE, /* for a person: host/port/state.h */
	VB_PORT_MEMBER_ASKED_REPORT, /* for a program: host/port/report.h */
	VB_PORT_MEMBER_ASKED_METER, /* for `verbatim top`: host/port/meter.h */
	VB_PORT_MEMBER_ASKED_RECORDING, /* for `verbatim trace`: host/port/recorder.h */
};
enum vb_port_member_question vb_port_member_question(const struct vb_port_member *member);
void vb_port_member_answer_state(struct vb_port_member *member, const char *text, uint32_t length);
void vb_port_member_answer_report(struct vb_port_member *member, const char *text, uint64_t length);
/* What is to be recorded, if that is the question. */
const struct vb_recording_wish *vb_port_member_wish(const struct vb_port_member *member);
/* Lends the memory of the recording; negative: there is none. */
void vb_port_member_answer_recording(struct vb_port_member *member, int fd);
/* Gives it to an observer that has not asked. False: there is no observer of our user there. */
bool vb_port_member_offer_recording(struct vb_port_member *member, const char *observer, int fd);

/* Readable when a member has handed a packet over, or joins. */
int vb_port_member_fd(const struct vb_port_member *member);

/*
 * Hands up to VB_PORT_MEMBER_BATCH packets to their owner. The kernel queues few messages for a
 * socket, so they go as one message. False if there is no such member, or it does not keep up: then
 * the packets are lost.
 */
bool vb_port_member_hand_over(struct vb_port_member *member, uint32_t to,
			      const struct vb_frame *frames, uint32_t count);

/*
 * Takes packets that were handed to us, at most VB_PORT_MEMBER_BATCH; returns their number. They
 * lie in the member's memory until the next call. Messages from another user, and malformed ones,
 * are discarded. Members that join get their answer here, so the thread that drives the adapter
 * must call this when vb_port_member_fd() is readable.
 */
uint32_t vb_port_member_take(struct vb_port_member *member,
			     struct vb_frame frames[VB_PORT_MEMBER_BATCH]);

/* Numbers of packets since the beginning. */
struct vb_port_member_counts {
	uint64_t handed_over; /* handed to other members */
	uint64_t taken; /* that other members handed to us */
	uint64_t lost; /* the owner was absent or did not keep up */
};

const struct vb_port_member_counts *vb_port_member_counts(const struct vb_port_member *member);

#endif
