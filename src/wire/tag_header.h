/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of tag matching. They are the beginning of a SEND's payload, not headers of the
 * transport: any program can write whatever it likes there. Each is one struct with one load and
 * one store, in the layout of <infiniband/tm_types.h>.
 */
#ifndef VB_WIRE_TAG_HEADER_H
#define VB_WIRE_TAG_HEADER_H

#include "base/bytes.h"

#include <stdint.h>

#define VB_TMH_SIZE 16
#define VB_RVH_SIZE 16

enum vb_tmh_opcode {
	VB_TMH_NO_TAG = 0, /* not for matching; only this byte need be there */
	VB_TMH_RENDEZVOUS = 1, /* an RVH follows, and perhaps more */
	VB_TMH_FIN = 2, /* the data of a rendezvous has been read */
	VB_TMH_EAGER = 3, /* the data follows */
};

/* The tag-matching header. Its reserved bytes are sent as 0 and ignored. */
struct vb_tmh {
	uint8_t opcode; /* enum vb_tmh_opcode */
	uint32_t app_context; /* opaque to the adapter */
	uint64_t tag;
};

/* The rendezvous header: the data to read. */
struct vb_rvh {
	uint64_t address;
	uint32_t rkey;
	uint32_t length;
};

static inline struct vb_tmh vb_tmh_load(const uint8_t *p)
{
	return (struct vb_tmh){
		.opcode = p[0],
		.app_context = load32(p + 4),
		.tag = load64(p + 8),
	};
}

static inline void vb_tmh_store(uint8_t *p, const struct vb_tmh *tmh)
{
	store32(p, (uint32_t)tmh->opcode << 24);
	store32(p + 4, tmh->app_context);
	store64(p + 8, tmh->tag);
}

static inline struct vb_rvh vb_rvh_load(const uint8_t *p)
{
	return (struct vb_rvh){
		.address = load64(p),
		.rkey = load32(p + 8),
		.length = load32(p + 12),
	};
}

static inline void vb_rvh_store(uint8_t *p, const struct vb_rvh *rvh)
{
	store64(p, rvh->address);
	store32(p + 8, rvh->rkey);
	store32(p + 12, rvh->length);
}

#endif
