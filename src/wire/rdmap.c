/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of opcodes, and headers as bytes. */
#include "wire/rdmap.h"

#include "base/err.h"

#define VERSION 1 /* of both */
#define FLAG_TAGGED 0x80
#define FLAG_LAST 0x40

/* HdrCt, in the third byte of a Terminate (RFC 5040, 4.8) */
#define FLAG_LENGTH 0x80
#define FLAG_DDP 0x40
#define FLAG_READ 0x20
/* The same as siw has them: its compiler puts the first field into the low bits. */
#define SWAPPED_LENGTH 0x01
#define SWAPPED_DDP 0x02
#define SWAPPED_READ 0x04
#define SWAPPED_FLAGS (SWAPPED_LENGTH | SWAPPED_DDP | SWAPPED_READ)

struct row {
	uint32_t traits;
	enum vb_ddp_queue queue; /* untagged */
};

enum {
	TAGGED = VB_RDMAP_IS_TAGGED | VB_RDMAP_HAS_PAYLOAD,
	SEND = VB_RDMAP_IS_SEND | VB_RDMAP_HAS_PAYLOAD,
	INVALIDATE = VB_RDMAP_HAS_INVALIDATE,
	SOLICITED = VB_RDMAP_IS_SOLICITED,
};

/* clang-format off */
static const struct row rows[VB_RDMAP_OPCODE_COUNT] = {
	[VB_RDMAP_WRITE] =         { TAGGED,                        VB_DDP_QUEUE_SEND },
	[VB_RDMAP_READ_REQUEST] =  { 0,                             VB_DDP_QUEUE_READ },
	[VB_RDMAP_READ_RESPONSE] = { TAGGED,                        VB_DDP_QUEUE_SEND },
	[VB_RDMAP_SEND] =          { SEND,                          VB_DDP_QUEUE_SEND },
	[VB_RDMAP_SEND_INV] =      { SEND | INVALIDATE,             VB_DDP_QUEUE_SEND },
	[VB_RDMAP_SEND_SE] =       { SEND | SOLICITED,              VB_DDP_QUEUE_SEND },
	[VB_RDMAP_SEND_SE_INV] =   { SEND | SOLICITED | INVALIDATE, VB_DDP_QUEUE_SEND },
	[VB_RDMAP_TERMINATE] =     { 0,                             VB_DDP_QUEUE_TERMINATE },
};
/* clang-format on */

uint32_t vb_rdmap_traits(enum vb_rdmap_opcode opcode)
{
	VB_CHECK(opcode < VB_RDMAP_OPCODE_COUNT);
	return rows[opcode].traits;
}

enum vb_ddp_queue vb_rdmap_queue(enum vb_rdmap_opcode opcode)
{
	VB_CHECK(opcode < VB_RDMAP_OPCODE_COUNT);
	return rows[opcode].queue;
}

/* --- load ------------------------------------------------------------------------------------- */

void vb_ddp_load(const uint8_t *p, struct vb_ddp *ddp)
{
	*ddp = (struct vb_ddp){
		.is_tagged = p[0] & FLAG_TAGGED,
		.is_last = p[0] & FLAG_LAST,
		.ddp_version = p[0] & 3,
		.rdmap_version = p[1] >> 6,
		.opcode = p[1] & 0xf,
		.stag = load32(p + 2),
	};
	if (ddp->is_tagged) {
		ddp->offset = load64(p + 6);
		return;
	}
	ddp->queue = load32(p + 6);
	ddp->msn = load32(p + 10);
	ddp->offset = load32(p + 14);
}

static void load_read(const uint8_t *p, struct vb_rdmap_read *read)
{
	*read = (struct vb_rdmap_read){
		.sink_stag = load32(p),
		.sink_offset = load64(p + 4),
		.length = load32(p + 12),
		.source_stag = load32(p + 16),
		.source_offset = load64(p + 20),
	};
}

/* Reserved bits are ignored, so only what can be nothing else is taken for siw's order. */
static bool is_swapped(const uint8_t *p)
{
	return p[2] && !(p[2] & ~SWAPPED_FLAGS) && !p[3];
}

static void load_control(const uint8_t *p, struct vb_rdmap_terminate *terminate)
{
	uint8_t high = p[0] >> 4, low = p[0] & 0xf;

	*terminate = (struct vb_rdmap_terminate){
		.error = { .layer = high, .type = low, .code = p[1] },
		.has_length = p[2] & FLAG_LENGTH,
		.has_ddp = p[2] & FLAG_DDP,
		.has_read = p[2] & FLAG_READ,
	};
	if (!is_swapped(p))
		return;
	*terminate = (struct vb_rdmap_terminate){
		.error = { .layer = low, .type = high, .code = p[1] },
		.has_length = p[2] & SWAPPED_LENGTH,
		.has_ddp = p[2] & SWAPPED_DDP,
		.has_read = p[2] & SWAPPED_READ,
		.is_swapped = true,
	};
}

