/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains, regions, windows, device memory and address handles: objects that are made, looked up and ended. */
#include "abi/refuse_priv.h"

#include "host/dma.h"
#include "host/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct vb_adapter *adapter_of(struct ibv_context *context)
{
	return vb_abi_context_of(context)->adapter;
}

static struct vb_abi_opened *opened_of(struct ibv_context *context)
{
	return vb_abi_context_of(context)->opened;
}

/* --- domains --- */

int vb_abi_pd_alloc(struct ibv_context *context, struct ibv_pd **pd_out)
{
	struct vb_adapter *adapter = adapter_of(context);
	struct vb_abi_opened *opened = opened_of(context);
	struct vb_abi_pd *pd;
	vb_err err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_pd_create(vb_adapter_nic(adapter), &pd->pd);
	if (!err)
		vb_abi_handle_add(&opened->pds, &pd->handle, ++opened->handle_next);
	vb_adapter_leave(adapter);
	if (err) {
		free(pd);
		return vb_abi_errno(err);
	}
	pd->verbs.handle = pd->handle.number;
	*pd_out = &pd->verbs;
	return 0;
}

int vb_abi_pd_alloc_parent(struct ibv_context *context,
			   const struct ibv_parent_domain_init_attr *attr, struct ibv_pd **pd_out)
{
	struct vb_adapter *adapter = adapter_of(context);
	struct vb_abi_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return ENOMEM;
	pd->pd = vb_abi_pd_of(attr->pd);
	pd->inner = VB_CONTAINER(attr->pd, struct vb_abi_pd, verbs);
	pd->td = attr->td ? VB_CONTAINER(attr->td, struct vb_abi_td, verbs) : NULL;
	pd->parent = *attr;
	pd->verbs.handle = attr->pd->handle;
	vb_link_init(&pd->handle.link);
	vb_adapter_enter(adapter);
	pd->inner->user_count++;
	if (pd->td)
		pd->td->user_count++;
	vb_adapter_leave(adapter);
	*pd_out = &pd->verbs;
	return 0;
}

/* Under the adapter's ownership. */
static vb_err end_pd(struct vb_abi_pd *pd)
{
	vb_err err;

	if (pd->user_count)
		return VB_EBUSY;
	if (pd->inner) {
		pd->inner->user_count--;
		if (pd->td)
			pd->td->user_count--;
		return VB_OK;
	}
	err = vb_pd_destroy(pd->pd);
	if (!err)
		vb_abi_handle_remove(&opened_of(pd->verbs.context)->pds, &pd->handle);
	return err;
}

int vb_abi_pd_dealloc(struct ibv_pd *pd)
{
	struct vb_abi_pd *own = VB_CONTAINER(pd, struct vb_abi_pd, verbs);
	struct vb_adapter *adapter = adapter_of(pd->context);
	vb_err err;

	vb_adapter_enter(adapter);
	err = end_pd(own);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(
			EBUSY,
			"ibv_dealloc_pd: PD %" PRIu32
			" still has regions, windows, QPs, SRQs, address handles or parent domains",
			pd->handle);
	free(own);
	return 0;
}

int vb_abi_td_alloc(struct ibv_context *context, struct ibv_td **td_out)
{
	struct vb_abi_td *td = calloc(1, sizeof(*td));

	(void)context;
	if (!td)
		return ENOMEM;
	*td_out = &td->verbs;
	return 0;
}

/* A thread domain promises that one thread uses its objects; there is nothing to gain from it here. */
int vb_abi_td_dealloc(struct ibv_td *td)
{
	struct vb_abi_td *own = VB_CONTAINER(td, struct vb_abi_td, verbs);
	struct vb_adapter *adapter = adapter_of(td->context);
	uint32_t users;

	vb_adapter_enter(adapter);
	users = own->user_count;
	vb_adapter_leave(adapter);
	if (users)
		return vb_abi_refuse(EBUSY, "ibv_dealloc_td: still in %" PRIu32 " parent domains",
				     users);
	free(own);
	return 0;
}

