/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages composed from the state of a connection, with the fields as the kernel's ib_cm fills
 * them for RoCE.
 */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"

#define EXPONENT_MAX 31u

struct vb_mad vb_cm_compose(const struct vb_cm_row *row, enum vb_mad_kind kind)
{
	return (struct vb_mad){
		.kind = kind,
		.transaction = row->transaction,
		.local_id = row->local_id,
		.remote_id = row->remote_id,
	};
}

static enum vb_mad_about about_of(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
		return VB_MAD_ABOUT_REQ;
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		return VB_MAD_ABOUT_REP;
	case VB_CM_IDLE:
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
	case VB_CM_CONNECTED:
	case VB_CM_DREQ_SENT:
	case VB_CM_DREQ_RCVD:
	case VB_CM_TIMEWAIT:
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
	case VB_CM_CLOSED:
		break;
	}
	return VB_MAD_ABOUT_OTHER;
}

struct vb_mad vb_cm_compose_rej(const struct vb_cm *cm, const struct vb_cm_row *row,
				uint16_t reason)
{
	struct vb_mad mad = vb_cm_compose(row, VB_MAD_REJ);

	mad.rej.reason = reason;
	mad.rej.about = (uint8_t)about_of((enum vb_cm_state)row->state);
	if (row->state == VB_CM_REQ_RCVD)
		mad.local_id = 0; /* the peer does not know it */
	if (reason == VB_MAD_TIMEOUT) {
		/*
		 * The peer may not have sent its ID: it finds the connection by our ID and our
		 * GUID.
		 */
		mad.rej.info_length = 8;
		store64(mad.rej.info, cm->config.ca_guid);
	}
	return mad;
}

struct vb_mad vb_cm_compose_mra(const struct vb_cm_row *row, enum vb_mad_about about)
{
	struct vb_mad mad = vb_cm_compose(row, VB_MAD_MRA);

	mad.mra.about = (uint8_t)about;
	mad.mra.service_timeout = VB_CM_SERVICE_TIMEOUT;
	return mad;
}

struct vb_mad vb_cm_compose_dreq(const struct vb_cm *cm, const struct vb_cm_row *row)
{
	struct vb_mad mad = vb_cm_compose(row, VB_MAD_DREQ);

	mad.transaction = cm->transaction_base | row->local_id; /* a separate exchange */
	mad.dreq.remote_qpn = row->remote_qpn;
	return mad;
}

bool vb_cm_compose_farewell(const struct vb_cm *cm, const struct vb_cm_row *row, struct vb_mad *mad)
{
	switch ((enum vb_cm_state)row->state) {
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
		*mad = vb_cm_compose_rej(cm, row, VB_MAD_TIMEOUT);
		return true;
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		*mad = vb_cm_compose_rej(cm, row, VB_MAD_CONSUMER_DEFINED);
		return true;
	case VB_CM_CONNECTED:
	case VB_CM_DREQ_SENT:
		*mad = vb_cm_compose_dreq(cm, row);
		return true;
	case VB_CM_DREQ_RCVD:
		*mad = vb_cm_compose(row, VB_MAD_DREP);
		return true;
	case VB_CM_IDLE:
	case VB_CM_TIMEWAIT:
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
	case VB_CM_CLOSED:
		break;
	}
	return false;
}

vb_err vb_cm_put_private(struct vb_mad *mad, const struct vb_cm_private *private_data)
{
	return vb_cm_put_private_ip(mad, NULL, private_data);
}

vb_err vb_cm_put_private_ip(struct vb_mad *mad, const struct vb_service_ip *ip,
			    const struct vb_cm_private *private_data)
{
	uint32_t offset = ip ? VB_SERVICE_IP_SIZE : 0;

	if (private_data && private_data->length > vb_mad_private_size(mad->kind) - offset)
		return VB_EINVAL;
	if (ip)
		vb_service_ip_store(mad->private_data, ip);
	if (private_data && private_data->length)
		memcpy(mad->private_data + offset, private_data->data, private_data->length);
	return VB_OK;
}

/*
 * The exponent for 2^ack_delay + 2 * 2^packet_life_time (IBA 12.7.34): that of the greater term,
 * plus one if the other term is at least half as great.
 */
uint8_t vb_cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time)
{
	uint32_t both_ways = packet_life_time + 1u;
	uint32_t greater = max32(both_ways, ack_delay);
	uint32_t smaller = min32(both_ways, ack_delay);

	return (uint8_t)min32(EXPONENT_MAX, smaller + 1 >= greater ? greater + 1 : greater);
}
