/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets in the words of vb_packet_describe(), for tests: made from a line, and compared with one.
 * A line that makes a packet names what is special about it; the rest is as usual.
 */
#ifndef VB_TESTS_PACKET_WORDS_H
#define VB_TESTS_PACKET_WORDS_H

#include "wire/flow.h"
#include "wire/number.h"
#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>

#define PACKET_BYTES_MAX (4096 + 128)
/* The payload byte of such packets, unless byte= says otherwise. */
#define USUAL_BYTE 0xab

/* The values of a packet where its line says nothing. */
struct packet_usual {
	struct vb_gid source;
	struct vb_gid destination;
	uint16_t source_port;
	vb_qpn qpn; /* of the destination */
	uint64_t address;
	uint32_t rkey;
	uint32_t qkey;
	vb_qpn source_qpn;
	uint32_t srqn;
};

struct made_packet {
	struct vb_flow flow;
	uint16_t ip_id; /* as the link reports it */
	uint32_t length;
	uint8_t bytes[PACKET_BYTES_MAX];
};

/*
 * Makes the packet that a line names: an opcode and, in any order, words of vb_packet_describe();
 * NAK or RNR_NAK must come last. Besides: dest=, pkey=, "stranger" (another sender), "bad-icrc",
 * "unmigrated", "pad=", "syndrome=" (an AETH's raw byte), "ip-id=" (as the link reports it),
 * "byte=" (of the payload), "version=" (of the transport), "headers=" (only this many bytes of
 * headers, with the right ICRC behind). va=, rkey= and dest= with a plus sign are the usual value
 * plus an offset. dma= is len unless given.
 */
void packet_from_words(const char *line, const struct packet_usual *usual,
		       struct made_packet *made);

/*
 * Words with va=, rkey=, dma=, credits=, qkey=, srcqp=, srqn=, pkey= and migreq= count only where
 * the expected line has them.
 */
bool words_match(const char *actual, const char *expected);

#endif
