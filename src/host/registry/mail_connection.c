/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of a box, which carry messages in both directions. A box keeps the connections it
 * made for the next message, and those that its peers made for as long as the peers want. When
 * there are too many of one kind, the box closes the least recently used one; a peer that needs it
 * connects again.
 */
#include "host/registry/mail_priv.h"

#include "base/heap.h"
#include "link/fd.h"
#include "link/sys.h"

#include <string.h>

#define ACCEPTED_MAX 16u /* connections that peers made */

socklen_t vb_mail_store_address(const char *text, struct sockaddr_un *address)
{
	size_t length = strlen(text);

	/* The first byte stays 0: an abstract name. */
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (length > sizeof(address->sun_path) - 1)
		length = sizeof(address->sun_path) - 1;
	memcpy(address->sun_path + 1, text, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

int vb_mail_open_socket(void)
{
	return vb_fd_own(vb_sys_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool vb_mail_ask_peer(int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	return vb_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) == 0;
}

void vb_mail_watch(struct vb_mail_box *box, int operation, int fd, void *what, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	(void)vb_sys_epoll_ctl(box->epoll, operation, fd, &event);
}

/* Other processes may hold copies of the open file, and epoll would go on reporting its events. */
static void close_watched(struct vb_mail_box *box, int fd)
{
	if (fd >= 0 && vb_fd_is_ours(fd) && vb_fd_is_ours(box->epoll))
		vb_mail_watch(box, EPOLL_CTL_DEL, fd, NULL, 0);
	vb_fd_close(fd);
}

void vb_mail_drop_connection(struct vb_mail_box *box, struct vb_mail_connection *connection)
{
	struct vb_mail_connection **place = &box->connections;

	while (*place != connection)
		place = &(*place)->next;
	*place = connection->next;
	if (box->current == connection)
		box->current = NULL;
	close_watched(box, connection->fd);
	vb_heap_free(connection);
}

void vb_mail_shut_connection(struct vb_mail_connection *connection)
{
	connection->is_shut = true;
	(void)syscall(SYS_shutdown, connection->fd, SHUT_RD);
}

/*
 * A connection that we made is closed: the peer will still read what we sent. A connection that a
 * peer made is shut: the peer learns of it when it sends, and everything it sent before is read.
 */
static void make_room(struct vb_mail_box *box, bool is_made)
{
	uint32_t most = is_made ? box->connections_max : ACCEPTED_MAX;
	struct vb_mail_connection *least = NULL;
	uint32_t count = 0;

	for (struct vb_mail_connection *each = box->connections; each; each = each->next) {
		if (each->is_made != is_made || each->is_shut)
			continue;
		count++;
		if (!least || each->used < least->used)
			least = each;
	}
	if (!least || count < most)
		return;
	if (is_made)
		vb_mail_drop_connection(box, least);
	else
		vb_mail_shut_connection(least);
}

struct vb_mail_connection *vb_mail_add_connection(struct vb_mail_box *box, int fd, pid_t pid,
						  const struct vb_mail_name *to)
{
	struct vb_mail_connection *connection = NULL;

	if (fd >= 0)
		connection = vb_heap_alloc(1, sizeof(*connection));
	if (!connection) {
		vb_fd_close(fd);
		return NULL;
	}
	make_room(box, to);
	*connection = (struct vb_mail_connection){
		.next = box->connections,
		.fd = fd,
		.is_made = to,
		.pid = pid,
		.id = ++box->last_id,
		.used = ++box->uses,
	};
	if (to)
		connection->to = *to;
	box->connections = connection;
	vb_mail_watch(box, EPOLL_CTL_ADD, fd, connection, EPOLLIN);
	return connection;
}
