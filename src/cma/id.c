/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers. An identifier made without a channel gets its own and is synchronous: its calls wait
 * for their results.
 */
#include "cma/cma_priv.h"

#include "base/heap.h"

#include <arpa/inet.h>
#include <string.h>

/*
 * All identifiers that have a device. In a forked child also those of its parent, which does no
 * harm.
 */
static struct vb_list_node placed_ids = { &placed_ids, &placed_ids };

struct vb_cma_id *vb_cma_id_of(struct rdma_cm_id *id)
{
	return VB_CONTAINER(id, struct vb_cma_id, id);
}

int vb_cma_id_ensure_ours(const struct rdma_cm_id *id, const char *call)
{
	if (!id)
		return vb_cma_refuse(EINVAL, "%s: no identifier", call);
	if (!vb_cma_is_ours(((const struct vb_cma_id *)(const void *)id)->generation) &&
	    vb_cma_machine_inherit())
		return vb_cma_refuse(
			EIO, "%s: the identifier belongs to the process that forked this one",
			call);
	return 0;
}

bool vb_cma_is_datagram(const struct vb_cma_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

/* --- making ----------------------------------------------------------------------------------- */

struct vb_cma_id *vb_cma_id_make(struct rdma_event_channel *channel, void *context,
				 enum rdma_port_space space, enum ibv_qp_type type)
{
	struct vb_cma_id *id = vb_heap_alloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = space;
	id->id.qp_type = type;
	id->generation = vb_cma_generation();
	vb_list_init(&id->placed);
	vb_list_init(&id->bound);
	vb_list_init(&id->groups);
	return id;
}

void vb_cma_id_free(struct vb_cma_id *id)
{
	vb_heap_free(id->child_qp);
	vb_heap_free(id);
}

void vb_cma_id_discard(struct vb_cma_id *id)
{
	if (id->connection)
		vb_cm_connection_destroy(id->connection, vb_clock_now());
	vb_cma_id_free(id);
}

static bool is_space(enum rdma_port_space space)
{
	return space == RDMA_PS_TCP || space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ||
	       space == RDMA_PS_IB;
}

int vb_cma_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
		     enum rdma_port_space space, enum ibv_qp_type type)
{
	struct rdma_event_channel *own = channel;
	struct vb_cma_id *id;

	if (!id_out)
		return vb_cma_refuse(EINVAL, "rdma_create_id: no place for the identifier");
	if (!is_space(space))
		return vb_cma_refuse(EINVAL, "rdma_create_id: there is no port space 0x%04x",
				     space);
	if (!own)
		own = rdma_create_event_channel();
	if (!own)
		return errno;
	id = vb_cma_id_make(own, context, space, type);
	if (!id) {
		if (!channel)
			rdma_destroy_event_channel(own);
		return ENOMEM;
	}
	id->is_sync = !channel;
	id->psn.v = vb_cma_random() & VB_PSN_MASK;
	*id_out = &id->id;
	return 0;
}

VB_CMA_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
				 void *context, enum rdma_port_space ps)
{
	bool is_datagram = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;

	return vb_cma_return(
		vb_cma_id_create(channel, id, context, ps, is_datagram ? IBV_QPT_UD : IBV_QPT_RC));
}

/* --- what programs see ------------------------------------------------------------------------ */

void vb_cma_id_set_place(struct vb_cma_id *id, const struct vb_cma_place *place)
{
	vb_cma_lock();
	id->place = *place;
	if (!vb_list_is_linked(&id->placed))
		vb_list_append(&placed_ids, &id->placed);
	vb_cma_unlock();
	id->id.verbs = place->device->verbs;
	id->id.port_num = VB_CMA_PORT_NUM;
	id->id.route.addr.addr.ibaddr.pkey = htons(VB_CMA_PKEY);
	if (!id->id.pd)
		id->id.pd = place->device->pd;
}

