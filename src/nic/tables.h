/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows that define what keys and QPs permit. They lie in memory that the caller supplies, hold
 * no pointers of this process except application addresses, and are written by the engine's owner
 * alone. Copies of them are published to peers on the same host (vb_nic_publish()). A reader notes
 * the generation (even: stable), reads the row, and looks at the generation again.
 */
#ifndef VB_NIC_TABLES_H
#define VB_NIC_TABLES_H

#include "base/dma.h"
#include "wire/flow.h"

#include <stdint.h>

enum vb_key_kind {
	VB_KEY_FREE = 0,
	VB_KEY_REGION,
	VB_KEY_NULL_REGION, /* reads as 0, discards writes */
	VB_KEY_WINDOW_1,
	VB_KEY_WINDOW_2,
};

/* Which memory a key opens, and with which rights. 64 bytes. */
struct vb_key_row {
	uint32_t generation; /* odd while the row is being changed */
	uint32_t key; /* the whole lkey and rkey; 0 is no key */
	uint32_t kind; /* enum vb_key_kind */
	uint32_t access; /* enum vb_access; 0 for a window that is not bound */
	uint32_t pd;
	uint32_t qpn; /* type 2 window: the QP it is bound to; else 0 */
	uint64_t iova; /* first address in the key's own address space */
	uint64_t length;
	vb_dma_addr address; /* application memory that iova stands for */
	uint32_t last_key; /* the previous key of this row, not to be reused immediately */
	uint32_t bound_key; /* window: the key of its region; else 0 */
	/* Region: the caller's number of a mapping that peers can also have; or 0. */
	uint32_t segment;
	uint32_t reserved;
};

/* Whether a QP takes requests, and from which peer. 64 bytes. */
struct vb_qp_row {
	uint32_t generation; /* odd while the row is being changed */
	uint32_t qpn; /* 0: free row */
	/* Its PD. XRC: its XRC domain, because the PD is that of the SRQ that a request names. */
	uint32_t domain;
	uint32_t access; /* enum vb_access: remote operations that the QP allows */
	uint32_t peer_qpn;
	uint32_t accepts; /* 1 from RTR on until RESET or ERR */
	struct vb_gid peer;
	struct vb_gid local;
	uint16_t is_direct; /* 1: its peer may execute requests itself (nic/peer_memory.h) */
	uint16_t is_on_wire; /* 1: it is connected, and its packets take the wire */
	uint16_t service; /* enum vb_service of the packets that it takes */
	uint16_t reads_in; /* READs and atomics that it takes at the same time */
};

/* Which memory XRC requests that name an SRQ may access. 16 bytes. */
struct vb_srq_row {
	uint32_t generation; /* odd while the row is being changed */
	uint32_t number; /* 0: free row, or one that is not for XRC */
	uint32_t domain; /* XRC */
	uint32_t pd;
};

#define VB_SRQ_ROWS 65536u /* indexed by the low bits of the number */

_Static_assert(sizeof(struct vb_key_row) == 64, "peers rely on the layout");
_Static_assert(sizeof(struct vb_qp_row) == 64, "peers rely on the layout");
_Static_assert(sizeof(struct vb_srq_row) == 16, "peers rely on the layout");

#endif
