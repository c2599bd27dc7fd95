/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawing a ladder: rungs of fixed width; text about the right machine is at the right. */
#include "sim/ladder.h"

#include "nic/event.h"
#include "nic/request.h"
#include "wire/syndrome.h"

#include <inttypes.h>
#include <stdio.h>

#define WIDTH 70 /* between the two uprights */
#define PAUSE_NS 100000u /* a longer silence gets a line */

/* The names stand above the uprights. */
void vb_ladder_describe_head(const char *left, const char *right, char text[VB_LADDER_TEXT_MAX])
{
	int room = WIDTH - 2 - (int)strlen(right);

	snprintf(text, VB_LADDER_TEXT_MAX, "%12s  %-*s  %s\n%12s  |%*s|", "time/us",
		 room > 0 ? room : 0, left, right, "", WIDTH, "");
}

/* Describes opcode, PSN and the relevant rest. */
static void describe_packet(const struct vb_packet *packet, char *text, uint32_t size)
{
	int used = snprintf(text, size, "%s psn=%" PRIu32, vb_opcode_describe(packet->bth.opcode),
			    packet->bth.psn.v);

	if (packet->traits & VB_HAS_PAYLOAD)
		used += snprintf(text + used, size - (uint32_t)used, " len=%" PRIu32,
				 packet->payload_length);
	if (packet->traits & VB_IS_READ)
		used += snprintf(text + used, size - (uint32_t)used, " of %" PRIu32 " bytes",
				 packet->reth.length);
	if (packet->traits & VB_HAS_IMM)
		used += snprintf(text + used, size - (uint32_t)used, " imm=0x%" PRIx32,
				 packet->imm);
	if (packet->traits & VB_HAS_IETH)
		used += snprintf(text + used, size - (uint32_t)used, " inv=0x%" PRIx32,
				 packet->invalidate_key);
	if (packet->traits & VB_HAS_AETH && !(packet->traits & VB_IS_READ_RESPONSE)) {
		used += snprintf(text + used, size - (uint32_t)used, " ");
		vb_syndrome_describe(packet->aeth.syndrome, text + used, size - (uint32_t)used);
	}
}

static bool remember_packet(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
			    const struct vb_packet *packet)
{
	uint64_t name = (uint64_t)entry->from << 56 | (uint64_t)packet->bth.destination.v << 24 |
			packet->bth.psn.v;

	if (packet->traits & VB_IS_RESPONSE && !(packet->traits & VB_IS_READ_RESPONSE))
		return false; /* acknowledgements may repeat a PSN */
	if (packet->traits & VB_IS_RESPONSE)
		name |= (uint64_t)1 << 55;
	for (uint32_t i = 0; i < ladder->seen_count; i++) {
		if (ladder->seen[i] == name)
			return true;
	}
	if (ladder->seen_count < VB_LADDER_SEEN_MAX)
		ladder->seen[ladder->seen_count++] = name;
	return false;
}

static const char *remark_on(enum vb_packet_fate fate, bool is_repeated)
{
	switch (fate) {
	case VB_FATE_DUPLICATED:
		return is_repeated ? "sent again, arrives twice" : "arrives twice";
	case VB_FATE_LOST:
		return is_repeated ? "sent again, LOST" : "LOST";
	case VB_FATE_CORRUPTED:
		return "corrupted on the way: the ICRC is wrong";
	case VB_FATE_REORDERED:
	case VB_FATE_DELAYED:
		return "late";
	case VB_FATE_DELIVERED:
	case VB_FATE_TRUNCATED:
	case VB_FATE_PARTITIONED:
	case VB_FATE_LINK_DOWN:
	case VB_FATE_NOBODY:
	case VB_FATE_COUNT:
		break;
	}
	return is_repeated ? "sent again" : "";
}

/* Draws "|-- words --->|", or with an X in the middle if the packet is lost. */
static void draw_rung(char *text, uint32_t size, const char *words, bool goes_right, bool is_lost)
{
	char rung[WIDTH + 1];
	uint32_t length = (uint32_t)strlen(words);
	uint32_t reach = is_lost ? WIDTH * 4 / 5 : WIDTH;

	if (length > WIDTH - 16)
		length = WIDTH - 16;
	memset(rung, ' ', WIDTH);
	rung[WIDTH] = '\0';
	if (goes_right) {
		memset(rung, '-', reach);
		rung[reach - 1] = is_lost ? 'X' : '>';
		rung[3] = rung[4 + length] = ' ';
		memcpy(rung + 4, words, length);
	} else {
		memset(rung + WIDTH - reach, '-', reach);
		rung[WIDTH - reach] = is_lost ? 'X' : '<';
		rung[WIDTH - 4] = rung[WIDTH - 5 - length] = ' ';
		memcpy(rung + WIDTH - 4 - length, words, length);
	}
	snprintf(text, size, "|%s|", rung);
}

