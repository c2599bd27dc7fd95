/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets that a record stands for. A train becomes the packets that it replaces. A request
 * that the initiator has executed itself becomes the packets that it would have been, with their
 * answers. What was never on a wire gets its ICRC here.
 */
#include "trace.h"

#include "base/crc.h"
#include "wire/icrc.h"
#include "wire/syndrome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_MAX (VB_PACKET_HEADERS_MAX + 4096u + 8u)

/* The end of a request's data that does not fill a packet yet. */
struct trace_executed {
	struct trace_executed *next;
	uint32_t qpn;
	uint32_t offset; /* of the packet that comes next */
	uint32_t held;
	uint8_t data[4096];
};

/* Packets in the making. */
struct maker {
	struct trace_source *source;
	trace_take *take;
	void *owner;
	struct trace_packet packet;
	char comment[TRACE_COMMENT_MAX];
};

/* --- all packets --- */

static uint32_t compute_icrc(const struct trace_packet *packet, const uint8_t *bytes)
{
	uint32_t crc = vb_icrc_begin(&packet->flow, packet->length, packet->ip_id, bytes);

	return vb_crc32(crc, bytes + VB_BTH_SIZE, packet->length - VB_BTH_SIZE - VB_ICRC_SIZE);
}

static void put_icrc(const struct trace_packet *packet, uint8_t *bytes)
{
	vb_icrc_store(bytes + packet->length - VB_ICRC_SIZE, compute_icrc(packet, bytes));
}

static bool is_whole(const struct trace_packet *packet)
{
	return packet->captured == packet->length && packet->length >= VB_BTH_SIZE + VB_ICRC_SIZE;
}

/* A socket does not show the IPv4 ID of what arrives; the ICRC tells it. */
static void find_ip_id(struct trace_packet *packet)
{
	uint32_t difference;

	if (!is_whole(packet) || !vb_flow_is_ipv4(&packet->flow))
		return;
	difference = compute_icrc(packet, packet->bytes) ^
		     vb_icrc_load(packet->bytes + packet->length - VB_ICRC_SIZE);
	if (difference)
		(void)vb_icrc_solve_ip_id(difference, packet->length, packet->ip_id,
					  &packet->ip_id);
}

static void describe(struct maker *maker, const char *how)
{
	const struct trace_packet *packet = &maker->packet;
	int used = snprintf(maker->comment, sizeof(maker->comment), "process %d (%s)",
			    (int)maker->source->pid, maker->source->program);

	if (packet->qpn)
		used += snprintf(maker->comment + used, sizeof(maker->comment) - (size_t)used,
				 ", QP 0x%06" PRIx32, packet->qpn);
	if (packet->has_request)
		used += snprintf(maker->comment + used, sizeof(maker->comment) - (size_t)used,
				 ", request %" PRIu64, packet->wr_id);
	used += snprintf(maker->comment + used, sizeof(maker->comment) - (size_t)used, "%s", how);
	if (packet->skipped)
		(void)snprintf(maker->comment + used, sizeof(maker->comment) - (size_t)used,
			       "; %" PRIu64 " packets before it had no room in the recording",
			       packet->skipped);
}

static void give(struct maker *maker, const char *how)
{
	maker->packet.source = maker->source;
	maker->packet.comment = maker->comment;
	describe(maker, how);
	maker->take(maker->owner, &maker->packet);
	maker->packet.skipped = 0;
}

/* A packet of these headers and that data, of which `captured` bytes are there. */
static void make(struct maker *maker, struct vb_packet *headers, const uint8_t *data,
		 uint32_t length, bool has_data, const char *how)
{
	uint8_t bytes[PACKET_MAX] = { 0 };
	uint32_t at;

	headers->bth.pad = -length & 3;
	headers->bth.migrated = true;
	at = vb_packet_store_headers(bytes, headers);
	maker->packet.bytes = bytes;
	maker->packet.length = at + length + headers->bth.pad + VB_ICRC_SIZE;
	maker->packet.captured = has_data ? maker->packet.length : at;
	if (has_data) {
		if (length)
			memcpy(bytes + at, data, length);
		put_icrc(&maker->packet, bytes);
	}
	give(maker, how);
}

/* --- trains --- */

