/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pcapng capture format, as bytes: blocks that a caller with a file writes out. The link type
 * is raw IP, so a block holds the output of vb_flow_store_ip_udp() followed by the packet's bytes.
 */
#ifndef VB_WIRE_CAPTURE_H
#define VB_WIRE_CAPTURE_H

#include <stdint.h>

/* Room for the section and interface blocks; see the return value. */
#define VB_CAPTURE_HEADER_SIZE 64
#define VB_CAPTURE_BLOCK_OVERHEAD 36 /* a packet block is at most this much longer than its data */

/* Stores the section header and one interface with nanosecond time stamps; returns the length. */
uint32_t vb_capture_store_header(uint8_t p[VB_CAPTURE_HEADER_SIZE]);

/* Stores one packet at that time; returns the block's length (a multiple of 4). */
uint32_t vb_capture_store_packet(uint8_t *p, uint64_t time_ns, const uint8_t *data,
				 uint32_t length);

#endif
