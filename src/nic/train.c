/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trains. The sender only offers its memory: what the peer does not fetch, for whatever reason,
 * goes again in packets. So this file reports no error, and a train needs no rule of its own for
 * order, receives, acknowledgements and the end of a QP.
 */
#include "nic/train_priv.h"

#include "nic/peer_memory.h"

#include "base/bytes.h"

#define SKIP_FIRST 8u
#define REFUSALS_MAX 8u

/* --- the sender --- */

/*
 * A peer that could not read a message's data is not asked again soon: only one message in many
 * tries.
 */
static bool may_try(struct vb_requester *requester)
{
	if (!requester->train_skip)
		return true;
	requester->train_skip--;
	return false;
}

/* Whether the message that begins goes in trains. */
static bool begin_message(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;
	struct vb_train_choice *choice = &qp->train_choice;
	bool may = may_try(requester); /* counts all messages, whichever way they go */

	if (!qp->nic->config.train_sample_bytes)
		return may;
	vb_train_choice_on_begun(choice, requester->send_index, requester->is_timed,
				 qp->nic->now_ns);
	requester->is_timed = true;
	if (vb_train_choice_way(choice) == VB_BY_PACKETS)
		return false;
	if (!may) /* the message does not go the way that is measured */
		vb_train_choice_on_disturbed(choice);
	return may;
}

static bool may_be_train(const struct vb_wqe *wqe)
{
	return wqe->traits & VB_OPERATION_MAY_BE_TRAIN && !(wqe->flags & VB_SEND_INLINE);
}

/* Packets that were sent before go as packets: perhaps they were refused as a train. */
uint32_t vb_train_choose(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_requester *requester = &qp->requester;
	const struct vb_nic_config *config = &qp->nic->config;
	uint32_t index = vb_psn_distance(requester->next_psn, wqe->first_psn);
	uint32_t left = wqe->length - (index << qp->mtu_shift);

	if (!qp->peer_memory || !may_be_train(wqe) ||
	    !vb_psn_equal(requester->next_psn, requester->new_psn))
		return 0;
	if (!index)
		requester->is_by_train = begin_message(qp);
	if (!requester->is_by_train || left < config->train_length_min)
		return 0;
	return min32(wqe->packet_count - index,
		     max32(config->train_length_max >> qp->mtu_shift, 1));
}

/*
 * Whether trains are in flight. An end that was acknowledged long ago may seem to lie ahead, since
 * PSNs wrap; but it lies behind everything that is in flight.
 */
static bool are_trains_out(const struct vb_requester *requester)
{
	uint32_t ahead = vb_psn_distance(requester->trains_end, requester->unacked);

	return requester->has_trains_out && ahead &&
	       ahead <= vb_psn_distance(requester->new_psn, requester->unacked);
}

void vb_train_on_sent(struct vb_qp *qp, const struct vb_slot *slot)
{
	struct vb_requester *requester = &qp->requester;
	uint64_t *counts = qp->nic->counters->counts;

	if (requester->has_trains_out && !are_trains_out(requester))
		requester->train_refusals = 0; /* the last ones were fetched */
	requester->has_trains_out = true;
	requester->trains_end = requester->next_psn;
	counts[VB_COUNTER_TX_TRAINS]++;
	/* The engine's turn counts each slot as one packet. */
	counts[VB_COUNTER_TX_PACKETS] += slot->train.packet_count - 1u;
	counts[VB_COUNTER_TX_BYTES] += slot->train.byte_count - slot->length;
}

VB_COLD bool vb_train_on_nak(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	if (!are_trains_out(requester))
		return false;
	if (requester->train_refusals < REFUSALS_MAX)
		requester->train_refusals++;
	requester->train_skip = (uint16_t)(SKIP_FIRST << requester->train_refusals);
	requester->is_by_train = false;
	requester->has_trains_out = false;
	vb_nic_count(qp->nic, VB_COUNTER_TRAINS_REFUSED);
	return true;
}

VB_NOINLINE void vb_train_on_acknowledged(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	const struct vb_nic_config *config = &qp->nic->config;
	struct vb_requester *requester = &qp->requester;

	if (wqe->length >= config->train_length_min && may_be_train(wqe))
		requester->is_timed = vb_train_choice_on_done(&qp->train_choice,
							      requester->done_index, wqe->length,
							      config->train_sample_bytes,
							      qp->nic->now_ns);
}

VB_COLD void vb_train_on_repeat(struct vb_qp *qp)
{
	vb_train_choice_on_disturbed(&qp->train_choice);
}

/* --- the receiver --- */

/* The sum of the references' lengths; 0 if it is none that a train can have. */
static uint32_t sum_lengths(const struct vb_reference *references, uint32_t count)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!references[i].length || references[i].length > VB_TRAIN_LENGTH_LIMIT - sum)
			return 0;
		sum += references[i].length;
	}
	return sum;
}

/*
 * Reads the headers, and the references once and for all. Everything may be wrong here: the sender
 * writes what it likes.
 */
static bool parse(const struct vb_frame *frame, struct vb_packet *packet,
		  struct vb_reference references[VB_SGE_MAX])
{
	uint32_t count = frame->train.reference_count;

	if (!frame->path.link || count > VB_SGE_MAX ||
	    vb_packet_parse(frame->head.data, frame->head.length, frame->head.length, packet) !=
		    VB_PARSED ||
	    packet->payload_length || !(packet->traits & VB_IS_SEND))
		return false;
	memcpy(references, frame->references, count * sizeof(*references));
	packet->payload_length = sum_lengths(references, count);
	return packet->payload_length;
}

VB_NOINLINE void vb_train_receive(struct vb_nic *nic, const struct vb_frame *frame)
{
	struct vb_reference references[VB_SGE_MAX];
	struct vb_frame checked = *frame;
	struct vb_packet packet;
	struct vb_qp *qp;

	nic->counters->counts[VB_COUNTER_RX_PACKETS] += frame->train.packet_count;
	nic->counters->counts[VB_COUNTER_RX_BYTES] += frame->train.byte_count;
	nic->counters->counts[VB_COUNTER_RX_TRAINS]++;
	if (!parse(frame, &packet, references)) {
		vb_nic_drop(nic, VB_DROP_INVALID);
		return;
	}
	checked.references = (const uint8_t *)references;
	qp = vb_qp_find(nic, packet.bth.destination);
	if (!qp)
		vb_nic_drop(nic, VB_DROP_NO_QP);
	else if (!vb_qp_is_reliable(qp))
		vb_nic_drop(nic, VB_DROP_QP_TYPE);
	else
		vb_qp_on_packet(qp, &checked, &packet);
}

bool vb_train_fetch(struct vb_qp *qp, const struct vb_frame *frame, const struct vb_sgl *sgl,
		    uint32_t length)
{
	struct vb_cursor cursor = qp->responder.cursor;
	struct vb_span spans[VB_SGE_MAX];
	struct vb_peer_memory_fetch fetch = {
		.initiator = &qp->initiator,
		.references = (const struct vb_reference *)(const void *)frame->references,
		.reference_count = frame->train.reference_count,
		.spans = spans,
	};

	if (!qp->peer_memory)
		return false;
	fetch.span_count =
		vb_sgl_resolve(qp->nic, sgl, &cursor, length, VB_ACCESS_LOCAL_WRITE, spans);
	if (!fetch.span_count || !vb_dma_peer_fetch(qp->peer_memory, &fetch))
		return false;
	qp->responder.cursor = cursor;
	return true;
}