static uint8_t opcode_in_train(uint8_t opcode, bool is_first, bool is_last)
{
	uint32_t traits = vb_opcode_traits(opcode);
	enum vb_service service = vb_opcode_service(opcode);
	bool begins = is_first && traits & VB_IS_FIRST;
	bool ends = is_last && traits & VB_IS_LAST;

	if (begins && ends)
		return opcode;
	if (ends && traits & VB_HAS_IMM)
		return VB_OPCODE(service, VB_OP_SEND_LAST_IMM);
	if (ends && traits & VB_HAS_IETH)
		return VB_OPCODE(service, VB_OP_SEND_LAST_INV);
	if (ends)
		return VB_OPCODE(service, VB_OP_SEND_LAST);
	return VB_OPCODE(service, begins ? VB_OP_SEND_FIRST : VB_OP_SEND_MIDDLE);
}

/* All packets of a message but its last are of this length. */
static uint32_t mtu_of(uint32_t data_length, uint32_t packets)
{
	uint32_t mtu = 256;

	while (mtu < 4096 && (data_length + mtu - 1) / mtu > packets)
		mtu *= 2;
	return mtu;
}

/* The data of a train, of which headers and pads are known to be in the sum of its packets. */
static uint32_t data_of_train(const struct vb_record_packet *train, const struct vb_packet *headers)
{
	uint32_t count = train->train_packets, sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += vb_opcode_header_length(
			       opcode_in_train(headers->bth.opcode, !i, i + 1 == count)) +
		       VB_ICRC_SIZE;
	sum += headers->bth.pad;
	return train->length > sum ? train->length - sum : 0;
}

static bool parse_train(const struct vb_record_packet *train, const uint8_t *bytes,
			struct vb_packet *whole)
{
	uint32_t headers = train->train_headers;

	return headers >= VB_BTH_SIZE && train->captured >= headers &&
	       vb_packet_parse(bytes, headers, headers + vb_bth_load(bytes).pad + VB_ICRC_SIZE,
			       whole) == VB_PARSED;
}

static void make_train(struct maker *maker, const struct vb_record_packet *train,
		       const uint8_t *bytes)
{
	uint32_t count = train->train_packets, length, mtu;
	bool has_data;
	struct vb_packet whole;
	char how[96];

	if (!parse_train(train, bytes, &whole))
		return;
	length = data_of_train(train, &whole);
	mtu = mtu_of(length, count);
	has_data = train->captured == train->train_headers + length;
	for (uint32_t i = 0; i < count; i++) {
		struct vb_packet packet = whole;
		bool is_last = i + 1 == count;
		uint32_t part = is_last ? length - i * mtu : mtu;

		packet.bth.opcode = opcode_in_train(whole.bth.opcode, !i, is_last);
		packet.bth.psn = vb_psn_add(whole.bth.psn, i);
		packet.bth.ack_request = whole.bth.ack_request && is_last;
		packet.bth.solicited = whole.bth.solicited && is_last;
		(void)snprintf(how, sizeof(how),
			       ", in shared memory, %" PRIu32 " of a train of %" PRIu32 "%s", i + 1,
			       count, has_data ? "" : ", without its data");
		make(maker, &packet, bytes + train->train_headers + i * mtu, part, has_data, how);
	}
}

/* --- packets --- */

static void describe_ack(const struct vb_record_packet *from, char *how, size_t size)
{
	char syndrome[64];

	if (!from->has_ack)
		return;
	vb_syndrome_describe((uint8_t)(from->ack_word >> 24), syndrome, sizeof(syndrome));
	(void)snprintf(how, size, ", in shared memory, with %s of PSN %" PRIu32, syndrome,
		       from->ack_psn);
}

static void make_packet(struct maker *maker, const struct vb_record_packet *from,
			const uint8_t *bytes)
{
	struct trace_packet *packet = &maker->packet;
	uint8_t copy[PACKET_MAX];
	char how[128] = "";

	packet->bytes = bytes;
	packet->captured = from->captured;
	packet->length = from->length;
	if (from->is_by_link) {
		(void)snprintf(how, sizeof(how), ", in shared memory");
		describe_ack(from, how, sizeof(how));
		if (is_whole(packet) && packet->length <= sizeof(copy)) {
			memcpy(copy, bytes, packet->length);
			put_icrc(packet, copy);
			packet->bytes = copy;
		}
	} else if (!packet->is_sent) {
		find_ip_id(packet);
	}
	give(maker, how);
}

