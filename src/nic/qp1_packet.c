/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1: one UD packet for each datagram, always of the same length (IBA 13.5.3.1), with the first
 * P_Key and the well-known Q_Key.
 */
#include "nic/qp1_packet.h"

#include "nic/payload_priv.h"

#define PKEY_INDEX 0u

bool vb_nic_is_for_qp1(const struct vb_frame *frame)
{
	return frame->head.length >= VB_BTH_SIZE &&
	       vb_bth_load(frame->head.data).destination.v == VB_MAD_QPN.v;
}

/* VB_DROP_COUNT if the packet is a valid datagram. */
static enum vb_drop check_mad(const struct vb_nic *nic, const struct vb_packet *packet)
{
	if (packet->bth.opcode != VB_OPCODE(VB_SERVICE_UD, VB_OP_SEND_ONLY))
		return VB_DROP_QP_TYPE;
	if (!vb_nic_is_pkey_right(nic, PKEY_INDEX, packet->bth.pkey))
		return VB_DROP_PKEY;
	if (packet->deth.qkey != VB_MAD_QKEY)
		return VB_DROP_QKEY;
	return packet->payload_length == VB_MAD_SIZE ? VB_DROP_COUNT : VB_DROP_LENGTH;
}

bool vb_nic_receive_mad(struct vb_nic *nic, const struct vb_frame *frame,
			uint8_t bytes[VB_MAD_SIZE], vb_qpn *source_out)
{
	struct vb_packet packet;
	struct vb_payload payload;
	enum vb_drop drop;

	if (!vb_nic_accept(nic, frame, &packet))
		return false;
	drop = check_mad(nic, &packet);
	if (drop != VB_DROP_COUNT) {
		vb_nic_drop_mad(nic, drop);
		return false;
	}
	payload = vb_payload_of(frame, &packet);
	vb_payload_read(&payload, bytes, VB_MAD_SIZE);
	*source_out = packet.deth.source;
	return true;
}

void vb_nic_drop_mad(struct vb_nic *nic, enum vb_drop reason)
{
	if (reason == VB_DROP_PKEY)
		vb_nic_count(nic, VB_COUNTER_PKEY_VIOLATIONS);
	if (reason == VB_DROP_QKEY)
		vb_nic_count(nic, VB_COUNTER_QKEY_VIOLATIONS);
	vb_nic_drop(nic, reason);
}

void vb_nic_build_mad(struct vb_nic *nic, const struct vb_flow *flow, vb_qpn to,
		      const uint8_t bytes[VB_MAD_SIZE], struct vb_slot *slot)
{
	struct vb_path path = { .ip = *flow };
	struct vb_packet packet = {
		.bth = {
			.opcode = VB_OPCODE(VB_SERVICE_UD, VB_OP_SEND_ONLY),
			.pkey = vb_nic_pkey(nic, PKEY_INDEX),
			.destination = to,
			.psn = nic->mad_psn,
		},
		.payload_length = VB_MAD_SIZE,
		.deth = { VB_MAD_QKEY, VB_MAD_QPN },
	};

	path.ip.source_port = vb_nic_source_port(nic, flow->flow_label, VB_MAD_QPN, to);
	vb_framing_end_batch(&nic->framing); /* each is a message of its own */
	vb_slot_begin(slot, &path, &packet);
	vb_slot_add_bytes(slot, bytes, VB_MAD_SIZE);
	/* Cannot fail without spans. */
	(void)!vb_framing_finish(&nic->framing, slot, packet.bth.pad);
	vb_framing_end_batch(&nic->framing);
	nic->mad_psn = vb_psn_add(nic->mad_psn, 1);
	vb_nic_count(nic, VB_COUNTER_TX_PACKETS);
	nic->counters->counts[VB_COUNTER_TX_BYTES] += slot->length;
}
