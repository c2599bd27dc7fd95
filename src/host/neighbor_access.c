/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbors that act in our memory, and waiting for them. One that was stopped in the middle of it goes on where it was when it is continued: there
 * is no other way than to wait for that, or for its end. Its word is looked at again and again, since nobody would wake us.
 */
#include "host/neighbor_priv.h"

#include "host/clock.h"
#include "host/dying.h"
#include "host/log.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE_NS 1000000000u /* before the log is told */
#define SPINS 1000u
#define DEAD_NS 100000000u

static uint32_t busy_of(const struct vb_neighbor *neighbor)
{
	return atomic_load_explicit(&neighbor->in_memory->busy, memory_order_acquire);
}

/* The mark tells of one thread, and another may still be in the middle of a copy. */
static bool has_process_ended(const struct vb_neighbor *neighbor)
{
	struct pollfd fd = { .fd = neighbor->pid_fd, .events = POLLIN };

	return syscall(SYS_ppoll, &fd, 1l, &(struct timespec){ 0, 0 }, NULL, 0l) == 1 &&
	       fd.revents & POLLIN;
}

/* A process that does not end may have become another program. */
static enum vb_dying last_acts(const struct vb_neighbor *neighbor)
{
	return has_process_ended(neighbor) ? VB_DYING_NONE : vb_dying_threads(neighbor->pid);
}

bool vb_neighbor_is_gone(const struct vb_neighbor *neighbor)
{
	return vb_export_is_dead(neighbor->block) &&
	       (!neighbor->in_memory || !(busy_of(neighbor) & 1) ||
		last_acts(neighbor) == VB_DYING_NONE);
}

/* Whether a dead one is waited for no more. Where nobody can say what it does, not for long. */
static bool is_over(struct vb_neighbor *neighbor)
{
	if (!vb_export_is_dead(neighbor->block))
		return false;
	if (!neighbor->dead_ns)
		neighbor->dead_ns = vb_clock_now();
	switch (last_acts(neighbor)) {
	case VB_DYING_NONE:
		return true;
	case VB_DYING_SOME:
		return false;
	case VB_DYING_UNKNOWN:
		break;
	}
	return vb_clock_now() - neighbor->dead_ns > DEAD_NS;
}

/* Most accesses end in this time. */
static bool ends_soon(const struct vb_neighbor *neighbor, uint32_t busy)
{
	for (uint32_t i = 0; i < SPINS; i++)
		if (busy_of(neighbor) != busy)
			return true;
	return false;
}

bool vb_neighbors_find_access(struct vb_neighbors *neighbors, struct vb_neighbor_access *access_out)
{
	/* Pairs with the fence of who has announced himself: he sees our rows, or we see him. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < neighbors->open_count; i++) {
		struct vb_neighbor *neighbor = &neighbors->table[neighbors->open[i]];
		struct vb_neighbor_access access = { .number = neighbors->open[i],
						     .busy = busy_of(neighbor),
						     .ring = neighbor->in_ring };

		/* In our own ring nobody is busy but who asks. */
		if (neighbor->in_memory == neighbor->out_memory || !(access.busy & 1) ||
		    ends_soon(neighbor, access.busy) || is_over(neighbor))
			continue;
		access.begin_ns = vb_clock_now();
		*access_out = access;
		return true;
	}
	return false;
}

static void tell(struct vb_neighbor_access *access)
{
	vb_log(VB_LOG_WARN,
	       "adapter %u was stopped in the middle of an access to this process's memory: waiting for it",
	       access->number);
	access->is_told = true;
}

bool vb_neighbors_has_access(struct vb_neighbors *neighbors, struct vb_neighbor_access *access)
{
	struct vb_neighbor *neighbor = &neighbors->table[access->number];

	if (!neighbor->in_memory || neighbor->in_ring != access->ring ||
	    busy_of(neighbor) != access->busy || is_over(neighbor))
		return false;
	if (!access->is_told && vb_clock_now() - access->begin_ns > PATIENCE_NS)
		tell(access);
	return true;
}

void vb_neighbors_await(struct vb_neighbors *neighbors)
{
	struct vb_neighbor_access access;

	while (vb_neighbors_find_access(neighbors, &access))
		while (vb_neighbors_has_access(neighbors, &access))
			syscall(SYS_sched_yield);
}
