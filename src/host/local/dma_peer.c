/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The execution of requests in the memory of a peer on this host. We announce ourselves before we
 * look at the target's rows, and the target waits for us after it has changed one. The busy word is
 * the initiator's: only an engine's owner calls these functions.
 */
#include "host/local/dma_peer.h"

#include "base/dma.h"
#include "base/err.h"
#include "host/memory/dma.h"
#include "host/registry/totals.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LAST_WORD 8u /* bytes at the end of a WRITE, written after all others */

bool vb_dma_peer_is_alive(const _Atomic uint32_t *mark)
{
	uint32_t word = atomic_load_explicit(mark, memory_order_acquire);

	return word & FUTEX_TID_MASK && !(word & FUTEX_OWNER_DIED);
}

bool vb_dma_peer_probe(pid_t pid, uint64_t address, uint64_t content)
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
static void begin_access(struct vb_peer_memory *peer_memory)
{
	if (!peer_memory->busy)
		return;
		/*
		 * Pairs with the fence of the target that waits for us: either we see the row that
		 * the target has changed, or the target sees us.
		 */
#ifdef __x86_64__
	/* On x86-64, this is also a fence. */
	atomic_fetch_add_explicit(peer_memory->busy, 1, memory_order_seq_cst);
#else
	atomic_fetch_add_explicit(peer_memory->busy, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static void end_access(struct vb_peer_memory *peer_memory)
{
	uint32_t word;

	if (!peer_memory->busy)
		return;
	word = atomic_load_explicit(peer_memory->busy, memory_order_relaxed);
	atomic_store_explicit(peer_memory->busy, word + 1, memory_order_release);
}

/* --- the shared-memory link --- */

uint64_t vb_dma_peer_shm_link_end(const struct vb_peer_memory *peer_memory)
{
	return peer_memory->shm_link
		       ? peer_memory->shm_link_before + peer_memory->shm_link->produced
		       : 0;
}

/* The target reports a packet as read after it has executed it. */
bool vb_dma_peer_has_read(const struct vb_peer_memory *peer_memory, uint64_t shm_link_end)
{
	if (!peer_memory->shm_link || shm_link_end <= peer_memory->shm_link_before)
		return true;
	return atomic_load_explicit(&peer_memory->shm_link->memory->consumed,
				    memory_order_acquire) >=
	       shm_link_end - peer_memory->shm_link_before;
}

bool vb_dma_peer_is_on_wire(const struct vb_peer_memory *peer_memory,
			    const struct vb_peer_memory_initiator *initiator)
{
	return vb_peer_memory_is_on_wire(&peer_memory->tables, initiator);
}

/* Where the part of a request lies. */
struct place {
	uint64_t address;
	bool is_here; /* in this process: its own memory, or a mapping */
};

/* Finds the address in this process, if we have the mapping that the region lies in. */
static bool find_or_want_segment(struct vb_peer_memory *peer_memory, const struct vb_key_row *row,
				 uint64_t address, uint32_t length, uint64_t *here_out)
{
	struct vb_peer_memory_segment *segment;
	uint64_t offset;

	if (!row->segment || !peer_memory->segments)
		return false;
	segment = vb_dma_peer_segment_of(peer_memory, row->segment);
	offset = address - segment->address;
	if (segment->number != row->segment) {
		peer_memory->wanted_segment = row->segment;
		if (peer_memory->wants_segment)
			*peer_memory->wants_segment = true;
	}
	if (segment->number != row->segment || !segment->bytes || offset > segment->length ||
	    length > segment->length - offset)
		return false;
	*here_out = (uintptr_t)segment->bytes + offset;
	return true;
}

static bool is_open(const struct vb_peer_memory *peer_memory)
{
	if (peer_memory->mark && !vb_dma_peer_is_alive(peer_memory->mark))
		return false;
	/*
	 * Pairs with the store that opens the target again: the rows that we see are at least as
	 * new.
	 */
	return !peer_memory->is_closed ||
	       !atomic_load_explicit(peer_memory->is_closed, memory_order_acquire);
}

/* False if the memory must not be accessed. */
static inline __attribute__((always_inline)) bool resolve(
	struct vb_peer_memory *peer_memory, const struct vb_peer_memory_request *request,
	struct place *place)
{
	const struct vb_key_row *row;
	uint64_t address;

	if (!is_open(peer_memory))
		return false;
	row = vb_peer_memory_check(&peer_memory->tables, request);
	if (!row)
		return false;
	address = row->address + (request->address - row->iova) + request->offset;
	place->address = address;
	place->is_here = peer_memory->method == VB_PEER_MEMORY_OWN || !request->length ||
			 find_or_want_segment(peer_memory, row, address, request->part_length,
					      &place->address);
	return true;
}

/* Counts parts of requests that are executed. The last part completes the operation. */
static void count_written(const struct vb_peer_memory *peer_memory,
			  const struct vb_peer_memory_request *requests, uint32_t count)
{
	struct vb_totals_direct *direct = peer_memory->direct;

	for (uint32_t i = 0; direct && i < count; i++) {
		direct->written += requests[i].part_length;
		direct->ops += requests[i].offset + requests[i].part_length == requests[i].length;
	}
}

static void count_read(const struct vb_peer_memory *peer_memory,
		       const struct vb_peer_memory_request *request)
{
	struct vb_totals_direct *direct = peer_memory->direct;

	if (!direct)
		return;
	direct->read += request->part_length;
	direct->ops += request->offset + request->part_length == request->length;
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

	if (vb_dma_can_copy_word(to, length))
		return vb_dma_copy_word(to, from);
	if (length <= sizeof(bytes))
		return vb_dma_read(bytes, from, length) && vb_dma_write(to, bytes, length);
	return vb_dma_can_copy(to, length) ? vb_dma_copy(to, from, length)
					   : copy_by_pieces(to, from, length);
}

static bool write_here(uint64_t to, const struct vb_peer_memory_request *request)
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

static bool read_here(uint64_t from, const struct vb_peer_memory_request *request)
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
	struct iovec local[VB_PEER_MEMORY_WRITES_MAX + VB_SGE_MAX];
	struct iovec remote[2 * VB_PEER_MEMORY_WRITES_MAX];
	uint32_t local_count;
	uint32_t remote_count;
};

static struct iovec make_iovec(uint64_t address, uint64_t length)
{
	return (struct iovec){ (void *)(uintptr_t)address, length };
}

/* The kernel goes from one part to the next: the bytes of the last part come last. */
static void add_remote(struct move *move, uint64_t address, uint32_t length)
{
	uint32_t first = length > LAST_WORD ? (length - 1) / LAST_WORD * LAST_WORD : 0;

	if (first)
		move->remote[move->remote_count++] = make_iovec(address, first);
	move->remote[move->remote_count++] = make_iovec(address + first, length - first);
}

static void add(struct move *move, const struct vb_peer_memory_request *request, uint64_t address)
{
	if (request->bytes)
		move->local[move->local_count++] =
			make_iovec((uintptr_t)request->bytes, request->part_length);
	for (uint32_t i = 0; i < request->span_count; i++)
		move->local[move->local_count++] =
			make_iovec(request->spans[i].address, request->spans[i].length);
	add_remote(move, address, request->part_length);
}

/* Returns how many bytes were moved. */
static uint64_t execute_move(const struct vb_peer_memory *peer_memory, long call,
			     const struct move *move)
{
	long moved = syscall(call, (long)peer_memory->pid, move->local, (long)move->local_count,
			     move->remote, (long)move->remote_count, 0l);

	return moved < 0 ? 0 : (uint64_t)moved;
}

/* How many of the requests this many bytes complete. */
static uint32_t count_whole(const struct vb_peer_memory_request *requests, uint32_t count,
			    uint64_t bytes)
{
	uint32_t whole = 0;

	while (whole < count && bytes >= requests[whole].part_length)
		bytes -= requests[whole++].part_length;
	return whole;
}

static __attribute__((noinline)) uint32_t write_by_process(
	struct vb_peer_memory *peer_memory, const struct vb_peer_memory_request *requests,
	uint32_t count)
{
	struct move move;
	struct place place;
	uint32_t i = 0;

	move.local_count = move.remote_count = 0; /* the counts limit the arrays */
	while (i < count && resolve(peer_memory, &requests[i], &place) && !place.is_here)
		add(&move, &requests[i++], place.address);
	if (!i)
		return 0;
	return count_whole(requests, i, execute_move(peer_memory, SYS_process_vm_writev, &move));
}

/*
 * Executes requests from the first on, as long as they are all in memory that is mapped here, or
 * all are not.
 */
static uint32_t write_some(struct vb_peer_memory *peer_memory,
			   const struct vb_peer_memory_request *requests, uint32_t count)
{
	struct place place;
	uint32_t i = 0;

	while (i < count && resolve(peer_memory, &requests[i], &place) && place.is_here &&
	       write_here(place.address, &requests[i])) {
		requests[i].initiator->shift = place.address - requests[i].address;
		i++;
	}
	if (i || peer_memory->method != VB_PEER_MEMORY_PROCESS)
		return i;
	return write_by_process(peer_memory, requests, count);
}

/* A program that waits for the word has the line in its CPU's cache. */
VB_INLINE void vb_dma_peer_expect_write(const struct vb_peer_memory_initiator *initiator,
					uint64_t address)
{
	const uint8_t *line = (const uint8_t *)(uintptr_t)(address + initiator->shift);

	if (!initiator->shift)
		return;
#ifdef __x86_64__
	/* The compiler's own prefetch asks for a line to read, unless it knows the CPU. */
	__asm__ volatile("prefetchw\t%0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

uint32_t vb_dma_peer_write(struct vb_peer_memory *peer_memory,
			   const struct vb_peer_memory_request *requests, uint32_t count)
{
	uint32_t done;

	if (!peer_memory->tables.qp_rows)
		return 0;
	begin_access(peer_memory);
	done = write_some(peer_memory, requests, count);
	end_access(peer_memory);
	count_written(peer_memory, requests, done);
	return done;
}

static __attribute__((noinline)) bool read_by_process(const struct vb_peer_memory *peer_memory,
						      const struct vb_peer_memory_request *request,
						      uint64_t address)
{
	struct move move;

	move.local_count = move.remote_count = 0;
	add(&move, request, address);
	return execute_move(peer_memory, SYS_process_vm_readv, &move) == request->part_length;
}

static bool read_part(struct vb_peer_memory *peer_memory,
		      const struct vb_peer_memory_request *request)
{
	struct place place;

	if (!resolve(peer_memory, request, &place))
		return false;
	if (place.is_here)
		return read_here(place.address, request);
	return peer_memory->method == VB_PEER_MEMORY_PROCESS &&
	       read_by_process(peer_memory, request, place.address);
}

bool vb_dma_peer_read(struct vb_peer_memory *peer_memory,
		      const struct vb_peer_memory_request *request)
{
	bool is_done;

	if (!peer_memory->tables.qp_rows)
		return false;
	begin_access(peer_memory);
	is_done = read_part(peer_memory, request);
	end_access(peer_memory);
	if (is_done)
		count_read(peer_memory, request);
	return is_done;
}

static bool execute_atomic(struct vb_peer_memory *peer_memory,
			   const struct vb_peer_memory_request *request,
			   const struct vb_peer_memory_atomic *atomic, uint64_t *old_out)
{
	struct place place;

	if (!resolve(peer_memory, request, &place) || !place.is_here || place.address & 7)
		return false;
	return atomic->is_compare ? vb_dma_compare_swap(place.address, atomic->compare,
							atomic->swap_or_add, old_out)
				  : vb_dma_fetch_add(place.address, atomic->swap_or_add, old_out);
}

/*
 * The kernel would copy, and a copy is not atomic. So an atomic works only where the page is mapped
 * here.
 */
bool vb_dma_peer_atomic(struct vb_peer_memory *peer_memory,
			const struct vb_peer_memory_request *request,
			const struct vb_peer_memory_atomic *atomic, uint64_t *old_out)
{
	bool is_done;

	if (request->address & 7 || !peer_memory->tables.qp_rows)
		return false;
	begin_access(peer_memory);
	is_done = execute_atomic(peer_memory, request, atomic, old_out);
	end_access(peer_memory);
	if (is_done)
		count_read(peer_memory, request);
	return is_done;
}

/* --- SENDs that this process receives --- */

/* The memory of the references. */
struct fetch_places {
	uint64_t there[VB_SGE_MAX]; /* addresses of the peer … */
	uint64_t here[VB_SGE_MAX]; /* … and of this process, if all of it is mapped here */
	bool are_here;
};

/* Finds the memory of all references. False if one of them must not be accessed. */
static bool find_places(struct vb_peer_memory *peer_memory,
			const struct vb_peer_memory_fetch *fetch,
			const struct vb_peer_memory_offer *offer, struct fetch_places *places)
{
	places->are_here = true;
	for (uint32_t i = 0; i < fetch->reference_count; i++) {
		const struct vb_reference *reference = &fetch->references[i];
		struct vb_key_row row;
		uint64_t address;

		if (!vb_peer_memory_find_offered(&peer_memory->tables, offer, reference, &row))
			return false;
		address = row.address + (reference->address - row.iova);
		places->there[i] = address;
		places->here[i] = address;
		if (peer_memory->method != VB_PEER_MEMORY_OWN &&
		    !find_or_want_segment(peer_memory, &row, address, reference->length,
					  &places->here[i]))
			places->are_here = false;
	}
	return true;
}

/* Copies piece by piece: the borders of references and spans have nothing to do with each other. */
static bool fetch_here(const struct vb_peer_memory_fetch *fetch, const struct fetch_places *places)
{
	uint32_t index = 0;
	uint32_t offset = 0;

	for (uint32_t i = 0; i < fetch->span_count; i++) {
		const struct vb_span *span = &fetch->spans[i];
		uint32_t done = 0;

		while (done < span->length) {
			uint32_t left = fetch->references[index].length - offset;
			uint32_t piece = span->length - done < left ? span->length - done : left;

			/* NOLINTNEXTLINE(clang-analyzer-core.*): both ends have the same length */
			if (!copy_here(span->address + done, places->here[index] + offset, piece))
				return false;
			done += piece;
			offset += piece;
			if (offset == fetch->references[index].length) {
				index++;
				offset = 0;
			}
		}
	}
	return true;
}

static __attribute__((noinline)) bool fetch_by_process(const struct vb_peer_memory *peer_memory,
						       const struct vb_peer_memory_fetch *fetch,
						       const struct fetch_places *places)
{
	struct move move;
	uint64_t length = 0;

	move.local_count = move.remote_count = 0;
	for (uint32_t i = 0; i < fetch->span_count; i++)
		move.local[move.local_count++] =
			make_iovec(fetch->spans[i].address, fetch->spans[i].length);
	for (uint32_t i = 0; i < fetch->reference_count; i++) {
		add_remote(&move, places->there[i], fetch->references[i].length);
		length += fetch->references[i].length;
	}
	return execute_move(peer_memory, SYS_process_vm_readv, &move) == length;
}

static bool fetch_all(struct vb_peer_memory *peer_memory, const struct vb_peer_memory_fetch *fetch)
{
	struct vb_peer_memory_offer offer;
	struct fetch_places places;
	bool is_done;

	if (!is_open(peer_memory) ||
	    !vb_peer_memory_open_offer(&peer_memory->tables, fetch->initiator, &offer) ||
	    !find_places(peer_memory, fetch, &offer, &places))
		return false;
	if (places.are_here)
		is_done = fetch_here(fetch, &places);
	else
		is_done = peer_memory->method == VB_PEER_MEMORY_PROCESS &&
			  fetch_by_process(peer_memory, fetch, &places);
	/* A process that has become another program has other memory under the same pid. */
	return is_done && is_open(peer_memory) && vb_peer_memory_is_offer_kept(&offer);
}

bool vb_dma_peer_fetch(struct vb_peer_memory *peer_memory, const struct vb_peer_memory_fetch *fetch)
{
	bool is_done;

	if (!peer_memory->tables.qp_rows)
		return false;
	begin_access(peer_memory);
	is_done = fetch_all(peer_memory, fetch);
	end_access(peer_memory);
	return is_done;
}
