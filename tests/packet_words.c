/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes packets from lines of words, and compares such lines; some words count only if expected. */
#include "packet_words.h"

#include "harness.h"

#include "base/crc.h"
#include "nic/nic.h"
#include "wire/icrc.h"
#include "wire/syndrome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A packet on its way from words to bytes. */
struct draft {
	struct vb_packet packet;
	struct vb_gid source;
	uint16_t ip_id;
	uint8_t byte;
	uint32_t headers_kept;
	bool is_icrc_bad;
	bool has_dma;
	bool has_pad;
};

/* Returns the opcode at the start of the line, and where the rest begins. */
static uint8_t opcode_of(const char *line, const char **rest)
{
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		const char *name = vb_opcode_describe((uint8_t)opcode);
		size_t length = strlen(name);

		if (vb_opcode_traits((uint8_t)opcode) && strncmp(line, name, length) == 0 &&
		    (line[length] == ' ' || !line[length])) {
			*rest = line + length;
			return (uint8_t)opcode;
		}
	}
	FAIL("no opcode in \"%s\"", line);
}

static struct draft draft_of(uint8_t opcode, const struct packet_usual *usual)
{
	struct draft draft = {
		.source = usual->source,
		.byte = USUAL_BYTE,
		.headers_kept = VB_PACKET_HEADERS_MAX,
	};
	struct vb_packet *packet = &draft.packet;
	uint32_t traits = vb_opcode_traits(opcode);

	packet->bth.opcode = opcode;
	packet->bth.migrated = true;
	packet->bth.pkey = VB_PKEY_DEFAULT;
	packet->bth.destination = usual->qpn;
	packet->srqn = usual->srqn;
	if (traits & VB_HAS_RETH) {
		packet->reth.address = usual->address;
		packet->reth.rkey = usual->rkey;
	} else if (traits & VB_HAS_ATOMICETH) {
		packet->atomic.address = usual->address;
		packet->atomic.rkey = usual->rkey;
	} else if (traits & VB_HAS_DETH) {
		packet->deth.qkey = usual->qkey;
		packet->deth.source = usual->source_qpn;
	} else if (traits & VB_HAS_AETH) {
		packet->aeth.syndrome = VB_SYNDROME_ACK | VB_CREDIT_CODE_INVALID;
	}
	return draft;
}

static uint8_t rnr_syndrome(const char *milliseconds)
{
	uint64_t ns = (uint64_t)(strtod(milliseconds, NULL) * 1e6 + 0.5);

	for (uint32_t code = 0; code < 32; code++)
		if (vb_rnr_timer_ns((uint8_t)code) == ns)
			return (uint8_t)(VB_SYNDROME_RNR_NAK | code);
	FAIL("no RNR timer code means %s ms", milliseconds);
}

static uint8_t nak_syndrome(const char *words)
{
	for (uint32_t nak = VB_NAK_SEQUENCE; nak <= VB_NAK_INVALID_RD; nak++) {
		char text[40];

		vb_syndrome_describe((uint8_t)(VB_SYNDROME_NAK | nak), text, sizeof(text));
		if (strncmp(text, words, strlen(text)) == 0)
			return (uint8_t)(VB_SYNDROME_NAK | nak);
	}
	FAIL("no such NAK: \"%s\"", words);
}

/* A plus sign means an offset to the usual value. */
static uint64_t value_after(const char *text, uint64_t usual)
{
	uint64_t value = strtoull(text, NULL, 0);

	return *text == '+' ? usual + value : value;
}

/* Sets one word with a value; returns true if the word was known. */
static bool set_value(struct draft *draft, const char *word)
{
	struct vb_packet *packet = &draft->packet;
	const char *equals = strchr(word, '=');
	const char *text = equals ? equals + 1 : "";
	uint64_t value = strtoull(text, NULL, 0);
	bool is_atomic = vb_opcode_traits(packet->bth.opcode) & VB_HAS_ATOMICETH;

#define WORD(name) (strncmp(word, name "=", sizeof(name)) == 0)
	if (WORD("psn"))
		packet->bth.psn.v = (uint32_t)value;
	else if (WORD("len"))
		packet->payload_length = (uint32_t)value;
	else if (WORD("va") && is_atomic)
		packet->atomic.address = value_after(text, packet->atomic.address);
	else if (WORD("va"))
		packet->reth.address = value_after(text, packet->reth.address);
	else if (WORD("rkey") && is_atomic)
		packet->atomic.rkey = (uint32_t)value_after(text, packet->atomic.rkey);
	else if (WORD("rkey"))
		packet->reth.rkey = (uint32_t)value_after(text, packet->reth.rkey);
	else if (WORD("dma")) {
		packet->reth.length = (uint32_t)value;
		draft->has_dma = true;
	} else if (WORD("add") || WORD("swap"))
		packet->atomic.swap_or_add = value;
	else if (WORD("compare"))
		packet->atomic.compare = value;
	else if (WORD("qkey"))
		packet->deth.qkey = (uint32_t)value;
	else if (WORD("srcqp"))
		packet->deth.source.v = (uint32_t)value;
	else if (WORD("srqn"))
		packet->srqn = (uint32_t)value;
	else if (WORD("imm"))
		packet->imm = (uint32_t)value;
	else if (WORD("inv"))
		packet->invalidate_key = (uint32_t)value;
	else if (WORD("msn"))
		packet->aeth.msn = (uint32_t)value;
	else if (WORD("credits"))
		packet->aeth.syndrome = strcmp(text, "none") == 0 ? VB_CREDIT_CODE_INVALID
								  : vb_credit_code((uint32_t)value);
	else if (WORD("syndrome"))
		packet->aeth.syndrome = (uint8_t)value;
	else if (WORD("ip-id"))
		draft->ip_id = (uint16_t)value;
	else if (WORD("version"))
		packet->bth.version = (uint8_t)value;
	else if (WORD("byte"))
		draft->byte = (uint8_t)value;
	else if (WORD("headers"))
		draft->headers_kept = (uint32_t)value;
	else if (WORD("orig"))
		packet->atomic_result = value;
	else if (WORD("dest"))
		packet->bth.destination.v = (uint32_t)value_after(text, packet->bth.destination.v);
	else if (WORD("pkey"))
		packet->bth.pkey = (uint16_t)value;
	else if (WORD("pad")) {
		packet->bth.pad = (uint8_t)value;
		draft->has_pad = true;
	} else
		return false;
#undef WORD
	return true;
}

