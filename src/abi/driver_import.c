/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects accessible through more than one context of an open device. An import is a second public
 * struct for the same object of the engine. Any holder may destroy the object; the other holders
 * may then only unimport theirs.
 */
#include "abi/refuse_priv.h"

#include "base/heap.h"

#include <errno.h>
#include <inttypes.h>

void vb_abi_handle_add(struct vb_list_node *list, struct vb_abi_handle *handle, uint32_t number)
{
	handle->number = number;
	handle->is_shared = false;
	vb_list_append(list, &handle->node);
}

static struct vb_abi_handle *find(const struct vb_list_node *list, uint32_t number)
{
	for (struct vb_list_node *node = list->next; node != list; node = node->next) {
		struct vb_abi_handle *handle = VB_CONTAINER(node, struct vb_abi_handle, node);

		if (handle->number == number)
			return handle;
	}
	return NULL;
}

void vb_abi_handle_remove(struct vb_list_node *list, struct vb_abi_handle *handle)
{
	struct vb_abi_handle *other;

	vb_list_remove(&handle->node);
	while (handle->is_shared && (other = find(list, handle->number)))
		vb_list_remove(&other->node);
}

/* Adds an import with the same number. */
static void add_import(struct vb_list_node *list, struct vb_abi_handle *original,
		       struct vb_abi_handle *import)
{
	vb_abi_handle_add(list, import, original->number);
	original->is_shared = import->is_shared = true;
}

/* Releases a public struct. The object stays as long as another struct refers to it. */
static void unimport(struct ibv_context *context, struct vb_abi_handle *handle)
{
	struct vb_adapter *adapter = vb_abi_context_of(context)->adapter;

	vb_adapter_enter(adapter);
	vb_list_remove(&handle->node);
	vb_adapter_leave(adapter);
}

int vb_abi_pd_import(struct ibv_context *context, uint32_t handle, struct ibv_pd **pd_out)
{
	struct vb_abi_opened *opened = vb_abi_context_of(context)->opened;
	struct vb_abi_pd *pd = vb_heap_alloc(1, sizeof(*pd));
	struct vb_abi_handle *original;

	if (!pd)
		return ENOMEM;
	vb_adapter_enter(opened->adapter);
	original = find(&opened->pds, handle);
	if (original) {
		pd->pd = VB_CONTAINER(original, struct vb_abi_pd, handle)->pd;
		add_import(&opened->pds, original, &pd->handle);
	}
	vb_adapter_leave(opened->adapter);
	if (!original) {
		vb_heap_free(pd);
		return vb_abi_refuse(EINVAL, "ibv_import_pd: no PD of %s has handle %" PRIu32,
				     opened->device.name, handle);
	}
	*pd_out = &pd->verbs;
	return 0;
}

void vb_abi_pd_unimport(struct ibv_pd *pd)
{
	struct vb_abi_pd *own = VB_CONTAINER(pd, struct vb_abi_pd, verbs);

	unimport(pd->context, &own->handle);
	vb_heap_free(own);
}

/* Does not report the address: it may mean nothing to the importer. */
int vb_abi_mr_import(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **mr_out)
{
	struct vb_abi_opened *opened = vb_abi_context_of(pd->context)->opened;
	struct vb_abi_mr *mr = vb_heap_alloc(1, sizeof(*mr));
	struct vb_abi_handle *original;

	if (!mr)
		return ENOMEM;
	vb_adapter_enter(opened->adapter);
	original = find(&opened->mrs, handle);
	if (original) {
		const struct vb_abi_mr *from = VB_CONTAINER(original, struct vb_abi_mr, handle);

		mr->mr = from->mr;
		mr->verbs.lkey = mr->verbs.rkey = vb_mr_key(from->mr);
		mr->verbs.length = from->verbs.length;
		add_import(&opened->mrs, original, &mr->handle);
	}
	vb_adapter_leave(opened->adapter);
	if (!original) {
		vb_heap_free(mr);
		return vb_abi_refuse(EINVAL, "ibv_import_mr: no region of %s has handle %" PRIu32,
				     opened->device.name, handle);
	}
	*mr_out = &mr->verbs;
	return 0;
}

void vb_abi_mr_unimport(struct ibv_mr *mr)
{
	struct vb_abi_mr *own = VB_CONTAINER(mr, struct vb_abi_mr, verbs);

	unimport(mr->context, &own->handle);
	vb_heap_free(own);
}

int vb_abi_dm_import(struct ibv_context *context, uint32_t handle, struct ibv_dm **dm_out)
{
	struct vb_abi_opened *opened = vb_abi_context_of(context)->opened;
	struct vb_abi_dm *dm = vb_heap_alloc(1, sizeof(*dm));
	struct vb_abi_handle *original;

	if (!dm)
		return ENOMEM;
	vb_adapter_enter(opened->adapter);
	original = find(&opened->dms, handle);
	if (original) {
		dm->dm = VB_CONTAINER(original, struct vb_abi_dm, handle)->dm;
		dm->length = VB_CONTAINER(original, struct vb_abi_dm, handle)->length;
		add_import(&opened->dms, original, &dm->handle);
	}
	vb_adapter_leave(opened->adapter);
	if (!original) {
		vb_heap_free(dm);
		return vb_abi_refuse(EINVAL,
				     "ibv_import_dm: no device memory of %s has handle %" PRIu32,
				     opened->device.name, handle);
	}
	vb_abi_dm_init(&dm->verbs);
	dm->verbs.handle = handle;
	*dm_out = &dm->verbs;
	return 0;
}

void vb_abi_dm_unimport(struct ibv_dm *dm)
{
	struct vb_abi_dm *own = VB_CONTAINER(dm, struct vb_abi_dm, verbs);

	unimport(dm->context, &own->handle);
	vb_heap_free(own);
}
