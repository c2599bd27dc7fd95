/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The beginning of an ICRC, remembered. Packets of one flow, kind and length differ up to the end of the BTH only in
 * the IPv4 ID and the BTH's last word (PSN and ACK request). A CRC is linear: the CRC of what is equal is kept, and
 * the part of what differs is added from small tables.
 */
#ifndef VB_WIRE_ICRC_MEMO_H
#define VB_WIRE_ICRC_MEMO_H

#include "wire/flow.h"

#include <stdint.h>

#define VB_ICRC_MEMO_ENTRIES 16u

/* What a packet was, and its CRC up to the BTH's last word for ID 0. */
struct vb_icrc_memo_entry {
	struct vb_flow flow;
	uint64_t kind; /* the first 8 bytes of the BTH, masked; never 0 once something is known */
	uint32_t udp_payload_length;
	uint32_t crc;
};

struct vb_icrc_memo {
	/* By a hash of kind and length: requests and the ACKs between them, and a few QPs, have each their own. */
	struct vb_icrc_memo_entry entries[VB_ICRC_MEMO_ENTRIES];
	/* By place and value of a byte: what an ID adds to such a CRC, and what 4 bytes more make of a CRC. */
	uint32_t ip_id_parts[2][256];
	uint32_t word_parts[4][256];
};

void vb_icrc_memo_init(struct vb_icrc_memo *memo);

/* The same as vb_crc32(). Few bytes go through the tables: the CRC that is made for many takes long to begin. */
uint32_t vb_icrc_memo_add(const struct vb_icrc_memo *memo, uint32_t crc, const uint8_t *bytes,
			  uint32_t length);

/* The same as vb_icrc_begin(). */
uint32_t vb_icrc_memo_begin(struct vb_icrc_memo *memo, const struct vb_flow *flow,
			    uint32_t udp_payload_length, uint16_t ip_id, const uint8_t bth[12]);

#endif