/* The length field is there with either of two bits, and valid with one (RFC 5040, 4.8). */
static uint32_t length_field_size(const struct vb_rdmap_terminate *terminate)
{
	return terminate->has_length || terminate->has_ddp ? 2 : 0;
}

/* Returns how many bytes were understood. What does not fit is as if it were not announced. */
static uint32_t load_terminate(const uint8_t *p, uint32_t length,
			       struct vb_rdmap_terminate *terminate)
{
	uint32_t used = VB_RDMAP_TERMINATE_SIZE, ddp_size;

	load_control(p, terminate);
	if (length - used < length_field_size(terminate))
		terminate->has_length = terminate->has_ddp = terminate->has_read = false;
	if (terminate->has_length)
		terminate->segment_length = load16(p + used);
	used += length_field_size(terminate);
	if (terminate->has_ddp) {
		ddp_size = used < length ? vb_ddp_size(p[used]) : VB_DDP_HEADER_MAX;
		if (length - used < ddp_size) {
			terminate->has_ddp = terminate->has_read = false;
			return VB_RDMAP_TERMINATE_SIZE + length_field_size(terminate);
		}
		memcpy(terminate->ddp, p + used, ddp_size);
		used += ddp_size;
	}
	if (terminate->has_read && length - used < VB_RDMAP_READ_SIZE)
		terminate->has_read = false;
	if (terminate->has_read) {
		load_read(p + used, &terminate->read);
		used += VB_RDMAP_READ_SIZE;
	}
	return used;
}

/* --- parse ------------------------------------------------------------------------------------ */

/* DDP checks its fields before RDMAP does (RFC 5040, 7.2). */
static enum vb_rdmap_parsing check_header(const struct vb_ddp *ddp)
{
	const struct row *row = &rows[ddp->opcode % VB_RDMAP_OPCODE_COUNT];

	if (!ddp->is_tagged && ddp->queue >= VB_DDP_QUEUE_COUNT)
		return VB_RDMAP_BAD_QUEUE;
	if (ddp->rdmap_version != VERSION)
		return VB_RDMAP_BAD_VERSION;
	if (ddp->opcode >= VB_RDMAP_OPCODE_COUNT)
		return VB_RDMAP_BAD_OPCODE;
	if (ddp->is_tagged != (bool)(row->traits & VB_RDMAP_IS_TAGGED))
		return VB_RDMAP_BAD_OPCODE;
	if (!ddp->is_tagged && ddp->queue != row->queue)
		return VB_RDMAP_BAD_OPCODE;
	return VB_RDMAP_PARSED;
}

/* A READ request fits the shortest segment that MPA may have, so it is never cut. */
static enum vb_rdmap_parsing parse_read(const uint8_t *p, uint32_t length, struct vb_rdmap *segment)
{
	if (length > VB_RDMAP_READ_SIZE)
		return VB_RDMAP_TOO_LONG;
	if (length < VB_RDMAP_READ_SIZE || !segment->ddp.is_last)
		return VB_RDMAP_PARTIAL;
	load_read(p, &segment->read);
	segment->header_length += VB_RDMAP_READ_SIZE;
	return VB_RDMAP_PARSED;
}

static enum vb_rdmap_parsing parse_terminate(const uint8_t *p, uint32_t length,
					     struct vb_rdmap *segment)
{
	if (length < VB_RDMAP_TERMINATE_SIZE)
		return VB_RDMAP_PARTIAL;
	segment->header_length += load_terminate(p, length, &segment->terminate);
	return VB_RDMAP_PARSED;
}

enum vb_rdmap_parsing vb_rdmap_parse(const uint8_t *p, uint32_t length, struct vb_rdmap *segment)
{
	struct vb_rdmap loaded = { .header_length = length ? vb_ddp_size(p[0]) : 0 };
	enum vb_rdmap_parsing parsing;

	if (length && (p[0] & 3) != VERSION)
		return VB_RDMAP_BAD_DDP_VERSION;
	if (!length || length < loaded.header_length)
		return VB_RDMAP_TOO_SHORT;
	vb_ddp_load(p, &loaded.ddp);
	parsing = check_header(&loaded.ddp);
	if (parsing != VB_RDMAP_PARSED)
		return parsing;
	p += loaded.header_length;
	length -= loaded.header_length;
	if (loaded.ddp.opcode == VB_RDMAP_READ_REQUEST)
		parsing = parse_read(p, length, &loaded);
	else if (loaded.ddp.opcode == VB_RDMAP_TERMINATE)
		parsing = parse_terminate(p, length, &loaded);
	else
		loaded.payload_length = length;
	if (parsing == VB_RDMAP_PARSED)
		*segment = loaded;
	return parsing;
}

