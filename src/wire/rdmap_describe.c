/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments and errors of DDP and RDMAP as text. */
#include "wire/rdmap.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const opcodes[VB_RDMAP_OPCODE_COUNT] = {
	[VB_RDMAP_WRITE] = "WRITE",
	[VB_RDMAP_READ_REQUEST] = "READ_REQUEST",
	[VB_RDMAP_READ_RESPONSE] = "READ_RESPONSE",
	[VB_RDMAP_SEND] = "SEND",
	[VB_RDMAP_SEND_INV] = "SEND_INV",
	[VB_RDMAP_SEND_SE] = "SEND_SE",
	[VB_RDMAP_SEND_SE_INV] = "SEND_SE_INV",
	[VB_RDMAP_TERMINATE] = "TERMINATE",
};

const char *vb_rdmap_opcode_describe(uint8_t opcode)
{
	return opcode < VB_RDMAP_OPCODE_COUNT ? opcodes[opcode] : "?";
}

const char *vb_rdmap_parsing_describe(enum vb_rdmap_parsing parsing)
{
	switch (parsing) {
	case VB_RDMAP_PARSED:
		return "right";
	case VB_RDMAP_TOO_SHORT:
		return "too short for a header";
	case VB_RDMAP_BAD_DDP_VERSION:
		return "an unknown version of DDP";
	case VB_RDMAP_BAD_VERSION:
		return "an unknown version of RDMAP";
	case VB_RDMAP_BAD_OPCODE:
		return "an unexpected opcode";
	case VB_RDMAP_BAD_QUEUE:
		return "an unknown queue";
	case VB_RDMAP_TOO_LONG:
		return "a READ request that is too long";
	case VB_RDMAP_PARTIAL:
		return "a part of a READ request or a Terminate";
	}
	return "?";
}

/* --- errors ----------------------------------------------------------------------------------- */

struct row {
	struct vb_rdmap_error error;
	const char *text;
};

/* clang-format off */
static const struct row rows[] = {
	{ { 0, 1, 0x00 }, "RDMAP: invalid key" },
	{ { 0, 1, 0x01 }, "RDMAP: out of the bounds of the key" },
	{ { 0, 1, 0x02 }, "RDMAP: no right to access" },
	{ { 0, 1, 0x03 }, "RDMAP: key of another protection domain" },
	{ { 0, 1, 0x04 }, "RDMAP: address wraps" },
	{ { 0, 1, 0x09 }, "RDMAP: key cannot be invalidated" },
	{ { 0, 1, 0xff }, "RDMAP: protection error" },
	{ { 0, 2, 0x05 }, "RDMAP: invalid version" },
	{ { 0, 2, 0x06 }, "RDMAP: unexpected opcode" },
	{ { 0, 2, 0x07 }, "RDMAP: catastrophic error of the stream" },
	{ { 0, 2, 0x08 }, "RDMAP: catastrophic error" },
	{ { 0, 2, 0x09 }, "RDMAP: key cannot be invalidated" },
	{ { 0, 2, 0xff }, "RDMAP: operation error" },
	{ { 1, 1, 0x00 }, "DDP: invalid key" },
	{ { 1, 1, 0x01 }, "DDP: out of the bounds of the key" },
	{ { 1, 1, 0x02 }, "DDP: key of another protection domain" },
	{ { 1, 1, 0x03 }, "DDP: address wraps" },
	{ { 1, 1, 0x04 }, "DDP: invalid version of a tagged segment" },
	{ { 1, 2, 0x01 }, "DDP: invalid queue" },
	{ { 1, 2, 0x02 }, "DDP: no receive" },
	{ { 1, 2, 0x03 }, "DDP: invalid MSN" },
	{ { 1, 2, 0x04 }, "DDP: invalid message offset" },
	{ { 1, 2, 0x05 }, "DDP: receive too short" },
	{ { 1, 2, 0x06 }, "DDP: invalid version of an untagged segment" },
	{ { 2, 0, 0x01 }, "MPA: connection lost" },
	{ { 2, 0, 0x02 }, "MPA: wrong CRC" },
	{ { 2, 0, 0x03 }, "MPA: marker and length disagree" },
	{ { 2, 0, 0x04 }, "MPA: invalid request or reply" },
	{ { 2, 0, 0x05 }, "MPA: catastrophic error" },
	{ { 2, 0, 0x06 }, "MPA: IRD too small" },
	{ { 2, 0, 0x07 }, "MPA: no common RTR" },
};
/* clang-format on */

