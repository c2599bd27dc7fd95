/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses of local peers to our memory, and waiting for them to end. A peer that was stopped in
 * the middle of an access resumes it when it is continued: we can only wait for that, or for its
 * end. Its word is polled, because no event would wake us.
 */
#include "host/local/local_peer_priv.h"

#include "host/sys/clock.h"
#include "host/sys/dying.h"
#include "host/sys/log.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE_NS 1000000000u /* before the wait is logged */
#define SPINS 1000u
#define DEAD_NS 100000000u

static uint32_t busy_of(const struct vb_local_peer *peer)
{
	return atomic_load_explicit(&peer->in_memory->busy, memory_order_acquire);
}

/* The mark covers one thread only; another may still be in the middle of a copy. */
static bool has_process_ended(const struct vb_local_peer *peer)
{
	struct pollfd fd = { .fd = peer->pid_fd, .events = POLLIN };

	return syscall(SYS_ppoll, &fd, 1l, &(struct timespec){ 0, 0 }, NULL, 0l) == 1 &&
	       fd.revents & POLLIN;
}

/* A process that has not ended may have become another program. */
static enum vb_dying dying_threads_of(const struct vb_local_peer *peer)
{
	return has_process_ended(peer) ? VB_DYING_NONE : vb_dying_threads(peer->pid);
}

bool vb_local_peer_is_gone(const struct vb_local_peer *peer)
{
	return vb_export_is_dead(peer->block) && (!peer->in_memory || !(busy_of(peer) & 1) ||
						  dying_threads_of(peer) == VB_DYING_NONE);
}

/*
 * Whether we stop waiting for a dead peer. If it is unknown what the peer does, the wait is short.
 */
static bool give_up_if_dead(struct vb_local_peer *peer)
{
	if (!vb_export_is_dead(peer->block))
		return false;
	if (!peer->dead_ns)
		peer->dead_ns = vb_clock_now();
	switch (dying_threads_of(peer)) {
	case VB_DYING_NONE:
		return true;
	case VB_DYING_SOME:
		return false;
	case VB_DYING_UNKNOWN:
		break;
	}
	return vb_clock_now() - peer->dead_ns > DEAD_NS;
}

/* Most accesses end in this time. */
static bool spin_until_ended(const struct vb_local_peer *peer, uint32_t busy)
{
	for (uint32_t i = 0; i < SPINS; i++)
		if (busy_of(peer) != busy)
			return true;
	return false;
}

bool vb_local_peers_find_access(struct vb_local_peers *peers,
				struct vb_local_peer_access *access_out)
{
	/*
	 * Pairs with the fence of a peer that has announced its access: it sees our rows, or we see
	 * its announcement.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < peers->readable_count; i++) {
		struct vb_local_peer *peer = &peers->table[peers->readable[i]];
		struct vb_local_peer_access access = { .number = peers->readable[i],
						       .busy = busy_of(peer),
						       .ring = peer->in_ring };

		/* In our own ring, only the calling thread can be busy. */
		if (peer->in_memory == peer->out_memory || !(access.busy & 1) ||
		    spin_until_ended(peer, access.busy) || give_up_if_dead(peer))
			continue;
		access.begin_ns = vb_clock_now();
		*access_out = access;
		return true;
	}
	return false;
}

static void log_wait(struct vb_local_peer_access *access)
{
	vb_log_about(
		VB_LOG_WARN, VB_LOG_ABOUT(.phase = "destroy"),
		"adapter %u was stopped in the middle of an access to this process's memory: waiting for it",
		access->number);
	access->is_logged = true;
}

bool vb_local_peers_poll_access(struct vb_local_peers *peers, struct vb_local_peer_access *access)
{
	struct vb_local_peer *peer = &peers->table[access->number];

	if (!peer->in_memory || peer->in_ring != access->ring || busy_of(peer) != access->busy ||
	    give_up_if_dead(peer))
		return false;
	if (!access->is_logged && vb_clock_now() - access->begin_ns > PATIENCE_NS)
		log_wait(access);
	return true;
}

void vb_local_peers_await(struct vb_local_peers *peers)
{
	struct vb_local_peer_access access;

	while (vb_local_peers_find_access(peers, &access))
		while (vb_local_peers_poll_access(peers, &access))
			syscall(SYS_sched_yield);
}
