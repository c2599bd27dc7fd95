/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, parent domains, thread domains and XRC domains. */
#include "abi/driver_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

VB_ABI_VERSION(ibv_alloc_pd, "ibv_alloc_pd@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;
	int error = vb_abi_pd_alloc(context, &pd);

	if (error)
		return vb_abi_return_null(error);
	pd->context = context;
	return pd;
}

VB_ABI_VERSION(ibv_dealloc_pd, "ibv_dealloc_pd@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return vb_abi_return_errno(vb_abi_pd_dealloc(pd));
}

VB_ABI_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct ibv_pd *pd;
	int error = vb_abi_pd_import(context, pd_handle, &pd);

	if (error)
		return vb_abi_return_null(error);
	pd->context = context;
	pd->handle = pd_handle;
	return pd;
}

VB_ABI_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	vb_abi_pd_unimport(pd);
}

static int check_parent_domain(struct ibv_context *context,
			       const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (attr->comp_mask & ~known)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_alloc_parent_domain: comp_mask 0x%x: bits outside 0x%x",
				     attr->comp_mask, known);
	if (!attr->pd || attr->pd->context != context)
		return vb_abi_refuse(EINVAL, "ibv_alloc_parent_domain: %s",
				     attr->pd ? "the PD is of another context" : "no PD");
	if (attr->td && attr->td->context != context)
		return vb_abi_refuse(
			EINVAL, "ibv_alloc_parent_domain: the thread domain is of another context");
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return vb_abi_refuse(
			EINVAL,
			"ibv_alloc_parent_domain: alloc or free is missing; both are needed");
	return 0;
}

struct ibv_pd *vb_abi_op_alloc_parent_domain(struct ibv_context *context,
					     struct ibv_parent_domain_init_attr *attr)
{
	struct ibv_pd *pd;
	int error = check_parent_domain(context, attr);

	if (!error)
		error = vb_abi_pd_alloc_parent(context, attr, &pd);
	if (error)
		return vb_abi_return_null(error);
	pd->context = context;
	return pd;
}

struct ibv_td *vb_abi_op_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td;
	int error;

	if (attr->comp_mask)
		return vb_abi_return_null(vb_abi_refuse(
			EOPNOTSUPP, "ibv_alloc_td: comp_mask 0x%x: no bit is supported",
			attr->comp_mask));
	error = vb_abi_td_alloc(context, &td);
	if (error)
		return vb_abi_return_null(error);
	td->context = context;
	return td;
}

int vb_abi_op_dealloc_td(struct ibv_td *td)
{
	return vb_abi_return_errno(vb_abi_td_dealloc(td));
}

struct ibv_xrcd *vb_abi_op_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t required = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct ibv_xrcd *xrcd;
	int error = 0;

	if (attr->comp_mask & ~required)
		error = vb_abi_refuse(EOPNOTSUPP,
				      "ibv_open_xrcd: comp_mask 0x%x: bits outside 0x%x",
				      attr->comp_mask, required);
	else if (attr->comp_mask != required)
		error = vb_abi_refuse(EINVAL, "ibv_open_xrcd: comp_mask 0x%x, needs 0x%x",
				      attr->comp_mask, required);
	if (!error)
		error = vb_abi_xrcd_open(context, attr, &xrcd);
	if (error)
		return vb_abi_return_null(error);
	xrcd->context = context;
	return xrcd;
}

int vb_abi_op_close_xrcd(struct ibv_xrcd *xrcd)
{
	return vb_abi_return_errno(vb_abi_xrcd_close(xrcd));
}
