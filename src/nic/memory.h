/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions, memory windows and device memory. A key is a row of the key table; the row alone
 * defines what the key opens.
 */
#ifndef VB_NIC_MEMORY_H
#define VB_NIC_MEMORY_H

#include "base/err.h"
#include "nic/request.h"
#include "nic/tables.h"

struct vb_dm;
struct vb_mr;
struct vb_mw;
struct vb_nic;
struct vb_pd;

struct vb_mr_init {
	vb_dma_addr address;
	/* UINT64_MAX with address 0 and ON_DEMAND: all memory (implicit on-demand paging). */
	uint64_t length;
	/* Address of the first byte in remote and local requests; unused with ZERO_BASED. */
	uint64_t iova;
	uint32_t access;
	uint32_t segment; /* for the caller's peers: see vb_key_row; 0: none */
};

/*
 * The caller owns the region. VB_EINVAL: a right that does not exist, REMOTE_WRITE or REMOTE_ATOMIC
 * without LOCAL_WRITE, a range that wraps around. Destroying a region with bound windows: VB_EBUSY.
 */
VB_MUST_USE vb_err vb_mr_create(struct vb_pd *pd, const struct vb_mr_init *init,
				struct vb_mr **mr_out);
VB_MUST_USE vb_err vb_mr_create_null(struct vb_pd *pd, struct vb_mr **mr_out);
vb_err vb_mr_destroy(struct vb_mr *mr);

uint32_t vb_mr_key(const struct vb_mr *mr); /* lkey and rkey are the same */

/*
 * Whether requests of this PD may use a range of an lkey. If so, *address_out is where it lies (0:
 * a null region, which lies nowhere).
 */
enum vb_mr_use {
	VB_MR_USABLE,
	VB_MR_UNKNOWN, /* no such key */
	VB_MR_WINDOW, /* the key of a window */
	VB_MR_OTHER_PD,
	VB_MR_READ_ONLY,
	VB_MR_OUTSIDE, /* not all of it is in the region */
};
enum vb_mr_use vb_mr_check(const struct vb_pd *pd, const struct vb_sge *range, bool is_write,
			   vb_dma_addr *address_out);

enum vb_rereg_flag {
	VB_REREG_TRANSLATION = 1 << 0,
	VB_REREG_PD = 1 << 1,
	VB_REREG_ACCESS = 1 << 2,
};

/* Changes what the flags name and keeps the key. On failure nothing has changed. */
VB_MUST_USE vb_err vb_mr_reregister(struct vb_mr *mr, uint32_t flags, struct vb_pd *pd,
				    const struct vb_mr_init *init);

/* From now on no region's row has that segment. */
void vb_nic_forget_segment(struct vb_nic *nic, uint32_t segment);

enum vb_mw_type { VB_MW_TYPE_1 = 1, VB_MW_TYPE_2 = 2 };

/*
 * Creates an unbound window. A VB_WR_BIND_MW request binds it. Destroying a bound window unbinds
 * it.
 */
VB_MUST_USE vb_err vb_mw_create(struct vb_pd *pd, enum vb_mw_type type, struct vb_mw **mw_out);
vb_err vb_mw_destroy(struct vb_mw *mw);
uint32_t vb_mw_key(const struct vb_mw *mw);
enum vb_mw_type vb_mw_type(const struct vb_mw *mw);

/*
 * Memory on the adapter, from the area in the configuration. VB_ENOMEM when it does not fit.
 * Destroy returns VB_EBUSY while a region lies on it.
 */
VB_MUST_USE vb_err vb_dm_create(struct vb_nic *nic, uint64_t length, uint32_t log_align,
				struct vb_dm **dm_out);
vb_err vb_dm_destroy(struct vb_dm *dm);

/*
 * Copies between the program's memory and the device's. Offset and length must be multiples of 4
 * within the device memory, else VB_EINVAL.
 */
VB_MUST_USE vb_err vb_dm_copy_in(struct vb_dm *dm, uint64_t offset, const void *from,
				 uint64_t length);
VB_MUST_USE vb_err vb_dm_copy_out(struct vb_dm *dm, uint64_t offset, void *to, uint64_t length);

/*
 * Creates a region on a part of the device memory, addressed from 0. init->address is the offset;
 * access must have ZERO_BASED.
 */
VB_MUST_USE vb_err vb_mr_create_on_dm(struct vb_pd *pd, struct vb_dm *dm,
				      const struct vb_mr_init *init, struct vb_mr **mr_out);

#endif