/* The domain that the same file stands for on this device, or NULL. Under the adapter's ownership. */
static struct vb_abi_xrc_domain *find_domain(struct vb_abi_opened *opened, const struct stat *file)
{
	for (struct vb_link *link = opened->xrc_domains.next; link != &opened->xrc_domains;
	     link = link->next) {
		struct vb_abi_xrc_domain *domain =
			VB_CONTAINER(link, struct vb_abi_xrc_domain, link);

		if (domain->has_file && domain->device == file->st_dev &&
		    domain->inode == file->st_ino)
			return domain;
	}
	return NULL;
}

static int make_domain(struct vb_abi_opened *opened, const struct stat *file,
		       struct vb_abi_xrc_domain **domain_out)
{
	struct vb_abi_xrc_domain *domain = calloc(1, sizeof(*domain));
	vb_err err;

	if (!domain)
		return ENOMEM;
	err = vb_xrcd_create(vb_adapter_nic(opened->adapter), &domain->xrcd);
	if (err) {
		free(domain);
		return vb_abi_errno(err);
	}
	if (file) {
		domain->has_file = true;
		domain->device = file->st_dev;
		domain->inode = file->st_ino;
	}
	vb_link_append(&opened->xrc_domains, &domain->link);
	*domain_out = domain;
	return 0;
}

static int open_domain(struct vb_abi_opened *opened, const struct stat *file, int flags,
		       struct vb_abi_xrc_domain **domain_out)
{
	struct vb_abi_xrc_domain *domain = file ? find_domain(opened, file) : NULL;
	int error = 0;

	if (domain && flags & O_CREAT && flags & O_EXCL)
		return vb_abi_refuse(EEXIST, "ibv_open_xrcd: inode %ju already stands for a domain",
				     (uintmax_t)file->st_ino);
	if (!domain && file && !(flags & O_CREAT))
		return vb_abi_refuse(
			ENOENT, "ibv_open_xrcd: inode %ju stands for no domain, and no O_CREAT",
			(uintmax_t)file->st_ino);
	if (!domain)
		error = make_domain(opened, file, &domain);
	if (error)
		return error;
	domain->open_count++;
	*domain_out = domain;
	return 0;
}

/* A file stands for a domain within this process; other processes that open it get their own. */
int vb_abi_xrcd_open(struct ibv_context *context, const struct ibv_xrcd_init_attr *attr,
		     struct ibv_xrcd **xrcd_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_abi_xrcd *xrcd;
	struct stat file;
	int error;

	if (attr->fd != -1 && fstat(attr->fd, &file))
		return vb_abi_refuse(errno, "ibv_open_xrcd: %d is no descriptor", attr->fd);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return ENOMEM;
	vb_adapter_enter(own->adapter);
	error = open_domain(own->opened, attr->fd != -1 ? &file : NULL, attr->oflags,
			    &xrcd->domain);
	vb_adapter_leave(own->adapter);
	if (error) {
		free(xrcd);
		return error;
	}
	*xrcd_out = &xrcd->verbs;
	return 0;
}

int vb_abi_xrcd_close(struct ibv_xrcd *xrcd)
{
	struct vb_abi_xrcd *own = VB_CONTAINER(xrcd, struct vb_abi_xrcd, verbs);
	struct vb_abi_xrc_domain *domain = own->domain;
	struct vb_adapter *adapter = adapter_of(xrcd->context);
	vb_err err = VB_OK;

	vb_adapter_enter(adapter);
	if (domain->open_count == 1)
		err = vb_xrcd_destroy(domain->xrcd);
	if (!err && !--domain->open_count) {
		vb_link_remove(&domain->link);
		free(domain);
	}
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_close_xrcd: the domain still has SRQs or QPs");
	free(own);
	return 0;
}

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

/* On-demand regions may be mapped later; the others must be there now, or EFAULT. */
static int check_reachable(const char *verb, const struct vb_abi_range *range)
{
	bool for_writing = range->access & IBV_ACCESS_LOCAL_WRITE;

	if (range->access & IBV_ACCESS_ON_DEMAND ||
	    vb_dma_is_mapped((vb_dma_addr)(uintptr_t)range->address, range->length, for_writing))
		return 0;
	return vb_abi_refuse(EFAULT, "%s: not all of the %zu bytes at %p can be %s", verb,
			     range->length, range->address, for_writing ? "written" : "read");
}

