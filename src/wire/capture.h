/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pcapng capture format, as bytes: blocks that a caller with a file writes out. The link type
 * is raw IP, so a block holds the output of vb_flow_store_ip_udp() followed by the packet's bytes.
 */
#ifndef VB_WIRE_CAPTURE_H
#define VB_WIRE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

/* Room for the section and interface blocks; see the return value. */
#define VB_CAPTURE_HEADER_SIZE 64
#define VB_CAPTURE_BLOCK_OVERHEAD 36 /* a packet block is at most this much longer than its data */

/* Stores the section header and one interface with nanosecond time stamps; returns the length. */
uint32_t vb_capture_store_header(uint8_t p[VB_CAPTURE_HEADER_SIZE]);

#define VB_CAPTURE_ETHERNET 1 /* link type */
#define VB_CAPTURE_TEXT_MAX 512 /* of each text below; longer ones are cut */

/*
 * The same in parts, for captures with several interfaces and comments. Each returns the length of
 * its block. Texts are terminated; "" stands for none.
 */
uint32_t vb_capture_store_section(uint8_t *p, const char *application);
uint32_t vb_capture_store_interface(uint8_t *p, uint32_t link_type, uint32_t packet_length_max,
				    const char *name, const char *description);

struct vb_capture_packet {
	uint32_t interface; /* counted from 0 */
	uint64_t time_ns;
	const uint8_t *data;
	uint32_t captured; /* bytes of data … */
	uint32_t length; /* … and of the packet */
	bool is_sent; /* otherwise received */
	uint64_t skipped; /* packets lost between this and the one before, of this interface */
	const char *comment;
};

uint32_t vb_capture_store_commented(uint8_t *p, const struct vb_capture_packet *packet);
/* At the end: how many packets of an interface were not captured. */
uint32_t vb_capture_store_statistics(uint8_t *p, uint32_t interface, uint64_t time_ns,
				     uint64_t skipped);
/* Room that is enough for each of these blocks, besides a packet's data. */
#define VB_CAPTURE_BLOCK_MAX (3 * VB_CAPTURE_TEXT_MAX + 128)

/* Stores one packet at that time; returns the block's length (a multiple of 4). */
uint32_t vb_capture_store_packet(uint8_t *p, uint64_t time_ns, const uint8_t *data,
				 uint32_t length);

#endif