static void expand_packet(struct maker *maker, const struct vb_record *record)
{
	const struct vb_record_packet *from = vb_record_view(record, sizeof(*from));
	const uint8_t *bytes;

	if (!from || from->captured > record->length - sizeof(*record) - sizeof(*from) ||
	    from->captured > from->length || from->train_headers > VB_PACKET_HEADERS_MAX)
		return;
	bytes = (const uint8_t *)(from + 1);
	maker->packet.flow = from->flow;
	maker->packet.ip_id = from->is_by_link ? 0 : from->ip_id;
	maker->packet.is_sent = from->is_sent;
	maker->packet.is_by_link = from->is_by_link;
	maker->packet.has_request = from->has_request;
	if (from->train_packets)
		make_train(maker, from, bytes);
	else
		make_packet(maker, from, bytes);
}

/* --- requests that the initiator has executed --- */

static struct trace_executed *executed_of(struct trace_source *source, uint32_t qpn)
{
	struct trace_executed *executed = source->executed;

	while (executed && executed->qpn != qpn)
		executed = executed->next;
	if (executed)
		return executed;
	executed = calloc(1, sizeof(*executed));
	if (!executed)
		return NULL;
	executed->qpn = qpn;
	executed->next = source->executed;
	source->executed = executed;
	return executed;
}

void trace_packet_forget(struct trace_source *source)
{
	while (source->executed) {
		struct trace_executed *executed = source->executed;

		source->executed = executed->next;
		free(executed);
	}
}

static enum vb_packet_op op_of(const struct vb_executed *part, uint32_t offset, uint32_t end)
{
	static const enum vb_packet_op writes[] = { VB_OP_WRITE_MIDDLE, VB_OP_WRITE_FIRST,
						    VB_OP_WRITE_LAST, VB_OP_WRITE_ONLY };
	static const enum vb_packet_op reads[] = { VB_OP_READ_RESPONSE_MIDDLE,
						   VB_OP_READ_RESPONSE_FIRST,
						   VB_OP_READ_RESPONSE_LAST,
						   VB_OP_READ_RESPONSE_ONLY };
	uint32_t place = (offset == 0) | (uint32_t)(end == part->request_length) << 1;

	return part->opcode == VB_WR_READ ? reads[place] : writes[place];
}

static struct vb_packet headers_of(const struct vb_executed *part, enum vb_packet_op op,
				   bool is_answer)
{
	uint8_t opcode = VB_OPCODE(part->service, op);

	return (struct vb_packet){
		.bth = { .opcode = opcode,
			 .pkey = part->pkey,
			 .destination = is_answer ? part->initiator : part->target,
			 .psn = part->psn },
		.traits = vb_opcode_traits(opcode),
		.srqn = part->srqn,
	};
}

static void turn(struct maker *maker, const struct vb_executed *part, bool is_answer)
{
	maker->packet.is_sent = !is_answer;
	maker->packet.flow = part->flow;
	if (!is_answer)
		return;
	maker->packet.flow.source = part->flow.destination;
	maker->packet.flow.destination = part->flow.source;
}

static void make_answer(struct maker *maker, const struct vb_executed *part, uint64_t former)
{
	bool is_atomic = part->opcode == VB_WR_COMPARE_SWAP || part->opcode == VB_WR_FETCH_ADD;
	struct vb_packet packet =
		headers_of(part, is_atomic ? VB_OP_ATOMIC_ACKNOWLEDGE : VB_OP_ACKNOWLEDGE, true);

	if (part->service == VB_SERVICE_UC)
		return;
	turn(maker, part, true);
	packet.aeth.syndrome = 0x1f; /* an ACK that gives no credits */
	packet.atomic_result = former;
	make(maker, &packet, NULL, 0, true, ", executed");
}

/* One packet with a part of the data of a WRITE or READ. */
static void make_part(struct maker *maker, const struct vb_executed *part, uint32_t offset,
		      const uint8_t *data, uint32_t length, bool has_data)
{
	bool is_read = part->opcode == VB_WR_READ;
	struct vb_packet packet = headers_of(part, op_of(part, offset, offset + length), is_read);

	packet.bth.psn = vb_psn_add(part->psn, part->mtu ? offset / part->mtu : 0);
	packet.bth.ack_request = !is_read && offset + length == part->request_length;
	if (packet.traits & VB_HAS_RETH)
		packet.reth =
			(struct vb_reth){ part->remote_address, part->rkey, part->request_length };
	else if (packet.traits & VB_HAS_AETH)
		packet.aeth.syndrome = 0x1f;
	turn(maker, part, is_read);
	make(maker, &packet, data, length, has_data, ", executed");
}

