/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages, which may carry descriptors, between the processes of one user in one network
 * namespace. A box listens on an abstract UNIX socket; the name vanishes with its owner. Any
 * process can hold any name, so names are only hints. Before a box sends or accepts anything, it
 * proves the other end by a connection (SOCK_SEQPACKET) and by what the kernel reports about it
 * (SO_PEERCRED). A name that a process of another user holds is skipped: its rightful owner uses
 * the same name with "~" and a random suffix.
 *
 * Everything uses raw system calls, because a preloaded library may have replaced the socket
 * functions.
 */
#ifndef VB_HOST_REGISTRY_MAIL_H
#define VB_HOST_REGISTRY_MAIL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define VB_MAIL_FDS_MAX 253 /* the kernel's limit */
#define VB_MAIL_NAME_MAX 108

/*
 * Connections that a box keeps open to the boxes it has written to, before it closes the least
 * recently used one.
 */
#define VB_MAIL_CONNECTIONS 8u

struct vb_mail_box;

/* The user we run as. */
struct vb_mail_user {
	uid_t uid; /* what the kernel reports for processes of our user */
	uid_t name_uid; /* the same user outside our user namespace: what names carry */
	bool is_overflow; /* other users look like ours, so there is no mail at all */
};

/* "verbatim/<user>/<what>" */
struct vb_mail_name {
	char text[VB_MAIL_NAME_MAX];
};

struct vb_mail {
	uint64_t connection; /* the one it came by, for an answer */
	size_t length; /* of the bytes */
	pid_t pid; /* of the sender, from the kernel; 0 if we cannot see it */
	uint32_t fd_count;
	int fds[VB_MAIL_FDS_MAX]; /* owned by the receiver, which must close them */
};

/* --- mail_name.c --- */

struct vb_mail_user vb_mail_user(void);
struct vb_mail_name vb_mail_name(const struct vb_mail_user *user, const char *what);

/* --- mail.c, mail_claim.c: boxes --- */

/* Opens a box without a name; NULL if none is available. */
struct vb_mail_box *vb_mail_open(const struct vb_mail_user *user, uint32_t connections_max);
/* `box` may be NULL. */
void vb_mail_close(struct vb_mail_box *box);
/* False if the program has closed the box's own descriptors. */
bool vb_mail_is_intact(const struct vb_mail_box *box);
/* Forgets connections whose descriptors the program has closed. */
void vb_mail_drop_lost_connections(struct vb_mail_box *box);
/* Readable when there may be mail. */
int vb_mail_fd(const struct vb_mail_box *box);

/*
 * Gives a box its permanent name; false if a process of our user has it. If two processes claim one
 * name at the same time under attack, possibly neither gets it.
 */
VB_MUST_USE bool vb_mail_claim(struct vb_mail_box *box, const struct vb_mail_name *name);
/* From now on no process can send to the box; what was sent before can still be received. */
void vb_mail_shut(struct vb_mail_box *box);

/* --- mail_proof.c: other processes --- */

/* Asks the kernel for all names. The functions below use this list, until the next call. */
void vb_mail_refresh_list(struct vb_mail_box *box);
/*
 * Whether processes of our user may have that name, according to the list; also true if that is
 * unknown.
 */
bool vb_mail_is_listed(const struct vb_mail_box *box, const struct vb_mail_name *name);
/* Whether the kernel reports the owners of names: then all names in the list belong to our user. */
bool vb_mail_list_is_exact(const struct vb_mail_box *box);
/* Whether a process of our user has that name now, and which process it is. */
bool vb_mail_find_holder(struct vb_mail_box *box, const struct vb_mail_name *name, pid_t *pid_out);
/*
 * Whether the process that the box last wrote to by that name still has its end of the connection,
 * and which process it is.
 */
bool vb_mail_is_connected(const struct vb_mail_box *box, const struct vb_mail_name *name,
			  pid_t *pid_out);
/* Whether no process of any user has the name. Disturbs no process. */
bool vb_mail_is_unused(const struct vb_mail_name *name);

/* Describes the other users that hold names of ours, for a person; "" if there are none. */
void vb_mail_describe_strangers(const struct vb_mail_user *user, char *text, size_t size);

/* --- mail_send.c, mail_receive.c, mail_message.c: messages --- */

/*
 * Never waits. Returns 0 or a negative errno: ECONNREFUSED if no process of our user has the name,
 * EAGAIN if its owner does not keep up. Messages sent to one name arrive in order.
 */
int vb_mail_send(struct vb_mail_box *box, const struct vb_mail_name *to, const struct iovec *parts,
		 uint32_t count);
int vb_mail_send_fds(struct vb_mail_box *box, const struct vb_mail_name *to,
		     const struct iovec *part, const int *fds, uint32_t fd_count);
/*
 * The same over the connection that a message came by, to its sender. The sender finds the answer
 * in the box that it sent from.
 */
int vb_mail_answer(struct vb_mail_box *box, uint64_t connection, const struct iovec *parts,
		   uint32_t count, const int *fds, uint32_t fd_count);

/*
 * Never waits. Stores the next message from a process of our user in `bytes`; false when there is
 * none.
 */
bool vb_mail_receive(struct vb_mail_box *box, void *bytes, size_t size, struct vb_mail *mail);
void vb_mail_close_fds(struct vb_mail *mail);

/* --- mail_message.c: over a socket that is already proven --- */

int vb_mail_write(int fd, const struct iovec *parts, uint32_t count, const int *fds,
		  uint32_t fd_count);
/*
 * Returns 1 for a message, 0 if the other end is closed, or a negative errno. Does not write
 * `connection` and `pid`.
 */
int vb_mail_read(int fd, void *bytes, size_t size, struct vb_mail *mail);

#endif
