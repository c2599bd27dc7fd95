/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions, windows and device memory: the memory that peers access, and its keys. */
#include "abi/refuse_priv.h"

#include "base/heap.h"
#include "host/memory/dma.h"

#include <errno.h>
#include <inttypes.h>

/* --- regions --- */

static struct vb_mr_init init_of(const struct vb_abi_range *range)
{
	return (struct vb_mr_init){
		.address = (vb_dma_addr)(uintptr_t)range->address,
		.length = range->length,
		.iova = range->iova,
		.access = range->access,
	};
}

/* On-demand regions may be mapped later; all others must be mapped now, otherwise EFAULT. */
static int check_reachable(const char *verb, const struct vb_abi_range *range)
{
	bool for_writing = range->access & IBV_ACCESS_LOCAL_WRITE;

	if (range->access & IBV_ACCESS_ON_DEMAND ||
	    vb_dma_is_mapped((vb_dma_addr)(uintptr_t)range->address, range->length, for_writing))
		return 0;
	vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = verb, .error = EFAULT),
		     "%s: not all of the %zu bytes at %p can be %s", verb, range->length,
		     range->address, for_writing ? "written" : "read");
	return EFAULT;
}

/* Called under the adapter's ownership, and releases it. */
static int finish_mr(struct ibv_pd *pd, struct vb_abi_mr *mr, vb_err err, struct ibv_mr **mr_out)
{
	if (!err) {
		mr->verbs.lkey = mr->verbs.rkey = vb_mr_key(mr->mr);
		mr->verbs.handle = mr->verbs.lkey;
		vb_abi_handle_add(&vb_abi_context_of(pd->context)->opened->mrs, &mr->handle,
				  mr->verbs.handle);
		*mr_out = &mr->verbs;
	}
	vb_adapter_leave(vb_abi_context_of(pd->context)->adapter);
	if (err)
		vb_heap_free(mr);
	return vb_abi_errno(err);
}

/*
 * Only peers use the segment: those that access the region, and those that read the data of SENDs
 * from it.
 */
static uint32_t share(struct vb_adapter *adapter, const struct vb_abi_range *range)
{
	const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC;

	return range->access & IBV_ACCESS_ON_DEMAND
		       ? 0
		       : vb_adapter_share(adapter, (uintptr_t)range->address, range->length,
					  range->access & remote);
}

