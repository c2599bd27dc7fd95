/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets, and requests that the engine executes itself, as records. A packet names only its
 * destination; the QP that has sent it is the one that is connected to that destination.
 */
#include "host/port/recorder_priv.h"

#include "framing/slot.h"
#include "host/sys/clock.h"
#include "nic/inspect.h"
#include "nic/qp.h"
#include "wire/packet.h"

#define WHOLE_PACKET (VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX + VB_SLOT_TAIL_MAX)

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool is_wanted(const struct vb_recorder_session *session, uint32_t own, uint32_t other)
{
	uint32_t wanted = session->wish.qpn;

	return !wanted || wanted == own || wanted == other;
}

static uint32_t weight_of(const struct vb_train *train)
{
	return train->packet_count ? train->packet_count : 1;
}

/* --- packets that leave --- */

static bool leads_to(const struct vb_qp *qp, const struct vb_slot *slot, vb_qpn destination)
{
	return qp && vb_qp_is_connected_to(qp, destination, &slot->path.ip.destination);
}

static const struct vb_qp *search_sender(const struct vb_nic *nic, const struct vb_slot *slot,
					 vb_qpn destination)
{
	const struct vb_qp *qp;
	uint32_t place = 0;

	while ((qp = vb_nic_next_qp(nic, &place)))
		if (leads_to(qp, slot, destination))
			return qp;
	return NULL;
}

/* NULL: it is none of the program's QPs. */
static const struct vb_qp *find_sender(struct vb_recorder_session *session,
				       const struct vb_slot *slot, const struct vb_bth *bth)
{
	vb_qpn *memo = &session->senders[bth->destination.v & (VB_RECORDER_SENDERS - 1)];
	const struct vb_qp *qp;

	if (vb_opcode_traits(bth->opcode) & VB_HAS_DETH)
		return vb_qp_find(session->nic, vb_deth_load(slot->head + VB_BTH_SIZE).source);
	qp = vb_qp_find(session->nic, *memo);
	if (leads_to(qp, slot, bth->destination))
		return qp;
	qp = search_sender(session->nic, slot, bth->destination);
	if (qp)
		*memo = vb_qp_number(qp);
	return qp;
}

/* A datagram names its sender, also if that is QP 1. */
static uint32_t sender_number(const struct vb_qp *qp, const struct vb_slot *slot,
			      const struct vb_bth *bth)
{
	if (qp)
		return vb_qp_number(qp).v;
	return vb_opcode_traits(bth->opcode) & VB_HAS_DETH
		       ? vb_deth_load(slot->head + VB_BTH_SIZE).source.v
		       : 0;
}

static uint32_t sum_references(const struct vb_slot *slot)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < slot->train.reference_count; i++)
		sum += slot->references[i].length;
	return sum;
}

/* How many of the bytes are recorded. Of a train, the data is if that of packets is. */
static uint32_t captured_of_slot(const struct vb_recorder_session *session,
				 const struct vb_slot *slot, uint32_t train_headers)
{
	uint32_t most = session->wish.packet_length_max;

	if (!slot->train.packet_count)
		return min(slot->length, most);
	return train_headers + (most < WHOLE_PACKET ? 0 : sum_references(slot));
}

/* Returns how many bytes could be copied. */
static uint32_t copy_slot(const struct vb_slot *slot, uint8_t *to, uint32_t length)
{
	uint8_t whole[WHOLE_PACKET];

	if (length <= slot->head_length) {
		memcpy(to, slot->head, length);
		return length;
	}
	if (slot->length > sizeof(whole) || !vb_slot_gather(slot, whole)) {
		memcpy(to, slot->head, slot->head_length);
		return slot->head_length;
	}
	memcpy(to, whole, length);
	return length;
}

/* The headers, and then the data of all packets. Returns how many bytes could be copied. */
static uint32_t copy_train(const struct vb_slot *slot, const struct vb_qp *qp, vb_psn psn,
			   uint32_t headers, uint8_t *to, uint32_t length)
{
	memcpy(to, slot->head, headers);
	if (!qp || !vb_qp_read_request(qp, psn, to + headers, length - headers))
		return headers;
	return length;
}

static struct vb_record *begin(struct vb_recorder_session *session, uint64_t now_ns, uint32_t qpn,
			       uint32_t captured, uint32_t weight)
{
	struct vb_record *record = vb_recording_reserve(
		&session->recording, (uint32_t)sizeof(struct vb_record_packet) + captured, weight);

	if (!record)
		return NULL;
	record->kind = VB_RECORD_PACKET;
	record->time_ns = now_ns;
	record->wr_id = 0;
	record->qpn = qpn;
	return record;
}

static void add_ack(struct vb_record_packet *packet, const struct vb_piggyback_ack *ack)
{
	packet->has_ack = ack->is_there;
	packet->ack_psn = ack->psn.v;
	packet->ack_word = (uint32_t)ack->aeth.syndrome << 24 | ack->aeth.msn;
}

