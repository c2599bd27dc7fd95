/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding to an address of this host, and finding the path to another host. The kernel's routing
 * table decides; there is nothing to wait for, so the events are queued before the calls return.
 */
#include "cma/cma_priv.h"

#include <stdlib.h>
#include <string.h>

/* --- binding ---------------------------------------------------------------------------------- */

static int check_family(const struct sockaddr *address, const char *call)
{
	if (!address)
		return vb_cma_refuse(EINVAL, "%s: no address", call);
	if (vb_cma_address_length(address))
		return 0;
	/*
	 * InfiniBand's own addresses: programs ask whether there are any, and continue without
	 * them.
	 */
	return vb_cma_refuse(address->sa_family == AF_IB ? EINVAL : EAFNOSUPPORT,
			     "%s: an address of family %u; there are IPv4 and IPv6", call,
			     address->sa_family);
}

static int find_place(const struct sockaddr *address, struct vb_cma_place *place)
{
	struct vb_gid gid = vb_cma_address_gid(address);
	int error = vb_cma_device_find(&gid, vb_cma_address_scope(address), place);
	char text[VB_CMA_ADDRESS_TEXT];

	if (!error)
		return 0;
	if (vb_cma_address_check_local(address) == EADDRNOTAVAIL)
		error = EADDRNOTAVAIL;
	return vb_cma_refuse(
		error, "rdma_bind_addr: %s: %s", vb_cma_address_describe(address, text),
		error == ENODEV ? "no device has this address" : "it is no address of this host");
}

/*
 * As in the kernel's rdma_cm, a loopback address names no device: programs bind to it to learn
 * whether there are devices, and then choose one. If the loopback device is the only device, the
 * address means that device. If there is no loopback device, the address stands for all addresses.
 */
static bool find_loopback(const struct sockaddr *address, struct vb_cma_place *place)
{
	struct vb_gid gid = vb_cma_address_gid(address);
	bool is_found = !vb_cma_device_find(&gid, vb_cma_address_scope(address), place);

	if (!is_found || vb_cma_device_count() > 1)
		*place = (struct vb_cma_place){ 0 };
	return is_found;
}

/* Finds the device of an address that a program binds to, if there is one. */
static int find_home(const struct sockaddr *address, struct vb_cma_place *place,
		     bool *stands_for_all)
{
	*stands_for_all = vb_cma_address_is_any(address);
	if (*stands_for_all)
		return 0;
	if (!vb_cma_address_is_loopback(address))
		return find_place(address, place);
	*stands_for_all = !find_loopback(address, place);
	return 0;
}

static void set_source(struct vb_cma_id *id, const struct sockaddr *address)
{
	struct rdma_addr *addr = &id->id.route.addr;
	struct vb_gid gid = vb_cma_address_gid(address);

	memset(&addr->src_storage, 0, sizeof(addr->src_storage));
	memcpy(&addr->src_storage, address, vb_cma_address_length(address));
	if (!vb_cma_address_is_any(address))
		memcpy(addr->addr.ibaddr.sgid.raw, gid.raw, sizeof(gid.raw));
}

int vb_cma_bind(struct vb_cma_id *id, const struct sockaddr *address, bool is_server)
{
	struct vb_cma_place place = { 0 };
	bool stands_for_all = false;
	int error = check_family(address, "rdma_bind_addr");

	if (!error && id->state != VB_CMA_IDLE)
		error = vb_cma_refuse(EINVAL, "rdma_bind_addr: it has an address already");
	if (!error)
		error = find_home(address, &place, &stands_for_all);
	if (error)
		return error;
	if (!id->has_afonly)
		id->is_afonly = address->sa_family == AF_INET;
	set_source(id, address);
	id->is_for_all = stands_for_all;
	error = vb_cma_port_claim(id, is_server);
	if (error) {
		memset(&id->id.route.addr, 0, sizeof(id->id.route.addr));
		return error;
	}
	if (place.device)
		vb_cma_id_set_place(id, &place);
	id->state = VB_CMA_BOUND;
	return 0;
}

VB_CMA_EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_bind_addr");

	return vb_cma_return(error ? error : vb_cma_bind(vb_cma_id_of(id), addr, true));
}

/* --- the destination -------------------------------------------------------------------------- */

static int bind_for(struct vb_cma_id *id, const struct sockaddr *source,
		    const struct sockaddr *destination)
{
	struct sockaddr_storage any;

	if (id->state == VB_CMA_BOUND)
		return 0;
	vb_cma_address_any(&any, destination->sa_family);
	return vb_cma_bind(id, source ? source : (struct sockaddr *)&any, false);
}

