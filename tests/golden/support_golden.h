/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our packets as an independent program reads them: packets are collected in a capture file
 * together with their intended meaning, tshark dissects the file, and both must agree field by
 * field. tshark 4.0 shows an ICRC but does not check it; that is done here, bit by bit over the
 * captured bytes.
 */
#ifndef VB_TESTS_GOLDEN_SUPPORT_GOLDEN_H
#define VB_TESTS_GOLDEN_SUPPORT_GOLDEN_H

#include "wire/flow.h"
#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct golden;

/* False if tshark is not installed; then the test is skipped. */
bool golden_has_tshark(void);

/* An empty capture in a file of its own; the caller ends it with golden_destroy(). */
struct golden *golden_create(void);
void golden_destroy(struct golden *golden);

/*
 * Adds a packet: the UDP payload from the BTH to the ICRC, its flow, and its intended meaning
 * (including the packet's payload_length). All are copied.
 */
void golden_add(struct golden *golden, const struct vb_flow *flow, uint16_t ip_id,
		const struct vb_packet *meant, const uint8_t *bytes, uint32_t length);

/*
 * Lets tshark read the capture. Returns NULL if every packet is well-formed, has its intended
 * meaning and a right ICRC; otherwise the first disagreement in words, valid until the next call.
 */
const char *golden_disagreement(struct golden *golden);

#endif