int vb_abi_mr_register(struct ibv_pd *pd, const struct vb_abi_range *range, struct ibv_mr **mr_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
	struct vb_mr_init init = init_of(range);
	struct vb_abi_mr *mr;
	vb_err err;

	if (check_reachable("ibv_reg_mr", range))
		return EFAULT;
	mr = vb_heap_alloc(1, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	vb_adapter_enter(adapter);
	mr->segment = init.segment = share(adapter, range);
	err = vb_mr_create(vb_abi_pd_of(pd), &init, &mr->mr);
	if (err)
		vb_adapter_unshare(adapter, mr->segment);
	else
		vb_registration_add(&mr->registration, (uintptr_t)range->address, range->length);
	return finish_mr(pd, mr, err, mr_out);
}

int vb_abi_mr_register_dm(struct ibv_pd *pd, struct ibv_dm *dm, const struct vb_abi_range *range,
			  struct ibv_mr **mr_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
	struct vb_mr_init init = {
		.address = range->iova, /* an offset */
		.length = range->length,
		.access = range->access,
	};
	struct vb_abi_mr *mr;
	const struct vb_abi_dm *own = VB_CONTAINER(dm, struct vb_abi_dm, verbs);
	vb_err err;

	mr = vb_heap_alloc(1, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	vb_list_init(&mr->registration.node);
	vb_adapter_enter(adapter);
	err = vb_mr_create_on_dm(vb_abi_pd_of(pd), own->dm, &init, &mr->mr);
	if (err == VB_EINVAL)
		vb_log(VB_LOG_WARN,
		       "ibv_reg_dm_mr: %zu bytes at %" PRIu64 " of device memory %" PRIu32
		       ", which has %zu, or it is another device's",
		       range->length, range->iova, dm->handle, own->length);
	return finish_mr(pd, mr, err, mr_out);
}

int vb_abi_mr_register_null(struct ibv_pd *pd, struct ibv_mr **mr_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
	struct vb_abi_mr *mr;
	vb_err err;

	mr = vb_heap_alloc(1, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	vb_list_init(&mr->registration.node);
	vb_adapter_enter(adapter);
	err = vb_mr_create_null(vb_abi_pd_of(pd), &mr->mr);
	return finish_mr(pd, mr, err, mr_out);
}

int vb_abi_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			 const struct vb_abi_range *range, bool *is_intact_out)
{
	struct vb_abi_mr *own = VB_CONTAINER(mr, struct vb_abi_mr, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(mr->context)->adapter;
	struct vb_mr_init init = init_of(range);
	vb_err err;

	*is_intact_out = true;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && check_reachable("ibv_rereg_mr", range))
		return EFAULT;
	vb_adapter_enter(adapter);
	err = vb_mr_reregister(own->mr, (uint32_t)flags, pd ? vb_abi_pd_of(pd) : NULL, &init);
	vb_adapter_await_local_peers(adapter);
	if (!err && flags & IBV_REREG_MR_CHANGE_TRANSLATION) { /* the new range is in no segment */
		vb_registration_remove(&own->registration);
		vb_registration_add(&own->registration, (uintptr_t)range->address, range->length);
		vb_adapter_unshare(adapter, own->segment);
		own->segment = 0;
	}
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(
			vb_abi_errno(err), "ibv_rereg_mr: region 0x%08x: %s", mr->lkey,
			err == VB_EBUSY ? "windows are bound to it"
			: err == VB_EOPNOTSUPP
				? "device memory and null regions cannot change"
				: "the PD is of another device, or the rights do not fit together");
	return 0;
}

/*
 * Removes the region from every lookup, but keeps its memory until no local peer is in the middle
 * of an access.
 */
static void close_region(struct vb_abi_mr *own, struct vb_adapter *adapter)
{
	vb_abi_handle_remove(&vb_abi_context_of(own->verbs.context)->opened->mrs, &own->handle);
	vb_adapter_await_local_peers(adapter);
	if (vb_list_is_linked(&own->registration.node))
		vb_registration_remove(&own->registration);
	vb_adapter_unshare(adapter, own->segment);
}

int vb_abi_mr_deregister(struct ibv_mr *mr)
{
	struct vb_abi_mr *own = VB_CONTAINER(mr, struct vb_abi_mr, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(mr->context)->adapter;
	vb_err err;

	vb_adapter_enter(adapter);
	err = vb_mr_destroy(own->mr);
	if (!err)
		close_region(own, adapter);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_dereg_mr: windows are bound to region 0x%08x",
				     mr->lkey);
	vb_heap_free(own);
	return 0;
}

/* --- windows --- */

int vb_abi_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
	struct vb_abi_mw *mw;
	vb_err err;

	mw = vb_heap_alloc(1, sizeof(*mw));
	if (!mw)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_mw_create(vb_abi_pd_of(pd), (enum vb_mw_type)type, &mw->mw);
	vb_adapter_leave(adapter);
	if (err) {
		vb_heap_free(mw);
		return vb_abi_errno(err);
	}
	mw->verbs.rkey = vb_mw_key(mw->mw);
	mw->verbs.handle = mw->verbs.rkey;
	*mw_out = &mw->verbs;
	return 0;
}

int vb_abi_mw_dealloc(struct ibv_mw *mw)
{
	struct vb_abi_mw *own = VB_CONTAINER(mw, struct vb_abi_mw, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(mw->context)->adapter;

	vb_adapter_enter(adapter);
	vb_mw_destroy(own->mw);
	vb_adapter_leave(adapter);
	vb_heap_free(own);
	return 0;
}

/* --- device memory --- */

static int finish_copy(const struct vb_abi_dm *dm, uint64_t offset, size_t length, vb_err err)
{
	if (err == VB_EINVAL)
		return vb_abi_refuse(EINVAL,
				     "device memory %" PRIu32 ": cannot copy %zu bytes at %" PRIu64
				     ": multiples of 4 within its %zu bytes",
				     dm->verbs.handle, length, offset, dm->length);
	if (err)
		return vb_abi_refuse(EFAULT,
				     "device memory %" PRIu32
				     ": %zu bytes of the program's are not there",
				     dm->verbs.handle, length);
	return 0;
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	const struct vb_abi_dm *own = VB_CONTAINER(dm, struct vb_abi_dm, verbs);

	return finish_copy(own, offset, length, vb_dm_copy_in(own->dm, offset, from, length));
}

static int copy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	const struct vb_abi_dm *own = VB_CONTAINER(dm, struct vb_abi_dm, verbs);

	return finish_copy(own, offset, length, vb_dm_copy_out(own->dm, offset, to, length));
}

void vb_abi_dm_init(struct ibv_dm *dm)
{
	dm->memcpy_to_dm = copy_to_dm;
	dm->memcpy_from_dm = copy_from_dm;
}

static int refuse_dm(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr, vb_err err)
{
	return vb_abi_refuse_at(vb_abi_errno(err), context,
				"ibv_alloc_dm: %s: %zu bytes aligned to 2^%" PRIu32
				": 1 to %" PRIu64 " bytes in all, 2^20 at most",
				vb_abi_device_name(context), attr->length, attr->log_align_req,
				vb_adapter_device_memory(vb_abi_context_of(context)->adapter));
}

int vb_abi_dm_alloc(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr,
		    struct ibv_dm **dm_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(context)->adapter;
	struct vb_abi_opened *opened = vb_abi_context_of(context)->opened;
	struct vb_abi_dm *dm;
	vb_err err;

	dm = vb_heap_alloc(1, sizeof(*dm));
	if (!dm)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_dm_create(vb_adapter_nic(adapter), attr->length, attr->log_align_req, &dm->dm);
	if (!err)
		vb_abi_handle_add(&opened->dms, &dm->handle, ++opened->handle_next);
	vb_adapter_leave(adapter);
	if (err) {
		vb_heap_free(dm);
		return refuse_dm(context, attr, err);
	}
	dm->length = attr->length;
	dm->verbs.handle = dm->handle.number;
	vb_abi_dm_init(&dm->verbs);
	*dm_out = &dm->verbs;
	return 0;
}

int vb_abi_dm_free(struct ibv_dm *dm)
{
	struct vb_abi_dm *own = VB_CONTAINER(dm, struct vb_abi_dm, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(dm->context)->adapter;
	vb_err err;

	vb_adapter_enter(adapter);
	err = vb_dm_destroy(own->dm);
	if (!err)
		vb_abi_handle_remove(&vb_abi_context_of(dm->context)->opened->dms, &own->handle);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_free_dm: regions lie on device memory %" PRIu32,
				     dm->handle);
	vb_heap_free(own);
	return 0;
}
