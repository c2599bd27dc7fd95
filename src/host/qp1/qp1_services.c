/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of services. A name is a socket; its address contains service, family and IP address.
 * The process that has it gets the requests. A name that is given up is immediately free for any
 * process. The process that had it keeps another name for the same service for a moment, and gets
 * the requests while no process listens: programs close and listen again between connections, and
 * their peers should not notice.
 */
#include "host/qp1/qp1_priv.h"

#include "base/heap.h"
#include "host/sys/log.h"
#include "link/fd.h"
#include "link/sys.h"
#include "wire/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- descriptors that wake the owner ---------------------------------------------------------- */

bool vb_qp1_add_source(struct vb_qp1 *qp1, struct vb_qp1_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return vb_sys_epoll_ctl(qp1->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0;
}

/* Other processes may hold copies of the open file, and epoll would go on reporting its events. */
void vb_qp1_remove_source(struct vb_qp1 *qp1, struct vb_qp1_source *source)
{
	struct epoll_event unused;

	if (vb_fd_is_ours(source->fd) && vb_fd_is_ours(qp1->epoll))
		(void)vb_sys_epoll_ctl(qp1->epoll, EPOLL_CTL_DEL, source->fd, &unused);
	if (source->box)
		vb_mail_close(source->box);
	else
		vb_fd_close(source->fd);
	source->box = NULL;
	source->fd = -1;
}

/* --- names ------------------------------------------------------------------------------------ */

static void describe_address(const struct vb_gid *address, char text[33])
{
	if (vb_gid_is_zero(address)) {
		strcpy(text, "any");
		return;
	}
	for (uint32_t i = 0; i < sizeof(address->raw); i++)
		snprintf(text + 2 * i, 3, "%02x", address->raw[i]);
}

struct vb_mail_name vb_qp1_service_name(const struct vb_mail_user *user_id,
					const struct vb_qp1_name *name, uint32_t family,
					bool is_closed)
{
	char address[33], text[80];

	describe_address(&name->address, address);
	snprintf(text, sizeof(text), "%s/%" PRIx64 "/%" PRIu32 "/%s",
		 is_closed ? "listened" : "listens", name->service, family, address);
	return vb_mail_name(user_id, text);
}

bool vb_qp1_has_name(const struct vb_qp1 *qp1, const struct vb_qp1_name *wanted, uint32_t family)
{
	for (struct vb_list_node *node = qp1->names.next; node != &qp1->names; node = node->next) {
		struct vb_qp1_name *name = VB_CONTAINER(node, struct vb_qp1_name, node);

		if (name->service == wanted->service && name->families & family &&
		    name->is_closed == wanted->is_closed &&
		    vb_gid_equal(&name->address, &wanted->address))
			return true;
	}
	return false;
}

static bool open_name_socket(struct vb_qp1 *qp1, struct vb_qp1_name *name, uint32_t index)
{
	struct vb_qp1_name_socket *socket = &name->name_sockets[index];
	struct vb_mail_name address =
		vb_qp1_service_name(&qp1->user_id, name, 1u << index, name->is_closed);
	struct vb_mail_box *box = vb_mail_open(&qp1->user_id, 0);

	socket->name = name;
	socket->source =
		(struct vb_qp1_source){ VB_QP1_NAME_SOCKET, box ? vb_mail_fd(box) : -1, box };
	if (box && vb_mail_claim(box, &address) && vb_qp1_add_source(qp1, &socket->source, EPOLLIN))
		return true;
	vb_qp1_remove_source(qp1, &socket->source);
	return false;
}

static void close_name_sockets(struct vb_qp1 *qp1, struct vb_qp1_name *name)
{
	for (uint32_t i = 0; i < VB_QP1_FAMILIES; i++)
		vb_qp1_remove_source(qp1, &name->name_sockets[i].source);
}

/* Opens all or none, but those that are already open stay. */
static bool open_name_sockets(struct vb_qp1 *qp1, struct vb_qp1_name *name)
{
	for (uint32_t i = 0; i < VB_QP1_FAMILIES; i++) {
		if (name->families >> i & 1 && name->name_sockets[i].source.fd < 0 &&
		    !open_name_socket(qp1, name, i)) {
			close_name_sockets(qp1, name);
			return false;
		}
	}
	return true;
}

static struct vb_qp1_name *make_name(uint64_t service, const struct vb_gid *address,
				     uint32_t families)
{
	struct vb_qp1_name *name = vb_heap_alloc(1, sizeof(*name));

	if (!name)
		return NULL;
	name->service = service;
	name->address = *address;
	name->families = families;
	for (uint32_t i = 0; i < VB_QP1_FAMILIES; i++)
		name->name_sockets[i].source.fd = -1;
	return name;
}

vb_err vb_qp1_listen(struct vb_qp1 *qp1, uint64_t service, const struct vb_gid *address,
		     uint32_t families, struct vb_qp1_name **name_out)
{
	struct vb_qp1_name *name;

	if (!families || families >> VB_QP1_FAMILIES || !qp1->is_attached)
		return VB_EINVAL;
	name = make_name(service, address, families);
	if (!name)
		return VB_ENOMEM;
	if (!open_name_sockets(qp1, name)) {
		vb_heap_free(name);
		return VB_EBUSY;
	}
	vb_list_append(&qp1->names, &name->node);
	*name_out = name;
	return VB_OK;
}

/* --- giving names up -------------------------------------------------------------------------- */

/*
 * Opens the new socket first. Then the old one takes no more requests, and those in it are held for
 * the next listener. If another process has just closed the same service, it has the name of the
 * new socket: then that process holds the requests.
 */
static void exchange_name_socket(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_name *name,
				 uint32_t index)
{
	struct vb_qp1_source before = name->name_sockets[index].source;

	(void)!open_name_socket(qp1, name, index);
	if (before.box && vb_mail_is_intact(before.box)) {
		vb_mail_drop_lost_connections(before.box);
		vb_mail_shut(before.box);
		while (vb_qp1_receive_from_box(qp1, now_ns, before.box, name))
			;
	}
	vb_qp1_remove_source(qp1, &before);
}

uint64_t vb_qp1_closed_service(uint64_t service)
{
	if (!vb_service_is_ip(service))
		return service;
	return vb_service_id(VB_SERVICE_SPACE_TCP, vb_service_port(service));
}

void vb_qp1_unlisten(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_name *name)
{
	name->is_closed = true;
	name->service = vb_qp1_closed_service(name->service);
	name->closes_ns = now_ns + VB_QP1_PATIENCE_NS;
	for (uint32_t i = 0; i < VB_QP1_FAMILIES; i++)
		if (name->families >> i & 1)
			exchange_name_socket(qp1, now_ns, name, i);
	if (name->closes_ns < qp1->closes_ns)
		qp1->closes_ns = name->closes_ns;
}

static void end_name(struct vb_qp1 *qp1, struct vb_qp1_name *name)
{
	close_name_sockets(qp1, name);
	vb_list_remove(&name->node);
	vb_heap_free(name);
}

void vb_qp1_end_closed_names(struct vb_qp1 *qp1, uint64_t now_ns)
{
	struct vb_list_node *next;

	qp1->closes_ns = VB_NEVER;
	for (struct vb_list_node *node = qp1->names.next; node != &qp1->names; node = next) {
		struct vb_qp1_name *name = VB_CONTAINER(node, struct vb_qp1_name, node);

		next = node->next;
		if (!name->is_closed)
			continue;
		if (name->closes_ns <= now_ns)
			end_name(qp1, name);
		else if (name->closes_ns < qp1->closes_ns)
			qp1->closes_ns = name->closes_ns;
	}
}

/* --- all of them ------------------------------------------------------------------------------ */

void vb_qp1_open_names(struct vb_qp1 *qp1)
{
	for (struct vb_list_node *node = qp1->names.next; node != &qp1->names; node = node->next) {
		struct vb_qp1_name *name = VB_CONTAINER(node, struct vb_qp1_name, node);

		if (qp1->is_attached && !open_name_sockets(qp1, name))
			vb_log_about(
				VB_LOG_WARN, VB_LOG_ABOUT(.phase = "listen"),
				"service %" PRIx64
				" is lost: the program had closed its descriptor, and now another process listens on it",
				name->service);
	}
}

void vb_qp1_close_names(struct vb_qp1 *qp1)
{
	for (struct vb_list_node *node = qp1->names.next; node != &qp1->names; node = node->next)
		close_name_sockets(qp1, VB_CONTAINER(node, struct vb_qp1_name, node));
	vb_qp1_end_closed_names(qp1, VB_NEVER);
}

void vb_qp1_free_names(struct vb_qp1 *qp1)
{
	while (vb_list_is_linked(&qp1->names))
		end_name(qp1, VB_CONTAINER(qp1->names.next, struct vb_qp1_name, node));
}
