/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD: one packet for each message, addressed by the send request. In the receive buffer, 40 bytes
 * of GRH come before the data; they are made from the IP header.
 */
#include "nic/unreliable_priv.h"

#define QKEY_FROM_QP 0x80000000u /* IBA 10.2.5: with this bit, the Q_Key of the QP is sent */

static void fill_packet(const struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_packet *packet)
{
	packet->bth.opcode =
		VB_OPCODE(VB_SERVICE_UD, vb_wqe_operation(wqe)->packets[VB_POSITION_ONLY]);
	packet->bth.pkey = vb_nic_pkey(qp->nic, qp->attr.pkey_index);
	packet->bth.destination.v = wqe->ud.qpn;
	packet->bth.psn = qp->requester.next_psn;
	packet->bth.solicited = wqe->flags & VB_SEND_SOLICITED;
	packet->imm = wqe->imm;
	packet->payload_length = wqe->length;
	packet->deth.qkey = wqe->ud.qkey & QKEY_FROM_QP ? qp->attr.qkey : wqe->ud.qkey;
	packet->deth.source = qp->number;
}

static enum vb_status build(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_slot *slot)
{
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_packet packet = { 0 };
	struct vb_cursor cursor = { 0, 0 };
	struct vb_path path = { .link = qp->path.link };

	if (wqe->length > qp->nic->config.port_mtu)
		return VB_STATUS_LOC_LEN_ERR;
	if (!vb_nic_fill_flow(qp->nic, &wqe->ud.address, &path.ip))
		return VB_STATUS_LOC_QP_OP_ERR;
	path.ip.source_port = vb_nic_source_port(qp->nic, path.ip.flow_label, qp->number,
						 (vb_qpn){ wqe->ud.qpn });
	fill_packet(qp, wqe, &packet);
	vb_slot_begin(slot, &path, &packet);
	if (wqe->flags & VB_SEND_INLINE)
		vb_slot_add_bytes(slot, vb_wqe_inline(wqe), wqe->length);
	else if (vb_gather(qp->nic, &sgl, &cursor, wqe->length, slot) != VB_PASS)
		return VB_STATUS_LOC_PROT_ERR;
	return vb_framing_finish(&qp->nic->framing, slot, packet.bth.pad) ? VB_STATUS_SUCCESS
									  : VB_STATUS_LOC_PROT_ERR;
}

bool vb_ud_emit(struct vb_qp *qp, struct vb_slot *slot)
{
	struct vb_requester *requester = &qp->requester;
	const struct vb_wqe *wqe;
	enum vb_status status;

	if (vb_qp_state_now(qp) != VB_STATE_RTS ||
	    requester->send_index == vb_queue_published(&qp->sq))
		return false;
	wqe = vb_queue_wqe(&qp->sq, requester->send_index);
	status = build(qp, wqe, slot);
	if (status != VB_STATUS_SUCCESS) {
		vb_unreliable_fail(qp, status);
		return false;
	}
	if (wqe->ud.qpn == VB_QPN_MULTICAST.v)
		vb_nic_count(qp->nic, VB_COUNTER_TX_MULTICAST_PACKETS);
	vb_unreliable_on_sent(qp);
	requester->next_psn = vb_psn_add(requester->next_psn, 1);
	requester->new_psn = requester->unacked = requester->next_psn;
	return true;
}

/*
 * The buffers of the posted receive are invalid: it completes with an error, and the QP enters the
 * error state.
 */
static void fail_receive(struct vb_qp *qp)
{
	vb_nic_drop(qp->nic, VB_DROP_REFUSED);
	vb_qp_complete_receive(qp, VB_STATUS_LOC_PROT_ERR, NULL, 0);
	vb_qp_enter_error(qp);
}

static void deliver(struct vb_qp *qp, const struct vb_frame *frame, const struct vb_packet *packet)
{
	struct vb_sgl sgl = vb_receive_sgl(&qp->responder.receive);
	uint32_t udp_payload = packet->header_length + packet->payload_length + packet->bth.pad +
			       VB_ICRC_SIZE;
	struct vb_flow flow = vb_frame_flow(frame);
	uint8_t grh[VB_GRH_SIZE];
	struct vb_payload grh_payload = { .piece = { grh, sizeof(grh) } };
	struct vb_payload payload = vb_payload_of(frame, packet);
	struct vb_cursor cursor = { 0, 0 };

	vb_flow_store_grh(grh, &flow, udp_payload);
	if (vb_scatter(qp->nic, &sgl, &cursor, &grh_payload, sizeof(grh)) != VB_PASS ||
	    vb_scatter(qp->nic, &sgl, &cursor, &payload, packet->payload_length) != VB_PASS) {
		fail_receive(qp);
		return;
	}
	qp->responder.headers = vb_headers_of(&flow);
	vb_qp_complete_receive(qp, VB_STATUS_SUCCESS, packet, VB_GRH_SIZE + packet->payload_length);
}

void vb_ud_on_request(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet)
{
	if (packet->deth.qkey != qp->attr.qkey) { /* IBA 9.6.1.4.1 */
		vb_nic_count(qp->nic, VB_COUNTER_QKEY_VIOLATIONS);
		vb_nic_drop(qp->nic, VB_DROP_QKEY);
		return;
	}
	if (vb_qp_take_receive(qp, frame, packet) != VB_PASS) {
		vb_nic_count(qp->nic, VB_COUNTER_OUT_OF_BUFFER);
		vb_nic_drop(qp->nic, VB_DROP_NO_RECEIVE);
		return;
	}
	/*
	 * A message that does not fit, or is longer than the largest path MTU, is dropped. The
	 * receive stays for the next message.
	 */
	if (packet->payload_length > VB_PAYLOAD_MAX ||
	    packet->payload_length + VB_GRH_SIZE > qp->responder.receive.length) {
		vb_nic_drop(qp->nic, VB_DROP_TOO_LONG);
		return;
	}
	deliver(qp, frame, packet);
}
