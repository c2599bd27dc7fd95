/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows. A type 1 window may be bound again at any time; a type 2 window belongs to the QP that bound it
 * and must be invalidated before it is bound again.
 */
#include "nic/qp_priv.h"

#define WINDOW_ACCESS                                                               \
	(VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC | \
	 VB_ACCESS_ZERO_BASED | VB_ACCESS_OPTIONAL)

vb_err vb_mw_create(struct vb_pd *pd, enum vb_mw_type type, struct vb_mw **mw_out)
{
	struct vb_mw *mw;

	if (type != VB_MW_TYPE_1 && type != VB_MW_TYPE_2)
		return VB_EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return VB_ENOMEM;
	mw->pd = pd;
	mw->row =
		vb_key_row_claim(pd->nic, type == VB_MW_TYPE_1 ? VB_KEY_WINDOW_1 : VB_KEY_WINDOW_2);
	if (!mw->row) {
		free(mw);
		return VB_ENOSPC;
	}
	pd->nic->windows[mw->row - pd->nic->config.key_rows] = mw;
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
	vb_key_row_change_begin(mw->row);
	mw->row->access = 0;
	mw->row->pd = 0;
	mw->row->qpn = 0;
	mw->row->iova = 0;
	mw->row->length = 0;
	mw->row->address = 0;
	mw->row->bound_key = 0;
	vb_key_row_change_end(mw->row);
}

vb_err vb_mw_destroy(struct vb_mw *mw)
{
	unbind(mw);
	mw->pd->nic->windows[mw->row - mw->pd->nic->config.key_rows] = NULL;
	mw->pd->child_count--;
	vb_key_row_release(mw->pd->nic, mw->row);
	free(mw);
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

static bool can_bind(const struct vb_qp *qp, const struct vb_bind *bind)
{
	const struct vb_key_row *region;
	const struct vb_mw *mw = bind->mw;

	if (mw->pd != qp->pd || (bind->rkey ^ mw->row->key) >> 8)
		return false;
	if (vb_mw_type(mw) == VB_MW_TYPE_2 && mw->mr)
		return false;
	if (!bind->length)
		return vb_mw_type(mw) == VB_MW_TYPE_1; /* unbinds */
	if (!bind->mr || bind->mr->pd != qp->pd || bind->access & ~(uint32_t)WINDOW_ACCESS)
		return false;
	region = bind->mr->row;
	if (region->kind != VB_KEY_REGION || !(region->access & VB_ACCESS_MW_BIND))
		return false;
	if (bind->access & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC) &&
	    !(region->access & VB_ACCESS_LOCAL_WRITE))
		return false;
	return bind->address - region->iova <= region->length &&
	       bind->length <= region->length - (bind->address - region->iova);
}

enum vb_status vb_mw_bind(struct vb_qp *qp, const struct vb_bind *bind)
{
	struct vb_mw *mw = bind->mw;
	struct vb_key_row *row = mw->row;

	if (!can_bind(qp, bind))
		return VB_STATUS_MW_BIND_ERR;
	unbind(mw);
	vb_key_row_change_begin(row);
	row->key = bind->rkey;
	if (bind->length) {
		mw->mr = bind->mr;
		mw->mr->window_count++;
		row->pd = qp->pd_number;
		row->qpn = vb_mw_type(mw) == VB_MW_TYPE_2 ? qp->number.v : 0;
		row->access = bind->access;
		row->iova = bind->access & VB_ACCESS_ZERO_BASED ? 0 : bind->address;
		row->length = bind->length;
		row->address = mw->mr->row->address + (bind->address - mw->mr->row->iova);
		row->bound_key = mw->mr->row->key;
	}
	vb_key_row_change_end(row);
	return VB_STATUS_SUCCESS;
}

/* The bound type 2 window of this QP that the key opens, or NULL. */
static struct vb_mw *find_invalidatable(const struct vb_qp *qp, uint32_t key)
{
	const struct vb_nic *nic = qp->nic;
	uint32_t index = (key >> 8) & (nic->config.key_row_count - 1);
	const struct vb_key_row *row = &nic->config.key_rows[index];

	if (row->key != key || row->kind != VB_KEY_WINDOW_2)
		return NULL;
	if (row->pd != qp->pd_number || row->qpn != qp->number.v)
		return NULL;
	return nic->windows[index];
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
