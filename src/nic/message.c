/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution of the packets of SENDs and WRITEs, the same for RC, XRC and UC. Each function either
 * passes and has done its work, or returns why not and has changed nothing that a repetition of the
 * packet would miss.
 */
#include "nic/train_priv.h"
#include "nic/unreliable_priv.h"

/*
 * C9-92: FIRST and MIDDLE carry exactly the path MTU, LAST 1 byte to the MTU, ONLY 0 to the MTU. A
 * train carries what all its packets would.
 */
static bool is_length_right(const struct vb_qp *qp, const struct vb_frame *frame,
			    const struct vb_packet *packet)
{
	uint32_t before = frame->train.packet_count ? frame->train.packet_count - 1u : 0;
	uint32_t length = packet->payload_length - (before << qp->mtu_shift); /* of the last one */

	if (!(packet->traits & VB_IS_LAST))
		return length == qp->attr.path_mtu;
	if ((before || !(packet->traits & VB_IS_FIRST)) && !length)
		return false;
	return length <= qp->attr.path_mtu; /* a negative length is a large number */
}

static bool is_in_sequence(const struct vb_qp *qp, const struct vb_packet *packet)
{
	switch ((enum vb_message)qp->responder.message) {
	case VB_MESSAGE_NONE:
		return packet->traits & VB_IS_FIRST;
	case VB_MESSAGE_SEND:
		return packet->traits & VB_IS_SEND && !(packet->traits & VB_IS_FIRST);
	case VB_MESSAGE_WRITE:
		return packet->traits & VB_IS_WRITE && !(packet->traits & VB_IS_FIRST);
	}
	return false;
}

/*
 * The right that the QP must grant for this request. By the specification its lack is an invalid
 * request.
 */
static uint32_t right_of(const struct vb_packet *packet)
{
	if (packet->traits & (VB_IS_WRITE | VB_IS_ATOMIC_WRITE))
		return VB_ACCESS_REMOTE_WRITE;
	if (packet->traits & VB_IS_READ)
		return VB_ACCESS_REMOTE_READ;
	if (packet->traits & VB_IS_ATOMIC)
		return VB_ACCESS_REMOTE_ATOMIC;
	return 0;
}

/*
 * An XRC request accesses memory of the PD of the SRQ that it names. Any other request accesses
 * memory of the QP's PD.
 */
static enum vb_verdict choose_pd(struct vb_qp *qp, const struct vb_packet *packet)
{
	const struct vb_srq *srq;

	qp->responder.pd = qp->pd_number;
	if (qp->type != VB_QP_XRC_RECV)
		return VB_PASS;
	srq = vb_srq_find(qp->nic, qp->xrcd, packet->srqn);
	if (!srq)
		return VB_INVALID_REQUEST;
	qp->responder.pd = srq->pd->number;
	return VB_PASS;
}

enum vb_verdict vb_message_admit(struct vb_qp *qp, const struct vb_frame *frame,
				 const struct vb_packet *packet)
{
	if (!is_in_sequence(qp, packet) || !is_length_right(qp, frame, packet))
		return VB_INVALID_REQUEST;
	if (right_of(packet) & ~qp->attr.access)
		return VB_INVALID_REQUEST;
	return packet->traits & VB_IS_FIRST ? choose_pd(qp, packet) : VB_PASS;
}

/* Places a packet's data in the receive, without the first `skip` bytes. */
static enum vb_verdict place_send(struct vb_qp *qp, const struct vb_frame *frame,
				  const struct vb_packet *packet, uint32_t skip)
{
	struct vb_responder *responder = &qp->responder;
	struct vb_payload payload = vb_payload_of(frame, packet);
	struct vb_sgl sgl = vb_receive_sgl(&responder->receive);

	if (frame->train.packet_count) {
		if (vb_train_fetch(qp, frame, &sgl, packet->payload_length))
			return VB_PASS;
		if (packet->traits & VB_IS_FIRST)
			responder->message = VB_MESSAGE_NONE; /* the receive stays in use */
		return VB_NOT_FETCHED;
	}
	if (skip)
		vb_payload_skip(&payload, skip);
	return vb_scatter(qp->nic, &sgl, &responder->cursor, &payload,
			  packet->payload_length - skip) == VB_PASS
		       ? VB_PASS
		       : VB_RECEIVE_REFUSED;
}

