/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Membership and the hand-over of packets. Everything goes by raw system calls: a preloaded library may have taken the
 * socket functions for itself.
 */
#include "host/member.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define PARTS_MAX 512 /* the kernel takes 1024 */
#define MESSAGE_MAX (VB_MEMBER_BATCH * 8192u)

struct vb_member {
	int fd;
	uint32_t number;
	uid_t user;
	uint8_t message[MESSAGE_MAX]; /* that was taken last */
};

/* What precedes the bytes of each packet. Both ends are this program, of one user on one host. */
struct handed {
	struct vb_flow flow;
	uint32_t length;
	uint16_t ip_id;
};

static socklen_t address_of(uid_t user, uint32_t number, struct sockaddr_un *address)
{
	int length;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* The first byte stays 0: an abstract name. */
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "verbatim/%u/%u",
			  user, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool claim(struct vb_member *member, uint32_t number)
{
	struct sockaddr_un address;
	socklen_t length = address_of(member->user, number, &address);

	return syscall(SYS_bind, member->fd, &address, length) == 0;
}

vb_err vb_member_join(struct vb_member **member_out)
{
	struct vb_member *member = calloc(1, sizeof(*member));
	int yes = 1;

	if (!member)
		return VB_ENOMEM;
	member->user = geteuid();
	member->fd =
		(int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (member->fd < 0)
		goto free_member;
	if (syscall(SYS_setsockopt, member->fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)))
		goto close_fd;
	while (!claim(member, member->number))
		if (++member->number == VB_MEMBER_COUNT)
			goto close_fd;
	*member_out = member;
	return VB_OK;
close_fd:
	syscall(SYS_close, member->fd);
free_member:
	free(member);
	return VB_ENOSPC;
}

void vb_member_leave(struct vb_member *member)
{
	syscall(SYS_close, member->fd);
	free(member);
}

uint32_t vb_member_number(const struct vb_member *member)
{
	return member->number;
}

uint32_t vb_member_of_qpn(vb_qpn qpn)
{
	return qpn.v >> VB_MEMBER_QPN_SHIFT;
}

int vb_member_fd(const struct vb_member *member)
{
	return member->fd;
}

static struct iovec part(const void *bytes, size_t length)
{
	return (struct iovec){ (void *)(uintptr_t)bytes, length };
}

static uint32_t length_of(const struct vb_frame *frame)
{
	uint32_t length = frame->head.length;

	for (uint32_t i = 0; i < frame->rest_count; i++)
		length += frame->rest[i].length;
	return length;
}

bool vb_member_hand_over(struct vb_member *member, uint32_t to, const struct vb_frame *frames,
			 uint32_t count)
{
	struct handed handed[VB_MEMBER_BATCH];
	struct iovec parts[PARTS_MAX];
	struct sockaddr_un address;
	struct msghdr message = {
		.msg_name = &address,
		.msg_namelen = address_of(member->user, to, &address),
		.msg_iov = parts,
	};

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_frame *frame = &frames[i];

		if (message.msg_iovlen + 2 + frame->rest_count > PARTS_MAX)
			return false;
		handed[i] = (struct handed){ frame->flow, length_of(frame), frame->ip_id };
		parts[message.msg_iovlen++] = part(&handed[i], sizeof(handed[i]));
		parts[message.msg_iovlen++] = part(frame->head.data, frame->head.length);
		for (uint32_t k = 0; k < frame->rest_count; k++)
			parts[message.msg_iovlen++] =
				part(frame->rest[k].data, frame->rest[k].length);
	}
	return syscall(SYS_sendmsg, member->fd, &message, MSG_NOSIGNAL) >= 0;
}

/* The sender's user, as the kernel says. */
static bool is_ours(const struct vb_member *member, struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct ucred sender;

	if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&sender, CMSG_DATA(control), sizeof(sender));
	return sender.uid == member->user;
}

/* The next message from this user, in member->message; negative when there is none. */
static long receive_message(struct vb_member *member)
{
	union {
		struct cmsghdr header; /* for its alignment */
		uint8_t bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec whole = { member->message, sizeof(member->message) };

	for (;;) {
		struct msghdr message = {
			.msg_iov = &whole,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		long length = syscall(SYS_recvmsg, member->fd, &message, 0);

		if (length < 0 || (!(message.msg_flags & MSG_TRUNC) && is_ours(member, &message)))
			return length;
	}
}

uint32_t vb_member_take(struct vb_member *member, struct vb_frame frames[VB_MEMBER_BATCH])
{
	long received = receive_message(member);
	size_t left = received > 0 ? (size_t)received : 0;
	const uint8_t *next = member->message;
	uint32_t count = 0;

	while (count < VB_MEMBER_BATCH && left >= sizeof(struct handed)) {
		struct handed handed;

		memcpy(&handed, next, sizeof(handed));
		next += sizeof(handed);
		left -= sizeof(handed);
		if (handed.length > left)
			break;
		frames[count++] = (struct vb_frame){
			.flow = handed.flow,
			.ip_id = handed.ip_id,
			.head = { next, handed.length },
		};
		next += handed.length;
		left -= handed.length;
	}
	return count;
}
