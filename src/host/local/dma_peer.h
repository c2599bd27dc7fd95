/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer memory access: how the memory of another process is read and written (nic/peer_memory.h).
 * The target is this very process, or another one. Another process is accessed by mappings that
 * both processes have, or else by its pid and the system calls process_vm_readv() and
 * process_vm_writev().
 */
#ifndef VB_HOST_LOCAL_DMA_PEER_H
#define VB_HOST_LOCAL_DMA_PEER_H

#include "link/ring.h"
#include "nic/peer_memory.h"

#include <stdatomic.h>
#include <sys/types.h>

enum vb_peer_memory_method {
	VB_PEER_MEMORY_MAPPED, /* by mappings only */
	VB_PEER_MEMORY_OWN, /* the target is in this process */
	VB_PEER_MEMORY_PROCESS, /* by the pid */
};

/* A mapping of the target that this process also has. */
struct vb_peer_memory_segment {
	uint32_t number; /* 0: none; without bytes: it was requested */
	uint8_t *bytes;
	uint64_t address; /* at the target */
	uint64_t length;
};

#define VB_PEER_MEMORY_SEGMENTS 64 /* a power of two */

struct vb_totals_direct;

struct vb_peer_memory {
	enum vb_peer_memory_method method;
	pid_t pid;
	struct vb_peer_memory_tables tables; /* NULL: no memory is accessible */
	const struct vb_ring_writer *shm_link; /* to the target; NULL: there is none now */
	/* Bytes of earlier links, which no process reads any more. */
	uint64_t shm_link_before;
	/* The target sees it: odd while we act. NULL: no one needs to see it. */
	_Atomic uint32_t *busy;
	/* A segment that a region lies in and that we do not have; 0: none. */
	uint32_t wanted_segment;
	/* Set together with it, for the owner of several of these; NULL: there is none. */
	bool *wants_segment;
	/* VB_PEER_MEMORY_SEGMENTS of them, where each number has one possible place; or NULL. */
	struct vb_peer_memory_segment *segments;
	/* The target's: it no longer publishes its rows; or NULL. */
	const _Atomic uint32_t *is_closed;
	/* Counts what this process executes there (host/registry/totals.h); or NULL. */
	struct vb_totals_direct *direct;
	const _Atomic uint32_t *mark; /* of the target's helper: see vb_dma_peer_is_alive() */
};

static inline struct vb_peer_memory_segment *vb_dma_peer_segment_of(
	struct vb_peer_memory *peer_memory, uint32_t number)
{
	return &peer_memory->segments[number & (VB_PEER_MEMORY_SEGMENTS - 1)];
}

/*
 * Whether the thread that holds a robust mutex is still alive. `mark` is the first word of the
 * mutex.
 */
bool vb_dma_peer_is_alive(const _Atomic uint32_t *mark);

/* Whether the kernel lets us read that memory of a process: 8 bytes with known content. */
bool vb_dma_peer_probe(pid_t pid, uint64_t address, uint64_t content);

#endif
