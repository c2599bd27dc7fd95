/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of an identifier, its ports, and ECE for programs that bring their own QP. */
#include "cma/cma_priv.h"

#include <arpa/inet.h>
#include <string.h>

#define ECE_VENDOR_MAX 0xffffff

static int check_length(size_t length, size_t wanted)
{
	if (length == wanted)
		return 0;
	return vb_cma_refuse(EINVAL, "rdma_set_option: a value of %zu bytes, not %zu", length,
			     wanted);
}

static int set_reuse(struct vb_cma_id *id, const void *value)
{
	int is_on;

	memcpy(&is_on, value, sizeof(is_on));
	if (id->state != VB_CMA_IDLE && (!is_on || id->state == VB_CMA_LISTENING))
		return vb_cma_refuse(EINVAL, "rdma_set_option: REUSEADDR after it was bound");
	id->is_reusing = is_on;
	return 0;
}

static int set_afonly(struct vb_cma_id *id, const void *value)
{
	int is_on;

	memcpy(&is_on, value, sizeof(is_on));
	if (id->state != VB_CMA_IDLE && id->state != VB_CMA_BOUND)
		return vb_cma_refuse(EINVAL, "rdma_set_option: AFONLY after it has begun to talk");
	id->is_afonly = is_on;
	id->has_afonly = true;
	return 0;
}

static int set_ack_timeout(struct vb_cma_id *id, const void *value)
{
	if (vb_cma_is_datagram(id) || id->id.qp_type == IBV_QPT_UC)
		return vb_cma_refuse(EINVAL,
				     "rdma_set_option: an ACK timeout where there are no ACKs");
	memcpy(&id->ack_timeout, value, sizeof(id->ack_timeout));
	id->has_ack_timeout = true;
	return 0;
}

static int set_id_option(struct vb_cma_id *id, int name, const void *value, size_t length)
{
	int error;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		error = check_length(length, 1);
		if (!error)
			memcpy(&id->tos, value, 1);
		id->has_tos |= !error;
		return error;
	case RDMA_OPTION_ID_REUSEADDR:
		error = check_length(length, sizeof(int));
		return error ? error : set_reuse(id, value);
	case RDMA_OPTION_ID_AFONLY:
		error = check_length(length, sizeof(int));
		return error ? error : set_afonly(id, value);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		error = check_length(length, 1);
		return error ? error : set_ack_timeout(id, value);
	default:
		return vb_cma_refuse(ENOSYS, "rdma_set_option: there is no option %d", name);
	}
}

/* --- a path set by the program ---------------------------------------------------------------- */

static const struct ibv_path_data *primary_of(const void *value, size_t length)
{
	const struct ibv_path_data *path = value;

	for (size_t i = 0; i < length / sizeof(*path); i++) {
		if (path[i].flags & IBV_PATH_FLAG_PRIMARY && path[i].flags & IBV_PATH_FLAG_OUTBOUND)
			return &path[i];
	}
	return NULL;
}

static int set_path(struct vb_cma_id *id, const void *value, size_t length)
{
	const struct ibv_path_data *data = primary_of(value, length);
	uint32_t label_and_hops;
	struct vb_flow flow;
	struct ibv_port_attr port;

	if (id->state != VB_CMA_ADDRESS_RESOLVED || !data || length % sizeof(*data))
		return vb_cma_refuse(
			EINVAL, "rdma_set_option: no primary path, or the address is not resolved");
	label_and_hops = ntohl(data->path.flowlabel_hoplimit);
	flow = (struct vb_flow){
		.source = vb_cma_address_gid(&id->id.route.addr.src_addr),
		.destination = vb_cma_address_gid(&id->id.route.addr.dst_addr),
		.flow_label = label_and_hops >> 8 & 0xfffff,
		.hop_limit = label_and_hops & 0xff ? (uint8_t)label_and_hops : VB_CMA_HOP_LIMIT,
		.traffic_class = data->path.tclass,
	};
	if (ibv_query_port(id->id.verbs, VB_CMA_PORT_NUM, &port))
		return EIO;
	vb_cma_id_set_path(id, &flow, (uint8_t)port.active_mtu);
	id->state = VB_CMA_ROUTE_RESOLVED;
	return vb_cma_event_report(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static int set_option(struct vb_cma_id *id, int level, int name, const void *value, size_t length)
{
	int error;

	if (!value)
		return vb_cma_refuse(EINVAL, "rdma_set_option: no value");
	if (level == RDMA_OPTION_ID)
		return set_id_option(id, name, value, length);
	if (level != RDMA_OPTION_IB || name != RDMA_OPTION_IB_PATH)
		return vb_cma_refuse(ENOSYS, "rdma_set_option: there is no option %d of level %d",
				     name, level);
	error = set_path(id, value, length);
	return error ? error : vb_cma_wait(id);
}

VB_CMA_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
				  size_t optlen)
{
	int error = vb_cma_id_ensure_ours(id, "rdma_set_option");

	return vb_cma_return(error ? error
				   : set_option(vb_cma_id_of(id), level, optname, optval, optlen));
}

/* --- ports ------------------------------------------------------------------------------------ */

static __be16 port_of(const struct sockaddr *address)
{
	return vb_cma_address_length(address) ? htons(vb_cma_address_port(address)) : 0;
}

VB_CMA_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

VB_CMA_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}

/* --- enhanced connection establishment -------------------------------------------------------- */

static int check_ece(const struct rdma_cm_id *id, const struct ibv_ece *ece, const char *call)
{
	int error = vb_cma_id_ensure_ours(id, call);

	if (error)
		return error;
	if (!ece || id->qp || ece->comp_mask)
		return vb_cma_refuse(EINVAL, "%s: %s", call,
				     !ece     ? "no ECE"
				     : id->qp ? "its QP is of rdma_create_qp()"
					      : "a comp_mask that there is not");
	return 0;
}

VB_CMA_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	int error = check_ece(id, ece, "rdma_set_local_ece");

	if (!error && (!ece->vendor_id || ece->vendor_id > ECE_VENDOR_MAX))
		error = vb_cma_refuse(EINVAL,
				      "rdma_set_local_ece: vendor 0x%x, of 24 bits and not 0",
				      ece->vendor_id);
	if (!error)
		vb_cma_id_of(id)->local_ece =
			(struct vb_cm_ece){ .vendor = ece->vendor_id, .options = ece->options };
	return vb_cma_return(error);
}

VB_CMA_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	int error = check_ece(id, ece, "rdma_get_remote_ece");

	if (error)
		return vb_cma_return(error);
	vb_cma_lock();
	ece->vendor_id = vb_cma_id_of(id)->remote_ece.vendor;
	ece->options = vb_cma_id_of(id)->remote_ece.options;
	vb_cma_unlock();
	return 0;
}
