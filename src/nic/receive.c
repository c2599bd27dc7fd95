/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive path. A frame is parsed, its ICRC is checked, its QP is found, and it is checked
 * against the rules for every packet of that QP. Then the transport takes it. Each refused frame is
 * counted under one reason.
 */
#include "nic/rc_priv.h"
#include "base/probe.h"
#include "nic/train_priv.h"
#include "nic/unreliable_priv.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/icrc.h"

static uint32_t frame_length(const struct vb_frame *frame)
{
	uint32_t length = frame->head.length;

	for (uint32_t i = 0; i < frame->rest_count; i++)
		length += frame->rest[i].length;
	return length;
}

static enum vb_drop drop_of_parse(enum vb_parse_result result)
{
	switch (result) {
	case VB_PARSE_VERSION:
		return VB_DROP_VERSION;
	case VB_PARSE_OPCODE:
		return VB_DROP_OPCODE;
	case VB_PARSE_LENGTH:
		return VB_DROP_LENGTH;
	case VB_PARSE_TOO_SHORT:
	case VB_PARSED:
		break;
	}
	return VB_DROP_TOO_SHORT;
}

/*
 * P_Keys match in their low 15 bits, and two limited members do not talk to each other (IBA
 * 10.9.3).
 */
bool vb_nic_is_pkey_right(const struct vb_nic *nic, uint32_t index, uint16_t pkey)
{
	uint16_t own = vb_nic_pkey(nic, index);

	return !((own ^ pkey) & 0x7fff) && (own | pkey) & 0x8000;
}

/*
 * Compares the addresses (IBA A17.4.4.2). A shared-memory link has their mark at hand. Looking up
 * the addresses themselves costs more than the rest of the check.
 */
static bool is_from_peer(const struct vb_qp *qp, const struct vb_frame *frame)
{
	if (frame->path.link && frame->path.kind == VB_PATH_IP && qp->path.kind == VB_PATH_IP)
		return frame->flow_mark ==
		       vb_gid_mark(&qp->path.ip.destination, &qp->path.ip.source);
	return vb_path_is_from(&frame->path, &qp->path);
}

static bool is_service_right(const struct vb_qp *qp, const struct vb_packet *packet)
{
	bool is_response = packet->traits & VB_IS_RESPONSE;

	if (vb_opcode_service(packet->bth.opcode) != (enum vb_service)qp->service)
		return false;
	if (qp->service == VB_SERVICE_XRC) /* each of its QPs is only one half */
		return is_response == (qp->type == VB_QP_XRC_SEND);
	return true;
}

static bool is_ready(const struct vb_qp *qp)
{
	switch (vb_qp_state_now(qp)) {
	case VB_STATE_RTR:
	case VB_STATE_RTS:
	case VB_STATE_SQD:
	case VB_STATE_SQE:
		return true;
	case VB_STATE_RESET:
	case VB_STATE_INIT:
	case VB_STATE_ERR:
		break;
	}
	return false;
}

/*
 * Packets of a peer arrive on the path that ours take: over its shared-memory link, which no
 * process of another user can write to, or over the wire, where any process can claim to be the
 * peer. The two ends choose differently only if one did not hear of the other in time. Then one end
 * has no link, but knows which link its peer would have; and the other end looks at its peer's row.
 */
static bool is_path_right(const struct vb_qp *qp, uint16_t link)
{
	if (link == qp->path.link)
		return true;
	if (link)
		return !qp->path.link && link == qp->peer_link;
	return qp->peer_memory && vb_dma_peer_is_on_wire(qp->peer_memory, &qp->initiator);
}

/* VB_DROP_COUNT if this QP should take the packet. */
static enum vb_drop check_for_qp(const struct vb_qp *qp, const struct vb_frame *frame,
				 const struct vb_packet *packet)
{
	if (!is_ready(qp))
		return VB_DROP_QP_STATE;
	if (!is_service_right(qp, packet))
		return VB_DROP_QP_TYPE;
	if (!vb_nic_is_pkey_right(qp->nic, qp->attr.pkey_index, packet->bth.pkey))
		return VB_DROP_PKEY;
	if (qp->type != VB_QP_UD && !is_from_peer(qp, frame))
		return VB_DROP_ADDRESS;
	if (qp->type != VB_QP_UD && !is_path_right(qp, frame->path.link))
		return VB_DROP_WAY;
	return VB_DROP_COUNT;
}

void vb_qp_on_packet(struct vb_qp *qp, const struct vb_frame *frame, const struct vb_packet *packet)
{
	enum vb_drop drop = check_for_qp(qp, frame, packet);

	if (drop != VB_DROP_COUNT) {
		if (drop == VB_DROP_PKEY)
			vb_nic_count(qp->nic, VB_COUNTER_PKEY_VIOLATIONS);
		vb_nic_drop(qp->nic, drop);
		return;
	}
	VB_PROBE3(receive, qp->number.v, frame->head.data, frame->head.length);
	switch ((enum vb_qp_type)qp->type) {
	case VB_QP_RC:
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		if (packet->traits & VB_IS_RESPONSE)
			vb_rc_on_response(qp, frame, packet);
		else
			vb_rc_on_request(qp, frame, packet);
		break;
	case VB_QP_UC:
		vb_uc_on_request(qp, frame, packet);
		break;
	case VB_QP_UD:
		vb_ud_on_request(qp, frame, packet);
		break;
	}
}