/* Under the adapter's ownership, which it gives back. */
static int finish_mr(struct ibv_pd *pd, struct vb_abi_mr *mr, vb_err err, struct ibv_mr **mr_out)
{
	if (!err) {
		mr->verbs.lkey = mr->verbs.rkey = vb_mr_key(mr->mr);
		mr->verbs.handle = mr->verbs.lkey;
		vb_abi_handle_add(&opened_of(pd->context)->mrs, &mr->handle, mr->verbs.handle);
		*mr_out = &mr->verbs;
	}
	vb_adapter_leave(adapter_of(pd->context));
	if (err)
		free(mr);
	return vb_abi_errno(err);
}

/* Only peers have a use for it. */
static uint32_t share(struct vb_adapter *adapter, const struct vb_abi_range *range)
{
	const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC;

	return range->access & remote && !(range->access & IBV_ACCESS_ON_DEMAND)
		       ? vb_adapter_share(adapter, (uintptr_t)range->address, range->length)
		       : 0;
}

int vb_abi_mr_register(struct ibv_pd *pd, const struct vb_abi_range *range, struct ibv_mr **mr_out)
{
	struct vb_adapter *adapter = adapter_of(pd->context);
	struct vb_mr_init init = init_of(range);
	struct vb_abi_mr *mr;
	vb_err err;

	if (check_reachable("ibv_reg_mr", range))
		return EFAULT;
	mr = calloc(1, sizeof(*mr));
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
	struct vb_adapter *adapter = adapter_of(pd->context);
	struct vb_mr_init init = {
		.address = range->iova, /* the offset */
		.length = range->length,
		.access = range->access,
	};
	struct vb_abi_mr *mr;
	const struct vb_abi_dm *own = VB_CONTAINER(dm, struct vb_abi_dm, verbs);
	vb_err err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	vb_link_init(&mr->registration.link);
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
	struct vb_adapter *adapter = adapter_of(pd->context);
	struct vb_abi_mr *mr;
	vb_err err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	vb_link_init(&mr->registration.link);
	vb_adapter_enter(adapter);
	err = vb_mr_create_null(vb_abi_pd_of(pd), &mr->mr);
	return finish_mr(pd, mr, err, mr_out);
}

int vb_abi_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			 const struct vb_abi_range *range, bool *is_intact_out)
{
	struct vb_abi_mr *own = VB_CONTAINER(mr, struct vb_abi_mr, verbs);
	struct vb_adapter *adapter = adapter_of(mr->context);
	struct vb_mr_init init = init_of(range);
	vb_err err;

	*is_intact_out = true;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && check_reachable("ibv_rereg_mr", range))
		return EFAULT;
	vb_adapter_enter(adapter);
	err = vb_mr_reregister(own->mr, (uint32_t)flags, pd ? vb_abi_pd_of(pd) : NULL, &init);
	vb_adapter_await_neighbors(adapter);
	if (!err && flags & IBV_REREG_MR_CHANGE_TRANSLATION) { /* the new range is in none */
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

/* Nobody finds it any more; but what is behind it stays, until no neighbor is in the middle of an access. */
static void close_region(struct vb_abi_mr *own, struct vb_adapter *adapter)
{
	vb_abi_handle_remove(&opened_of(own->verbs.context)->mrs, &own->handle);
	vb_adapter_await_neighbors(adapter);
	if (vb_link_is_linked(&own->registration.link))
		vb_registration_remove(&own->registration);
	vb_adapter_unshare(adapter, own->segment);
}

int vb_abi_mr_deregister(struct ibv_mr *mr)
{
	struct vb_abi_mr *own = VB_CONTAINER(mr, struct vb_abi_mr, verbs);
	struct vb_adapter *adapter = adapter_of(mr->context);
	vb_err err;

	vb_adapter_enter(adapter);
	err = vb_mr_destroy(own->mr);
	if (!err)
		close_region(own, adapter);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_dereg_mr: windows are bound to region 0x%08x",
				     mr->lkey);
	free(own);
	return 0;
}

