/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The totals of this user's devices: memory in which every adapter counts, and which every process
 * with an adapter holds. So the counts of a process stay when it ends, however it ends, and begin
 * again only when no process is left. Newcomers get the memory together with the receiving sockets.
 *
 * A row belongs to one number of a port member on one device. Only the adapter that has the number
 * writes it. A later adapter with the same number on the same device counts on from there.
 */
#ifndef VB_HOST_REGISTRY_TOTALS_H
#define VB_HOST_REGISTRY_TOTALS_H

#include "link/udp.h"
#include "nic/counters.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_TOTALS_ROWS 1024u
#define VB_TOTALS_DEVICES 32u

/* Requests that initiators executed themselves in the memory of targets on this host. */
struct vb_totals_direct {
	uint64_t ops;
	uint64_t written; /* bytes from the initiator to the target … */
	uint64_t read; /* … and the other way, with the results of atomics */
};

struct vb_totals_row {
	_Alignas(64) _Atomic uint64_t key; /* device and number; 0: the row is free */
	struct vb_counters counters;
	uint64_t udp[VB_UDP_COUNTER_COUNT];
	/* by the target's device: its place in struct vb_totals */
	struct vb_totals_direct direct[VB_TOTALS_DEVICES];
};

struct vb_totals {
	uint64_t layout; /* VB_TOTALS_LAYOUT; another version of this program may have another */
	uint64_t identity; /* random: no two have the same */
	_Atomic uint32_t devices[VB_TOTALS_DEVICES]; /* their interface indices; 0: a free place */
	struct vb_totals_row rows[VB_TOTALS_ROWS];
};

/* The counts, because the end of a row has room: one more counter need not change any size. */
#define VB_TOTALS_LAYOUT                                                                    \
	(0x76ull << 56 | (uint64_t)VB_COUNTER_COUNT << 48 | (uint64_t)VB_DROP_COUNT << 40 | \
	 (uint64_t)VB_UDP_COUNTER_COUNT << 32 | sizeof(struct vb_totals))

/* --- totals.c: the memory of this process --- */

/* The memory is kept between these two calls; both are for port members. */
void vb_totals_open(void);
void vb_totals_close(void);
/* Takes the descriptor that a port member has given. Without effect if the memory is known. */
void vb_totals_learn(int fd);
/*
 * For a process that no port member has given the memory. A process that has lost only its
 * descriptor goes on with a copy of the contents.
 */
void vb_totals_ensure(void);
/* Lent until the next call of these functions; -1: there is none. */
int vb_totals_fd(void);
/* To be called in a forked child, which no longer has the descriptor. */
void vb_totals_forget(void);

/*
 * The row of an adapter, until it gives the row back. NULL: there is no memory, or no row is free.
 */
struct vb_totals_row *vb_totals_take_row(uint32_t ifindex, uint32_t number);
void vb_totals_give_row(struct vb_totals_row *row); /* NULL: does nothing */
/* Where the owner of a row counts what it executes on that device; NULL: nowhere. */
struct vb_totals_direct *vb_totals_direct(struct vb_totals_row *row, uint32_t ifindex);

#endif
