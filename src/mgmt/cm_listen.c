/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners: making and destroying them, finding the one that a request is for, counting the
 * requests that wait at each, and remembering those that were closed last. A program has only a few
 * listeners, so a list holds them.
 */
#include "mgmt/cm_priv.h"

#include "base/heap.h"

#define ALL_FAMILIES (VB_CM_IPV4 | VB_CM_IPV6 | VB_CM_RAW)

static uint32_t family_of_address(const struct vb_gid *address)
{
	return vb_gid_is_ipv4(address) ? VB_CM_IPV4 : VB_CM_IPV6;
}

static uint32_t family_of(const struct vb_cm_addressee *addressee)
{
	return vb_service_is_ip(addressee->service) ? family_of_address(&addressee->address)
						    : VB_CM_RAW;
}

static bool is_for_service(const struct vb_cm_service *service,
			   const struct vb_cm_addressee *addressee)
{
	return service->id == addressee->service && service->takes & family_of(addressee) &&
	       (vb_gid_is_zero(&service->address) ||
		vb_gid_equal(&service->address, &addressee->address));
}

struct vb_cm_listener *vb_cm_listener_find(const struct vb_cm *cm,
					   const struct vb_cm_addressee *addressee)
{
	struct vb_cm_listener *for_any = NULL;

	for (struct vb_list_node *node = cm->listeners.next; node != &cm->listeners;
	     node = node->next) {
		struct vb_cm_listener *listener = VB_CONTAINER(node, struct vb_cm_listener, node);

		if (!is_for_service(&listener->service, addressee))
			continue;
		if (!vb_gid_is_zero(&listener->service.address))
			return listener;
		for_any = listener;
	}
	return for_any;
}

bool vb_cm_has_listener(const struct vb_cm *cm, const struct vb_cm_addressee *addressee)
{
	return addressee->has_service && vb_cm_listener_find(cm, addressee);
}

static bool is_valid(const struct vb_cm_service *service)
{
	if (!service->takes || service->takes & ~ALL_FAMILIES)
		return false;
	return vb_gid_is_zero(&service->address) ||
	       service->takes & family_of_address(&service->address);
}

static bool is_taken(const struct vb_cm *cm, const struct vb_cm_service *service)
{
	for (struct vb_list_node *node = cm->listeners.next; node != &cm->listeners;
	     node = node->next) {
		struct vb_cm_listener *other = VB_CONTAINER(node, struct vb_cm_listener, node);

		if (other->service.id == service->id && other->service.takes & service->takes &&
		    vb_gid_equal(&other->service.address, &service->address))
			return true;
	}
	return false;
}

vb_err vb_cm_listen(struct vb_cm *cm, const struct vb_cm_service *service, uint32_t backlog,
		    void *owner, struct vb_cm_listener **listener_out)
{
	struct vb_cm_listener *listener;

	if (!is_valid(service))
		return VB_EINVAL;
	if (is_taken(cm, service))
		return VB_EBUSY;
	if (cm->listener_count == cm->config.listener_max)
		return VB_ENOSPC;
	listener = vb_heap_alloc(1, sizeof(*listener));
	if (!listener)
		return VB_ENOMEM;
	*listener = (struct vb_cm_listener){
		.cm = cm,
		.service = *service,
		.backlog = backlog ? backlog : 1,
		.owner = owner,
	};
	vb_list_init(&listener->waiting);
	vb_list_append(&cm->listeners, &listener->node);
	cm->listener_count++;
	*listener_out = listener;
	return VB_OK;
}

bool vb_cm_listener_is_full(const struct vb_cm_listener *listener)
{
	return listener->waiting_count == listener->backlog;
}

void vb_cm_listener_admit(struct vb_cm_listener *listener, struct vb_cm_connection *connection)
{
	listener->waiting_count++;
	connection->listener = listener;
	vb_list_append(&listener->waiting, &connection->waiting);
}

void vb_cm_listener_release(struct vb_cm_connection *connection)
{
	if (!connection->listener)
		return;
	connection->listener->waiting_count--;
	connection->listener = NULL;
	vb_list_remove(&connection->waiting);
}

static void remember(const struct vb_cm_listener *listener, uint64_t now_ns)
{
	struct vb_cm *cm = listener->cm;

	cm->closed[cm->closed_next] = (struct vb_cm_closed){ listener->service, now_ns };
	cm->closed_next = (cm->closed_next + 1) % VB_CM_CLOSED_LISTENERS;
}

bool vb_cm_had_listener(const struct vb_cm *cm, const struct vb_cm_addressee *addressee,
			uint64_t now_ns, uint64_t ago_ns)
{
	if (!addressee->has_service)
		return false;
	for (uint32_t i = 0; i < VB_CM_CLOSED_LISTENERS; i++) {
		const struct vb_cm_closed *closed = &cm->closed[i];

		if (is_for_service(&closed->service, addressee) &&
		    now_ns - closed->time_ns <= ago_ns)
			return true;
	}
	return false;
}

void vb_cm_listener_destroy(struct vb_cm_listener *listener, uint64_t now_ns)
{
	while (vb_list_is_linked(&listener->waiting)) {
		struct vb_cm_connection *connection =
			VB_CONTAINER(listener->waiting.next, struct vb_cm_connection, waiting);

		vb_cm_listener_release(connection);
		if (connection->is_unseen)
			vb_cm_connection_destroy(connection, now_ns);
	}
	remember(listener, now_ns);
	vb_list_remove(&listener->node);
	listener->cm->listener_count--;
	vb_heap_free(listener);
}
