/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions, windows and device memory. Access flags are checked here, so that every kind of
 * region has the same rules; flags in IBV_ACCESS_OPTIONAL_RANGE are accepted and ignored.
 */
#include "abi/driver_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

#include <inttypes.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum {
	MANDATORY_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
};

/* Refuses unknown flags, and remote writes or atomics without local writes. */
static int check_access(unsigned int access)
{
	const unsigned int accepted = (unsigned int)(MANDATORY_ACCESS | IBV_ACCESS_OPTIONAL_RANGE);

	if (access & ~accepted)
		return vb_abi_refuse(EOPNOTSUPP, "a region with access 0x%x: bits outside 0x%x",
				     access, accepted);
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return vb_abi_refuse(
			EINVAL,
			"a region with access 0x%x: remote writes or atomics without local writes",
			access);
	return 0;
}

static int check_range(const struct vb_abi_range *range)
{
	if ((uintptr_t)range->address + range->length < (uintptr_t)range->address ||
	    range->iova + range->length < range->iova)
		return vb_abi_refuse(EINVAL,
				     "a region of %zu bytes at %p, IOVA 0x%" PRIx64
				     ": it wraps around the end of the address space",
				     range->length, range->address, range->iova);
	return check_access(range->access);
}

static struct vb_abi_range make_range(void *address, size_t length, uint64_t iova,
				      unsigned int access)
{
	return (struct vb_abi_range){ address, length, iova, access };
}

/* Sets the public fields that all kinds of regions have. */
static struct ibv_mr *fill_public_mr(struct ibv_mr *mr, struct ibv_pd *pd, void *address,
				     size_t length)
{
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = address;
	mr->length = length;
	return mr;
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, struct vb_abi_range range)
{
	struct ibv_mr *mr;
	int error = check_range(&range);

	range.access &= MANDATORY_ACCESS; /* optional flags are ignored */
	if (!error)
		error = vb_abi_mr_register(pd, &range, &mr);
	if (error)
		return vb_abi_return_null(error);
	return fill_public_mr(mr, pd, range.address, range.length);
}

VB_ABI_VERSION(ibv_reg_mr, "ibv_reg_mr@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return register_memory(pd, make_range(addr, length, (uintptr_t)addr, (unsigned int)access));
}

VB_ABI_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					     uint64_t iova, int access)
{
	return register_memory(pd, make_range(addr, length, iova, (unsigned int)access));
}

VB_ABI_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					      uint64_t iova, unsigned int access)
{
	return register_memory(pd, make_range(addr, length, iova, access));
}

VB_ABI_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					       uint64_t iova, int fd, int access)
{
	struct vb_abi_range range =
		make_range((void *)(uintptr_t)offset, length, iova, (unsigned int)access);
	struct ibv_mr *mr;
	int error = check_range(&range);

	range.access &= MANDATORY_ACCESS;
	if (!error)
		error = vb_abi_mr_register_dmabuf(pd, fd, &range, &mr);
	if (error)
		return vb_abi_return_null(error);
	return fill_public_mr(mr, pd, range.address, length);
}

struct ibv_mr *vb_abi_op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				   size_t length, unsigned int access)
{
	struct vb_abi_range range = make_range(NULL, length, dm_offset, access);
	struct ibv_mr *mr;
	int error = check_range(&range);

	/* Device memory has no address in the process that a remote side could use. */
	if (!error && !(access & IBV_ACCESS_ZERO_BASED))
		error = vb_abi_refuse(
			EINVAL,
			"ibv_reg_dm_mr: access 0x%x: device memory needs IBV_ACCESS_ZERO_BASED",
			access);
	range.access &= MANDATORY_ACCESS;
	if (!error)
		error = vb_abi_mr_register_dm(pd, dm, &range, &mr);
	if (error)
		return vb_abi_return_null(error);
	return fill_public_mr(mr, pd, NULL, length);
}

struct ibv_mr *vb_abi_op_alloc_null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr;
	int error = vb_abi_mr_register_null(pd, &mr);

	if (error)
		return vb_abi_return_null(error);
	return fill_public_mr(mr, pd, NULL, SIZE_MAX);
}