/* `given`: what is known about the packet, or NULL. */
static void draw_packet(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
			const char *given, char *text, uint32_t size)
{
	struct vb_packet packet;
	char words[160], rung[WIDTH + 8];
	uint32_t kept = entry->length < sizeof(entry->head) ? entry->length : sizeof(entry->head);
	bool is_lost = entry->fate == VB_FATE_LOST, is_repeated;
	const char *note;

	if (vb_packet_parse(entry->head, kept, entry->length, &packet) != VB_PARSED)
		return;
	describe_packet(&packet, words, sizeof(words));
	is_repeated = !given && remember_packet(ladder, entry, &packet);
	ladder->packets++;
	ladder->lost += is_lost;
	ladder->repeated += is_repeated;
	draw_rung(rung, sizeof(rung), words, entry->from < entry->to, is_lost);
	note = given ? given : remark_on(entry->fate, is_repeated);
	snprintf(text, size, "%s%s%s", rung, *note ? "  " : "", note);
}

/* Spelled out, for newcomers. */
static const char *request_words(uint8_t opcode)
{
	if (opcode == VB_WR_WRITE_IMM)
		return "WRITE with immediate";
	if (opcode == VB_WR_SEND_IMM)
		return "SEND with immediate";
	if (opcode == VB_WR_SEND_INV)
		return "SEND with invalidate";
	return vb_wr_opcode_describe(opcode);
}

static void draw_note(const struct vb_trace_entry *entry, char *text, uint32_t size)
{
	const uint64_t *v = entry->values;
	char words[120];

	switch (entry->kind) {
	case VB_TRACE_POST_SEND:
		snprintf(words, sizeof(words),
			 "* posts %s, %" PRIu64 " bytes (request %" PRIu64 ")",
			 request_words((uint8_t)v[1]), v[3], v[2]);
		break;
	case VB_TRACE_COMPLETION:
		snprintf(words, sizeof(words), "= completion: %s of request %" PRIu64 ", %s",
			 vb_completion_opcode_describe((uint8_t)v[1]), v[2],
			 vb_status_describe((uint8_t)v[4]));
		break;
	case VB_TRACE_EVENT:
		snprintf(words, sizeof(words), "! event: %s",
			 vb_event_describe((enum vb_event_kind)v[1]));
		break;
	case VB_TRACE_POST_RECV:
	case VB_TRACE_ACTION:
	case VB_TRACE_PACKET:
		return;
	}
	snprintf(text, size, entry->from ? "|%*s|" : "|%-*s|", WIDTH, words);
}

static void describe(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
		     const char *given, char text[VB_LADDER_TEXT_MAX])
{
	char line[VB_LADDER_TEXT_MAX - 160] = "";
	uint64_t pause_ns = entry->time_ns - ladder->previous_ns;
	int used = 0;

	text[0] = '\0';
	if (entry->kind == VB_TRACE_PACKET)
		draw_packet(ladder, entry, given, line, sizeof(line));
	else
		draw_note(entry, line, sizeof(line));
	if (!line[0])
		return;
	if (pause_ns > PAUSE_NS)
		used = snprintf(text, VB_LADDER_TEXT_MAX,
				"%12s  |%*s|  %" PRIu64 ".%" PRIu64 " ms later%s\n", "...", WIDTH,
				"", pause_ns / 1000000, pause_ns / 100000 % 10,
				ladder->is_real ? "" : ": a timer fired");
	ladder->previous_ns = entry->time_ns;
	snprintf(text + used, VB_LADDER_TEXT_MAX - (uint32_t)used, "%8" PRIu64 ".%03" PRIu64 "  %s",
		 entry->time_ns / 1000, entry->time_ns % 1000, line);
}

void vb_ladder_describe(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
			char text[VB_LADDER_TEXT_MAX])
{
	describe(ladder, entry, NULL, text);
}

void vb_ladder_describe_packet(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
			       const char *remark, char text[VB_LADDER_TEXT_MAX])
{
	describe(ladder, entry, remark, text);
}
