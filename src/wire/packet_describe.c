/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as one line of text, for traces and for the conversation tests, which compare these
 * lines. The text may be truncated, but the returned length is always that of the whole line.
 */
#include "wire/packet.h"

#include "wire/syndrome.h"

#include <inttypes.h>
#include <stdio.h>

struct line {
	char *text;
	uint32_t size;
	int length; /* of the whole line so far, even if truncated */
};

/* Where the next word goes; *room is 0 when the line is already full. */
static char *line_end(const struct line *line, uint32_t *room)
{
	*room = (uint32_t)line->length < line->size ? line->size - (uint32_t)line->length : 0;
	return *room ? line->text + line->length : NULL;
}

static void add_word(struct line *line, const char *word)
{
	uint32_t room;
	char *end = line_end(line, &room);

	line->length += snprintf(end, room, "%s%s", line->length ? " " : "", word);
}

static void add_decimal(struct line *line, const char *name, uint32_t value)
{
	uint32_t room;
	char *end = line_end(line, &room);

	line->length += snprintf(end, room, " %s=%" PRIu32, name, value);
}

static void add_hex(struct line *line, const char *name, uint64_t value)
{
	uint32_t room;
	char *end = line_end(line, &room);

	line->length += snprintf(end, room, " %s=0x%" PRIx64, name, value);
}

static void add_atomic(struct line *line, const struct vb_packet *packet)
{
	add_hex(line, "va", packet->atomic.address);
	add_hex(line, "rkey", packet->atomic.rkey);
	if (vb_opcode_op(packet->bth.opcode) == VB_OP_FETCH_ADD) {
		add_hex(line, "add", packet->atomic.swap_or_add);
		return;
	}
	add_hex(line, "swap", packet->atomic.swap_or_add);
	add_hex(line, "compare", packet->atomic.compare);
}

static void add_aeth(struct line *line, const struct vb_aeth *aeth)
{
	bool is_ack = vb_syndrome_kind(aeth->syndrome) == VB_SYNDROME_ACK;
	char text[40];

	add_decimal(line, "msn", aeth->msn);
	vb_syndrome_describe(aeth->syndrome, text, sizeof(text));
	/* The opcode already says "ACKNOWLEDGE"; a read response is not called an ACK. */
	add_word(line, is_ack ? text + 4 : text);
}

int vb_packet_describe(const struct vb_packet *packet, char *text, uint32_t size)
{
	uint32_t traits = vb_opcode_traits(packet->bth.opcode);
	struct line line = { .text = text, .size = size };

	add_word(&line, vb_opcode_describe(packet->bth.opcode));
	add_decimal(&line, "psn", packet->bth.psn.v);
	if (traits & VB_HAS_PAYLOAD)
		add_decimal(&line, "len", packet->payload_length);
	if (traits & VB_HAS_RETH) {
		add_hex(&line, "va", packet->reth.address);
		add_hex(&line, "rkey", packet->reth.rkey);
		add_decimal(&line, "dma", packet->reth.length);
	}
	if (traits & VB_HAS_ATOMICETH)
		add_atomic(&line, packet);
	if (traits & VB_HAS_DETH) {
		add_hex(&line, "qkey", packet->deth.qkey);
		add_decimal(&line, "srcqp", packet->deth.source.v);
	}
	if (traits & VB_HAS_XRCETH)
		add_decimal(&line, "srqn", packet->srqn);
	if (traits & VB_HAS_IMM)
		add_hex(&line, "imm", packet->imm);
	if (traits & VB_HAS_IETH)
		add_hex(&line, "inv", packet->invalidate_key);
	if (traits & VB_HAS_AETH)
		add_aeth(&line, &packet->aeth);
	if (traits & VB_HAS_ATOMICACKETH)
		add_hex(&line, "orig", packet->atomic_result);
	if (packet->bth.ack_request)
		add_word(&line, "ack");
	if (packet->bth.solicited)
		add_word(&line, "solicited");
	return line.length;
}
