/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines in a binary heap. A timer whose deadline moves to a later time stays where it is in the
 * heap and is corrected when it comes up: so restarting the ACK timer with every ACK costs one
 * store. The first heap entry is therefore never later than the earliest deadline, and asking for
 * the earliest deadline corrects the first entry.
 */
#ifndef VB_BASE_TIMER_H
#define VB_BASE_TIMER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_NEVER UINT64_MAX

struct vb_timer {
	uint64_t deadline_ns; /* the true deadline: VB_NEVER when stopped */
	uint64_t queued_ns; /* its key in the heap */
	uint32_t heap_index; /* 1-based; 0: not in the heap */
	uint32_t kind; /* the owner's, to distinguish its timers */
};

struct vb_timers {
	struct vb_timer **heap; /* 1-based */
	uint32_t count;
	uint32_t capacity;
};

void vb_timers_init(struct vb_timers *timers);
void vb_timers_fini(struct vb_timers *timers);

/* Makes room for that many timers in all; starting more than that is a bug. */
VB_MUST_USE vb_err vb_timers_reserve(struct vb_timers *timers, uint32_t timer_count);

void vb_timer_init(struct vb_timer *timer, uint32_t kind);
void vb_timer_start(struct vb_timers *timers, struct vb_timer *timer, uint64_t deadline_ns);
void vb_timer_stop(struct vb_timer *timer);

/* Takes the timer out of the heap; it may then be freed. */
void vb_timer_remove(struct vb_timers *timers, struct vb_timer *timer);

/* No timer is due before this time. */
uint64_t vb_timers_deadline(struct vb_timers *timers);

/* Returns the next timer that is due, now stopped, or NULL. */
struct vb_timer *vb_timers_take_due(struct vb_timers *timers, uint64_t now_ns);

#endif
