/* SPDX-License-Identifier: BSD-2-Clause */
/* One message with its descriptors, written to or read from a socket. */
#include "host/registry/mail.h"

#include "link/fd.h"
#include "link/sys.h"

#include <string.h>

union control {
	struct cmsghdr header; /* for its alignment */
	uint8_t bytes[CMSG_SPACE(VB_MAIL_FDS_MAX * sizeof(int))];
};

int vb_mail_write(int fd, const struct iovec *parts, uint32_t count, const int *fds,
		  uint32_t fd_count)
{
	union control control;
	struct msghdr message = {
		.msg_iov = (struct iovec *)(uintptr_t)parts,
		.msg_iovlen = count,
	};
	int result;

	if (fd_count) {
		control.header = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
		};
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	result = vb_sys_sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	return result < 0 ? result : 0;
}

static void load_fds(struct msghdr *message, struct vb_mail *mail)
{
	mail->fd_count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t length = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(mail->fds, CMSG_DATA(c), length);
		mail->fd_count = (uint32_t)(length / sizeof(int));
		for (uint32_t i = 0; i < mail->fd_count; i++)
			mail->fds[i] = vb_fd_own(mail->fds[i]);
	}
}

/*
 * An empty message looks like the end of the connection, so none is ever sent. A message that is
 * too long is discarded.
 */
int vb_mail_read(int fd, void *bytes, size_t size, struct vb_mail *mail)
{
	union control control;
	struct iovec whole = { bytes, size };
	struct msghdr message = {
		.msg_iov = &whole,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int length = vb_sys_recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (length <= 0)
		return length;
	load_fds(&message, mail);
	mail->length = (size_t)length;
	if (!(message.msg_flags & MSG_TRUNC))
		return 1;
	vb_mail_close_fds(mail);
	return -EMSGSIZE;
}

void vb_mail_close_fds(struct vb_mail *mail)
{
	while (mail->fd_count)
		vb_fd_close(mail->fds[--mail->fd_count]);
}