static void make_read_request(struct maker *maker, const struct vb_executed *part)
{
	struct vb_packet packet = headers_of(part, VB_OP_READ_REQUEST, false);

	packet.reth = (struct vb_reth){ part->remote_address, part->rkey, part->request_length };
	turn(maker, part, false);
	make(maker, &packet, NULL, 0, true, ", executed");
}

static void make_word(struct maker *maker, const struct vb_executed *part, const uint8_t *data)
{
	bool is_write = part->opcode == VB_WR_ATOMIC_WRITE;
	struct vb_packet packet = headers_of(part,
					     is_write			       ? VB_OP_ATOMIC_WRITE
					     : part->opcode == VB_WR_FETCH_ADD ? VB_OP_FETCH_ADD
									       : VB_OP_COMPARE_SWAP,
					     false);
	bool has_data = part->data_length == 8;
	uint64_t former = 0;

	if (is_write)
		packet.reth = (struct vb_reth){ part->remote_address, part->rkey, 8 };
	else if (part->opcode == VB_WR_FETCH_ADD)
		packet.atomic = (struct vb_atomiceth){ part->remote_address, part->rkey,
						       part->compare_add, 0 };
	else
		packet.atomic = (struct vb_atomiceth){ part->remote_address, part->rkey, part->swap,
						       part->compare_add };
	turn(maker, part, false);
	packet.bth.ack_request = true;
	make(maker, &packet, data, is_write ? 8 : 0, !is_write || has_data, ", executed");
	if (!is_write && has_data)
		memcpy(&former, data, sizeof(former));
	make_answer(maker, part, former);
}

/* Packets of the data that was held and of this part. */
static void make_parts(struct maker *maker, const struct vb_executed *part, const uint8_t *data)
{
	struct trace_executed *state = executed_of(maker->source, part->initiator.v);
	bool has_data = part->data_length == part->length;
	uint32_t taken = 0, mtu = part->mtu;

	if (!state || mtu < 256 || mtu > sizeof(state->data))
		return;
	if (part->offset == 0) {
		state->offset = state->held = 0;
		if (part->opcode == VB_WR_READ)
			make_read_request(maker, part);
	} else if (state->offset + state->held != part->offset) {
		return; /* the part before it had no room in the recording */
	}
	for (;;) {
		uint32_t room = mtu - state->held;
		uint32_t more = part->length - taken < room ? part->length - taken : room;
		bool is_end = part->offset + taken + more == part->request_length;

		if (has_data)
			memcpy(state->data + state->held, data + taken, more);
		state->held += more;
		taken += more;
		if (state->held < mtu && !is_end)
			return;
		make_part(maker, part, state->offset, state->data, state->held, has_data);
		state->offset += state->held;
		state->held = 0;
		if (is_end)
			break;
	}
	if (part->opcode != VB_WR_READ)
		make_answer(maker, part, 0);
}

static void expand_executed(struct maker *maker, const struct vb_record *record)
{
	const struct vb_record_executed *from = vb_record_view(record, sizeof(*from));
	const struct vb_executed *part;

	if (!from || from->part.data_length > record->length - sizeof(*record) - sizeof(*from) ||
	    from->part.length > from->part.request_length)
		return;
	part = &from->part;
	maker->packet.is_executed = true;
	maker->packet.has_request = true;
	if (part->opcode == VB_WR_WRITE || part->opcode == VB_WR_READ)
		make_parts(maker, part, (const uint8_t *)(from + 1));
	else
		make_word(maker, part, (const uint8_t *)(from + 1));
}

void trace_packet_expand(struct trace_source *source, const struct vb_record *record,
			 trace_take *take, void *owner)
{
	struct maker maker = {
		.source = source,
		.take = take,
		.owner = owner,
		.packet = { .time_ns = record->time_ns,
			    .wr_id = record->wr_id,
			    .qpn = record->qpn,
			    .skipped = record->skipped + source->skipped_before },
	};

	source->skipped_before = 0;
	if (record->kind == VB_RECORD_PACKET)
		expand_packet(&maker, record);
	else if (record->kind == VB_RECORD_EXECUTED)
		expand_executed(&maker, record);
	source->skipped_before = maker.packet.skipped; /* nothing has reported it */
}