/* --- windows --- */

int vb_abi_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw_out)
{
	struct vb_adapter *adapter = adapter_of(pd->context);
	struct vb_abi_mw *mw;
	vb_err err;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_mw_create(vb_abi_pd_of(pd), (enum vb_mw_type)type, &mw->mw);
	vb_adapter_leave(adapter);
	if (err) {
		free(mw);
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
	struct vb_adapter *adapter = adapter_of(mw->context);

	vb_adapter_enter(adapter);
	vb_mw_destroy(own->mw);
	vb_adapter_leave(adapter);
	free(own);
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
	return vb_abi_refuse(vb_abi_errno(err),
			     "ibv_alloc_dm: %s: %zu bytes aligned to 2^%" PRIu32 ": 1 to %" PRIu64
			     " bytes in all, 2^20 at most",
			     vb_abi_device_name(context), attr->length, attr->log_align_req,
			     vb_adapter_device_memory(adapter_of(context)));
}

int vb_abi_dm_alloc(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr,
		    struct ibv_dm **dm_out)
{
	struct vb_adapter *adapter = adapter_of(context);
	struct vb_abi_opened *opened = opened_of(context);
	struct vb_abi_dm *dm;
	vb_err err;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_dm_create(vb_adapter_nic(adapter), attr->length, attr->log_align_req, &dm->dm);
	if (!err)
		vb_abi_handle_add(&opened->dms, &dm->handle, ++opened->handle_next);
	vb_adapter_leave(adapter);
	if (err) {
		free(dm);
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
	struct vb_adapter *adapter = adapter_of(dm->context);
	vb_err err;

	vb_adapter_enter(adapter);
	err = vb_dm_destroy(own->dm);
	if (!err)
		vb_abi_handle_remove(&opened_of(dm->context)->dms, &own->handle);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_free_dm: regions lie on device memory %" PRIu32,
				     dm->handle);
	free(own);
	return 0;
}

/* --- addresses --- */

int vb_abi_address(const struct ibv_ah_attr *attr, struct vb_address *address)
{
	if (!attr->is_global)
		return vb_abi_refuse(
			EINVAL,
			"an address without GRH: on Ethernet there is no other. The program "
			"must choose a GID; many have an option for its index");
	if (attr->port_num != 1)
		return vb_abi_refuse(EINVAL, "an address on port %u, there is only port 1",
				     attr->port_num);
	*address = (struct vb_address){
		.flow_label = attr->grh.flow_label & 0xfffff,
		.source_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.service_level = attr->sl,
	};
	memcpy(address->destination.raw, attr->grh.dgid.raw, sizeof(address->destination.raw));
	return 0;
}

int vb_abi_ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah_out)
{
	struct vb_adapter *adapter = adapter_of(pd->context);
	struct vb_address address;
	struct vb_abi_ah *ah;
	vb_err err;

	if (vb_abi_address(attr, &address))
		return EINVAL;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_ah_create(vb_abi_pd_of(pd), &address, &ah->ah);
	vb_adapter_leave(adapter);
	if (err) {
		free(ah);
		return vb_abi_refuse(
			vb_abi_errno(err),
			"ibv_create_ah: %s: there is no GID %u, or the destination's is zero "
			"or of the other IP version",
			vb_abi_device_name(pd->context), attr->grh.sgid_index);
	}
	*ah_out = &ah->verbs;
	return 0;
}

int vb_abi_ah_destroy(struct ibv_ah *ah)
{
	struct vb_abi_ah *own = VB_CONTAINER(ah, struct vb_abi_ah, verbs);
	struct vb_adapter *adapter = adapter_of(ah->context);

	vb_adapter_enter(adapter);
	vb_ah_destroy(own->ah);
	vb_adapter_leave(adapter);
	free(own);
	return 0;
}
