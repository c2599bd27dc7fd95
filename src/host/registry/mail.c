/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mailboxes of processes of one user. A box is a listener and connections with proven other ends.
 * One epoll descriptor holds them all, so a box is one descriptor to its user.
 */
#include "host/registry/mail_priv.h"

#include "base/heap.h"
#include "link/fd.h"
#include "link/sys.h"

struct vb_mail_box *vb_mail_open(const struct vb_mail_user *user, uint32_t connections_max)
{
	struct vb_mail_box *box = vb_heap_alloc(1, sizeof(*box));

	if (!box)
		return NULL;
	box->user = *user;
	box->connections_max = connections_max;
	box->listener = box->timer = -1;
	box->epoll = vb_fd_own(vb_sys_epoll_create(EPOLL_CLOEXEC));
	if (box->epoll >= 0)
		return box;
	vb_heap_free(box);
	return NULL;
}

void vb_mail_close(struct vb_mail_box *box)
{
	if (!box)
		return;
	while (box->connections)
		vb_mail_drop_connection(box, box->connections);
	vb_fd_close(box->listener);
	vb_fd_close(box->timer);
	vb_fd_close(box->epoll);
	vb_mail_list_clear(&box->list);
	vb_heap_free(box);
}

bool vb_mail_is_intact(const struct vb_mail_box *box)
{
	return vb_fd_is_ours(box->epoll) && (box->listener < 0 || vb_fd_is_ours(box->listener)) &&
	       (box->timer < 0 || vb_fd_is_ours(box->timer));
}

void vb_mail_drop_lost_connections(struct vb_mail_box *box)
{
	struct vb_mail_connection *next;

	for (struct vb_mail_connection *each = box->connections; each; each = next) {
		next = each->next;
		if (!vb_fd_is_ours(each->fd))
			vb_mail_drop_connection(box, each);
	}
	if (box->is_paused && box->timer < 0)
		vb_mail_resume_listener(box);
}

int vb_mail_fd(const struct vb_mail_box *box)
{
	return box->epoll;
}

void vb_mail_shut(struct vb_mail_box *box)
{
	box->is_shut = true;
	if (vb_fd_is_ours(box->listener))
		(void)syscall(SYS_shutdown, box->listener, SHUT_RD);
	for (struct vb_mail_connection *each = box->connections; each; each = each->next)
		if (vb_fd_is_ours(each->fd))
			vb_mail_shut_connection(each);
	if (box->is_paused)
		vb_mail_resume_listener(box);
}