enum vb_verdict vb_message_send(struct vb_qp *qp, const struct vb_frame *frame,
				const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	uint32_t skip = 0;
	enum vb_verdict verdict;

	if (packet->traits & VB_IS_FIRST) {
		verdict = vb_qp_take_receive(qp, frame, packet);
		if (verdict != VB_PASS)
			return verdict;
		responder->received = 0;
		responder->cursor = (struct vb_cursor){ 0, 0 };
		responder->message = VB_MESSAGE_SEND;
		skip = responder->receive.skip;
	}
	if (packet->payload_length - skip > responder->receive.length - responder->received)
		return VB_RECEIVE_TOO_SHORT;
	if (packet->traits & VB_HAS_IETH && !vb_mw_can_invalidate(qp, packet->invalidate_key))
		return VB_ACCESS_REFUSED;
	verdict = place_send(qp, frame, packet, skip);
	if (verdict != VB_PASS)
		return verdict;
	responder->received += packet->payload_length - skip;
	if (!(packet->traits & VB_IS_LAST))
		return VB_PASS;
	responder->message = VB_MESSAGE_NONE;
	responder->msn = (responder->msn + 1) & 0xffffff;
	if (packet->traits & VB_HAS_IETH)
		vb_mw_invalidate(qp, packet->invalidate_key);
	vb_qp_complete_receive(qp, VB_STATUS_SUCCESS, packet, responder->received);
	return VB_PASS;
}

static struct vb_memory_request write_request(const struct vb_qp *qp, uint64_t address,
					      uint32_t rkey, uint32_t length)
{
	return (struct vb_memory_request){
		.key = rkey,
		.pd = qp->responder.pd,
		.qpn = qp->number.v,
		.rights = VB_ACCESS_REMOTE_WRITE,
		.address = address,
		.length = length,
	};
}

/*
 * A WRITE is checked for its whole length at its first packet. With a length of 0 no key is checked
 * (C9-88).
 */
static enum vb_verdict check_whole_write(const struct vb_qp *qp, const struct vb_reth *reth)
{
	struct vb_memory_request whole = write_request(qp, reth->address, reth->rkey, reth->length);
	struct vb_memory memory;

	if (reth->length > VB_MESSAGE_LENGTH_MAX)
		return VB_INVALID_REQUEST;
	return reth->length ? vb_memory_resolve(qp->nic, &whole, &memory) : VB_PASS;
}

/*
 * Places a packet's data. The key is checked again because it may be gone since the first packet.
 */
static enum vb_verdict place_write(struct vb_qp *qp, const struct vb_frame *frame,
				   const struct vb_packet *packet, const struct vb_reth *rest)
{
	struct vb_memory_request part =
		write_request(qp, rest->address, rest->rkey, packet->payload_length);
	struct vb_payload payload = vb_payload_of(frame, packet);
	enum vb_verdict verdict;
	struct vb_memory memory;

	if (!packet->payload_length)
		return VB_PASS;
	verdict = vb_memory_resolve(qp->nic, &part, &memory);
	if (verdict != VB_PASS)
		return verdict;
	return vb_payload_place(&payload, &memory, packet->payload_length) ? VB_PASS
									   : VB_OPERATION_FAILED;
}

enum vb_verdict vb_message_write(struct vb_qp *qp, const struct vb_frame *frame,
				 const struct vb_packet *packet)
{
	struct vb_responder *responder = &qp->responder;
	bool is_first = packet->traits & VB_IS_FIRST;
	bool is_last = packet->traits & VB_IS_LAST;
	struct vb_reth rest = { responder->write_address, responder->write_key,
				responder->write_left };
	enum vb_verdict verdict = VB_PASS;

	if (is_first) {
		rest = packet->reth;
		verdict = check_whole_write(qp, &rest);
	}
	if (verdict != VB_PASS)
		return verdict;
	if (is_last ? packet->payload_length != rest.length : packet->payload_length >= rest.length)
		return VB_INVALID_REQUEST;
	if (packet->traits & VB_HAS_IMM)
		verdict = vb_qp_take_receive(qp, frame, packet);
	if (verdict == VB_PASS)
		verdict = place_write(qp, frame, packet, &rest);
	if (verdict != VB_PASS)
		return verdict;
	responder->write_address = rest.address + packet->payload_length;
	responder->write_key = rest.rkey;
	responder->write_left = rest.length - packet->payload_length;
	responder->received = (is_first ? 0 : responder->received) + packet->payload_length;
	responder->message = is_last ? VB_MESSAGE_NONE : VB_MESSAGE_WRITE;
	if (!is_last)
		return VB_PASS;
	vb_nic_count(qp->nic, VB_COUNTER_RX_WRITE_REQUESTS);
	responder->msn = (responder->msn + 1) & 0xffffff;
	if (packet->traits & VB_HAS_IMM)
		vb_qp_complete_receive(qp, VB_STATUS_SUCCESS, packet, responder->received);
	return VB_PASS;
}
