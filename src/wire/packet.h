/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport packet in one struct: the result of parsing a received packet, and what the engine
 * fills in to build one. The opcode's traits say which fields count.
 */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

#include "wire/header.h"
#include "wire/opcode.h"

#include <stdint.h>

#define VB_PACKET_HEADERS_MAX 64

struct vb_packet {
	struct vb_bth bth;
	uint32_t traits; /* vb_opcode_traits(bth.opcode) */
	uint32_t header_length; /* the BTH and what follows it */
	uint32_t payload_length; /* without pad and ICRC */
	/* As it stood on the wire: the program's big-endian value loaded with load32. */
	uint32_t imm;
	uint32_t invalidate_key;
	uint32_t srqn; /* XRC */
	union {
		struct vb_reth reth;
		struct vb_atomiceth atomic;
		struct vb_deth deth;
		struct {
			struct vb_aeth aeth;
			uint64_t atomic_result;
		};
	};
};

enum vb_parse_result {
	VB_PARSED = 0,
	VB_PARSE_TOO_SHORT, /* no room for the headers, pad and ICRC */
	VB_PARSE_VERSION, /* not transport version 0 */
	VB_PARSE_OPCODE, /* no such opcode */
	VB_PARSE_LENGTH, /* a payload where none is allowed, or not a multiple of 4 */
};

/*
 * Reads the headers at `head` (`head_length` bytes there) of a packet whose UDP payload has
 * `length` bytes in all, including the ICRC. Does not look at payload or ICRC. After a failure
 * *packet must not be used.
 */
enum vb_parse_result vb_packet_parse(const uint8_t *head, uint32_t head_length, uint32_t length,
				     struct vb_packet *packet);

/* Writes all headers (bth.opcode decides which; bth.pad must be set). Returns their length. */
uint32_t vb_packet_store_headers(uint8_t p[VB_PACKET_HEADERS_MAX], const struct vb_packet *packet);

/*
 * One line of text: "SEND_FIRST psn=0 len=1024", "SEND_LAST psn=1 len=476 ack",
 * "WRITE_ONLY_IMM psn=7 len=8 va=0x1000 rkey=0x12345678 dma=8 imm=0x2a ack solicited",
 * "READ_REQUEST psn=3 va=… rkey=… dma=…", "ACKNOWLEDGE psn=1 msn=1 credits=4",
 * "ACKNOWLEDGE psn=5 msn=2 NAK sequence", …
 * The fields are always in this order: opcode psn len va rkey dma
 * swap/add/compare qkey srcqp srqn imm inv msn credits/RNR/NAK orig (atomic result) ack solicited.
 * Returns the length as snprintf does.
 */
int vb_packet_describe(const struct vb_packet *packet, char *text, uint32_t size);

#endif
