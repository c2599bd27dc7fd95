/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs that need little or nothing from the engine, and verbs that this adapter does not have. */
#include "abi/refuse_priv.h"

#include "base/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From madvise(2), since Linux 5.14. */
#define POPULATE_READ 22
#define POPULATE_WRITE 23

/* --- memory of objects --- */

#define ALIGNMENT 64u

static struct vb_abi_memory *memory_in(void *object, size_t memory_offset)
{
	return (struct vb_abi_memory *)(void *)((char *)object + memory_offset);
}

static void count_users(struct vb_abi_pd *pd, uint32_t change)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->verbs.context)->adapter;

	vb_adapter_enter(adapter);
	pd->user_count += change;
	vb_adapter_leave(adapter);
}

void *vb_abi_allocate(struct ibv_pd *pd, size_t size, size_t memory_offset,
		      enum vb_abi_resource kind)
{
	struct vb_abi_pd *own = pd ? VB_CONTAINER(pd, struct vb_abi_pd, verbs) : NULL;
	/* No kernel driver has this number. */
	const uint64_t resource = (uint64_t)UINT32_MAX << 32 | kind;
	void *object = IBV_ALLOCATOR_USE_DEFAULT;

	if (own && own->inner && own->parent.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS)
		object = own->parent.alloc(pd, own->parent.pd_context, size, ALIGNMENT, resource);
	if (object == IBV_ALLOCATOR_USE_DEFAULT)
		return vb_heap_alloc(1, size);
	if (!object)
		return NULL;
	memset(object, 0, size);
	*memory_in(object, memory_offset) = (struct vb_abi_memory){ own, resource };
	count_users(own, 1);
	return object;
}

void vb_abi_release(void *object, size_t memory_offset)
{
	struct vb_abi_memory memory = *memory_in(object, memory_offset);

	if (!memory.parent) {
		vb_heap_free(object);
		return;
	}
	memory.parent->parent.free(&memory.parent->verbs, memory.parent->parent.pd_context, object,
				   memory.resource);
	count_users(memory.parent, -1u);
}

/* --- advice --- */

static int refuse_range(const struct ibv_sge *range, enum vb_mr_use use)
{
	const char *why = "";
	int error = 0;

	switch (use) {
	case VB_MR_USABLE:
		return 0;
	case VB_MR_UNKNOWN:
		error = EFAULT;
		why = "there is no such key";
		break;
	case VB_MR_WINDOW:
		error = EINVAL;
		why = "it is a window's key";
		break;
	case VB_MR_OTHER_PD:
		error = EPERM;
		why = "the region is of another PD";
		break;
	case VB_MR_READ_ONLY:
		error = EPERM;
		why = "the region is not writable";
		break;
	case VB_MR_OUTSIDE:
		error = EFAULT;
		why = "not all of it is in the region";
		break;
	}
	return vb_abi_refuse(error,
			     "ibv_advise_mr: key 0x%08x, %" PRIu32 " bytes at 0x%" PRIx64 ": %s",
			     range->lkey, range->length, range->addr, why);
}

/* Asks the kernel for the pages. A kernel too old for that brings them in on the first access. */
static int prefetch(const struct ibv_sge *range, vb_dma_addr address, bool is_write)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = address & ~(page - 1);
	uint64_t to = (address + range->length + page - 1) & ~(page - 1);

	if (!syscall(SYS_madvise, from, to - from, is_write ? POPULATE_WRITE : POPULATE_READ))
		return 0;
	if (errno != ENOMEM && errno != EFAULT)
		return 0;
	return vb_abi_refuse(EFAULT,
			     "ibv_advise_mr: key 0x%08x: not all of %" PRIu32 " bytes at 0x%" PRIx64
			     " is memory of this process",
			     range->lkey, range->length, range->addr);
}

/* Without IBV_ADVISE_MR_FLAG_FLUSH the program does not ask for the result. */
int vb_abi_mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *ranges, uint32_t count)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
	bool is_write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int error = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return vb_abi_refuse(ENOTSUP, "ibv_advise_mr: advice %d, at most %d", (int)advice,
				     IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
	for (uint32_t i = 0; !error && i < count; i++) {
		const struct vb_sge *sge = (const struct vb_sge *)(const void *)&ranges[i];
		vb_dma_addr address = 0;

		vb_adapter_enter(adapter);
		error = refuse_range(&ranges[i],
				     vb_mr_check(vb_abi_pd_of(pd), sge, is_write, &address));
		vb_adapter_leave(adapter);
		if (error || !address || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			continue;
		error = prefetch(&ranges[i], address, is_write);
		if (!(flags & IBV_ADVISE_MR_FLAG_FLUSH))
			error = 0;
	}
	return error;
}

/* --- verbs that do not exist here --- */

int vb_abi_mr_register_dmabuf(struct ibv_pd *pd, int fd, const struct vb_abi_range *range,
			      struct ibv_mr **mr_out)
{
	(void)range;
	(void)mr_out;
	return vb_abi_refuse_at(EOPNOTSUPP, pd->context,
				"ibv_reg_dmabuf_mr: %s does not reach dma-bufs (descriptor %d)",
				vb_abi_device_name(pd->context), fd);
}

int vb_abi_qp_open(struct ibv_context *context, const struct ibv_qp_open_attr *attr,
		   struct ibv_qp **qp_out)
{
	(void)qp_out;
	return vb_abi_refuse_at(EOPNOTSUPP, context, "ibv_open_qp: %s does not share QPs (0x%06x)",
				vb_abi_device_name(context), attr->qp_num);
}

int vb_abi_ah_resolve(struct ibv_context *context, const struct ibv_ah_attr *attr,
		      uint8_t mac_out[ETHERNET_LL_SIZE], uint16_t *vlan_out)
{
	(void)attr;
	(void)mac_out;
	(void)vlan_out;
	return vb_abi_refuse_at(EOPNOTSUPP, context,
				"ibv_resolve_eth_l2_from_gid: %s leaves that to the kernel",
				vb_abi_device_name(context));
}
