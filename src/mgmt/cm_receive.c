/* SPDX-License-Identifier: BSD-2-Clause */
/* Arriving MADs: the check of their format, the connection they are for, and the handler. */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"

static struct vb_flow way_back(const struct vb_flow *flow)
{
	return (struct vb_flow){
		.source = flow->destination,
		.destination = flow->source,
		.flow_label = flow->flow_label,
		.traffic_class = flow->traffic_class,
		.hop_limit = VB_CM_HOP_LIMIT,
	};
}

static void note_service(struct vb_cm_addressee *addressee, uint64_t service,
			 const uint8_t *private_data)
{
	struct vb_service_ip ip;

	addressee->has_service = true;
	addressee->service = service;
	if (vb_service_is_ip(service) && vb_service_ip_parse(private_data, &ip))
		addressee->address = ip.destination;
}

void vb_cm_addressee_of(const struct vb_mad *mad, struct vb_cm_addressee *addressee)
{
	*addressee = (struct vb_cm_addressee){
		.kind = mad->kind,
		.comm_id = mad->remote_id,
		.sender_id = mad->local_id,
	};
	if (mad->kind == VB_MAD_REQ) {
		note_service(addressee, mad->req.service, mad->private_data);
		addressee->sender_guid = mad->req.ca_guid;
	} else if (mad->kind == VB_MAD_SIDR_REQ) {
		note_service(addressee, mad->sidr_req.service, mad->private_data);
	} else if (mad->kind == VB_MAD_REP) {
		addressee->sender_guid = mad->rep.ca_guid;
	} else if (mad->kind == VB_MAD_REJ && mad->rej.reason == VB_MAD_TIMEOUT) {
		addressee->sender_guid = load64(mad->rej.info);
	}
}

/*
 * A sender elsewhere that guesses an ID learns nothing: the answer is the same as if there were no
 * such connection.
 */
static bool is_from_peer(const struct vb_cm_connection *connection,
			 const struct vb_cm_arrival *arrival)
{
	return vb_gid_equal(&connection->self.flow.destination, &arrival->reply.destination);
}

struct vb_cm_connection *vb_cm_find_receiver(const struct vb_cm *cm,
					     const struct vb_cm_arrival *arrival, bool *is_pair)
{
	const struct vb_mad *mad = arrival->mad;
	struct vb_cm_key key = { .number = mad->remote_id };
	struct vb_cm_connection *connection = vb_cm_index_find(cm, VB_CM_BY_LOCAL_ID, key);

	if (connection && !is_from_peer(connection, arrival))
		connection = NULL;
	*is_pair = connection && connection->self.remote_id == mad->local_id;
	return connection;
}

/* RoCE has no alternate paths: the kernel does not answer these messages either. */
static bool on_alternate_path(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	bool is_pair;

	if (!vb_cm_find_receiver(cm, arrival, &is_pair))
		return false;
	cm->counters.ignored++;
	return true;
}

static bool dispatch(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	switch (arrival->mad->kind) {
	case VB_MAD_REQ:
		return vb_cm_on_req(cm, arrival);
	case VB_MAD_MRA:
		return vb_cm_on_mra(cm, arrival);
	case VB_MAD_REJ:
		return vb_cm_on_rej(cm, arrival);
	case VB_MAD_REP:
		return vb_cm_on_rep(cm, arrival);
	case VB_MAD_RTU:
		return vb_cm_on_rtu(cm, arrival);
	case VB_MAD_DREQ:
		return vb_cm_on_dreq(cm, arrival);
	case VB_MAD_DREP:
		return vb_cm_on_drep(cm, arrival);
	case VB_MAD_SIDR_REQ:
		return vb_cm_on_sidr_req(cm, arrival);
	case VB_MAD_SIDR_REP:
		return vb_cm_on_sidr_rep(cm, arrival);
	case VB_MAD_LAP:
	case VB_MAD_APR:
		return on_alternate_path(cm, arrival);
	}
	return false;
}

enum vb_cm_verdict vb_cm_receive(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn source,
				 const uint8_t *bytes, uint32_t length, uint64_t now_ns,
				 struct vb_cm_addressee *addressee)
{
	struct vb_mad mad;
	struct vb_cm_arrival arrival = {
		.mad = &mad,
		.bytes = bytes,
		.reply = way_back(flow),
		.source = source,
		.now_ns = now_ns,
	};

	if (vb_mad_parse(bytes, length, &mad) != VB_MAD_PARSED) {
		cm->counters.malformed++;
		return VB_CM_MALFORMED;
	}
	if (!dispatch(cm, &arrival)) {
		vb_cm_addressee_of(&mad, addressee);
		return VB_CM_NOT_MINE;
	}
	cm->counters.received[mad.kind - VB_MAD_REQ]++;
	return VB_CM_TAKEN;
}

void vb_cm_refuse(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn source, const uint8_t *bytes,
		  uint32_t length)
{
	struct vb_mad mad;
	struct vb_cm_arrival arrival = {
		.mad = &mad,
		.bytes = bytes,
		.reply = way_back(flow),
		.source = source,
	};

	if (vb_mad_parse(bytes, length, &mad) == VB_MAD_PARSED)
		vb_cm_refuse_arrival(cm, &arrival);
}
