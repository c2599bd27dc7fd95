/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages among the processes of one user in one network namespace (fellows), descriptors along. A box listens on an abstract
 * UNIX socket, whose name vanishes with its owner. Anybody can hold any name, so names are only hints: what is behind one is proven by
 * a connection (SOCK_SEQPACKET) and by what the kernel says of its other end (SO_PEERCRED) before anything is sent or taken.
 * A name that a stranger holds is skipped: its rightful owner has the same with "~" and something random behind it.
 * All by raw system calls: a preloaded library may have taken the socket functions for itself.
 */
#ifndef VB_HOST_MAIL_H
#define VB_HOST_MAIL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define VB_MAIL_FDS_MAX 253 /* the kernel's limit */
#define VB_MAIL_NAME_MAX 108

/* Connections that a box keeps open to those it has written to, before it closes the one that was used least. */
#define VB_MAIL_LINKS 8u

struct vb_mail_box;

/* Who we are. */
struct vb_mail_user {
	uid_t uid; /* what the kernel says of fellows */
	uid_t name_uid; /* the same user outside of our user namespace: what names carry */
	bool is_overflow; /* strangers look like us, so there is no mail at all */
};

/* "verbatim/<user>/<what>" */
struct vb_mail_name {
	char text[VB_MAIL_NAME_MAX];
};

struct vb_mail {
	uint64_t link; /* that it came by, for an answer */
	size_t length; /* of the bytes */
	pid_t pid; /* of the sender, as the kernel says; 0 if we cannot see it */
	uint32_t fd_count;
	int fds[VB_MAIL_FDS_MAX]; /* the receiver's: to be closed */
};

/* --- mail_name.c --- */

struct vb_mail_user vb_mail_user(void);
struct vb_mail_name vb_mail_name(const struct vb_mail_user *user, const char *what);

/* --- boxes --- */

/* A box without a name; NULL if there is none to be had. */
struct vb_mail_box *vb_mail_open(const struct vb_mail_user *user, uint32_t links_max);
/* `box` may be NULL. */
void vb_mail_close(struct vb_mail_box *box);
/* False if the program has closed its descriptors. Connections that it has closed are forgotten. */
bool vb_mail_is_intact(struct vb_mail_box *box);
/* Readable when there may be mail. */
int vb_mail_fd(const struct vb_mail_box *box);

/* Gives a box its name, for good; false if a fellow has it. Of two that claim one at once under attack, none may get it. */
VB_MUST_USE bool vb_mail_claim(struct vb_mail_box *box, const struct vb_mail_name *name);
/* Fellows can send no more; what they have sent can still be received. */
void vb_mail_shut(struct vb_mail_box *box);

/* --- who else there is --- */

/* Asks the kernel for all names. What follows goes by this list, until the next call. */
void vb_mail_look(struct vb_mail_box *box);
/* Whether fellows may have that name, by the list; true also if that cannot be said. */
bool vb_mail_is_listed(const struct vb_mail_box *box, const struct vb_mail_name *name);
/* Whether the kernel says whose the names are: then those in the list are fellows'. */
bool vb_mail_list_is_exact(const struct vb_mail_box *box);
/* Whether a fellow has that name now, and which process it is. */
bool vb_mail_is_claimed(struct vb_mail_box *box, const struct vb_mail_name *name, pid_t *pid_out);
/* Whether nobody at all has it, not even a stranger. Disturbs nobody. */
bool vb_mail_is_unused(const struct vb_mail_name *name);

/* Strangers that hold names of ours, for a person; "" if there are none. */
void vb_mail_describe_strangers(const struct vb_mail_user *user, char *text, size_t size);

/* --- messages --- */

/*
 * Never waits. 0, or a negative errno: ECONNREFUSED if no fellow has the name, EAGAIN if its owner does not keep up. What is sent to
 * one name arrives in order.
 */
int vb_mail_send(struct vb_mail_box *box, const struct vb_mail_name *to, const struct iovec *parts,
		 uint32_t count);
int vb_mail_send_fds(struct vb_mail_box *box, const struct vb_mail_name *to,
		     const struct iovec *part, const int *fds, uint32_t fd_count);
/* The same by the connection that a message came by: to its sender, who looks into the box that it was sent from. */
int vb_mail_answer(struct vb_mail_box *box, uint64_t link, const struct iovec *parts,
		   uint32_t count, const int *fds, uint32_t fd_count);

/* Never waits. The next message of a fellow, in `bytes`; false when there is none. */
bool vb_mail_receive(struct vb_mail_box *box, void *bytes, size_t size, struct vb_mail *mail);
void vb_mail_close_fds(struct vb_mail *mail);

/* --- mail_message.c: by a socket that is proven already --- */

int vb_mail_write(int fd, const struct iovec *parts, uint32_t count, const int *fds,
		  uint32_t fd_count);
/* 1: a message; 0: the other end is closed; or a negative errno. Does not write `link` and `pid`. */
int vb_mail_read(int fd, void *bytes, size_t size, struct vb_mail *mail);

#endif