/*
 * As in the kernel, identifiers bound to no device are not notified, and the program must destroy
 * the others.
 */
void vb_cma_id_on_removal(const struct ibv_device *device)
{
	for (struct vb_list_node *node = placed_ids.next; node != &placed_ids; node = node->next) {
		struct vb_cma_id *id = VB_CONTAINER(node, struct vb_cma_id, placed);
		struct vb_cma_event *event;

		if (id->place.device->verbs->device != device)
			continue;
		event = vb_cma_event_make(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		if (event)
			vb_cma_event_queue(event);
	}
}

void vb_cma_id_set_path(struct vb_cma_id *id, const struct vb_flow *flow, uint8_t mtu)
{
	struct ibv_sa_path_rec *path = &id->path;

	*path = (struct ibv_sa_path_rec){
		.flow_label = htonl(flow->flow_label),
		.hop_limit = flow->hop_limit,
		.traffic_class = flow->traffic_class,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htons(VB_CMA_PKEY),
		.mtu_selector = 2, /* exactly */
		.mtu = mtu,
		.rate_selector = 2,
		.packet_life_time_selector = 2,
		.packet_life_time = VB_CM_PACKET_LIFE_TIME,
	};
	memcpy(path->sgid.raw, flow->source.raw, sizeof(path->sgid.raw));
	memcpy(path->dgid.raw, flow->destination.raw, sizeof(path->dgid.raw));
	id->id.route.addr.addr.ibaddr.sgid = path->sgid;
	id->id.route.addr.addr.ibaddr.dgid = path->dgid;
	id->id.route.path_rec = path;
	id->id.route.num_paths = 1;
}

/* --- moving ----------------------------------------------------------------------------------- */

int vb_cma_id_migrate(struct vb_cma_id *id, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *old = id->id.channel;
	struct rdma_event_channel *to = channel ? channel : rdma_create_event_channel();
	bool was_sync = id->is_sync;

	if (!to)
		return errno;
	if (id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	vb_cma_lock();
	vb_cma_event_move_all(id, to);
	id->id.channel = to;
	id->is_sync = !channel;
	vb_cma_unlock();
	if (was_sync)
		rdma_destroy_event_channel(old);
	return 0;
}

VB_CMA_EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_migrate_id");

	if (!error && !channel && vb_cma_id_of(id)->is_sync)
		error = vb_cma_refuse(EINVAL, "rdma_migrate_id: it is synchronous already");
	return vb_cma_return(error ? error : vb_cma_id_migrate(vb_cma_id_of(id), channel));
}

/* --- destroying ------------------------------------------------------------------------------- */

/* Sends the peer what it must know. No event arrives after this. */
static void end(struct vb_cma_id *id)
{
	vb_cma_lock();
	if (id->connection)
		vb_cm_connection_destroy(id->connection, vb_clock_now());
	if (id->listener)
		vb_cm_listener_destroy(id->listener, vb_clock_now());
	id->connection = NULL;
	id->listener = NULL;
	vb_list_remove(&id->placed);
	vb_cma_event_drop_all(id);
	while (id->events_taken)
		vb_cma_sleep();
	vb_cma_unlock();
	vb_cma_port_release(id);
	vb_cma_machine_kick();
}

VB_CMA_EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct vb_cma_id *own;

	if (!id)
		return vb_cma_return(vb_cma_refuse(EINVAL, "rdma_destroy_id: no identifier"));
	own = vb_cma_id_of(id);
	if (vb_cma_is_ours(own->generation) || vb_cma_machine_inherit_or_forget()) {
		if (id->event)
			rdma_ack_cm_event(id->event);
		id->event = NULL;
		vb_cma_group_leave_all(own);
		end(own);
		if (own->is_sync)
			rdma_destroy_event_channel(id->channel);
	} else {
		vb_cma_lock();
		vb_list_remove(&own->placed);
		vb_cma_unlock();
	}
	vb_cma_id_free(own);
	return 0;
}
