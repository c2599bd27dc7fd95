/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending. A message to a name takes the connection that the last one took, or a new one to the
 * process that has the name now. An answer takes the connection that the question came by.
 */
#include "host/registry/mail_priv.h"

#include "link/sys.h"

#include <string.h>

static struct vb_mail_connection *find_connection(const struct vb_mail_box *box,
						  const struct vb_mail_name *to)
{
	for (struct vb_mail_connection *each = box->connections; each; each = each->next)
		if (each->is_made && !strcmp(each->to.text, to->text))
			return each;
	return NULL;
}

bool vb_mail_is_connected(const struct vb_mail_box *box, const struct vb_mail_name *name,
			  pid_t *pid_out)
{
	const struct vb_mail_connection *connection = find_connection(box, name);

	if (connection)
		*pid_out = connection->pid;
	return connection;
}

static bool is_over(int result)
{
	return result == -EPIPE || result == -ECONNRESET || result == -ENOTCONN ||
	       result == -EBADF || result == -ENOTSOCK;
}

static int make_connection(struct vb_mail_box *box, const struct vb_mail_name *to,
			   struct vb_mail_connection **connection_out)
{
	struct ucred peer;
	int fd = -1;
	int result = vb_mail_find_fellow(box, to, &fd, &peer);

	if (result)
		return result;
	*connection_out = vb_mail_add_connection(box, fd, peer.pid, to);
	return *connection_out ? 0 : -ENOMEM;
}

/*
 * A closed connection led to a process that is gone, or was unused for long. Another process may
 * have the name by now.
 */
static int send_message(struct vb_mail_box *box, const struct vb_mail_name *to,
			const struct iovec *parts, uint32_t count, const int *fds,
			uint32_t fd_count)
{
	struct vb_mail_connection *connection = find_connection(box, to);
	int result;

	for (uint32_t i = 0; i < 2; i++) {
		if (!connection) {
			result = make_connection(box, to, &connection);
			if (result)
				return result;
		}
		result = vb_mail_write(connection->fd, parts, count, fds, fd_count);
		if (!is_over(result)) {
			connection->used = ++box->uses;
			return result;
		}
		vb_mail_drop_connection(box, connection);
		connection = NULL;
	}
	return -ECONNREFUSED;
}

int vb_mail_send(struct vb_mail_box *box, const struct vb_mail_name *to, const struct iovec *parts,
		 uint32_t count)
{
	return send_message(box, to, parts, count, NULL, 0);
}

int vb_mail_send_fds(struct vb_mail_box *box, const struct vb_mail_name *to,
		     const struct iovec *part, const int *fds, uint32_t fd_count)
{
	return send_message(box, to, part, 1, fds, fd_count);
}

int vb_mail_answer(struct vb_mail_box *box, uint64_t connection, const struct iovec *parts,
		   uint32_t count, const int *fds, uint32_t fd_count)
{
	for (struct vb_mail_connection *each = box->connections; each; each = each->next)
		if (each->id == connection)
			return vb_mail_write(each->fd, parts, count, fds, fd_count);
	return -ECONNREFUSED;
}