static const struct sockaddr *demanded_source(const struct vb_cma_id *id)
{
	const struct sockaddr *source = &id->id.route.addr.src_addr;

	return vb_cma_address_is_any(source) ? NULL : source;
}

/* Sets source, place and destination. ENODEV: the route uses an interface that has no device. */
static int resolve_way(struct vb_cma_id *id, const struct sockaddr *destination)
{
	struct rdma_addr *addr = &id->id.route.addr;
	uint16_t port = vb_cma_address_port(&addr->src_addr);
	struct sockaddr_storage source;
	struct vb_cma_place place;
	struct vb_gid gid;
	int error = vb_cma_address_route(demanded_source(id), destination, &source);
	char text[VB_CMA_ADDRESS_TEXT];

	if (error)
		return vb_cma_refuse(error, "rdma_resolve_addr: %s: no way leads there (errno %d)",
				     vb_cma_address_describe(destination, text), error);
	gid = vb_cma_address_gid((struct sockaddr *)&source);
	if (vb_cma_device_find(&gid, vb_cma_address_scope((struct sockaddr *)&source), &place))
		return vb_cma_refuse(ENODEV,
				     "rdma_resolve_addr: the way to %s begins where no device is",
				     vb_cma_address_describe(destination, text));
	vb_cma_address_set_port((struct sockaddr *)&source, port);
	set_source(id, (struct sockaddr *)&source);
	id->is_for_all = false;
	memcpy(&addr->dst_storage, destination, vb_cma_address_length(destination));
	gid = vb_cma_address_gid(destination);
	memcpy(addr->addr.ibaddr.dgid.raw, gid.raw, sizeof(gid.raw));
	vb_cma_id_set_place(id, &place);
	return 0;
}

static int resolve(struct vb_cma_id *id, const struct sockaddr *source,
		   const struct sockaddr *destination)
{
	struct sockaddr_storage target = { 0 };
	int error = check_family(destination, "rdma_resolve_addr");

	if (!error && id->state != VB_CMA_IDLE && id->state != VB_CMA_BOUND)
		error = vb_cma_refuse(
			EINVAL, "rdma_resolve_addr: it has a destination already, or listens");
	if (!error)
		error = bind_for(id, source, destination);
	if (error)
		return error;
	if (id->id.route.addr.src_addr.sa_family != destination->sa_family)
		return vb_cma_refuse(EINVAL,
				     "rdma_resolve_addr: source and destination of two families");
	memcpy(&target, destination, vb_cma_address_length(destination));
	if (vb_cma_address_is_any(destination))
		vb_cma_address_loopback(&target, destination->sa_family,
					vb_cma_address_port(destination));
	error = resolve_way(id, (struct sockaddr *)&target);
	if (error == ENODEV)
		return vb_cma_event_report(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	if (error)
		return error;
	id->state = VB_CMA_ADDRESS_RESOLVED;
	return vb_cma_event_report(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

VB_CMA_EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
				    struct sockaddr *dst_addr, int timeout_ms)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_resolve_addr");

	(void)timeout_ms;
	if (!error)
		error = resolve(vb_cma_id_of(id), src_addr, dst_addr);
	return vb_cma_return(error ? error : vb_cma_wait(vb_cma_id_of(id)));
}

/* --- the route -------------------------------------------------------------------------------- */

static int complete_route(struct vb_cma_id *id)
{
	struct vb_flow flow = {
		.source = vb_cma_address_gid(&id->id.route.addr.src_addr),
		.destination = vb_cma_address_gid(&id->id.route.addr.dst_addr),
		.traffic_class = id->tos,
		.hop_limit = VB_CMA_HOP_LIMIT,
	};
	struct ibv_port_attr port;
	int error;

	if (id->state != VB_CMA_ADDRESS_RESOLVED)
		return vb_cma_refuse(EINVAL, "rdma_resolve_route: its address is not resolved");
	error = ibv_query_port(id->id.verbs, VB_CMA_PORT_NUM, &port);
	if (error)
		return error;
	vb_cma_id_set_path(id, &flow, (uint8_t)port.active_mtu);
	id->state = VB_CMA_ROUTE_RESOLVED;
	return vb_cma_event_report(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

VB_CMA_EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_resolve_route");

	(void)timeout_ms;
	if (!error)
		error = complete_route(vb_cma_id_of(id));
	return vb_cma_return(error ? error : vb_cma_wait(vb_cma_id_of(id)));
}
