/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memo of the beginning of ICRCs. Up to the end of the BTH, packets of one flow, kind and length
 * differ only in the IPv4 ID and the BTH's last word (PSN and ACK request). A CRC is linear: the
 * CRC of the common part is kept, and the contribution of the differing part is added from small
 * tables.
 */
#ifndef VB_WIRE_ICRC_MEMO_H
#define VB_WIRE_ICRC_MEMO_H

#include "wire/flow.h"

#include <stdint.h>

#define VB_ICRC_MEMO_ENTRIES 16u

/* A packet's flow, kind and length, and its CRC up to the BTH's last word for ID 0. */
struct vb_icrc_memo_entry {
	struct vb_flow flow;
	uint64_t kind; /* the first 8 bytes of the BTH, masked; never 0 in a used entry */
	uint32_t udp_payload_length;
	uint32_t crc;
};

struct vb_icrc_memo {
	/*
	 * Indexed by a hash of kind and length: requests, the ACKs between them, and a few QPs each
	 * have their own.
	 */
	struct vb_icrc_memo_entry entries[VB_ICRC_MEMO_ENTRIES];
	/*
	 * Indexed by place and value of a byte: what an ID adds to such a CRC, and what 4 more
	 * bytes turn a CRC into.
	 */
	uint32_t ip_id_parts[2][256];
	uint32_t word_parts[4][256];
};

void vb_icrc_memo_init(struct vb_icrc_memo *memo);

/*
 * The same as vb_crc32(). A few bytes go through the tables: the CRC for many bytes has a long
 * start-up time.
 */
uint32_t vb_icrc_memo_add(const struct vb_icrc_memo *memo, uint32_t crc, const uint8_t *bytes,
			  uint32_t length);

/* The same as vb_icrc_begin(). */
uint32_t vb_icrc_memo_begin(struct vb_icrc_memo *memo, const struct vb_flow *flow,
			    uint32_t udp_payload_length, uint16_t ip_id, const uint8_t bth[12]);

#endif
