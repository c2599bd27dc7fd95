/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the memory of another process is reached (nic/reach.h). The target of a reach is this very process, or another one by its pid
 * and the system calls process_vm_readv() and process_vm_writev().
 */
#ifndef VB_HOST_DMA_REACH_H
#define VB_HOST_DMA_REACH_H

#include "nic/reach.h"

#include <stdatomic.h>
#include <sys/types.h>

enum vb_reach_way {
	VB_REACH_CLOSED, /* nothing is reached */
	VB_REACH_OWN, /* the target is in this process */
	VB_REACH_PROCESS, /* by the pid */
};

struct vb_reach {
	enum vb_reach_way way;
	pid_t pid;
	struct vb_reach_tables tables;
	_Atomic uint32_t
		*busy; /* that the target sees: odd while we act; NULL: nobody needs to see it */
	const _Atomic uint32_t *is_closed; /* the target's: it shows its rows no longer; or NULL */
	const _Atomic uint32_t *mark; /* of the target's helper: see vb_dma_reach_is_alive() */
};

/* Whether the thread that holds a robust mutex, whose first word this is, still lives. */
bool vb_dma_reach_is_alive(const _Atomic uint32_t *mark);

/* Whether the kernel lets us read that memory of a process: 8 bytes which are known. */
bool vb_dma_reach_probe(pid_t pid, uint64_t address, uint64_t content);

#endif
