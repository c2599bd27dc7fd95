/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory-protection check, and how windows are bound and invalidated. No address is obtained in
 * any other way.
 */
#ifndef VB_NIC_MEMORY_PRIV_H
#define VB_NIC_MEMORY_PRIV_H

#include "base/list.h"
#include "nic/memory.h"
#include "nic/verdict_priv.h"

struct vb_wqe;

struct vb_mr {
	struct vb_pd *pd;
	struct vb_key_row *row;
	uint32_t window_count;
	struct vb_dm *dm;
};

struct vb_mw {
	struct vb_pd *pd;
	struct vb_key_row *row;
	struct vb_mr *mr; /* the region it is bound to, or NULL */
	struct vb_qp *qp; /* type 2: the QP that it is bound to, or NULL */
	uint32_t key_base; /* the part of its key that never changes */
};

struct vb_dm {
	struct vb_nic *nic;
	struct vb_list_node node;
	vb_dma_addr address;
	uint64_t length;
	uint32_t region_count;
};

/* A request for memory: on behalf of which PD and QP, and for what. */
struct vb_memory_request {
	uint32_t key;
	uint32_t pd;
	/* Remote access: type 2 windows are for one QP only. 0 for a local access (an lkey). */
	uint32_t qpn;
	uint32_t rights; /* enum vb_access bits that must all be granted; 0 for a local read */
	uint64_t address;
	uint64_t length;
};

struct vb_memory {
	vb_dma_addr address;
	/* A null region: reads as 0 (address is then the zero page) and discards writes. */
	bool is_null;
};

/* VB_PASS and *memory, or VB_ACCESS_REFUSED. */
enum vb_verdict vb_memory_resolve(const struct vb_nic *nic, const struct vb_memory_request *request,
				  struct vb_memory *memory);

/*
 * Finds a free row and gives it a fresh key; its other fields are 0. NULL when the table is full.
 */
struct vb_key_row *vb_key_row_claim(struct vb_nic *nic, uint32_t kind);
void vb_key_row_release(struct vb_nic *nic, struct vb_key_row *row);

/*
 * vb_key_row_of(): the row that a key selects, even if the row holds another key.
 * vb_key_row_owner(): the region or window that a row belongs to.
 */
struct vb_key_row *vb_key_row_of(const struct vb_nic *nic, uint32_t key);
void vb_key_row_set_owner(struct vb_nic *nic, const struct vb_key_row *row, void *owner);
void *vb_key_row_owner(const struct vb_nic *nic, const struct vb_key_row *row);

/* Bracket every change of a row: readers in other processes look at the generation. */
void vb_key_row_change_begin(const struct vb_nic *nic, struct vb_key_row *row);
void vb_key_row_change_end(const struct vb_nic *nic, struct vb_key_row *row);

/* Within a change: from now on the row opens nothing. */
void vb_key_row_close(struct vb_key_row *row);

/* The QP ends: closes its type 2 windows. */
void vb_mw_unbind_all(struct vb_qp *qp);

/* Executes a bind request of a QP and returns the status of its completion. */
enum vb_status vb_mw_bind(struct vb_qp *qp, const struct vb_wqe *wqe);

/*
 * Invalidates a key for LOCAL_INV or SEND_INV. The key must be a bound type 2 window of this QP's
 * PD that is bound to this QP; vb_mw_can_invalidate() is false otherwise.
 */
bool vb_mw_can_invalidate(const struct vb_qp *qp, uint32_t key);
void vb_mw_invalidate(struct vb_qp *qp, uint32_t key);

#endif
