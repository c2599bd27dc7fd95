/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the transport that must not be mixed up: of packets (PSN) and of queue pairs (QPN). */
#ifndef VB_WIRE_NUMBER_H
#define VB_WIRE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#define VB_PSN_MASK 0xffffffu
#define VB_QPN_MASK 0xffffffu

/* 24 bits, wraps. */
typedef struct {
	uint32_t v;
} vb_psn;

/*
 * 24 bits. 0 and 1 belong to the managers (subnet, connection); 0xffffff is every multicast member.
 */
typedef struct {
	uint32_t v;
} vb_qpn;

#define VB_QPN_MULTICAST ((vb_qpn){ 0xffffffu })

static inline vb_psn vb_psn_add(vb_psn a, uint32_t count)
{
	return (vb_psn){ (a.v + count) & VB_PSN_MASK };
}

/* Positive when a comes after b in the 24-bit sequence. */
static inline int32_t vb_psn_diff(vb_psn a, vb_psn b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

/* The number of steps forward from b to a, 0 to 2^24 - 1. */
static inline uint32_t vb_psn_distance(vb_psn a, vb_psn b)
{
	return (a.v - b.v) & VB_PSN_MASK;
}

static inline bool vb_psn_equal(vb_psn a, vb_psn b)
{
	return a.v == b.v;
}

#endif
