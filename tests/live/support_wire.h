/* SPDX-License-Identifier: BSD-2-Clause */
/* Two links with a cable between them, and what is on the cable, packet by packet. */
#ifndef VB_TESTS_LIVE_SUPPORT_WIRE_H
#define VB_TESTS_LIVE_SUPPORT_WIRE_H

#include "support_link.h"

#include "wire/flow.h"

enum { FRAME_MAX = 70000, ETHERNET = 14, SEGMENT = 1000, DF = 0x40 };

struct captured {
	uint8_t bytes[FRAME_MAX];
	const uint8_t *ip; /* where the IP header begins … */
	const uint8_t *payload; /* … and the UDP payload */
	struct vb_flow flow;
	uint32_t payload_length;
	uint16_t ip_id;
};

struct wire {
	struct vb_udp *a;
	struct vb_udp *b;
	int capture;
	uint8_t bytes[10 * SEGMENT];
	struct iovec iovec;
	struct captured captured;
};

/* `config` is for both links. The caller is at end A afterwards. */
struct wire *open_wire_as(struct vb_udp_config config);
struct wire *open_wire(void);
void close_wire(struct wire *wire);

/* Returns the next RoCEv2 packet; skips neighbour discovery and the like. */
void capture(int fd, struct captured *captured);

/*
 * A message of the wire's first bytes, with a traffic class and a hop limit that are not the
 * defaults.
 */
struct vb_udp_message message_on(struct wire *wire, const char *source, const char *destination,
				 uint32_t length);

/* The next packet is one of those, with the wire's bytes from `first` on. */
void expect_packet(struct wire *wire, const char *source, const char *destination, uint32_t first,
		   uint32_t length);

#endif
