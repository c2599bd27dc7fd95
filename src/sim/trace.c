/* SPDX-License-Identifier: BSD-2-Clause */
/* Recording a trace. Records are cheap and binary; text is made only on demand. */
#include "sim/trace.h"

#include "base/err.h"
#include "nic/event.h"
#include "nic/request.h"
#include "wire/capture.h"

#include <inttypes.h>
#include <stdio.h>

void vb_trace_init(struct vb_trace *trace)
{
	*trace = (struct vb_trace){ .hash = 0xcbf29ce484222325u };
	trace->entries = calloc(VB_TRACE_ENTRIES, sizeof(*trace->entries));
	VB_CHECK(trace->entries);
}

void vb_trace_fini(struct vb_trace *trace)
{
	for (uint32_t i = 0; i < VB_TRACE_PACKETS; i++)
		free(trace->packets[i].bytes);
	free(trace->entries);
	*trace = (struct vb_trace){ 0 };
}

static void hash_word(struct vb_trace *trace, uint64_t word)
{
	trace->hash = (trace->hash ^ word) * 0x100000001b3u;
	trace->hash ^= trace->hash >> 29;
}

static void hash_bytes(struct vb_trace *trace, const uint8_t *bytes, uint64_t length)
{
	uint64_t word = 0;

	for (; length >= 8; bytes += 8, length -= 8) {
		memcpy(&word, bytes, 8);
		hash_word(trace, word);
	}
	word = 0;
	memcpy(&word, bytes, length);
	hash_word(trace, word ^ length << 56);
}

static struct vb_trace_entry *next_entry(struct vb_trace *trace, uint64_t now_ns,
					 enum vb_trace_kind kind)
{
	struct vb_trace_entry *entry = &trace->entries[trace->count % VB_TRACE_ENTRIES];

	*entry = (struct vb_trace_entry){ .time_ns = now_ns, .number = trace->count, .kind = kind };
	trace->count++;
	hash_word(trace, now_ns);
	return entry;
}

static void keep_packet(struct vb_trace *trace, uint64_t now_ns, const struct vb_flow *flow,
			uint16_t ip_id, const uint8_t *bytes, uint32_t length)
{
	struct vb_trace_packet *packet = &trace->packets[trace->packet_count % VB_TRACE_PACKETS];

	if (packet->capacity < length) {
		free(packet->bytes);
		packet->capacity = length < 512 ? 512 : 4352;
		if (packet->capacity < length)
			packet->capacity = length;
		packet->bytes = calloc(1, packet->capacity);
		VB_CHECK(packet->bytes);
	}
	memcpy(packet->bytes, bytes, length);
	packet->time_ns = now_ns;
	packet->flow = *flow;
	packet->ip_id = ip_id;
	packet->length = length;
	trace->packet_count++;
}

void vb_trace_on_packet(struct vb_trace *trace, uint64_t now_ns, uint32_t from, uint32_t to,
			enum vb_packet_fate fate, const struct vb_flow *flow, uint16_t ip_id,
			const uint8_t *bytes, uint32_t length)
{
	struct vb_trace_entry *entry = next_entry(trace, now_ns, VB_TRACE_PACKET);

	entry->fate = fate;
	entry->from = (uint8_t)from;
	entry->to = (uint8_t)to;
	entry->length = length;
	memcpy(entry->head, bytes, length < sizeof(entry->head) ? length : sizeof(entry->head));
	hash_word(trace, (uint64_t)fate << 32 | (uint64_t)from << 16 | to);
	hash_bytes(trace, flow->source.raw, sizeof(flow->source.raw));
	hash_bytes(trace, flow->destination.raw, sizeof(flow->destination.raw));
	hash_word(trace,
		  (uint64_t)flow->source_port << 48 | (uint64_t)ip_id << 32 | flow->flow_label);
	hash_bytes(trace, bytes, length);
	keep_packet(trace, now_ns, flow, ip_id, bytes, length);
}

void vb_trace_note(struct vb_trace *trace, uint64_t now_ns, enum vb_trace_kind kind, uint32_t node,
		   const uint64_t values[5])
{
	struct vb_trace_entry *entry = next_entry(trace, now_ns, kind);

	entry->from = (uint8_t)node;
	memcpy(entry->values, values, sizeof(entry->values));
	hash_word(trace, (uint64_t)kind << 32 | node);
	for (uint32_t i = 0; i < 5; i++)
		hash_word(trace, values[i]);
}

const struct vb_trace_entry *vb_trace_entry(const struct vb_trace *trace, uint64_t number)
{
	if (number >= trace->count || trace->count - number > VB_TRACE_ENTRIES)
		return NULL;
	return &trace->entries[number % VB_TRACE_ENTRIES];
}

const char *vb_fate_describe(enum vb_packet_fate fate)
{
	static const char *const names[VB_FATE_COUNT] = {
		[VB_FATE_DELIVERED] = "",
		[VB_FATE_LOST] = "LOST",
		[VB_FATE_DUPLICATED] = "DUPLICATED",
		[VB_FATE_REORDERED] = "REORDERED",
		[VB_FATE_DELAYED] = "DELAYED",
		[VB_FATE_CORRUPTED] = "CORRUPTED",
		[VB_FATE_TRUNCATED] = "TRUNCATED",
		[VB_FATE_PARTITIONED] = "LOST (partition)",
		[VB_FATE_LINK_DOWN] = "LOST (link down)",
		[VB_FATE_NOBODY] = "LOST (nobody there)",
	};

	return names[fate];
}