static bool is_same(struct vb_rdmap_error a, struct vb_rdmap_error b)
{
	return a.layer == b.layer && a.type == b.type && a.code == b.code;
}

const char *vb_rdmap_error_describe(struct vb_rdmap_error error)
{
	if (error.layer <= VB_LAYER_DDP && error.type == 0) /* whatever the code is */
		return error.layer == VB_LAYER_DDP ? "DDP: catastrophic error"
						   : "RDMAP: local catastrophic error";
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_same(rows[i].error, error))
			return rows[i].text;
	return "unknown error";
}

/* --- segments --------------------------------------------------------------------------------- */

static void describe_place(const struct vb_ddp *ddp, char *text, uint32_t size)
{
	int length;

	if (ddp->is_tagged) {
		snprintf(text, size, "stag=0x%" PRIx32 " to=0x%" PRIx64, ddp->stag, ddp->offset);
		return;
	}
	length = snprintf(text, size, "msn=%" PRIu32 " mo=%" PRIu64, ddp->msn, ddp->offset);
	if (ddp->opcode < VB_RDMAP_OPCODE_COUNT &&
	    vb_rdmap_traits((enum vb_rdmap_opcode)ddp->opcode) & VB_RDMAP_HAS_INVALIDATE)
		snprintf(text + length, size - (uint32_t)length, " inv=0x%" PRIx32, ddp->stag);
}

static void describe_read(const struct vb_rdmap_read *read, char *text, uint32_t size)
{
	snprintf(text, size,
		 " sink=0x%" PRIx32 ":0x%" PRIx64 " source=0x%" PRIx32 ":0x%" PRIx64
		 " dma=%" PRIu32,
		 read->sink_stag, read->sink_offset, read->source_stag, read->source_offset,
		 read->length);
}

static int describe_terminate(const struct vb_rdmap_terminate *terminate, char *text, uint32_t size)
{
	char refused[112] = "", read[112] = "";

	if (terminate->has_ddp) {
		struct vb_ddp ddp;
		char place[80];

		vb_ddp_load(terminate->ddp, &ddp);
		describe_place(&ddp, place, sizeof(place));
		snprintf(refused, sizeof(refused), ", of %s %s",
			 vb_rdmap_opcode_describe(ddp.opcode), place);
	}
	if (terminate->has_read)
		describe_read(&terminate->read, read, sizeof(read));
	return snprintf(text, size, "TERMINATE %x/%x/%02x %s%s%s", terminate->error.layer,
			terminate->error.type, terminate->error.code,
			vb_rdmap_error_describe(terminate->error), refused, read);
}

int vb_rdmap_describe(const struct vb_rdmap *segment, char *text, uint32_t size)
{
	const struct vb_ddp *ddp = &segment->ddp;
	char place[80], content[112];

	if (ddp->opcode == VB_RDMAP_TERMINATE)
		return describe_terminate(&segment->terminate, text, size);
	describe_place(ddp, place, sizeof(place));
	if (ddp->opcode == VB_RDMAP_READ_REQUEST)
		describe_read(&segment->read, content, sizeof(content));
	else
		snprintf(content, sizeof(content), " len=%" PRIu32, segment->payload_length);
	return snprintf(text, size, "%s %s%s%s", vb_rdmap_opcode_describe(ddp->opcode), place,
			content, ddp->is_last ? " last" : "");
}
