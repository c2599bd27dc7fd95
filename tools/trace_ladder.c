/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conversations of a trace as ladders, one for each pair of QPs, drawn at the end. A packet
 * that both ends have recorded is drawn once, when it was sent. If its receiver was traced and
 * never got it, it was lost.
 */
#include "trace.h"

#include "sim/ladder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 100000u
#define SEARCHED_MAX 4096u

/* What is drawn, and what is known about it. */
struct rung {
	struct vb_trace_entry entry;
	bool has_arrived;
	bool is_executed;
};

struct trace_conversation {
	struct trace_conversation *next;
	uint32_t qpns[2]; /* of the left and the right end; 0: not known yet */
	const struct trace_source *ends[2]; /* those that are traced, or NULL */
	bool has_sent[2], has_received[2]; /* packets of that end are in the trace */
	struct rung *rungs;
	uint32_t count, capacity;
	uint64_t left_out;
};

/* --- which conversation --- */

static struct trace_conversation *add_conversation(struct trace_ladder *ladder, uint32_t qpn)
{
	struct trace_conversation **end = &ladder->conversations;

	while (*end)
		end = &(*end)->next;
	*end = calloc(1, sizeof(**end));
	if (*end)
		(*end)->qpns[0] = qpn;
	return *end;
}

/* `other` 0: whichever it is. */
static struct trace_conversation *find(const struct trace_ladder *ladder, uint32_t qpn,
				       uint32_t other)
{
	struct trace_conversation *at = ladder->conversations;

	while (at && !(at->qpns[0] == qpn && (!other || at->qpns[1] == other)) &&
	       !(at->qpns[1] == qpn && (!other || at->qpns[0] == other)))
		at = at->next;
	return at;
}

static struct rung *add_rung(struct trace_conversation *conversation)
{
	if (conversation->count == ENTRIES_MAX) {
		conversation->left_out++;
		return NULL;
	}
	if (conversation->count == conversation->capacity) {
		uint32_t capacity = conversation->capacity ? 2 * conversation->capacity : 64;
		struct rung *grown = realloc(conversation->rungs, capacity * sizeof(*grown));

		if (!grown)
			return NULL;
		conversation->rungs = grown;
		conversation->capacity = capacity;
	}
	conversation->rungs[conversation->count] = (struct rung){ 0 };
	return &conversation->rungs[conversation->count++];
}

/* What the other end did before it was known to be the other end. */
static void take_over(struct trace_ladder *ladder, struct trace_conversation *into, uint32_t qpn)
{
	struct trace_conversation *from = ladder->conversations;

	while (from && (from == into || from->qpns[0] != qpn || from->qpns[1]))
		from = from->next;
	if (!from)
		return;
	into->ends[1] = from->ends[0];
	for (uint32_t i = 0; i < from->count; i++) {
		struct rung *rung = add_rung(into);

		if (!rung)
			break;
		*rung = from->rungs[i];
		rung->entry.from = 1;
	}
	from->qpns[0] = 0;
	from->count = 0;
}

/* The conversation of a QP, with that one if it is known. */
static struct trace_conversation *conversation_of(struct trace_ladder *ladder, uint32_t qpn,
						  uint32_t other)
{
	struct trace_conversation *found = find(ladder, qpn, other);

	if (found || !other)
		return found ? found : add_conversation(ladder, qpn);
	found = find(ladder, qpn, 0);
	if (!found || found->qpns[1])
		found = add_conversation(ladder, qpn);
	if (found) {
		found->qpns[1] = other;
		take_over(ladder, found, other);
	}
	return found;
}

static uint8_t side_of(const struct trace_conversation *conversation, uint32_t qpn)
{
	return conversation->qpns[0] != qpn;
}

/* --- what happens --- */

static struct rung *note(struct trace_conversation *conversation, uint64_t time_ns, uint8_t from,
			 enum vb_trace_kind kind)
{
	struct rung *rung = add_rung(conversation);

	if (!rung)
		return NULL;
	rung->entry.time_ns = time_ns;
	rung->entry.kind = kind;
	rung->entry.from = from;
	rung->entry.to = !from;
	return rung;
}

static void note_packet(struct trace_conversation *conversation, const struct trace_packet *packet,
			uint8_t from)
{
	struct rung *rung = note(conversation, packet->time_ns, from, VB_TRACE_PACKET);
	uint32_t kept = packet->captured;

	if (!rung)
		return;
	rung->is_executed = packet->is_executed;
	/* An ACK may arrive with the next request instead. */
	rung->has_arrived = packet->is_by_link;
	rung->entry.length = packet->length;
	memcpy(rung->entry.head, packet->bytes,
	       kept < sizeof(rung->entry.head) ? kept : sizeof(rung->entry.head));
}

static void note_arrival(struct trace_conversation *conversation, const struct trace_packet *packet,
			 uint8_t from)
{
	uint32_t end = conversation->count;
	uint32_t first = end > SEARCHED_MAX ? end - SEARCHED_MAX : 0;

	for (uint32_t i = first; i < end; i++) {
		struct rung *rung = &conversation->rungs[i];

		if (rung->entry.kind != VB_TRACE_PACKET || rung->entry.from != from ||
		    rung->has_arrived || rung->entry.length != packet->length ||
		    memcmp(rung->entry.head, packet->bytes, VB_BTH_SIZE))
			continue;
		rung->has_arrived = true;
		return;
	}
}

