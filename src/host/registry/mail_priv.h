/* SPDX-License-Identifier: BSD-2-Clause */
/* The internals of boxes: their connections, and what the files of mail call in each other. */
#ifndef VB_HOST_REGISTRY_MAIL_PRIV_H
#define VB_HOST_REGISTRY_MAIL_PRIV_H

#include "host/registry/mail.h"
#include "host/registry/mail_list.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Other users' processes may fill it, so emptying it must be worth the look. */
#define VB_MAIL_BACKLOG 256

struct vb_mail_connection {
	struct vb_mail_connection *next;
	int fd;
	bool is_made; /* by us */
	bool is_shut; /* its remaining messages are still read */
	pid_t pid;
	uint64_t id;
	uint64_t used; /* the more recent, the higher */
	struct vb_mail_name to; /* if we made it */
};

struct vb_mail_box {
	struct vb_mail_user user;
	int epoll;
	int listener; /* or -1 */
	int timer; /* for the end of the pause, or -1 */
	bool is_shut;
	bool is_paused; /* the listener, after strangers */
	uint32_t connections_max;
	struct vb_mail_name name; /* the name it listens on, with its suffix */
	struct vb_mail_connection *connections;
	struct vb_mail_connection *current; /* the one that mail last came from, or NULL */
	uint32_t in_a_row;
	uint64_t last_id;
	uint64_t uses;
	struct vb_mail_list list;
	uint64_t listed_ns; /* when the list was taken … */
	uint64_t listing_ns; /* … and how long that took */
};

/* --- mail_connection.c --- */

/* Returns the length of the address. */
socklen_t vb_mail_store_address(const char *text, struct sockaddr_un *address);
int vb_mail_open_socket(void);
/* Asks the kernel which process is at the other end; false if it does not know. */
bool vb_mail_ask_peer(int fd, struct ucred *peer);
/* An epoll_ctl() of the box; `what` is reported with the events. */
void vb_mail_watch(struct vb_mail_box *box, int operation, int fd, void *what, uint32_t events);
/* Takes ownership of the descriptor. `to` is NULL if the peer made the connection. */
struct vb_mail_connection *vb_mail_add_connection(struct vb_mail_box *box, int fd, pid_t pid,
						  const struct vb_mail_name *to);
void vb_mail_drop_connection(struct vb_mail_box *box, struct vb_mail_connection *connection);
/* The peer can no longer send; what it sent before can still be received. */
void vb_mail_shut_connection(struct vb_mail_connection *connection);

/* --- mail_proof.c: the caller closes *fd_out --- */

/*
 * Connects to a name. Returns 0 if a process of our user is there, -EACCES if a process of another
 * user is, -EAGAIN if the listener does not keep up, -ECONNREFUSED if no process listens.
 */
int vb_mail_connect_to(const struct vb_mail_box *box, const char *text, int *fd_out,
		       struct ucred *peer);
/*
 * Tries the names that processes of our user took because another user had the first one. Skips our
 * own name.
 */
int vb_mail_connect_to_others(const struct vb_mail_box *box, const char *text, int *fd_out,
			      struct ucred *peer);
/* Connects to the process of our user that has that name. A slightly old list will do. */
int vb_mail_find_fellow(struct vb_mail_box *box, const struct vb_mail_name *name, int *fd_out,
			struct ucred *peer);

/* --- mail_accept.c --- */

/*
 * Accepts new connections. Those of other users are closed immediately, and all that they sent is
 * discarded.
 */
void vb_mail_accept_some(struct vb_mail_box *box);
/* Looks at the listener again, which pauses after strangers connected to it. */
void vb_mail_resume_listener(struct vb_mail_box *box);

#endif