static void describe_packet(const struct vb_trace_entry *entry, char *text, uint32_t size)
{
	struct vb_packet packet;
	int used = snprintf(text, size, "%u -> %u   ", entry->from, entry->to);
	uint32_t kept = entry->length < sizeof(entry->head) ? entry->length : sizeof(entry->head);

	if (entry->to == VB_TRACE_NOBODY)
		used = snprintf(text, size, "%u -> ?   ", entry->from);
	if (vb_packet_parse(entry->head, kept, entry->length, &packet) != VB_PARSED) {
		snprintf(text + used, size - (uint32_t)used, "%" PRIu32 " bytes", entry->length);
		return;
	}
	used += snprintf(text + used, size - (uint32_t)used, "qp 0x%06x  ",
			 packet.bth.destination.v);
	vb_packet_describe(&packet, text + used, size - (uint32_t)used);
}

static const char *action_name(uint64_t action)
{
	static const char *const names[VB_ACTION_COUNT] = {
		[VB_ACTION_DIES] = "dies",
		[VB_ACTION_RESTARTS] = "restarts",
		[VB_ACTION_LOSES_SHM_LINKS] = "loses its shared memory",
		[VB_ACTION_MEETS_LOCAL_PEERS] = "meets its local peers",
		[VB_ACTION_PUTS_ON_SHM_LINK] = "puts into shared memory for",
		[VB_ACTION_NEW_CHANNELS] = "new channels",
		[VB_ACTION_CONNECTS_CHANNEL] = "connects channel",
		[VB_ACTION_MOVES_QP] = "moves QP to",
		[VB_ACTION_DESTROYS_QP] = "destroys QP",
		[VB_ACTION_DEREGISTERS] = "deregisters key",
		[VB_ACTION_MEMORY_VANISHES] = "memory vanishes, key",
	};

	return action < VB_ACTION_COUNT && names[action] ? names[action] : "does something";
}

static void describe_note(const struct vb_trace_entry *entry, char *text, uint32_t size)
{
	const uint64_t *v = entry->values;

	switch (entry->kind) {
	case VB_TRACE_POST_SEND:
		snprintf(text, size,
			 "%u post    qp 0x%06" PRIx64 "  %s wr=%" PRIu64 " len=%" PRIu64 "%s%s%s%s",
			 entry->from, v[0], vb_wr_opcode_describe((uint8_t)v[1]), v[2], v[3],
			 v[4] & VB_SEND_SIGNALED ? "" : " unsignaled",
			 v[4] & VB_SEND_FENCE ? " fence" : "",
			 v[4] & VB_SEND_SOLICITED ? " solicited" : "",
			 v[4] & VB_SEND_INLINE ? " inline" : "");
		break;
	case VB_TRACE_POST_RECV:
		snprintf(text, size,
			 "%u receive %s 0x%06" PRIx64 "  wr=%" PRIu64 " capacity=%" PRIu64,
			 entry->from, v[1] ? "srq" : "qp", v[0], v[2], v[3]);
		break;
	case VB_TRACE_COMPLETION:
		snprintf(text, size,
			 "%u done    qp 0x%06" PRIx64 "  %s wr=%" PRIu64 " len=%" PRIu64 " %s",
			 entry->from, v[0],
			 v[4] ? "" : vb_completion_opcode_describe((uint8_t)v[1]), v[2], v[3],
			 vb_status_describe((uint8_t)v[4]));
		break;
	case VB_TRACE_EVENT:
		snprintf(text, size, "%u event   qp 0x%06" PRIx64 "  %s", entry->from, v[0],
			 vb_event_describe((enum vb_event_kind)v[1]));
		break;
	case VB_TRACE_ACTION:
		snprintf(text, size, "%u action  %s %" PRIu64 " %" PRIu64, entry->from,
			 action_name(v[0]), v[1], v[2]);
		break;
	case VB_TRACE_PACKET:
		break;
	}
}

void vb_trace_describe(const struct vb_trace_entry *entry, char text[VB_TRACE_TEXT_MAX])
{
	int used = snprintf(text, VB_TRACE_TEXT_MAX, "%12" PRIu64 ".%03" PRIu64 " us  ",
			    entry->time_ns / 1000, entry->time_ns % 1000);
	uint32_t room = VB_TRACE_TEXT_MAX - (uint32_t)used;

	if (entry->kind != VB_TRACE_PACKET) {
		describe_note(entry, text + used, room);
		return;
	}
	describe_packet(entry, text + used, room);
	used = (int)strlen(text);
	if (entry->fate != VB_FATE_DELIVERED)
		snprintf(text + used, VB_TRACE_TEXT_MAX - (uint32_t)used, "  %s",
			 vb_fate_describe(entry->fate));
}

uint64_t vb_trace_store_capture(const struct vb_trace *trace, uint8_t *p)
{
	uint64_t first =
		trace->packet_count > VB_TRACE_PACKETS ? trace->packet_count - VB_TRACE_PACKETS : 0;
	uint64_t size = VB_CAPTURE_HEADER_SIZE;
	uint64_t at = p ? vb_capture_store_header(p) : 0;

	for (uint64_t i = first; i < trace->packet_count; i++) {
		const struct vb_trace_packet *packet = &trace->packets[i % VB_TRACE_PACKETS];
		uint32_t length = VB_IPV6_SIZE + VB_UDP_SIZE + packet->length;
		uint8_t *whole;

		size += length + VB_CAPTURE_BLOCK_OVERHEAD;
		if (!p)
			continue;
		whole = calloc(1, length);
		VB_CHECK(whole);
		length = vb_flow_store_ip_udp(whole, &packet->flow, packet->length, packet->ip_id);
		memcpy(whole + length, packet->bytes, packet->length);
		at += vb_capture_store_packet(p + at, packet->time_ns, whole,
					      length + packet->length);
		free(whole);
	}
	return p ? at : size;
}