/* --- store ------------------------------------------------------------------------------------ */

static uint32_t store_ddp(uint8_t *p, const struct vb_ddp *ddp)
{
	const struct row *row = &rows[ddp->opcode];
	bool is_tagged = row->traits & VB_RDMAP_IS_TAGGED;

	p[0] = (uint8_t)((is_tagged ? FLAG_TAGGED : 0) | (ddp->is_last ? FLAG_LAST : 0) | VERSION);
	p[1] = (uint8_t)(VERSION << 6 | ddp->opcode);
	if (is_tagged) {
		store32(p + 2, ddp->stag);
		store64(p + 6, ddp->offset);
		return VB_DDP_TAGGED_SIZE;
	}
	store32(p + 2, row->traits & VB_RDMAP_HAS_INVALIDATE ? ddp->stag : 0);
	store32(p + 6, row->queue);
	store32(p + 10, ddp->msn);
	store32(p + 14, (uint32_t)ddp->offset);
	return VB_DDP_UNTAGGED_SIZE;
}

static uint32_t store_read(uint8_t *p, const struct vb_rdmap_read *read)
{
	store32(p, read->sink_stag);
	store64(p + 4, read->sink_offset);
	store32(p + 12, read->length);
	store32(p + 16, read->source_stag);
	store64(p + 20, read->source_offset);
	return VB_RDMAP_READ_SIZE;
}

static uint32_t store_terminate(uint8_t *p, const struct vb_rdmap_terminate *terminate)
{
	uint32_t used = VB_RDMAP_TERMINATE_SIZE;

	p[0] = (uint8_t)(terminate->error.layer << 4 | (terminate->error.type & 0xf));
	p[1] = terminate->error.code;
	p[2] = (uint8_t)((terminate->has_length ? FLAG_LENGTH : 0) |
			 (terminate->has_ddp ? FLAG_DDP : 0) |
			 (terminate->has_read ? FLAG_READ : 0));
	p[3] = 0;
	if (length_field_size(terminate)) {
		store16(p + used, terminate->segment_length);
		used += 2;
	}
	if (terminate->has_ddp) {
		memcpy(p + used, terminate->ddp, vb_ddp_size(terminate->ddp[0]));
		used += vb_ddp_size(terminate->ddp[0]);
	}
	if (terminate->has_read)
		used += store_read(p + used, &terminate->read);
	return used;
}

uint32_t vb_rdmap_store_headers(uint8_t p[VB_RDMAP_HEADERS_MAX], const struct vb_rdmap *segment)
{
	uint32_t length;

	VB_CHECK(segment->ddp.opcode < VB_RDMAP_OPCODE_COUNT);
	length = store_ddp(p, &segment->ddp);
	if (segment->ddp.opcode == VB_RDMAP_READ_REQUEST)
		length += store_read(p + length, &segment->read);
	if (segment->ddp.opcode == VB_RDMAP_TERMINATE)
		length += store_terminate(p + length, &segment->terminate);
	return length;
}

/* --- errors ----------------------------------------------------------------------------------- */

struct vb_rdmap_error vb_rdmap_parsing_error(enum vb_rdmap_parsing parsing, uint8_t first)
{
	switch (parsing) {
	case VB_RDMAP_PARSED:
		break;
	case VB_RDMAP_TOO_SHORT:
		return (struct vb_rdmap_error){ VB_LAYER_DDP, 0, 0 };
	case VB_RDMAP_BAD_DDP_VERSION:
		return first & FLAG_TAGGED ? (struct vb_rdmap_error){ VB_LAYER_DDP, 1, 4 }
					   : (struct vb_rdmap_error){ VB_LAYER_DDP, 2, 6 };
	case VB_RDMAP_BAD_QUEUE:
		return (struct vb_rdmap_error){ VB_LAYER_DDP, 2, 1 };
	case VB_RDMAP_TOO_LONG: /* the queue of READs has buffers of that size */
		return (struct vb_rdmap_error){ VB_LAYER_DDP, 2, 5 };
	case VB_RDMAP_BAD_VERSION:
		return (struct vb_rdmap_error){ VB_LAYER_RDMAP, 2, 5 };
	case VB_RDMAP_BAD_OPCODE:
		return (struct vb_rdmap_error){ VB_LAYER_RDMAP, 2, 6 };
	case VB_RDMAP_PARTIAL:
		return (struct vb_rdmap_error){ VB_LAYER_RDMAP, 2, 0xff };
	}
	return (struct vb_rdmap_error){ VB_LAYER_RDMAP, 0, 0 };
}
