/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The execution of requests in the memory of a peer on this host. We announce ourselves before we
 * look at the target's rows, and the target waits for us after it has changed one. The busy word is
 * the initiator's: only an engine's owner calls these functions.
 */
#include "host/dma_reach.h"

#include "base/dma.h"
#include "host/dma.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LAST_WORD 8u /* bytes at the end of a WRITE, written after all others */

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
	       syscall(SYS_process_vm_readv, (long)pid, &here, 1l, &there, 1l, 0l) ==
		       (long)sizeof(found) &&
	       found == content;
}

/*
 * Only we write the busy word. Its reader may be hostile, or its memory full of garbage: so the
 * word is incremented, not set.
 */
static void begin_access(struct vb_reach *reach)
{
	if (!reach->busy)
		return;
		/*
		 * Pairs with the fence of the target that waits for us: either we see the row that
		 * the target has changed, or the target sees us.
		 */
#ifdef __x86_64__
	/* On x86-64, this is also a fence. */
	atomic_fetch_add_explicit(reach->busy, 1, memory_order_seq_cst);
#else
	atomic_fetch_add_explicit(reach->busy, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static void end_access(struct vb_reach *reach)
{
	uint32_t word;

	if (!reach->busy)
		return;
	word = atomic_load_explicit(reach->busy, memory_order_relaxed);
	atomic_store_explicit(reach->busy, word + 1, memory_order_release);
}

/* --- the shared-memory link --- */

uint64_t vb_dma_reach_shm_link_end(const struct vb_reach *reach)
{
	return reach->shm_link ? reach->shm_link_before + reach->shm_link->produced : 0;
}

/* The target reports a packet as read after it has executed it. */
bool vb_dma_reach_has_read(const struct vb_reach *reach, uint64_t shm_link_end)
{
	if (!reach->shm_link || shm_link_end <= reach->shm_link_before)
		return true;
	return atomic_load_explicit(&reach->shm_link->memory->consumed, memory_order_acquire) >=
	       shm_link_end - reach->shm_link_before;
}

bool vb_dma_reach_is_on_wire(const struct vb_reach *reach, const struct vb_reach_asker *asker)
{
	return vb_reach_is_on_wire(&reach->tables, asker);
}

/* Where the part of a request lies. */
struct place {
	uint64_t address;
	bool is_here; /* in this process: its own memory, or a mapping */
};

/* Finds the address in this process, if we have the mapping that the region lies in. */
static bool find_or_want_segment(struct vb_reach *reach, const struct vb_key_row *row,
				 uint64_t address, uint32_t length, uint64_t *here_out)
{
	struct vb_reach_segment *segment;
	uint64_t offset;

	if (!row->segment || !reach->segments)
		return false;
	segment = vb_dma_reach_segment_of(reach, row->segment);
	offset = address - segment->address;
	if (segment->number != row->segment) {
		reach->wanted_segment = row->segment;
		if (reach->wants_segment)
			*reach->wants_segment = true;
	}
	if (segment->number != row->segment || !segment->bytes || offset > segment->length ||
	    length > segment->length - offset)
		return false;
	*here_out = (uintptr_t)segment->bytes + offset;
	return true;
}

/* False if the memory must not be accessed. */
static inline __attribute__((always_inline)) bool resolve(struct vb_reach *reach,
							  const struct vb_reach_request *request,
							  struct place *place)
{
	const struct vb_key_row *row;
	uint64_t address;

	if (reach->mark && !vb_dma_reach_is_alive(reach->mark))
		return false;
	/*
	 * Pairs with the store that opens the target again: the rows that we see are at least as
	 * new.
	 */
	if (reach->is_closed && atomic_load_explicit(reach->is_closed, memory_order_acquire))
		return false;
	row = vb_reach_check(&reach->tables, request);
	if (!row)
		return false;
	address = row->address + (request->address - row->iova) + request->offset;
	place->address = address;
	place->is_here =
		reach->way == VB_REACH_OWN || !request->length ||
		find_or_want_segment(reach, row, address, request->part_length, &place->address);
	return true;
}

/* --- memory that is mapped here --- */

/* Copies between two places of application memory, through a buffer of ours. */
static __attribute__((noinline)) bool copy_by_pieces(uint64_t to, uint64_t from, uint32_t length)
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

static bool copy_here(uint64_t to, uint64_t from, uint32_t length)
{
	uint8_t bytes[64];

	if (length <= sizeof(bytes))
		return vb_dma_read(bytes, from, length) && vb_dma_write(to, bytes, length);
	return vb_dma_can_copy(to, length) ? vb_dma_copy(to, from, length)
					   : copy_by_pieces(to, from, length);
}

static bool write_here(uint64_t to, const struct vb_reach_request *request)
{
	if (request->bytes)
		return vb_dma_write(to, request->bytes, request->part_length);
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!copy_here(to, request->spans[i].address, request->spans[i].length))
			return false;
		to += request->spans[i].length;
	}
	return true;
}

static bool read_here(uint64_t from, const struct vb_reach_request *request)
{
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!copy_here(request->spans[i].address, from, request->spans[i].length))
			return false;
		from += request->spans[i].length;
	}
	return true;
}

/* --- another process --- */

