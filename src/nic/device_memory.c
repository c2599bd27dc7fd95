/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory on the adapter: first fit in the area that the configuration names, kept as a list in
 * address order.
 */
#include "base/heap.h"
#include "nic/memory_priv.h"
#include "nic/nic_priv.h"

#define LOG_ALIGN_MAX 20

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

/*
 * Finds room for a block of that size. *before is the list entry that it goes in front of. 0 if
 * there is none.
 */
static vb_dma_addr find_gap(struct vb_nic *nic, uint64_t length, uint64_t alignment,
			    struct vb_list_node **before)
{
	uint64_t end = nic->config.device_memory + nic->config.device_memory_length;
	vb_dma_addr at = align_up(nic->config.device_memory, alignment);
	struct vb_list_node *node;

	for (node = nic->device_memories.next; node != &nic->device_memories; node = node->next) {
		const struct vb_dm *dm = VB_CONTAINER(node, struct vb_dm, node);

		if (at <= dm->address && length <= dm->address - at)
			break;
		at = align_up(dm->address + dm->length, alignment);
	}
	if (at > end || length > end - at)
		return 0;
	*before = node;
	return at;
}

vb_err vb_dm_create(struct vb_nic *nic, uint64_t length, uint32_t log_align, struct vb_dm **dm_out)
{
	struct vb_list_node *before;
	struct vb_dm *dm;
	vb_dma_addr at;

	if (!length || log_align > LOG_ALIGN_MAX)
		return VB_EINVAL;
	if (!nic->config.device_memory_length)
		return VB_EOPNOTSUPP;
	if (length > nic->config.device_memory_length)
		return VB_ENOMEM;
	at = find_gap(nic, align_up(length, 8), 1ull << (log_align < 3 ? 3 : log_align), &before);
	if (!at)
		return VB_ENOMEM;
	dm = vb_heap_alloc(1, sizeof(*dm));
	if (!dm)
		return VB_ENOMEM;
	dm->nic = nic;
	dm->address = at;
	dm->length = length;
	vb_list_append(before, &dm->node);
	nic->root_object_count++;
	*dm_out = dm;
	return VB_OK;
}

vb_err vb_dm_destroy(struct vb_dm *dm)
{
	if (dm->region_count)
		return VB_EBUSY;
	vb_list_remove(&dm->node);
	dm->nic->root_object_count--;
	vb_heap_free(dm);
	return VB_OK;
}

static bool is_part(const struct vb_dm *dm, uint64_t offset, uint64_t length)
{
	return !(offset & 3) && !(length & 3) && offset <= dm->length &&
	       length <= dm->length - offset;
}

vb_err vb_dm_copy_in(struct vb_dm *dm, uint64_t offset, const void *from, uint64_t length)
{
	if (!is_part(dm, offset, length))
		return VB_EINVAL;
	return vb_dma_write(dm->address + offset, from, length) ? VB_OK : VB_EFAULT;
}

vb_err vb_dm_copy_out(struct vb_dm *dm, uint64_t offset, void *to, uint64_t length)
{
	if (!is_part(dm, offset, length))
		return VB_EINVAL;
	return vb_dma_read(to, dm->address + offset, length) ? VB_OK : VB_EFAULT;
}
