/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, XRC domains and address handles: small objects that others refer to. */
#include "nic/nic_priv.h"

#include "base/heap.h"

vb_err vb_pd_create(struct vb_nic *nic, struct vb_pd **pd_out)
{
	struct vb_pd *pd = vb_heap_alloc(1, sizeof(*pd));

	if (!pd)
		return VB_ENOMEM;
	pd->nic = nic;
	pd->number = ++nic->domain_next; /* 0 belongs to no PD: unbound windows have it */
	vb_list_append(&nic->pds, &pd->node);
	nic->root_object_count++;
	*pd_out = pd;
	return VB_OK;
}

vb_err vb_pd_destroy(struct vb_pd *pd)
{
	if (pd->child_count)
		return VB_EBUSY;
	vb_list_remove(&pd->node);
	pd->nic->root_object_count--;
	vb_heap_free(pd);
	return VB_OK;
}

vb_err vb_xrcd_create(struct vb_nic *nic, struct vb_xrcd **xrcd_out)
{
	struct vb_xrcd *xrcd = vb_heap_alloc(1, sizeof(*xrcd));

	if (!xrcd)
		return VB_ENOMEM;
	xrcd->nic = nic;
	xrcd->number = ++nic->domain_next;
	vb_list_init(&xrcd->srqs);
	nic->root_object_count++;
	*xrcd_out = xrcd;
	return VB_OK;
}

vb_err vb_xrcd_destroy(struct vb_xrcd *xrcd)
{
	if (xrcd->user_count)
		return VB_EBUSY;
	xrcd->nic->root_object_count--;
	vb_heap_free(xrcd);
	return VB_OK;
}

vb_err vb_ah_create(struct vb_pd *pd, const struct vb_address *address, struct vb_ah **ah_out)
{
	struct vb_flow flow;
	struct vb_ah *ah;

	if (!vb_nic_fill_flow(pd->nic, address, &flow))
		return VB_EINVAL;
	ah = vb_heap_alloc(1, sizeof(*ah));
	if (!ah)
		return VB_ENOMEM;
	ah->pd = pd;
	ah->address = *address;
	pd->child_count++;
	*ah_out = ah;
	return VB_OK;
}

vb_err vb_ah_destroy(struct vb_ah *ah)
{
	ah->pd->child_count--;
	vb_heap_free(ah);
	return VB_OK;
}

const struct vb_address *vb_ah_address(const struct vb_ah *ah)
{
	return &ah->address;
}
