/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include "base/heap.h"
#include "nic/memory_priv.h"
#include "nic/nic_priv.h"

#define ACCESS_KNOWN                                                              \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_MW_BIND | VB_ACCESS_ZERO_BASED |     \
	 VB_ACCESS_ON_DEMAND | VB_ACCESS_HUGETLB | VB_ACCESS_OPTIONAL)

static vb_err check_access(uint32_t access)
{
	if (access & ~(uint32_t)ACCESS_KNOWN)
		return VB_EINVAL;
	if (access & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & VB_ACCESS_LOCAL_WRITE))
		return VB_EINVAL;
	return VB_OK;
}

static uint64_t iova_of(const struct vb_mr_init *init)
{
	return init->access & VB_ACCESS_ZERO_BASED ? 0 : init->iova;
}

static vb_err check_range(const struct vb_mr_init *init)
{
	uint64_t iova = iova_of(init);

	/* The last byte must exist: a length of 2^64 - 1 from 0 is all memory but its last byte. */
	if (init->address + init->length < init->address || iova + init->length < iova)
		return VB_EINVAL;
	return VB_OK;
}

static vb_err check_init(const struct vb_mr_init *init)
{
	vb_err err = check_access(init->access);

	return err ? err : check_range(init);
}

static void set_range(struct vb_key_row *row, const struct vb_mr_init *init)
{
	row->iova = iova_of(init);
	row->length = init->length;
	row->address = init->address;
	row->segment = init->segment;
}

static vb_err create(struct vb_pd *pd, uint32_t kind, const struct vb_mr_init *init,
		     struct vb_dm *dm, struct vb_mr **mr_out)
{
	struct vb_mr *mr = vb_heap_alloc(1, sizeof(*mr));

	if (!mr)
		return VB_ENOMEM;
	mr->pd = pd;
	mr->dm = dm;
	mr->row = vb_key_row_claim(pd->nic, kind);
	if (!mr->row) {
		vb_heap_free(mr);
		return VB_ENOSPC;
	}
	vb_key_row_set_owner(pd->nic, mr->row, mr);
	vb_key_row_change_begin(pd->nic, mr->row);
	mr->row->pd = pd->number;
	mr->row->access = init->access;
	set_range(mr->row, init);
	vb_key_row_change_end(mr->pd->nic, mr->row);
	pd->child_count++;
	if (dm)
		dm->region_count++;
	*mr_out = mr;
	return VB_OK;
}

vb_err vb_mr_create(struct vb_pd *pd, const struct vb_mr_init *init, struct vb_mr **mr_out)
{
	vb_err err = check_init(init);

	return err ? err : create(pd, VB_KEY_REGION, init, NULL, mr_out);
}

vb_err vb_mr_create_null(struct vb_pd *pd, struct vb_mr **mr_out)
{
	static const struct vb_mr_init null_init = { .access = VB_ACCESS_LOCAL_WRITE };

	return create(pd, VB_KEY_NULL_REGION, &null_init, NULL, mr_out);
}

vb_err vb_mr_create_on_dm(struct vb_pd *pd, struct vb_dm *dm, const struct vb_mr_init *init,
			  struct vb_mr **mr_out)
{
	struct vb_mr_init placed = *init;
	vb_err err;

	if (!(init->access & VB_ACCESS_ZERO_BASED) || dm->nic != pd->nic)
		return VB_EINVAL;
	if (init->address > dm->length || init->length > dm->length - init->address)
		return VB_EINVAL;
	placed.address += dm->address;
	err = check_init(&placed);
	return err ? err : create(pd, VB_KEY_REGION, &placed, dm, mr_out);
}

vb_err vb_mr_destroy(struct vb_mr *mr)
{
	if (mr->window_count) /* IBA 10.6.7.2.6 */
		return VB_EBUSY;
	if (mr->dm)
		mr->dm->region_count--;
	mr->pd->child_count--;
	vb_key_row_release(mr->pd->nic, mr->row);
	vb_heap_free(mr);
	return VB_OK;
}

void vb_nic_forget_segment(struct vb_nic *nic, uint32_t segment)
{
	for (uint32_t i = 0; i < nic->config.key_row_count; i++) {
		struct vb_key_row *row = &nic->config.key_rows[i];

		if (!nic->key_owners[i] || row->kind != VB_KEY_REGION || row->segment != segment)
			continue;
		vb_key_row_change_begin(nic, row);
		row->segment = 0;
		vb_key_row_change_end(nic, row);
	}
}

uint32_t vb_mr_key(const struct vb_mr *mr)
{
	return mr->row->key;
}

enum vb_mr_use vb_mr_check(const struct vb_pd *pd, const struct vb_sge *range, bool is_write,
			   vb_dma_addr *address_out)
{
	const struct vb_key_row *row = vb_key_row_of(pd->nic, range->lkey);
	const struct vb_memory_request request = {
		.key = range->lkey,
		.pd = pd->number,
		.rights = is_write ? VB_ACCESS_LOCAL_WRITE : 0,
		.address = range->address,
		.length = range->length,
	};
	struct vb_memory memory;

	if (row->key != range->lkey || row->kind == VB_KEY_FREE)
		return VB_MR_UNKNOWN;
	if (row->kind == VB_KEY_WINDOW_1 || row->kind == VB_KEY_WINDOW_2)
		return VB_MR_WINDOW;
	if (row->pd != pd->number)
		return VB_MR_OTHER_PD;
	if (is_write && !(row->access & VB_ACCESS_LOCAL_WRITE))
		return VB_MR_READ_ONLY;
	if (vb_memory_resolve(pd->nic, &request, &memory) != VB_PASS)
		return VB_MR_OUTSIDE; /* the only remaining error */
	*address_out = memory.is_null ? 0 : memory.address;
	return VB_MR_USABLE;
}

vb_err vb_mr_reregister(struct vb_mr *mr, uint32_t flags, struct vb_pd *pd,
			const struct vb_mr_init *init)
{
	struct vb_mr_init next = {
		.address = mr->row->address,
		.length = mr->row->length,
		.iova = mr->row->iova,
		.access = mr->row->access,
		.segment = mr->row->segment,
	};

	if (!flags || flags & ~(uint32_t)(VB_REREG_TRANSLATION | VB_REREG_PD | VB_REREG_ACCESS))
		return VB_EINVAL;
	if (mr->window_count)
		return VB_EBUSY;
	if (mr->dm || mr->row->kind != VB_KEY_REGION)
		return VB_EOPNOTSUPP;
	if (flags & VB_REREG_PD && pd->nic != mr->pd->nic)
		return VB_EINVAL;
	if (flags & VB_REREG_TRANSLATION) {
		next.address = init->address;
		next.length = init->length;
		next.iova = init->iova;
		next.segment = init->segment;
	}
	if (flags & VB_REREG_ACCESS)
		next.access = init->access;
	if (check_init(&next))
		return VB_EINVAL;
	vb_key_row_change_begin(mr->pd->nic, mr->row);
	set_range(mr->row, &next);
	mr->row->access = next.access;
	if (flags & VB_REREG_PD) {
		mr->pd->child_count--;
		mr->pd = pd;
		pd->child_count++;
		mr->row->pd = pd->number;
	}
	vb_key_row_change_end(mr->pd->nic, mr->row);
	return VB_OK;
}
