/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows. A type 1 window may be bound again at any time. A type 2 window belongs to the QP
 * that bound it, and must be invalidated before it is bound again (o10-37.2.30).
 */
#include "nic/qp_priv.h"

#include "base/heap.h"

/* Local rights have no meaning here, but programs give them. */
#define WINDOW_ACCESS                                                             \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_ZERO_BASED | VB_ACCESS_OPTIONAL)

vb_err vb_mw_create(struct vb_pd *pd, enum vb_mw_type type, struct vb_mw **mw_out)
{
	struct vb_mw *mw;

	if (type != VB_MW_TYPE_1 && type != VB_MW_TYPE_2)
		return VB_EINVAL;
	mw = vb_heap_alloc(1, sizeof(*mw));
	if (!mw)
		return VB_ENOMEM;
	mw->pd = pd;
	mw->row =
		vb_key_row_claim(pd->nic, type == VB_MW_TYPE_1 ? VB_KEY_WINDOW_1 : VB_KEY_WINDOW_2);
	if (!mw->row) {
		vb_heap_free(mw);
		return VB_ENOSPC;
	}
	mw->key_base = mw->row->key >> 8 << 8;
	vb_key_row_set_owner(pd->nic, mw->row, mw);
	pd->child_count++;
	*mw_out = mw;
	return VB_OK;
}

/* An unbound window has no rights and no bytes, and belongs to no PD that a QP could have. */
static void unbind(struct vb_mw *mw)
{
	if (!mw->mr)
		return;
	mw->mr->window_count--;
	mw->mr = NULL;
	if (mw->qp)
		mw->qp->window_count--;
	mw->qp = NULL;
	vb_key_row_change_begin(mw->pd->nic, mw->row);
	vb_key_row_close(mw->row);
	vb_key_row_change_end(mw->pd->nic, mw->row);
}

void vb_mw_unbind_all(struct vb_qp *qp)
{
	const struct vb_nic *nic = qp->nic;

	for (uint32_t i = 0; i < nic->config.key_row_count && qp->window_count; i++)
		if (nic->config.key_rows[i].kind == VB_KEY_WINDOW_2 &&
		    nic->config.key_rows[i].qpn == qp->number.v)
			unbind(nic->key_owners[i]);
}

vb_err vb_mw_destroy(struct vb_mw *mw)
{
	unbind(mw);
	mw->pd->child_count--;
	vb_key_row_release(mw->pd->nic, mw->row);
	vb_heap_free(mw);
	return VB_OK;
}

uint32_t vb_mw_key(const struct vb_mw *mw)
{
	return mw->row->key;
}

enum vb_mw_type vb_mw_type(const struct vb_mw *mw)
{
	return mw->row->kind == VB_KEY_WINDOW_1 ? VB_MW_TYPE_1 : VB_MW_TYPE_2;
}

/*
 * The window that the new key is for: the upper 24 bits of a key name the row. NULL if no window of
 * this PD has it (C10-72).
 */
static struct vb_mw *find_window(const struct vb_qp *qp, uint32_t rkey)
{
	const struct vb_key_row *row = vb_key_row_of(qp->nic, rkey);
	struct vb_mw *mw;

	if ((row->kind != VB_KEY_WINDOW_1 && row->kind != VB_KEY_WINDOW_2) ||
	    (row->key ^ rkey) >> 8)
		return NULL;
	mw = vb_key_row_owner(qp->nic, row);
	return mw->pd == qp->pd ? mw : NULL;
}

/* The region to bind to, if it allows binding and the request lies within it (C10-73 to C10-75). */
static struct vb_mr *find_region(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	const struct vb_key_row *region = vb_key_row_of(qp->nic, wqe->bind.region_key);
	uint64_t offset = wqe->bind.address - region->iova;

	if (region->key != wqe->bind.region_key || region->kind != VB_KEY_REGION ||
	    region->pd != qp->pd_number || !(region->access & VB_ACCESS_MW_BIND))
		return NULL;
	if (wqe->bind.access & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC) &&
	    !(region->access & VB_ACCESS_LOCAL_WRITE))
		return NULL;
	if (offset > region->length || wqe->bind.length > region->length - offset)
		return NULL;
	return vb_key_row_owner(qp->nic, region);
}

static void bind(struct vb_qp *qp, struct vb_mw *mw, struct vb_mr *mr, const struct vb_wqe *wqe)
{
	struct vb_key_row *row = mw->row;

	mw->mr = mr;
	mr->window_count++;
	if (row->kind == VB_KEY_WINDOW_2) {
		mw->qp = qp;
		qp->window_count++;
	}
	vb_key_row_change_begin(qp->nic, row);
	row->pd = qp->pd_number;
	row->qpn = row->kind == VB_KEY_WINDOW_2 ? qp->number.v : 0;
	row->access = wqe->bind.access;
	row->iova = wqe->bind.access & VB_ACCESS_ZERO_BASED ? 0 : wqe->bind.address;
	row->length = wqe->bind.length;
	row->address = mr->row->address + (wqe->bind.address - mr->row->iova);
	row->bound_key = mr->row->key;
	vb_key_row_change_end(qp->nic, row);
}

static void set_key(struct vb_mw *mw, uint32_t key)
{
	vb_key_row_change_begin(mw->pd->nic, mw->row);
	mw->row->key = key;
	vb_key_row_change_end(mw->pd->nic, mw->row);
}

enum vb_status vb_mw_bind(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_mw *mw = find_window(qp, wqe->bind.rkey);
	struct vb_mr *mr;

	if (!mw)
		return VB_STATUS_MW_BIND_ERR;
	if (!wqe->bind.length && vb_mw_type(mw) == VB_MW_TYPE_1) {
		unbind(mw);
		set_key(mw, wqe->bind.rkey);
		return VB_STATUS_SUCCESS;
	}
	mr = find_region(qp, wqe);
	if (!mr || !wqe->bind.length || wqe->bind.access & ~(uint32_t)WINDOW_ACCESS ||
	    (vb_mw_type(mw) == VB_MW_TYPE_2 && mw->mr))
		return VB_STATUS_MW_BIND_ERR;
	unbind(mw);
	set_key(mw, wqe->bind.rkey);
	bind(qp, mw, mr, wqe);
	return VB_STATUS_SUCCESS;
}

/* The bound type 2 window of this QP that the key opens, or NULL (o10-37.2.26). */
static struct vb_mw *find_invalidatable(const struct vb_qp *qp, uint32_t key)
{
	const struct vb_key_row *row = vb_key_row_of(qp->nic, key);

	if (row->key != key || row->kind != VB_KEY_WINDOW_2)
		return NULL;
	if (row->pd != qp->pd_number || row->qpn != qp->number.v)
		return NULL;
	return vb_key_row_owner(qp->nic, row);
}

bool vb_mw_can_invalidate(const struct vb_qp *qp, uint32_t key)
{
	return find_invalidatable(qp, key) != NULL;
}

void vb_mw_invalidate(struct vb_qp *qp, uint32_t key)
{
	struct vb_mw *mw = find_invalidatable(qp, key);

	if (mw)
		unbind(mw);
}