bool vb_nic_accept(struct vb_nic *nic, const struct vb_frame *frame, struct vb_packet *packet)
{
	uint32_t length = frame_length(frame);
	enum vb_parse_result result;

	nic->counters->counts[VB_COUNTER_RX_PACKETS]++;
	nic->counters->counts[VB_COUNTER_RX_BYTES] += length;
	result = vb_packet_parse(frame->head.data, frame->head.length, length, packet);
	if (result != VB_PARSED) {
		vb_nic_drop(nic, drop_of_parse(result));
		return false;
	}
	if (!vb_framing_is_undamaged(&nic->framing, frame, length)) {
		vb_nic_count(nic, VB_COUNTER_RX_ICRC_ENCAPSULATED);
		vb_nic_drop(nic, VB_DROP_ICRC);
		return false;
	}
	return true;
}

/*
 * Many packets are the one that a QP expects next: a short SEND. A few comparisons before any
 * parsing recognise such a packet, and it takes a short path. Any other packet takes the long path
 * unchanged; so no other code needs to know which path a packet took.
 */

static bool is_from_usual_peer(const struct vb_qp *qp, const struct vb_frame *frame,
			       const struct vb_bth *bth)
{
	return VB_USUALLY(qp->type == VB_QP_RC && vb_qp_state_now(qp) == VB_STATE_RTS &&
			  !bth->version && bth->pkey == vb_nic_pkey(qp->nic, qp->attr.pkey_index) &&
			  bth->pkey & 0x8000 && frame->path.link == qp->path.link &&
			  is_from_peer(qp, frame));
}

static bool take_expected(struct vb_nic *nic, const struct vb_frame *frame)
{
	struct vb_bth bth;
	struct vb_qp *qp;

	if (!VB_USUALLY(!frame->rest_count && !frame->train.packet_count &&
			frame->head.length >= VB_BTH_SIZE + VB_ICRC_SIZE))
		return false;
	bth = vb_bth_load(frame->head.data);
	if (!VB_USUALLY(bth.opcode == VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_ONLY)))
		return false;
	qp = vb_qp_find(nic, bth.destination);
	if (!VB_USUALLY(qp && is_from_usual_peer(qp, frame, &bth) &&
			vb_rc_try_expected_send(qp, frame, &bth)))
		return false;
	VB_PROBE3(receive, qp->number.v, frame->head.data, frame->head.length);
	return true;
}

/* Takes a piggybacked ACK as if it had come as a packet before the one that carries it. */
static void take_piggyback_ack(struct vb_nic *nic, const struct vb_frame *frame)
{
	const struct vb_piggyback_ack *piggyback_ack = &frame->piggyback_ack;
	struct vb_packet packet = { .traits = vb_opcode_traits(
					    VB_OPCODE(VB_SERVICE_RC, VB_OP_ACKNOWLEDGE)) };
	struct vb_qp *qp;

	if (frame->head.length < VB_BTH_SIZE)
		return;
	packet.bth = vb_bth_load(frame->head.data);
	qp = vb_qp_find(nic, packet.bth.destination);
	if (!qp)
		return;
	if (is_from_usual_peer(qp, frame, &packet.bth) &&
	    vb_rc_is_expected_ack(qp, piggyback_ack->psn, &piggyback_ack->aeth)) {
		vb_rc_take_expected_ack(qp, &piggyback_ack->aeth);
		return;
	}
	packet.bth.opcode = VB_OPCODE(qp->service, VB_OP_ACKNOWLEDGE);
	packet.bth.psn = piggyback_ack->psn;
	packet.aeth = piggyback_ack->aeth;
	if (vb_qp_is_reliable(qp))
		vb_qp_on_packet(qp, frame, &packet);
}

static void receive_one(struct vb_nic *nic, const struct vb_frame *frame)
{
	struct vb_packet packet;
	struct vb_qp *qp;

	if (frame->piggyback_ack.is_there)
		take_piggyback_ack(nic, frame);
	if (take_expected(nic, frame)) {
		nic->counters->counts[VB_COUNTER_RX_PACKETS]++;
		nic->counters->counts[VB_COUNTER_RX_BYTES] += frame->head.length;
		return;
	}
	if (frame->train.packet_count) {
		vb_train_receive(nic, frame);
		return;
	}
	if (!vb_nic_accept(nic, frame, &packet))
		return;
	if (packet.bth.opcode == VB_OPCODE_CNP) {
		vb_nic_drop(nic, VB_DROP_CONGESTION_NOTICE);
		return;
	}
	if (packet.bth.destination.v == VB_QPN_MULTICAST.v) {
		vb_nic_count(nic, VB_COUNTER_RX_MULTICAST_PACKETS);
		vb_multicast_deliver(nic, frame, &packet);
		return;
	}
	qp = vb_qp_find(nic, packet.bth.destination);
	if (qp)
		vb_qp_on_packet(qp, frame, &packet);
	else
		vb_nic_drop(nic, VB_DROP_NO_QP);
}

void vb_nic_receive(struct vb_nic *nic, uint64_t now_ns, const struct vb_frame *frames,
		    uint32_t count)
{
	vb_nic_begin(nic, now_ns);
	for (uint32_t i = 0; i < count; i++)
		receive_one(nic, &frames[i]);
	vb_nic_fail_overruns(nic);
}
