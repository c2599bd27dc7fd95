/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection, parent, thread and XRC domains, in which other objects are made. */
#include "abi/refuse_priv.h"

#include "base/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

int vb_abi_pd_alloc(struct ibv_context *context, struct ibv_pd **pd_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(context)->adapter;
	struct vb_abi_opened *opened = vb_abi_context_of(context)->opened;
	struct vb_abi_pd *pd;
	vb_err err;

	pd = vb_heap_alloc(1, sizeof(*pd));
	if (!pd)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_pd_create(vb_adapter_nic(adapter), &pd->pd);
	if (!err)
		vb_abi_handle_add(&opened->pds, &pd->handle, ++opened->handle_next);
	vb_adapter_leave(adapter);
	if (err) {
		vb_heap_free(pd);
		return vb_abi_errno(err);
	}
	pd->verbs.handle = pd->handle.number;
	*pd_out = &pd->verbs;
	return 0;
}

int vb_abi_pd_alloc_parent(struct ibv_context *context,
			   const struct ibv_parent_domain_init_attr *attr, struct ibv_pd **pd_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(context)->adapter;
	struct vb_abi_pd *pd = vb_heap_alloc(1, sizeof(*pd));

	if (!pd)
		return ENOMEM;
	pd->pd = vb_abi_pd_of(attr->pd);
	pd->inner = VB_CONTAINER(attr->pd, struct vb_abi_pd, verbs);
	pd->td = attr->td ? VB_CONTAINER(attr->td, struct vb_abi_td, verbs) : NULL;
	pd->parent = *attr;
	pd->verbs.handle = attr->pd->handle;
	vb_list_init(&pd->handle.node);
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
		vb_abi_handle_remove(&vb_abi_context_of(pd->verbs.context)->opened->pds,
				     &pd->handle);
	return err;
}

int vb_abi_pd_dealloc(struct ibv_pd *pd)
{
	struct vb_abi_pd *own = VB_CONTAINER(pd, struct vb_abi_pd, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
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
	vb_heap_free(own);
	return 0;
}

int vb_abi_td_alloc(struct ibv_context *context, struct ibv_td **td_out)
{
	struct vb_abi_td *td = vb_heap_alloc(1, sizeof(*td));

	(void)context;
	if (!td)
		return ENOMEM;
	*td_out = &td->verbs;
	return 0;
}

/*
 * A thread domain promises that only one thread uses its objects; this adapter gains nothing from
 * it.
 */
int vb_abi_td_dealloc(struct ibv_td *td)
{
	struct vb_abi_td *own = VB_CONTAINER(td, struct vb_abi_td, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(td->context)->adapter;
	uint32_t users;

	vb_adapter_enter(adapter);
	users = own->user_count;
	vb_adapter_leave(adapter);
	if (users)
		return vb_abi_refuse(EBUSY, "ibv_dealloc_td: still in %" PRIu32 " parent domains",
				     users);
	vb_heap_free(own);
	return 0;
}

/* The domain that this file identifies on the device, or NULL. Under the adapter's ownership. */
static struct vb_abi_xrc_domain *find_domain(struct vb_abi_opened *opened, const struct stat *file)
{
	for (struct vb_list_node *node = opened->xrc_domains.next; node != &opened->xrc_domains;
	     node = node->next) {
		struct vb_abi_xrc_domain *domain =
			VB_CONTAINER(node, struct vb_abi_xrc_domain, node);

		if (domain->has_file && domain->device == file->st_dev &&
		    domain->inode == file->st_ino)
			return domain;
	}
	return NULL;
}

static int make_domain(struct vb_abi_opened *opened, const struct stat *file,
		       struct vb_abi_xrc_domain **domain_out)
{
	struct vb_abi_xrc_domain *domain = vb_heap_alloc(1, sizeof(*domain));
	vb_err err;

	if (!domain)
		return ENOMEM;
	err = vb_xrcd_create(vb_adapter_nic(opened->adapter), &domain->xrcd);
	if (err) {
		vb_heap_free(domain);
		return vb_abi_errno(err);
	}
	if (file) {
		domain->has_file = true;
		domain->device = file->st_dev;
		domain->inode = file->st_ino;
	}
	vb_list_append(&opened->xrc_domains, &domain->node);
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
	if (!domain)
		return error;
	domain->open_count++;
	*domain_out = domain;
	return 0;
}

/* A file identifies a domain within this process; other processes that open it get their own. */
int vb_abi_xrcd_open(struct ibv_context *context, const struct ibv_xrcd_init_attr *attr,
		     struct ibv_xrcd **xrcd_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_abi_xrcd *xrcd;
	struct stat file;
	int error;

	if (attr->fd != -1 && fstat(attr->fd, &file))
		return vb_abi_refuse(errno, "ibv_open_xrcd: %d is no descriptor", attr->fd);
	xrcd = vb_heap_alloc(1, sizeof(*xrcd));
	if (!xrcd)
		return ENOMEM;
	vb_adapter_enter(own->adapter);
	error = open_domain(own->opened, attr->fd != -1 ? &file : NULL, attr->oflags,
			    &xrcd->domain);
	vb_adapter_leave(own->adapter);
	if (error) {
		vb_heap_free(xrcd);
		return error;
	}
	*xrcd_out = &xrcd->verbs;
	return 0;
}

int vb_abi_xrcd_close(struct ibv_xrcd *xrcd)
{
	struct vb_abi_xrcd *own = VB_CONTAINER(xrcd, struct vb_abi_xrcd, verbs);
	struct vb_abi_xrc_domain *domain = own->domain;
	struct vb_adapter *adapter = vb_abi_context_of(xrcd->context)->adapter;
	vb_err err = VB_OK;

	vb_adapter_enter(adapter);
	if (domain->open_count == 1)
		err = vb_xrcd_destroy(domain->xrcd);
	if (!err && !--domain->open_count) {
		vb_list_remove(&domain->node);
		vb_heap_free(domain);
	}
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_close_xrcd: the domain still has SRQs or QPs");
	vb_heap_free(own);
	return 0;
}
