/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: from one connection after the other, as epoll reports them. A connection with many
 * messages does not keep the others waiting.
 */
#include "host/registry/mail_priv.h"

#include "link/sys.h"

#define MESSAGES_IN_A_ROW 64u /* from one connection, before others are looked at */
#define LOOK_BATCH 64u

/*
 * Finds a connection that may have mail. Returns false if there is none. *connection_out is NULL if
 * the caller should look again.
 */
static bool find_ready(struct vb_mail_box *box, struct vb_mail_connection **connection_out)
{
	struct epoll_event event;

	*connection_out = NULL;
	if (syscall(SYS_epoll_pwait, box->epoll, &event, 1, 0, NULL, 0) != 1)
		return false;
	if (event.data.ptr == &box->listener)
		vb_mail_accept_some(box);
	else if (event.data.ptr == &box->timer)
		vb_mail_resume_listener(box);
	else
		*connection_out = event.data.ptr;
	return true;
}

/* Receives one message from the current connection; false if there is none. */
static bool receive_by(struct vb_mail_box *box, struct vb_mail_connection *connection, void *bytes,
		       size_t size, struct vb_mail *mail)
{
	int result = vb_mail_read(connection->fd, bytes, size, mail);

	if (result == 1) {
		mail->connection = connection->id;
		mail->pid = connection->pid;
		connection->used = ++box->uses;
		if (++box->in_a_row >= MESSAGES_IN_A_ROW)
			box->current = NULL;
		return true;
	}
	/*
	 * A peer that closed with mail unread resets the connection; what it sent is still there.
	 */
	if (result == -EAGAIN)
		box->current = NULL;
	else if (result != -ECONNRESET && result != -EMSGSIZE)
		vb_mail_drop_connection(box, connection);
	return false;
}

bool vb_mail_receive(struct vb_mail_box *box, void *bytes, size_t size, struct vb_mail *mail)
{
	for (uint32_t i = 0; i < LOOK_BATCH; i++) {
		if (!box->current) {
			box->in_a_row = 0;
			if (!find_ready(box, &box->current))
				return false;
			if (!box->current)
				continue;
		}
		if (receive_by(box, box->current, bytes, size, mail))
			return true;
	}
	return false;
}
