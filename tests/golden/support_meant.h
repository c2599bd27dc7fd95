/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP packets with the fields that tshark must find in them, by tshark's names. Packets are
 * collected for one test; a packet may have fields that are not named here.
 */
#ifndef VB_TESTS_GOLDEN_SUPPORT_MEANT_H
#define VB_TESTS_GOLDEN_SUPPORT_MEANT_H

#include <stdint.h>

struct meant_packet;

/* Copies the packet. The result is valid until the test ends. */
struct meant_packet *meant_add(const uint8_t *ip, uint32_t length);

/* The value is a number in any notation, or a text; "" for a field that must not be there. */
void mean(struct meant_packet *packet, const char *field, const char *value);
void mean_number(struct meant_packet *packet, const char *field, uint64_t value);
void mean_bytes(struct meant_packet *packet, const char *field, const uint8_t *bytes,
		uint32_t length);

/* Lets tshark, with these options, read all packets, and fails the test where it disagrees. */
void meant_expect_tshark_agrees(const char *options);

/* The number of packets that pass this filter of tshark, with these options. */
uint32_t meant_count_packets(const char *options, const char *filter);
/* The number of lines with this text in all that tshark says about the packets. */
uint32_t meant_count_lines(const char *options, const char *text);

#endif
