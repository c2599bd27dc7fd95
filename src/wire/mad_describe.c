/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the connection manager as text. */
#include "wire/mad.h"

#include <inttypes.h>
#include <stdio.h>

const char *vb_mad_kind_describe(enum vb_mad_kind kind)
{
	switch (kind) {
	case VB_MAD_REQ:
		return "REQ";
	case VB_MAD_MRA:
		return "MRA";
	case VB_MAD_REJ:
		return "REJ";
	case VB_MAD_REP:
		return "REP";
	case VB_MAD_RTU:
		return "RTU";
	case VB_MAD_DREQ:
		return "DREQ";
	case VB_MAD_DREP:
		return "DREP";
	case VB_MAD_SIDR_REQ:
		return "SIDR_REQ";
	case VB_MAD_SIDR_REP:
		return "SIDR_REP";
	case VB_MAD_LAP:
		return "LAP";
	case VB_MAD_APR:
		return "APR";
	}
	return "?";
}

/* clang-format off */
static const char *const reasons[] = {
	[VB_MAD_NO_QP] = "no QP",
	[VB_MAD_NO_EEC] = "no EEC",
	[VB_MAD_NO_RESOURCES] = "no resources",
	[VB_MAD_TIMEOUT] = "timeout",
	[VB_MAD_UNSUPPORTED] = "unsupported request",
	[VB_MAD_INVALID_COMM_ID] = "invalid communication ID",
	[VB_MAD_INVALID_COMM_INSTANCE] = "invalid communication instance",
	[VB_MAD_INVALID_SERVICE_ID] = "invalid service ID",
	[VB_MAD_INVALID_TRANSPORT_TYPE] = "invalid transport type",
	[VB_MAD_STALE_CONNECTION] = "stale connection",
	[VB_MAD_NO_RDC] = "RDC does not exist",
	[VB_MAD_INVALID_GID] = "invalid GID",
	[VB_MAD_INVALID_LID] = "invalid LID",
	[VB_MAD_INVALID_SL] = "invalid service level",
	[VB_MAD_INVALID_TRAFFIC_CLASS] = "invalid traffic class",
	[VB_MAD_INVALID_HOP_LIMIT] = "invalid hop limit",
	[VB_MAD_INVALID_PACKET_RATE] = "invalid packet rate",
	[VB_MAD_INVALID_ALTERNATE_GID] = "invalid alternate GID",
	[VB_MAD_INVALID_ALTERNATE_LID] = "invalid alternate LID",
	[VB_MAD_INVALID_ALTERNATE_SL] = "invalid alternate service level",
	[VB_MAD_INVALID_ALTERNATE_TRAFFIC_CLASS] = "invalid alternate traffic class",
	[VB_MAD_INVALID_ALTERNATE_HOP_LIMIT] = "invalid alternate hop limit",
	[VB_MAD_INVALID_ALTERNATE_PACKET_RATE] = "invalid alternate packet rate",
	[VB_MAD_PORT_CM_REDIRECT] = "port and connection manager redirected",
	[VB_MAD_PORT_REDIRECT] = "port redirected",
	[VB_MAD_INVALID_MTU] = "invalid MTU",
	[VB_MAD_INSUFFICIENT_RESPONDER_RESOURCES] = "insufficient responder resources",
	[VB_MAD_CONSUMER_DEFINED] = "consumer defined",
	[VB_MAD_INVALID_RNR_RETRY_COUNT] = "invalid RNR retry count",
	[VB_MAD_DUPLICATE_COMM_ID] = "duplicate communication ID",
	[VB_MAD_INVALID_CLASS_VERSION] = "invalid class version",
	[VB_MAD_INVALID_FLOW_LABEL] = "invalid flow label",
	[VB_MAD_INVALID_ALTERNATE_FLOW_LABEL] = "invalid alternate flow label",
	[VB_MAD_VENDOR_OPTION_NOT_SUPPORTED] = "vendor option not supported",
};
/* clang-format on */

const char *vb_mad_reason_describe(uint16_t reason)
{
	if (reason >= sizeof(reasons) / sizeof(reasons[0]) || !reasons[reason])
		return "unknown";
	return reasons[reason];
}

static const char *about_describe(uint8_t about)
{
	switch ((enum vb_mad_about)about) {
	case VB_MAD_ABOUT_REQ:
		return "REQ";
	case VB_MAD_ABOUT_REP:
		return "REP";
	case VB_MAD_ABOUT_OTHER:
		return "other";
	}
	return "?";
}

/* The content of a message beyond its kind and its communication IDs. */
static int describe_body(const struct vb_mad *mad, char *text, uint32_t size)
{
	switch (mad->kind) {
	case VB_MAD_REQ:
		return snprintf(text, size, " service=0x%" PRIx64 " qpn=%u psn=%u",
				mad->req.service, mad->req.qpn.v, mad->req.starting_psn.v);
	case VB_MAD_REP:
		return snprintf(text, size, " qpn=%u psn=%u", mad->rep.qpn.v,
				mad->rep.starting_psn.v);
	case VB_MAD_REJ:
		return snprintf(text, size, " of %s: %s", about_describe(mad->rej.about),
				vb_mad_reason_describe(mad->rej.reason));
	case VB_MAD_MRA:
		return snprintf(text, size, " of %s timeout=%u", about_describe(mad->mra.about),
				mad->mra.service_timeout);
	case VB_MAD_DREQ:
		return snprintf(text, size, " qpn=%u", mad->dreq.remote_qpn.v);
	case VB_MAD_SIDR_REQ:
		return snprintf(text, size, " service=0x%" PRIx64, mad->sidr_req.service);
	case VB_MAD_SIDR_REP:
		return snprintf(text, size, " status=%u qpn=%u qkey=0x%x", mad->sidr_rep.status,
				mad->sidr_rep.qpn.v, mad->sidr_rep.qkey);
	case VB_MAD_APR:
		return snprintf(text, size, " status=%u", mad->apr.status);
	case VB_MAD_LAP:
		return snprintf(text, size, " qpn=%u", mad->lap.remote_qpn.v);
	case VB_MAD_RTU:
	case VB_MAD_DREP:
		break;
	}
	return snprintf(text, size, "%s", "");
}

int vb_mad_describe(const struct vb_mad *mad, char *text, uint32_t size)
{
	int length = snprintf(text, size, "%s local=0x%x remote=0x%x",
			      vb_mad_kind_describe(mad->kind), mad->local_id, mad->remote_id);
	uint32_t used = (uint32_t)length < size ? (uint32_t)length : size;

	return length + describe_body(mad, used < size ? text + used : NULL, size - used);
}
