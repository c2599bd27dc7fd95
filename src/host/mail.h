/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages among the processes of one user in one network namespace: datagrams to abstract UNIX sockets, whose names vanish
 * with their owners, so that nothing is left behind. Descriptors may go along. What other users send is thrown away.
 * All by raw system calls: a preloaded library may have taken the socket functions for itself.
 */
#ifndef VB_HOST_MAIL_H
#define VB_HOST_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>

#define VB_MAIL_FDS_MAX 253 /* the kernel's limit */
#define VB_MAIL_PARTS_MAX 1024 /* the kernel's limit */

struct vb_mail_name {
	struct sockaddr_un address;
	socklen_t length;
};

struct vb_mail {
	struct vb_mail_name from;
	size_t length; /* of the bytes */
	pid_t pid; /* of the sender, as the kernel says; 0 if we cannot see it */
	uint32_t fd_count;
	int fds[VB_MAIL_FDS_MAX]; /* the receiver's: to be closed */
};

/* A name of that user: "verbatim/<user>/<what>". */
struct vb_mail_name vb_mail_name(uid_t user, const char *what);

/* A box without a name yet; a negative errno if there is none to be had. */
int vb_mail_open(void);
void vb_mail_close(int fd);

/* Gives a box its name, for good; false if somebody has it. */
bool vb_mail_claim(int fd, const struct vb_mail_name *name);
/* The same with any name that is free, good enough to be answered. */
bool vb_mail_claim_any(int fd);

/* Whether anybody has that name. `fd` is an empty box. */
bool vb_mail_is_claimed(int fd, const struct vb_mail_name *name);

/* Never waits. 0, or a negative errno: ECONNREFUSED if nobody has the name, EAGAIN if its owner does not keep up. */
int vb_mail_send(int fd, const struct vb_mail_name *to, const struct iovec *parts, uint32_t count);
int vb_mail_send_fds(int fd, const struct vb_mail_name *to, const struct iovec *part,
		     const int *fds, uint32_t fd_count);

/* Never waits. The next message of that user, in `bytes`; false when there is none. */
bool vb_mail_receive(int fd, uid_t user, void *bytes, size_t size, struct vb_mail *mail);
void vb_mail_close_fds(struct vb_mail *mail);

#endif