static void record_slot(struct vb_recorder_session *session, uint64_t now_ns,
			const struct vb_slot *slot)
{
	struct vb_bth bth = vb_bth_load(slot->head);
	const struct vb_qp *qp = find_sender(session, slot, &bth);
	uint32_t number = sender_number(qp, slot, &bth);
	uint32_t headers = vb_opcode_header_length(bth.opcode);
	uint32_t captured = captured_of_slot(session, slot, headers);
	struct vb_record_packet *packet;
	struct vb_record *record;
	uint8_t *bytes;

	if (!is_wanted(session, number, bth.destination.v))
		return;
	record = begin(session, now_ns, number, captured, weight_of(&slot->train));
	if (!record)
		return;
	packet = vb_record_body(record);
	bytes = (uint8_t *)(packet + 1);
	*packet = (struct vb_record_packet){
		.flow = slot->path.ip,
		.length = slot->train.packet_count ? slot->train.byte_count : slot->length,
		.train_headers = headers,
		.train_packets = slot->train.packet_count,
		.ip_id = slot->ip_id,
		.is_sent = true,
		.is_by_link = slot->path.link != 0,
	};
	add_ack(packet, &slot->piggyback_ack);
	if (qp && !(vb_opcode_traits(bth.opcode) & VB_IS_RESPONSE))
		packet->has_request = vb_qp_find_request(qp, bth.psn, &record->wr_id);
	packet->captured = slot->train.packet_count
				   ? copy_train(slot, qp, bth.psn, headers, bytes, captured)
				   : copy_slot(slot, bytes, captured);
	vb_recording_commit(record);
}

void vb_recorder_on_sent(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count)
{
	uint64_t time_ns = vb_clock_now(); /* the round's time may be of before the post */

	(void)now_ns;
	for (uint32_t i = 0; i < count; i++)
		record_slot(owner, time_ns, &slots[i]);
}

/* --- packets that arrive --- */

static uint32_t length_of(const struct vb_frame *frame)
{
	uint32_t length = frame->head.length;

	for (uint32_t i = 0; i < frame->rest_count; i++)
		length += frame->rest[i].length;
	return length;
}

static void copy_frame(const struct vb_frame *frame, uint8_t *to, uint32_t length)
{
	uint32_t piece = min(length, frame->head.length);

	memcpy(to, frame->head.data, piece);
	for (uint32_t i = 0; i < frame->rest_count && piece < length; i++) {
		uint32_t part = min(length - piece, frame->rest[i].length);

		memcpy(to + piece, frame->rest[i].data, part);
		piece += part;
	}
}

/* A response belongs to a request of this end. */
static void note_request(struct vb_recorder_session *session, struct vb_record *record,
			 struct vb_record_packet *packet, const struct vb_bth *bth)
{
	const struct vb_qp *qp = vb_qp_find(session->nic, bth->destination);

	if (qp && vb_opcode_traits(bth->opcode) & VB_IS_RESPONSE)
		packet->has_request = vb_qp_find_request(qp, bth->psn, &record->wr_id);
}

static void record_frame(struct vb_recorder_session *session, uint64_t now_ns,
			 const struct vb_frame *frame)
{
	bool has_bth = frame->head.length >= VB_BTH_SIZE;
	struct vb_bth bth = has_bth ? vb_bth_load(frame->head.data) : (struct vb_bth){ 0 };
	uint32_t length = length_of(frame);
	uint32_t captured =
		min(min(length, session->wish.packet_length_max), VB_RECORD_LENGTH_MAX / 2);
	struct vb_record_packet *packet;
	struct vb_record *record;

	if (!is_wanted(session, bth.destination.v, 0))
		return;
	record = begin(session, now_ns, bth.destination.v, captured, weight_of(&frame->train));
	if (!record)
		return;
	packet = vb_record_body(record);
	*packet = (struct vb_record_packet){
		.flow = vb_frame_flow(frame),
		.length = frame->train.packet_count ? frame->train.byte_count : length,
		.captured = captured,
		.train_headers = has_bth ? vb_opcode_header_length(bth.opcode) : 0,
		.train_packets = frame->train.packet_count,
		.ip_id = frame->ip_id,
		.is_by_link = frame->path.link != 0,
	};
	if (frame->train.packet_count)
		packet->captured = min(captured, packet->train_headers);
	add_ack(packet, &frame->piggyback_ack);
	note_request(session, record, packet, &bth);
	copy_frame(frame, (uint8_t *)(packet + 1), captured);
	vb_recording_commit(record);
}

void vb_recorder_on_received(void *owner, uint64_t now_ns, const struct vb_frame *frames,
			     uint32_t count)
{
	uint64_t time_ns = vb_clock_now();

	(void)now_ns;
	for (uint32_t i = 0; i < count; i++)
		record_frame(owner, time_ns, &frames[i]);
}

/* --- requests that the initiator executes --- */

static void record_part(struct vb_recorder_session *session, const struct vb_executed *part,
			const uint8_t *bytes)
{
	uint32_t length = part->data_length;
	struct vb_record_executed *executed;
	struct vb_record *record;

	if (!is_wanted(session, part->initiator.v, part->target.v))
		return;
	record = vb_recording_reserve(&session->recording, (uint32_t)sizeof(*executed) + length, 1);
	if (!record)
		return;
	record->kind = VB_RECORD_EXECUTED;
	record->time_ns = vb_clock_now();
	record->wr_id = part->wr_id;
	record->qpn = part->initiator.v;
	executed = vb_record_body(record);
	executed->part = *part;
	memcpy(executed + 1, bytes + part->data_offset, length);
	vb_recording_commit(record);
}

void vb_recorder_on_executed(void *owner, const struct vb_executed *parts, uint32_t count,
			     const uint8_t *bytes)
{
	struct vb_recorder_session *session = owner;

	for (uint32_t i = 0; i < min(count, VB_TAP_EXECUTED_MAX); i++)
		record_part(session, &parts[i], bytes);
	if (count > VB_TAP_EXECUTED_MAX)
		vb_recording_skip(&session->recording, count - VB_TAP_EXECUTED_MAX);
}
