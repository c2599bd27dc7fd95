/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DDP and RDMAP, the headers of iWARP (RFC 5041, RFC 5040). A ULPDU of MPA is one segment of a
 * message. Tagged segments carry data for a key (an STag) and an address (a tagged offset);
 * untagged segments carry data for a queue. One struct holds any segment; a table says what each
 * opcode carries. The data behind the headers is not looked at.
 */
#ifndef VB_WIRE_RDMAP_H
#define VB_WIRE_RDMAP_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_DDP_TAGGED_SIZE 14
#define VB_DDP_UNTAGGED_SIZE 18
#define VB_DDP_HEADER_MAX VB_DDP_UNTAGGED_SIZE
#define VB_RDMAP_READ_SIZE 28
#define VB_RDMAP_TERMINATE_SIZE 4
#define VB_RDMAP_HEADERS_MAX                                                      \
	(VB_DDP_UNTAGGED_SIZE + VB_RDMAP_TERMINATE_SIZE + 2 + VB_DDP_HEADER_MAX + \
	 VB_RDMAP_READ_SIZE)

/* RFC 5040, 4.1. Those above are of RFC 7306, which nothing here speaks. */
enum vb_rdmap_opcode {
	VB_RDMAP_WRITE,
	VB_RDMAP_READ_REQUEST,
	VB_RDMAP_READ_RESPONSE,
	VB_RDMAP_SEND,
	VB_RDMAP_SEND_INV,
	VB_RDMAP_SEND_SE,
	VB_RDMAP_SEND_SE_INV,
	VB_RDMAP_TERMINATE,
};
#define VB_RDMAP_OPCODE_COUNT 8

/* The queues of untagged segments. Each counts its messages, from 1 on. */
enum vb_ddp_queue {
	VB_DDP_QUEUE_SEND,
	VB_DDP_QUEUE_READ,
	VB_DDP_QUEUE_TERMINATE,
};
#define VB_DDP_QUEUE_COUNT 3

/* The header of every segment. */
struct vb_ddp {
	bool is_tagged;
	bool is_last; /* of its message */
	uint8_t ddp_version; /* 1 */
	uint8_t rdmap_version; /* 1 */
	uint8_t opcode; /* 4 bits */
	/* Tagged: where the data goes. SEND with invalidate: the key to invalidate; else 0. */
	uint32_t stag;
	uint64_t offset; /* tagged: the address; untagged: within the message, 32 bits */
	uint32_t queue; /* untagged */
	uint32_t msn; /* untagged */
};

/* What a READ request asks for: the data goes from source to sink. */
struct vb_rdmap_read {
	uint32_t sink_stag;
	uint64_t sink_offset;
	uint32_t length;
	uint32_t source_stag;
	uint64_t source_offset;
};

/* The words of a Terminate; RFC 6580 is their registry. */
struct vb_rdmap_error {
	uint8_t layer; /* 4 bits: 0 RDMAP, 1 DDP, 2 MPA */
	uint8_t type; /* 4 bits */
	uint8_t code;
};

enum vb_rdmap_layer { VB_LAYER_RDMAP, VB_LAYER_DDP, VB_LAYER_MPA };

struct vb_rdmap_terminate {
	struct vb_rdmap_error error;
	bool has_length; /* M */
	bool has_ddp; /* D */
	bool has_read; /* R */
	/* The kernel's siw has layer, type and the three bits in another order; parsed only. */
	bool is_swapped;
	uint16_t segment_length; /* of the segment that was refused */
	/* Its header, as it came; 14 or 18 bytes, which its first bit decides. */
	uint8_t ddp[VB_DDP_HEADER_MAX];
	struct vb_rdmap_read read;
};

struct vb_rdmap {
	struct vb_ddp ddp;
	uint32_t header_length; /* DDP, and what follows it */
	uint32_t payload_length;
	union {
		struct vb_rdmap_read read;
		struct vb_rdmap_terminate terminate;
	};
};

/* What an opcode carries. */
enum vb_rdmap_trait {
	VB_RDMAP_IS_TAGGED = 1 << 0,
	VB_RDMAP_HAS_PAYLOAD = 1 << 1,
	VB_RDMAP_IS_SEND = 1 << 2,
	VB_RDMAP_IS_SOLICITED = 1 << 3,
	VB_RDMAP_HAS_INVALIDATE = 1 << 4,
};

/* Traits of an opcode that exists. */
uint32_t vb_rdmap_traits(enum vb_rdmap_opcode opcode);
/* The queue of an untagged opcode. */
enum vb_ddp_queue vb_rdmap_queue(enum vb_rdmap_opcode opcode);

enum vb_rdmap_parsing {
	VB_RDMAP_PARSED,
	VB_RDMAP_TOO_SHORT, /* no room for the header of DDP */
	VB_RDMAP_BAD_DDP_VERSION,
	VB_RDMAP_BAD_VERSION,
	VB_RDMAP_BAD_OPCODE, /* none that exists, or not for this model or queue */
	VB_RDMAP_BAD_QUEUE, /* none that exists */
	VB_RDMAP_TOO_LONG, /* a READ request with more than its header */
	VB_RDMAP_PARTIAL, /* only a part of a READ request or a Terminate; these are never cut */
};

/*
 * Reads the headers of a ULPDU of that length, all of which is there. *segment is written only when
 * it returns VB_RDMAP_PARSED. Reserved bits and fields are ignored. A Terminate has as many of its
 * headers as there is room for: nothing can be said about a wrong one.
 */
enum vb_rdmap_parsing vb_rdmap_parse(const uint8_t *p, uint32_t length, struct vb_rdmap *segment);

/*
 * Stores all headers (ddp.opcode decides which) and returns their length. Model, queue and versions
 * are those of the opcode, whatever the struct has.
 */
uint32_t vb_rdmap_store_headers(uint8_t p[VB_RDMAP_HEADERS_MAX], const struct vb_rdmap *segment);

/* The length of the DDP header whose first byte this is. */
static inline uint32_t vb_ddp_size(uint8_t first)
{
	return first & 0x80 ? VB_DDP_TAGGED_SIZE : VB_DDP_UNTAGGED_SIZE;
}

/* Loads vb_ddp_size(p[0]) bytes. */
void vb_ddp_load(const uint8_t *p, struct vb_ddp *ddp);

/* The words for a segment that was not parsed. `first` is its first byte. */
struct vb_rdmap_error vb_rdmap_parsing_error(enum vb_rdmap_parsing parsing, uint8_t first);

/*
 * One line: "SEND_SE_INV msn=3 mo=1460 inv=0x12 len=100 last", "WRITE stag=0x12 to=0x1000 len=8",
 * "READ_REQUEST msn=1 sink=0x12:0x1000 source=0x34:0x2000 dma=64 last",
 * "TERMINATE 1/2/02 DDP: no receive of ddp=SEND …". Returns the length of the whole line, even if it
 * was truncated.
 */
int vb_rdmap_describe(const struct vb_rdmap *segment, char *text, uint32_t size);
/* "?" for an opcode that does not exist. */
const char *vb_rdmap_opcode_describe(uint8_t opcode);
const char *vb_rdmap_error_describe(struct vb_rdmap_error error);
const char *vb_rdmap_parsing_describe(enum vb_rdmap_parsing parsing);

#endif
