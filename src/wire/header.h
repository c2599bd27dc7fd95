/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport headers, each as one struct with one load and one store. Every load reads exactly
 * the header's size; there are no bit fields and no casts. The functions are inline because every
 * packet passes through them: a call that returns a struct through memory costs more than the
 * loads.
 */
#ifndef VB_WIRE_HEADER_H
#define VB_WIRE_HEADER_H

#include "base/bytes.h"
#include "wire/number.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_BTH_SIZE 12
#define VB_DETH_SIZE 8
#define VB_XRCETH_SIZE 4
#define VB_RETH_SIZE 16
#define VB_ATOMICETH_SIZE 28
#define VB_AETH_SIZE 4
#define VB_ATOMICACKETH_SIZE 8
#define VB_IMM_SIZE 4
#define VB_IETH_SIZE 4
#define VB_ICRC_SIZE 4

/* The base transport header. Its reserved bits are sent as 0 and ignored. */
struct vb_bth {
	uint8_t opcode;
	bool solicited;
	bool migrated; /* MigReq */
	uint8_t pad; /* 0 to 3 bytes after the payload */
	uint8_t version; /* 0 */
	uint16_t pkey;
	bool fecn; /* ignored, as is becn (CA17-29) */
	bool becn;
	vb_qpn destination;
	bool ack_request;
	vb_psn psn;
};

struct vb_deth {
	uint32_t qkey;
	vb_qpn source;
};

struct vb_reth {
	uint64_t address;
	uint32_t rkey;
	uint32_t length;
};

struct vb_atomiceth {
	uint64_t address;
	uint32_t rkey;
	uint64_t swap_or_add;
	uint64_t compare;
};

struct vb_aeth {
	uint8_t syndrome; /* see wire/syndrome.h */
	uint32_t msn; /* 24 bits */
};

/*
 * In whole words: each packet is loaded and stored, and the ICRC reads the first 8 bytes back
 * immediately.
 */
static inline struct vb_bth vb_bth_load(const uint8_t p[VB_BTH_SIZE])
{
	uint64_t first = load64(p);
	uint32_t last = load32(p + 8);

	return (struct vb_bth){
		.opcode = (uint8_t)(first >> 56),
		.solicited = first >> 55 & 1,
		.migrated = first >> 54 & 1,
		.pad = first >> 52 & 3,
		.version = first >> 48 & 0xf,
		.pkey = (uint16_t)(first >> 32),
		.fecn = first >> 31 & 1,
		.becn = first >> 30 & 1,
		.destination = { (uint32_t)first & VB_QPN_MASK },
		.ack_request = last >> 31,
		.psn = { last & VB_PSN_MASK },
	};
}

static inline void vb_bth_store(uint8_t p[VB_BTH_SIZE], const struct vb_bth *bth)
{
	uint64_t first = (uint64_t)bth->opcode << 56 | (uint64_t)bth->solicited << 55 |
			 (uint64_t)bth->migrated << 54 | (uint64_t)(bth->pad & 3) << 52 |
			 (uint64_t)(bth->version & 0xf) << 48 | (uint64_t)bth->pkey << 32 |
			 (uint64_t)bth->fecn << 31 | (uint64_t)bth->becn << 30 |
			 (bth->destination.v & VB_QPN_MASK);

	store64(p, first);
	store32(p + 8, (uint32_t)bth->ack_request << 31 | (bth->psn.v & VB_PSN_MASK));
}

static inline struct vb_deth vb_deth_load(const uint8_t p[VB_DETH_SIZE])
{
	return (struct vb_deth){ .qkey = load32(p), .source = { load24(p + 5) } };
}

static inline void vb_deth_store(uint8_t p[VB_DETH_SIZE], const struct vb_deth *deth)
{
	store32(p, deth->qkey);
	store32(p + 4, deth->source.v & VB_QPN_MASK);
}

static inline struct vb_reth vb_reth_load(const uint8_t p[VB_RETH_SIZE])
{
	return (struct vb_reth){
		.address = load64(p),
		.rkey = load32(p + 8),
		.length = load32(p + 12),
	};
}

static inline void vb_reth_store(uint8_t p[VB_RETH_SIZE], const struct vb_reth *reth)
{
	store64(p, reth->address);
	store64(p + 8, (uint64_t)reth->rkey << 32 | reth->length);
}

static inline struct vb_atomiceth vb_atomiceth_load(const uint8_t p[VB_ATOMICETH_SIZE])
{
	return (struct vb_atomiceth){
		.address = load64(p),
		.rkey = load32(p + 8),
		.swap_or_add = load64(p + 12),
		.compare = load64(p + 20),
	};
}

static inline void vb_atomiceth_store(uint8_t p[VB_ATOMICETH_SIZE],
				      const struct vb_atomiceth *atomic)
{
	store64(p, atomic->address);
	store32(p + 8, atomic->rkey);
	store64(p + 12, atomic->swap_or_add);
	store64(p + 20, atomic->compare);
}

static inline struct vb_aeth vb_aeth_load(const uint8_t p[VB_AETH_SIZE])
{
	return (struct vb_aeth){ .syndrome = p[0], .msn = load24(p + 1) };
}

static inline void vb_aeth_store(uint8_t p[VB_AETH_SIZE], const struct vb_aeth *aeth)
{
	store32(p, (uint32_t)aeth->syndrome << 24 | (aeth->msn & 0xffffff));
}

#endif