static void set_flag(struct draft *draft, const char *word)
{
	if (strcmp(word, "ack") == 0)
		draft->packet.bth.ack_request = true;
	else if (strcmp(word, "solicited") == 0)
		draft->packet.bth.solicited = true;
	else if (strcmp(word, "unmigrated") == 0)
		draft->packet.bth.migrated = false;
	else if (strcmp(word, "bad-icrc") == 0)
		draft->is_icrc_bad = true;
	else if (strcmp(word, "stranger") == 0)
		draft->source.raw[15] ^= 0x40;
	else
		FAIL("what is \"%s\" in a packet?", word);
}

static void set_words(struct draft *draft, const char *words)
{
	char copy[256], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (strcmp(word, "NAK") == 0) {
			draft->packet.aeth.syndrome = nak_syndrome(words + (word - copy));
			return;
		}
		if (strcmp(word, "RNR_NAK") == 0) {
			draft->packet.aeth.syndrome = rnr_syndrome(strtok_r(NULL, " ", &rest));
			return;
		}
		if (!set_value(draft, word))
			set_flag(draft, word);
	}
}

static uint32_t store_bytes(uint8_t *bytes, struct draft *draft)
{
	struct vb_packet *packet = &draft->packet;
	uint32_t length = packet->payload_length;
	uint32_t headers;

	if (!draft->has_pad)
		packet->bth.pad = (uint8_t)(-length & 3);
	if (vb_opcode_traits(packet->bth.opcode) & VB_HAS_RETH && !draft->has_dma)
		packet->reth.length = length;
	headers = min32(vb_packet_store_headers(bytes, packet), draft->headers_kept);
	memset(bytes + headers, draft->byte, length);
	memset(bytes + headers + length, 0, packet->bth.pad);
	return headers + length + packet->bth.pad;
}

/* A packet that is shorter than a BTH cannot have a right ICRC. */
static void store_icrc(struct made_packet *made, bool is_bad)
{
	uint8_t *end = made->bytes + made->length;
	uint32_t crc = 0;

	made->length += VB_ICRC_SIZE;
	if (end - made->bytes >= VB_BTH_SIZE) {
		crc = vb_icrc_begin(&made->flow, made->length, 0, made->bytes);
		crc = vb_crc32(crc, made->bytes + VB_BTH_SIZE,
			       (uint32_t)(end - made->bytes) - VB_BTH_SIZE);
	}
	vb_icrc_store(end, crc ^ is_bad);
}

void packet_from_words(const char *line, const struct packet_usual *usual, struct made_packet *made)
{
	const char *rest;
	uint8_t opcode = opcode_of(line, &rest);
	struct draft draft = draft_of(opcode, usual);

	set_words(&draft, rest);
	made->flow = (struct vb_flow){
		.source = draft.source,
		.destination = usual->destination,
		.source_port = usual->source_port,
		.hop_limit = 64,
	};
	made->length = store_bytes(made->bytes, &draft);
	store_icrc(made, draft.is_icrc_bad);
	made->ip_id = draft.ip_id;
}

/* Comparing */

static const char *const optional_words[] = { "va=",	"rkey=", "dma=",  "credits=", "qkey=",
					      "srcqp=", "srqn=", "pkey=", "migreq=" };

static bool is_optional(const char *word)
{
	for (size_t i = 0; i < sizeof(optional_words) / sizeof(optional_words[0]); i++)
		if (strncmp(word, optional_words[i], strlen(optional_words[i])) == 0)
			return true;
	return false;
}

static const char *next_word(const char *word)
{
	word += strcspn(word, " ");
	return word + strspn(word, " ");
}

static bool is_same_word(const char *a, const char *b)
{
	size_t length = strcspn(a, " ");

	return length == strcspn(b, " ") && strncmp(a, b, length) == 0;
}

bool words_match(const char *actual, const char *expected)
{
	for (; *actual; actual = next_word(actual)) {
		if (is_same_word(actual, expected))
			expected = next_word(expected);
		else if (!is_optional(actual))
			return false;
	}
	return !*expected;
}