/* What one system call moves: local and remote memory, in the same order. */
struct move {
	struct iovec local[VB_REACH_WRITES_MAX + VB_SGE_MAX];
	struct iovec remote[2 * VB_REACH_WRITES_MAX];
	uint32_t local_count;
	uint32_t remote_count;
};

static struct iovec make_iovec(uint64_t address, uint64_t length)
{
	return (struct iovec){ (void *)(uintptr_t)address, length };
}

/* The kernel goes from one part to the next: the bytes of the last part come last. */
static void add(struct move *move, const struct vb_reach_request *request, uint64_t address)
{
	uint32_t length = request->part_length;
	uint32_t first = length > LAST_WORD ? (length - 1) / LAST_WORD * LAST_WORD : 0;

	if (request->bytes)
		move->local[move->local_count++] = make_iovec((uintptr_t)request->bytes, length);
	for (uint32_t i = 0; i < request->span_count; i++)
		move->local[move->local_count++] =
			make_iovec(request->spans[i].address, request->spans[i].length);
	if (first)
		move->remote[move->remote_count++] = make_iovec(address, first);
	move->remote[move->remote_count++] = make_iovec(address + first, length - first);
}

/* Returns how many bytes were moved. */
static uint64_t execute_move(const struct vb_reach *reach, long call, const struct move *move)
{
	long moved = syscall(call, (long)reach->pid, move->local, (long)move->local_count,
			     move->remote, (long)move->remote_count, 0l);

	return moved < 0 ? 0 : (uint64_t)moved;
}

/* How many of the requests this many bytes complete. */
static uint32_t count_whole(const struct vb_reach_request *requests, uint32_t count, uint64_t bytes)
{
	uint32_t whole = 0;

	while (whole < count && bytes >= requests[whole].part_length)
		bytes -= requests[whole++].part_length;
	return whole;
}

static __attribute__((noinline)) uint32_t write_by_process(struct vb_reach *reach,
							   const struct vb_reach_request *requests,
							   uint32_t count)
{
	struct move move;
	struct place place;
	uint32_t i = 0;

	move.local_count = move.remote_count = 0; /* the counts limit the arrays */
	while (i < count && resolve(reach, &requests[i], &place) && !place.is_here)
		add(&move, &requests[i++], place.address);
	if (!i)
		return 0;
	return count_whole(requests, i, execute_move(reach, SYS_process_vm_writev, &move));
}

/*
 * Executes requests from the first on, as long as they are all in memory that is mapped here, or
 * all are not.
 */
static uint32_t write_some(struct vb_reach *reach, const struct vb_reach_request *requests,
			   uint32_t count)
{
	struct place place;
	uint32_t i = 0;

	while (i < count && resolve(reach, &requests[i], &place) && place.is_here &&
	       write_here(place.address, &requests[i]))
		i++;
	if (i || reach->way != VB_REACH_PROCESS)
		return i;
	return write_by_process(reach, requests, count);
}

uint32_t vb_dma_reach_write(struct vb_reach *reach, const struct vb_reach_request *requests,
			    uint32_t count)
{
	uint32_t done;

	if (!reach->tables.qp_rows)
		return 0;
	begin_access(reach);
	done = write_some(reach, requests, count);
	end_access(reach);
	return done;
}

static __attribute__((noinline)) bool read_by_process(const struct vb_reach *reach,
						      const struct vb_reach_request *request,
						      uint64_t address)
{
	struct move move;

	move.local_count = move.remote_count = 0;
	add(&move, request, address);
	return execute_move(reach, SYS_process_vm_readv, &move) == request->part_length;
}

static bool read_part(struct vb_reach *reach, const struct vb_reach_request *request)
{
	struct place place;

	if (!resolve(reach, request, &place))
		return false;
	if (place.is_here)
		return read_here(place.address, request);
	return reach->way == VB_REACH_PROCESS && read_by_process(reach, request, place.address);
}

bool vb_dma_reach_read(struct vb_reach *reach, const struct vb_reach_request *request)
{
	bool is_done;

	if (!reach->tables.qp_rows)
		return false;
	begin_access(reach);
	is_done = read_part(reach, request);
	end_access(reach);
	return is_done;
}

static bool execute_atomic(struct vb_reach *reach, const struct vb_reach_request *request,
			   const struct vb_reach_atomic *atomic, uint64_t *old_out)
{
	struct place place;

	if (!resolve(reach, request, &place) || !place.is_here || place.address & 7)
		return false;
	return atomic->is_compare ? vb_dma_compare_swap(place.address, atomic->compare,
							atomic->swap_or_add, old_out)
				  : vb_dma_fetch_add(place.address, atomic->swap_or_add, old_out);
}

/*
 * The kernel would copy, and a copy is not atomic. So an atomic works only where the page is mapped
 * here.
 */
bool vb_dma_reach_atomic(struct vb_reach *reach, const struct vb_reach_request *request,
			 const struct vb_reach_atomic *atomic, uint64_t *old_out)
{
	bool is_done;

	if (request->address & 7 || !reach->tables.qp_rows)
		return false;
	begin_access(reach);
	is_done = execute_atomic(reach, request, atomic, old_out);
	end_access(reach);
	return is_done;
}