/* An executed answer was never sent by anybody: it is drawn from the other end. */
void trace_ladder_add(struct trace_ladder *ladder, const struct trace_packet *packet)
{
	struct trace_conversation *conversation;
	uint32_t destination;
	uint8_t own;

	if (packet->captured < VB_BTH_SIZE)
		return;
	destination = vb_bth_load(packet->bytes).destination.v;
	if (packet->qpn <= 1 || destination <= 1)
		return; /* QP 1 has no conversation */
	conversation = conversation_of(ladder, packet->qpn, packet->is_sent ? destination : 0);
	if (!conversation)
		return;
	own = side_of(conversation, packet->qpn);
	conversation->ends[own] = packet->source;
	if (packet->is_executed) {
		note_packet(conversation, packet, packet->is_sent ? own : !own);
	} else if (packet->is_sent) {
		conversation->has_sent[own] = true;
		note_packet(conversation, packet, own);
	} else {
		conversation->has_received[own] = true;
		if (conversation->has_sent[!own])
			note_arrival(conversation, packet, !own);
		else
			note_packet(conversation, packet, !own);
	}
}

static void set_values(struct rung *rung, uint64_t opcode, uint64_t wr_id, uint64_t length,
		       uint64_t status)
{
	if (!rung)
		return;
	rung->entry.values[1] = opcode;
	rung->entry.values[2] = wr_id;
	rung->entry.values[3] = length;
	rung->entry.values[4] = status;
}

void trace_ladder_add_event(struct trace_ladder *ladder, const struct trace_source *source,
			    const struct vb_record *record)
{
	const struct vb_record_post *post = vb_record_view(record, sizeof(*post));
	const struct vb_record_poll *poll = vb_record_view(record, sizeof(*poll));
	struct trace_conversation *conversation;
	uint8_t own;

	if ((record->kind != VB_RECORD_POST || !post) && (record->kind != VB_RECORD_POLL || !poll))
		return;
	conversation = conversation_of(ladder, record->qpn, 0);
	if (!conversation)
		return;
	own = side_of(conversation, record->qpn);
	conversation->ends[own] = source;
	if (record->kind == VB_RECORD_POST)
		set_values(note(conversation, record->time_ns, own, VB_TRACE_POST_SEND),
			   post->opcode, record->wr_id, post->length, 0);
	else
		set_values(note(conversation, record->time_ns, own, VB_TRACE_COMPLETION),
			   poll->opcode, record->wr_id, poll->length, poll->status);
}

/* --- drawing --- */

static void describe_end(const struct trace_conversation *conversation, uint32_t side, char *text,
			 size_t size)
{
	const struct trace_source *source = conversation->ends[side];

	if (source)
		(void)snprintf(text, size, "QP 0x%06" PRIx32 ", %s (%d)", conversation->qpns[side],
			       source->program, (int)source->pid);
	else
		(void)snprintf(text, size, "QP 0x%06" PRIx32, conversation->qpns[side]);
}

/* Entries of different sources may come in any order; those of one time stay as they are. */
static int by_time(const void *a, const void *b)
{
	const struct rung *x = a, *y = b;

	if (x->entry.time_ns != y->entry.time_ns)
		return x->entry.time_ns < y->entry.time_ns ? -1 : 1;
	return x->entry.number < y->entry.number ? -1 : x->entry.number > y->entry.number;
}

static void sort(struct trace_conversation *conversation)
{
	for (uint32_t i = 0; i < conversation->count; i++)
		conversation->rungs[i].entry.number = i;
	if (conversation->count)
		qsort(conversation->rungs, conversation->count, sizeof(*conversation->rungs),
		      by_time);
}

static bool is_lost(const struct trace_conversation *conversation, const struct rung *rung)
{
	const struct trace_source *receiver = conversation->ends[rung->entry.to];

	return rung->entry.kind == VB_TRACE_PACKET && !rung->is_executed && !rung->has_arrived &&
	       receiver && conversation->has_received[rung->entry.to] &&
	       conversation->has_sent[rung->entry.from] &&
	       !atomic_load(&receiver->reader.memory->skipped);
}

static void draw(const struct trace_conversation *conversation, FILE *to)
{
	struct vb_ladder *ladder = calloc(1, sizeof(*ladder));
	char text[VB_LADDER_TEXT_MAX], left[120], right[120];
	uint64_t begin_ns = conversation->rungs[0].entry.time_ns;

	if (!ladder)
		return;
	ladder->is_real = true;
	describe_end(conversation, 0, left, sizeof(left));
	describe_end(conversation, 1, right, sizeof(right));
	vb_ladder_describe_head(left, right, text);
	fprintf(to, "%s\n", text);
	for (uint32_t i = 0; i < conversation->count; i++) {
		struct rung *rung = &conversation->rungs[i];

		if (is_lost(conversation, rung))
			rung->entry.fate = VB_FATE_LOST;
		rung->entry.time_ns -= begin_ns;
		if (rung->is_executed)
			vb_ladder_describe_packet(ladder, &rung->entry, "executed", text);
		else
			vb_ladder_describe(ladder, &rung->entry, text);
		if (*text)
			fprintf(to, "%s\n", text);
	}
	fprintf(to, "\n%" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64 " sent again",
		ladder->packets, ladder->lost, ladder->repeated);
	if (conversation->left_out)
		fprintf(to, "; %" PRIu64 " lines are left out", conversation->left_out);
	fprintf(to, "\n\n");
	free(ladder);
}

void trace_ladder_draw(struct trace_ladder *ladder, FILE *to)
{
	struct trace_conversation *next;

	for (struct trace_conversation *at = ladder->conversations; at; at = next) {
		next = at->next;
		if (at->count) {
			sort(at);
			draw(at, to);
		}
		free(at->rungs);
		free(at);
	}
	ladder->conversations = NULL;
}
