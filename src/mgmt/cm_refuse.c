/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to messages that belong to no connection, and the farewells for connections of a dead
 * process. They wait in a ring of fixed size: under a flood the oldest messages are answered, and
 * the other senders ask again.
 */
#include "mgmt/cm_priv.h"

void vb_cm_send_refusal(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn qpn,
			const struct vb_mad *mad)
{
	struct vb_cm_mad *slot;

	if (cm->refusal_count == VB_CM_REFUSALS) {
		cm->counters.answers_lost++;
		return;
	}
	slot = &cm->refusals[(cm->refusal_first + cm->refusal_count++) % VB_CM_REFUSALS];
	slot->flow = *flow;
	slot->qpn = qpn;
	vb_mad_store(slot->bytes, mad);
}

/* Composes an answer with the IDs of the message it is about, as seen from here. */
static struct vb_mad compose_answer(const struct vb_mad *about, enum vb_mad_kind kind)
{
	return (struct vb_mad){
		.kind = kind,
		.transaction = about->transaction,
		.local_id = about->remote_id,
		.remote_id = about->local_id,
	};
}

void vb_cm_send_rej(struct vb_cm *cm, const struct vb_cm_arrival *arrival, uint16_t reason)
{
	struct vb_mad mad = compose_answer(arrival->mad, VB_MAD_REJ);

	mad.rej.reason = reason;
	mad.rej.about = arrival->mad->kind == VB_MAD_REQ   ? VB_MAD_ABOUT_REQ
			: arrival->mad->kind == VB_MAD_REP ? VB_MAD_ABOUT_REP
							   : VB_MAD_ABOUT_OTHER;
	vb_cm_send_refusal(cm, &arrival->reply, arrival->source, &mad);
}

static void send_drep(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	struct vb_mad mad = compose_answer(arrival->mad, VB_MAD_DREP);

	vb_cm_send_refusal(cm, &arrival->reply, arrival->source, &mad);
}

static void send_sidr_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	struct vb_mad mad = compose_answer(arrival->mad, VB_MAD_SIDR_REP);

	mad.sidr_rep.status = VB_MAD_SIDR_UNSUPPORTED;
	mad.sidr_rep.service = arrival->mad->sidr_req.service;
	vb_cm_send_refusal(cm, &arrival->reply, arrival->source, &mad);
}

void vb_cm_refuse_arrival(struct vb_cm *cm, const struct vb_cm_arrival *arrival)
{
	switch (arrival->mad->kind) {
	case VB_MAD_REQ:
		vb_cm_send_rej(cm, arrival, VB_MAD_INVALID_SERVICE_ID);
		break;
	case VB_MAD_REP:
	case VB_MAD_RTU:
		vb_cm_send_rej(cm, arrival, VB_MAD_INVALID_COMM_ID);
		break;
	case VB_MAD_DREQ:
		send_drep(cm, arrival);
		break;
	case VB_MAD_SIDR_REQ:
		send_sidr_rep(cm, arrival);
		break;
	case VB_MAD_MRA:
	case VB_MAD_REJ:
	case VB_MAD_DREP:
	case VB_MAD_SIDR_REP:
	case VB_MAD_LAP:
	case VB_MAD_APR:
		break;
	}
}

void vb_cm_send_farewell(struct vb_cm *cm, const struct vb_cm_row *row)
{
	struct vb_mad mad;

	if (row->generation % 2 == 0 && vb_cm_compose_farewell(cm, row, &mad))
		vb_cm_send_refusal(cm, &row->flow, row->peer_qpn, &mad);
}
