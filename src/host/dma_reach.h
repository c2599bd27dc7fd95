/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the memory of another process is reached (nic/reach.h). The target of a reach is this very process, or another one: by mappings that both
 * have, or else by its pid and the system calls process_vm_readv() and process_vm_writev().
 */
#ifndef VB_HOST_DMA_REACH_H
#define VB_HOST_DMA_REACH_H

#include "link/ring.h"
#include "nic/reach.h"

#include <stdatomic.h>
#include <sys/types.h>

enum vb_reach_way {
	VB_REACH_MAPPED, /* by mappings only */
	VB_REACH_OWN, /* the target is in this process */
	VB_REACH_PROCESS, /* by the pid */
};

/* A mapping of the target that we have, too. */
struct vb_reach_segment {
	uint32_t number; /* 0: none; without bytes: it was asked for */
	uint8_t *bytes;
	uint64_t address; /* at the target */
	uint64_t length;
};

#define VB_REACH_SEGMENTS 64 /* a power of two */

struct vb_reach {
	enum vb_reach_way way;
	pid_t pid;
	struct vb_reach_tables tables; /* NULL: nothing is reached */
	const struct vb_ring_writer *line; /* to the target; NULL: there is none now … */
	uint64_t line_before; /* … and bytes of earlier ones, which nobody reads any more */
	_Atomic uint32_t
		*busy; /* that the target sees: odd while we act; NULL: nobody needs to see it */
	uint32_t wanted_segment; /* a region lies in it, and we do not have it; 0: none … */
	bool *wants_segment; /* … and for whoever looks after several of these; NULL: nobody does */
	struct vb_reach_segment
		*segments; /* VB_REACH_SEGMENTS, where each has one place only; or NULL */
	const _Atomic uint32_t *is_closed; /* the target's: it shows its rows no longer; or NULL */
	const _Atomic uint32_t *mark; /* of the target's helper: see vb_dma_reach_is_alive() */
};

static inline struct vb_reach_segment *vb_dma_reach_segment_of(struct vb_reach *reach,
							       uint32_t number)
{
	return &reach->segments[number & (VB_REACH_SEGMENTS - 1)];
}

/* Whether the thread that holds a robust mutex, whose first word this is, still lives. */
bool vb_dma_reach_is_alive(const _Atomic uint32_t *mark);

/* Whether the kernel lets us read that memory of a process: 8 bytes which are known. */
bool vb_dma_reach_probe(pid_t pid, uint64_t address, uint64_t content);

#endif
