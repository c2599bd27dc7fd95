/* SPDX-License-Identifier: BSD-2-Clause */
/* What a meter counts as packets and executed requests pass. */
#include "host/port/meter_priv.h"

#include "wire/packet.h"
#include "wire/syndrome.h"

/* --- the QP of a packet --- */

struct vb_meter_qp *vb_meter_find(struct vb_meter *meter, vb_qpn number)
{
	uint32_t at = meter->by_own[number.v & (VB_METER_HASH_SIZE - 1)];

	while (at != VB_METER_NONE && meter->qps[at].number.v != number.v)
		at = meter->qps[at].next_of_own;
	return at == VB_METER_NONE ? NULL : &meter->qps[at];
}

/* A packet names only its destination, except for a datagram. */
static struct vb_meter_qp *find_sender(struct vb_meter *meter, const struct vb_slot *slot,
				       const struct vb_bth *bth, uint32_t traits)
{
	uint32_t at = meter->by_peer[bth->destination.v & (VB_METER_HASH_SIZE - 1)];

	if (traits & VB_HAS_DETH)
		return vb_meter_find(meter, vb_deth_load(slot->head + VB_BTH_SIZE).source);
	while (at != VB_METER_NONE &&
	       (meter->qps[at].peer.v != bth->destination.v ||
		!vb_gid_equal(&meter->qps[at].peer_gid, &slot->path.ip.destination)))
		at = meter->qps[at].next_of_peer;
	return at == VB_METER_NONE ? NULL : &meter->qps[at];
}

/* --- bytes --- */

/* What the UDP payloads of these packets have besides headers, pad and ICRC. */
static uint64_t payload_of(const struct vb_bth *bth, const struct vb_train *train, uint32_t length)
{
	uint32_t headers = vb_opcode_header_length(bth->opcode) + VB_ICRC_SIZE;
	uint64_t overhead = (uint64_t)headers * (train->packet_count ? train->packet_count : 1);
	uint64_t whole = train->packet_count ? train->byte_count : length;

	overhead += bth->pad;
	return whole > overhead ? whole - overhead : 0;
}

static uint32_t packets_of(const struct vb_train *train)
{
	return train->packet_count ? train->packet_count : 1;
}

/* --- latency --- */

static void set_mark(struct vb_meter_qp *qp, vb_psn last, uint32_t traits)
{
	if (qp->mark.is_set || !qp->is_reliable)
		return;
	qp->mark = (struct vb_meter_mark){
		.is_set = true,
		.is_read = traits & VB_IS_READ,
		.psn = last,
		.began_ns = qp->message_began_ns,
	};
}

/* `ends_read`: this packet is the last of a READ's response. */
static void on_response(struct vb_meter_qp *qp, vb_psn psn, bool ends_read, uint64_t now_ns)
{
	struct vb_meter_mark *mark = &qp->mark;

	if (!mark->is_set || vb_psn_diff(psn, mark->psn) < 0 || (mark->is_read && !ends_read))
		return;
	mark->is_set = false;
	qp->row.latencies[vb_meter_bucket(now_ns > mark->began_ns ? now_ns - mark->began_ns : 0)]++;
}

/* --- packets --- */

static bool is_repeated(const struct vb_meter_qp *qp, const struct vb_bth *bth)
{
	return qp->is_reliable && qp->has_sent && vb_psn_diff(bth->psn, qp->next_psn) < 0;
}

static void count_request(struct vb_meter_qp *qp, const struct vb_bth *bth, uint32_t traits,
			  uint32_t packets, uint64_t now_ns)
{
	qp->has_sent = true;
	qp->next_psn = vb_psn_add(bth->psn, packets);
	if (traits & VB_IS_FIRST)
		qp->message_began_ns = now_ns;
	if (traits & VB_IS_LAST) {
		qp->row.sent_messages++;
		set_mark(qp, vb_psn_add(bth->psn, packets - 1), traits);
	}
}

void vb_meter_on_sent(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count)
{
	struct vb_meter *meter = owner;

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_slot *slot = &slots[i];
		struct vb_bth bth = vb_bth_load(slot->head);
		uint32_t traits = vb_opcode_traits(bth.opcode);
		struct vb_meter_qp *qp = find_sender(meter, slot, &bth, traits);
		uint32_t packets = packets_of(&slot->train);

		if (!qp)
			continue;
		qp->row.sent_packets += packets;
		if (!(traits & VB_IS_RESPONSE) && is_repeated(qp, &bth)) {
			qp->row.repeated_packets += packets;
			continue;
		}
		qp->row.sent_bytes += payload_of(&bth, &slot->train, slot->length);
		if (!(traits & VB_IS_RESPONSE))
			count_request(qp, &bth, traits, packets, now_ns);
	}
}

static bool is_ack(const struct vb_aeth *aeth)
{
	return vb_syndrome_kind(aeth->syndrome) == VB_SYNDROME_ACK;
}

static void take_response(struct vb_meter_qp *qp, const struct vb_frame *frame,
			  const struct vb_bth *bth, uint32_t traits, uint64_t now_ns)
{
	struct vb_aeth aeth = { 0 };

	if (traits & VB_HAS_AETH) {
		if (frame->head.length < VB_BTH_SIZE + VB_AETH_SIZE)
			return;
		aeth = vb_aeth_load(frame->head.data + VB_BTH_SIZE);
	}
	if (traits & VB_HAS_AETH && !is_ack(&aeth))
		return;
	on_response(qp, bth->psn, traits & VB_IS_READ_RESPONSE && traits & VB_IS_LAST, now_ns);
}

static uint32_t length_of(const struct vb_frame *frame)
{
	uint32_t length = frame->head.length;

	for (uint32_t i = 0; i < frame->rest_count; i++)
		length += frame->rest[i].length;
	return length;
}

void vb_meter_on_received(void *owner, uint64_t now_ns, const struct vb_frame *frames,
			  uint32_t count)
{
	struct vb_meter *meter = owner;

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_frame *frame = &frames[i];
		struct vb_meter_qp *qp;
		struct vb_bth bth;
		uint32_t traits;

		if (frame->head.length < VB_BTH_SIZE)
			continue;
		bth = vb_bth_load(frame->head.data);
		traits = vb_opcode_traits(bth.opcode);
		qp = vb_meter_find(meter, bth.destination);
		if (!qp)
			continue;
		if (frame->piggyback_ack.is_there && is_ack(&frame->piggyback_ack.aeth))
			on_response(qp, frame->piggyback_ack.psn, false, now_ns);
		qp->row.received_packets += packets_of(&frame->train);
		qp->row.received_bytes += payload_of(&bth, &frame->train, length_of(frame));
		if (traits & VB_IS_RESPONSE)
			take_response(qp, frame, &bth, traits, now_ns);
		else if (traits & VB_IS_LAST)
			qp->row.received_messages++;
	}
}

/* --- requests that the initiator executes --- */

void vb_meter_on_executed(void *owner, const struct vb_executed *parts, uint32_t count,
			  const uint8_t *bytes)
{
	struct vb_meter *meter = owner;

	(void)bytes;
	for (uint32_t i = 0; i < count && i < VB_TAP_EXECUTED_MAX; i++) {
		struct vb_meter_qp *qp = vb_meter_find(meter, parts[i].initiator);

		if (!qp)
			continue;
		if (parts[i].opcode == VB_WR_READ)
			qp->row.received_bytes += parts[i].length;
		else
			qp->row.sent_bytes += parts[i].length;
		if (parts[i].offset + parts[i].length == parts[i].request_length) {
			qp->row.sent_messages++;
			qp->row.executed_messages++;
		}
	}
}