VB_ABI_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct ibv_mr *mr;
	int error = vb_abi_mr_import(pd, mr_handle, &mr);

	if (error)
		return vb_abi_return_null(error);
	mr->handle = mr_handle;
	return fill_public_mr(mr, pd, NULL, mr->length);
}

VB_ABI_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	vb_abi_mr_unimport(mr);
}

static int check_reregister(int flags, const struct ibv_pd *pd, const struct vb_abi_range *range)
{
	if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return vb_abi_refuse(EINVAL, "ibv_rereg_mr: flags 0x%x: none, or bits outside 0x%x",
				     flags, IBV_REREG_MR_FLAGS_SUPPORTED);
	if ((flags & IBV_REREG_MR_CHANGE_PD) && !pd)
		return vb_abi_refuse(EINVAL, "ibv_rereg_mr: IBV_REREG_MR_CHANGE_PD without a PD");
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!range->address || !range->length))
		return vb_abi_refuse(
			EINVAL,
			"ibv_rereg_mr: IBV_REREG_MR_CHANGE_TRANSLATION with %zu bytes at %p: it needs an address and a length",
			range->length, range->address);
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		return check_access(range->access);
	return 0;
}

/*
 * On error, returns not an errno but an IBV_REREG_MR_ERR_* value, which tells whether the region is
 * still valid; errno holds the reason.
 */
VB_ABI_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			       size_t length, int access)
{
	struct vb_abi_range range = make_range(addr, length, (uintptr_t)addr, (unsigned int)access);
	bool is_intact = true;
	int error = check_reregister(flags, pd, &range);

	range.access &= MANDATORY_ACCESS;
	if (!error)
		error = vb_abi_mr_reregister(mr, flags, pd, &range, &is_intact);
	if (error) {
		errno = error;
		return is_intact ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->context = pd->context;
		mr->pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;
}

VB_ABI_VERSION(ibv_dereg_mr, "ibv_dereg_mr@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	return vb_abi_return_errno(vb_abi_mr_deregister(mr));
}

int vb_abi_op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			struct ibv_sge *sg_list, uint32_t num_sges)
{
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return vb_abi_return_errno(
			vb_abi_refuse(EINVAL, "ibv_advise_mr: flags 0x%x: bits outside 0x%x", flags,
				      IBV_ADVISE_MR_FLAG_FLUSH));
	if (!num_sges)
		return vb_abi_return_errno(
			vb_abi_refuse(EINVAL, "ibv_advise_mr: 0 SGEs, at least 1"));
	return vb_abi_return_errno(vb_abi_mr_advise(pd, advice, flags, sg_list, num_sges));
}

struct ibv_mw *vb_abi_op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw;
	int error;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vb_abi_return_null(
			vb_abi_refuse(EINVAL, "ibv_alloc_mw: type %d, 1 or 2", (int)type));
	error = vb_abi_mw_alloc(pd, type, &mw);
	if (error)
		return vb_abi_return_null(error);
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	return mw;
}

int vb_abi_op_dealloc_mw(struct ibv_mw *mw)
{
	return vb_abi_return_errno(vb_abi_mw_dealloc(mw));
}

int vb_abi_op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return vb_abi_return_errno(vb_abi_mw_bind(qp, mw, bind));
}

struct ibv_dm *vb_abi_op_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct ibv_dm *dm;
	int error;

	if (attr->comp_mask)
		return vb_abi_return_null(vb_abi_refuse(
			EOPNOTSUPP, "ibv_alloc_dm: comp_mask 0x%x: no bit is supported",
			attr->comp_mask));
	error = vb_abi_dm_alloc(context, attr, &dm);
	if (error)
		return vb_abi_return_null(error);
	dm->context = context;
	return dm;
}

int vb_abi_op_free_dm(struct ibv_dm *dm)
{
	return vb_abi_return_errno(vb_abi_dm_free(dm));
}

VB_ABI_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct ibv_dm *dm;
	int error = vb_abi_dm_import(context, dm_handle, &dm);

	if (error)
		return vb_abi_return_null(error);
	dm->context = context;
	return dm;
}

VB_ABI_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	vb_abi_dm_unimport(dm);
}
