/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The export block of an adapter: what it publishes to its local peers, in a memfd that only its
 * owner can write. It holds copies of the engine's rows, whether the owner sleeps, which multicast
 * groups it wants, and a mark by which the kernel reports that the owner has died.
 */
#ifndef VB_HOST_LOCAL_EXPORT_H
#define VB_HOST_LOCAL_EXPORT_H

#include "base/err.h"
#include "nic/peer_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define VB_EXPORT_KEY_ROWS (1u << 18)
#define VB_EXPORT_QP_ROWS (1u << 16)
#define VB_EXPORT_GROUP_BITS 256u

/* The first page. */
struct vb_export_head {
	uint64_t incarnation; /* random: no two blocks have the same */
	/* Of this page in its owner: peers use it to test whether they can read there. */
	uint64_t address;
	_Atomic uint32_t is_closed; /* 1: its rows are no longer valid */
	_Alignas(64) pthread_mutex_t mark; /* robust: the owner's helper holds it for life */
	_Alignas(64) _Atomic uint32_t sleeper_count; /* threads that wait to be woken */
	_Atomic uint32_t sleep_sequence; /* raised whenever a sleep begins or ends */
	/*
	 * Multicast: the owner's interface, and which groups it may be in there
	 * (local_peer_group.c).
	 */
	_Alignas(64) uint32_t ifindex;
	_Atomic uint64_t group_bits[VB_EXPORT_GROUP_BITS / 64];
};

struct vb_export {
	struct vb_export_head head;
	_Alignas(4096) struct vb_qp_row qp_rows[VB_EXPORT_QP_ROWS];
	struct vb_key_row key_rows[VB_EXPORT_KEY_ROWS];
	struct vb_srq_row srq_rows[VB_SRQ_ROWS];
};

/*
 * The caller ends the block with vb_export_unmap() and vb_fd_close(*fd_out). *fd_out is what peers
 * are given.
 */
VB_MUST_USE vb_err vb_export_create(struct vb_export **block_out, int *fd_out);
/* Maps another process's block to read; NULL if it is no such block, or its size might change. */
const struct vb_export *vb_export_map(int fd);
void vb_export_unmap(const struct vb_export *block);

/*
 * vb_export_hold_mark(): for the helper thread, at any time; it holds the mark from now on.
 * vb_export_drop_mark(): for the thread that holds the mark; it no longer holds it.
 */
void vb_export_hold_mark(struct vb_export *block);
void vb_export_drop_mark(struct vb_export *block);

/* The word of the mark (see vb_dma_peer_is_alive()); and whether its holder has died. */
static inline const _Atomic uint32_t *vb_export_mark(const struct vb_export *block)
{
	return (const _Atomic uint32_t *)(const void *)&block->head.mark;
}
bool vb_export_is_dead(const struct vb_export *block);

#endif
