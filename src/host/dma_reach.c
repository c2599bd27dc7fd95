/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executing requests in the memory of a peer on this host. We announce ourselves before we look at the target's rows, and
 * it waits for us after it has changed one. The busy word is the initiator's: only an engine's owner calls this.
 */
#include "host/dma_reach.h"

#include "base/dma.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LAST_WORD 8u /* bytes at the end of a WRITE that come after all others */

bool vb_dma_reach_is_alive(const _Atomic uint32_t *mark)
{
	uint32_t word = atomic_load_explicit(mark, memory_order_acquire);

	return word & FUTEX_TID_MASK && !(word & FUTEX_OWNER_DIED);
}

bool vb_dma_reach_probe(pid_t pid, uint64_t address, uint64_t content)
{
	uint64_t found = 0;
	struct iovec here = { &found, sizeof(found) };
	struct iovec there = { (void *)(uintptr_t)address, sizeof(found) };

	return pid > 0 &&
	       syscall(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0) == (long)sizeof(found) &&
	       found == content;
}

static void announce(struct vb_reach *reach)
{
	if (!reach->busy)
		return;
	atomic_fetch_add_explicit(reach->busy, 1, memory_order_relaxed);
	/* Pairs with the fence of whoever waits for us: either we see the row that he has changed, or he sees us. */
	atomic_thread_fence(memory_order_seq_cst);
}

static void withdraw(struct vb_reach *reach)
{
	if (reach->busy)
		atomic_fetch_add_explicit(reach->busy, 1, memory_order_release);
}

/* Where the part lies at the target; false if it may not be reached. */
static bool resolve(const struct vb_reach *reach, const struct vb_reach_request *request,
		    uint64_t *address_out)
{
	struct vb_key_row row;

	if (reach->mark && !vb_dma_reach_is_alive(reach->mark))
		return false;
	if (reach->is_closed && atomic_load_explicit(reach->is_closed, memory_order_relaxed))
		return false;
	if (!vb_reach_check(&reach->tables, request, &row))
		return false;
	*address_out = row.address + (request->address - row.iova) + request->offset;
	return true;
}

/* --- this process --- */

/* Between two places of application memory, by way of ours. */
static bool copy_own(uint64_t to, uint64_t from, uint32_t length)
{
	uint8_t bytes[4096];

	while (length) {
		uint32_t part = length < sizeof(bytes) ? length : (uint32_t)sizeof(bytes);

		if (!vb_dma_read(bytes, from, part) || !vb_dma_write(to, bytes, part))
			return false;
		to += part;
		from += part;
		length -= part;
	}
	return true;
}

static bool write_own(uint64_t to, const struct vb_reach_request *request)
{
	if (request->bytes)
		return vb_dma_write(to, request->bytes, request->part_length);
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!copy_own(to, request->spans[i].address, request->spans[i].length))
			return false;
		to += request->spans[i].length;
	}
	return true;
}

static bool read_own(uint64_t from, const struct vb_reach_request *request)
{
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!copy_own(request->spans[i].address, from, request->spans[i].length))
			return false;
		from += request->spans[i].length;
	}
	return true;
}

/* --- another process --- */

static uint32_t fill_local(struct iovec *parts, const struct vb_reach_request *request)
{
	if (request->bytes) {
		parts[0] =
			(struct iovec){ (void *)(uintptr_t)request->bytes, request->part_length };
		return 1;
	}
	for (uint32_t i = 0; i < request->span_count; i++)
		parts[i] = (struct iovec){ (void *)(uintptr_t)request->spans[i].address,
					   request->spans[i].length };
	return request->span_count;
}

/* The kernel goes from one part to the next: what is in the last one comes last. */
static uint32_t fill_remote(struct iovec parts[2], uint64_t address, uint32_t length)
{
	uint32_t first = length > LAST_WORD ? (length - 1) / LAST_WORD * LAST_WORD : 0;

	if (!first) {
		parts[0] = (struct iovec){ (void *)(uintptr_t)address, length };
		return 1;
	}
	parts[0] = (struct iovec){ (void *)(uintptr_t)address, first };
	parts[1] = (struct iovec){ (void *)(uintptr_t)(address + first), length - first };
	return 2;
}

static bool move(const struct vb_reach *reach, long call, uint64_t address,
		 const struct vb_reach_request *request)
{
	struct iovec local[VB_SGE_MAX];
	struct iovec remote[2];
	uint32_t local_count = fill_local(local, request);
	uint32_t remote_count = fill_remote(remote, address, request->part_length);

	return syscall(call, reach->pid, local, local_count, remote, remote_count, 0) ==
	       (long)request->part_length;
}

/* --- both --- */

static bool execute(struct vb_reach *reach, const struct vb_reach_request *request, bool is_write)
{
	uint64_t address;

	if (!resolve(reach, request, &address))
		return false;
	switch (reach->way) {
	case VB_REACH_OWN:
		return is_write ? write_own(address, request) : read_own(address, request);
	case VB_REACH_PROCESS:
		return move(reach, is_write ? SYS_process_vm_writev : SYS_process_vm_readv, address,
			    request);
	case VB_REACH_CLOSED:
		break;
	}
	return false;
}

static bool execute_announced(struct vb_reach *reach, const struct vb_reach_request *request,
			      bool is_write)
{
	bool is_done;

	if (reach->way == VB_REACH_CLOSED)
		return false;
	announce(reach);
	is_done = execute(reach, request, is_write);
	withdraw(reach);
	return is_done;
}

bool vb_dma_reach_write(struct vb_reach *reach, const struct vb_reach_request *request)
{
	return execute_announced(reach, request, true);
}

bool vb_dma_reach_read(struct vb_reach *reach, const struct vb_reach_request *request)
{
	return execute_announced(reach, request, false);
}

/* The kernel copies, and a copy is not atomic: only where we have the page ourselves. */
bool vb_dma_reach_atomic(struct vb_reach *reach, const struct vb_reach_request *request,
			 const struct vb_reach_atomic *atomic, uint64_t *old_out)
{
	uint64_t address;

	if (reach->way != VB_REACH_OWN || request->address & 7 ||
	    !resolve(reach, request, &address) || address & 7)
		return false;
	return atomic->is_compare
		       ? vb_dma_compare_swap(address, atomic->compare, atomic->swap_or_add, old_out)
		       : vb_dma_fetch_add(address, atomic->swap_or_add, old_out);
}
