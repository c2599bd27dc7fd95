/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What we emit, as a stranger reads it: packets are collected in a capture file together with what
 * they are meant to say, tshark dissects the file, and both must agree field by field. tshark 4.0
 * shows an ICRC but does not check it; that is done here, bit by bit over the captured bytes.
 */
#ifndef VB_TESTS_GOLDEN_SUPPORT_GOLDEN_H
#define VB_TESTS_GOLDEN_SUPPORT_GOLDEN_H

#include "wire/flow.h"
#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct golden;

/* False if tshark is not installed: the test is skipped then. */
bool golden_has_tshark(void);

/* An empty capture in a file of its own; the caller ends it with golden_destroy(). */
struct golden *golden_create(void);
void golden_destroy(struct golden *golden);

/*
 * Adds a packet: the UDP payload from the BTH to the ICRC, the flow it goes by, and what it is
 * meant to say (the packet's payload_length included). All are copied.
 */
void golden_add(struct golden *golden, const struct vb_flow *flow, uint16_t ip_id,
		const struct vb_packet *meant, const uint8_t *bytes, uint32_t length);

/*
 * Has tshark read the capture. Returns NULL if every packet is well-formed, says what it is meant
 * to say and has a right ICRC; otherwise the first disagreement in words, until the next call.
 */
const char *golden_disagreement(struct golden *golden);

#endif
