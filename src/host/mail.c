/* SPDX-License-Identifier: BSD-2-Clause */
/* Mail: names, sending, receiving. Descriptors that come from strangers are closed at once. */
#include "host/mail.h"

#include "link/fd.h"
#include "link/sys.h"

#include <stdio.h>
#include <string.h>

#define STRANGERS_AT_ONCE 16u /* more wait for the next call: they must not keep us busy */

union control {
	struct cmsghdr header; /* for its alignment */
	uint8_t bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(VB_MAIL_FDS_MAX * sizeof(int))];
};

struct vb_mail_name vb_mail_name(uid_t user, const char *what)
{
	struct vb_mail_name name = { .address = { .sun_family = AF_UNIX } };
	char *path = name.address.sun_path;
	int length;

	/* The first byte stays 0: an abstract name. */
	length =
		snprintf(path + 1, sizeof(name.address.sun_path) - 1, "verbatim/%u/%s", user, what);
	name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return name;
}

int vb_mail_open(void)
{
	int fd = vb_fd_own(vb_sys_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	int yes = 1;
	int result;

	if (fd < 0)
		return fd;
	result = vb_sys_setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	if (result < 0) {
		vb_fd_close(fd);
		return result;
	}
	return fd;
}

void vb_mail_close(int fd)
{
	vb_fd_close(fd);
}

bool vb_mail_claim(int fd, const struct vb_mail_name *name)
{
	return vb_sys_bind(fd, &name->address, name->length) == 0;
}

bool vb_mail_claim_any(int fd)
{
	sa_family_t family = AF_UNIX;

	return vb_sys_bind(fd, &family, sizeof(family)) == 0;
}

bool vb_mail_is_claimed(int fd, const struct vb_mail_name *name)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	bool is_claimed = vb_sys_connect(fd, &name->address, name->length) == 0;

	(void)vb_sys_connect(fd, &nobody, sizeof(nobody));
	return is_claimed;
}

static struct msghdr header_to(struct vb_mail_name *to, struct iovec *parts, uint32_t count)
{
	return (struct msghdr){
		.msg_name = &to->address,
		.msg_namelen = to->length,
		.msg_iov = parts,
		.msg_iovlen = count,
	};
}

static int send_message(int fd, const struct msghdr *message)
{
	int result = vb_sys_sendmsg(fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);

	return result < 0 ? result : 0;
}

int vb_mail_send(int fd, const struct vb_mail_name *to, const struct iovec *parts, uint32_t count)
{
	struct vb_mail_name name = *to;
	struct msghdr message = header_to(&name, (struct iovec *)(uintptr_t)parts, count);

	return send_message(fd, &message);
}

int vb_mail_send_fds(int fd, const struct vb_mail_name *to, const struct iovec *part,
		     const int *fds, uint32_t fd_count)
{
	struct vb_mail_name name = *to;
	struct iovec bytes = *part;
	struct msghdr message = header_to(&name, &bytes, 1);
	union control control = { .header = {
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS,
					  .cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
				  } };

	memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	message.msg_control = fd_count ? &control : NULL;
	message.msg_controllen = fd_count ? CMSG_SPACE(fd_count * sizeof(int)) : 0;
	return send_message(fd, &message);
}

/* Takes in what came beside the bytes. True if the sender, as the kernel says, is that user. */
static bool load_control(struct msghdr *message, uid_t user, struct vb_mail *mail)
{
	bool is_from_user = false;

	mail->fd_count = 0;
	mail->pid = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred sender;

			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			is_from_user = sender.uid == user;
			mail->pid = sender.pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			size_t length = c->cmsg_len - CMSG_LEN(0);

			memcpy(mail->fds, CMSG_DATA(c), length);
			mail->fd_count = (uint32_t)(length / sizeof(int));
			for (uint32_t i = 0; i < mail->fd_count; i++)
				mail->fds[i] = vb_fd_own(mail->fds[i]);
		}
	}
	return is_from_user;
}

bool vb_mail_receive(int fd, uid_t user, void *bytes, size_t size, struct vb_mail *mail)
{
	for (uint32_t i = 0; i < STRANGERS_AT_ONCE; i++) {
		union control control;
		struct iovec whole = { bytes, size };
		struct msghdr message = {
			.msg_name = &mail->from.address,
			.msg_namelen = sizeof(mail->from.address),
			.msg_iov = &whole,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		int length = vb_sys_recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (length < 0)
			return false;
		mail->from.length = message.msg_namelen;
		mail->length = (size_t)length;
		if (load_control(&message, user, mail) && !(message.msg_flags & MSG_TRUNC))
			return true;
		vb_mail_close_fds(mail);
	}
	return false;
}

void vb_mail_close_fds(struct vb_mail *mail)
{
	while (mail->fd_count)
		vb_fd_close(mail->fds[--mail->fd_count]);
}
