/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary heap of pointers. Every timer knows its place, so removing one needs no search. */
#include "base/timer.h"

#include "base/heap.h"

#include <string.h>

void vb_timers_init(struct vb_timers *timers)
{
	*timers = (struct vb_timers){ 0 };
}

void vb_timers_fini(struct vb_timers *timers)
{
	vb_heap_free(timers->heap);
	*timers = (struct vb_timers){ 0 };
}

vb_err vb_timers_reserve(struct vb_timers *timers, uint32_t timer_count)
{
	struct vb_timer **heap;
	uint32_t capacity;

	if (timer_count <= timers->capacity)
		return VB_OK;
	capacity = timers->capacity ? timers->capacity : 16;
	while (capacity < timer_count)
		capacity *= 2;
	heap = vb_heap_alloc((size_t)capacity + 1, sizeof(*heap));
	if (!heap)
		return VB_ENOMEM;
	if (timers->heap)
		memcpy(heap, timers->heap, ((size_t)timers->count + 1) * sizeof(*heap));
	vb_heap_free(timers->heap);
	timers->heap = heap;
	timers->capacity = capacity;
	return VB_OK;
}

void vb_timer_init(struct vb_timer *timer, uint32_t kind)
{
	*timer = (struct vb_timer){ .deadline_ns = VB_NEVER, .queued_ns = VB_NEVER, .kind = kind };
}

static void put(struct vb_timers *timers, uint32_t index, struct vb_timer *timer)
{
	timers->heap[index] = timer;
	timer->heap_index = index;
}

static void sift_up(struct vb_timers *timers, uint32_t index, struct vb_timer *timer)
{
	while (index > 1 && timers->heap[index / 2]->queued_ns > timer->queued_ns) {
		put(timers, index, timers->heap[index / 2]);
		index /= 2;
	}
	put(timers, index, timer);
}

VB_NOINLINE static void sift_down(struct vb_timers *timers, uint32_t index, struct vb_timer *timer)
{
	uint32_t child;

	while ((child = index * 2) <= timers->count) {
		if (child < timers->count &&
		    timers->heap[child + 1]->queued_ns < timers->heap[child]->queued_ns)
			child++;
		if (timers->heap[child]->queued_ns >= timer->queued_ns)
			break;
		put(timers, index, timers->heap[child]);
		index = child;
	}
	put(timers, index, timer);
}

void vb_timer_start(struct vb_timers *timers, struct vb_timer *timer, uint64_t deadline_ns)
{
	timer->deadline_ns = deadline_ns;
	if (timer->heap_index) {
		if (deadline_ns >= timer->queued_ns)
			return; /* corrected when it comes up */
		timer->queued_ns = deadline_ns;
		sift_up(timers, timer->heap_index, timer);
		return;
	}
	VB_CHECK(timers->count < timers->capacity);
	timer->queued_ns = deadline_ns;
	sift_up(timers, ++timers->count, timer);
}

void vb_timer_stop(struct vb_timer *timer)
{
	timer->deadline_ns = VB_NEVER;
}

void vb_timer_remove(struct vb_timers *timers, struct vb_timer *timer)
{
	uint32_t index = timer->heap_index;
	struct vb_timer *last;

	timer->deadline_ns = VB_NEVER;
	if (!index)
		return;
	timer->heap_index = 0;
	last = timers->heap[timers->count--];
	if (last == timer)
		return;
	if (index > 1 && timers->heap[index / 2]->queued_ns > last->queued_ns)
		sift_up(timers, index, last);
	else
		sift_down(timers, index, last);
}

/*
 * Corrects the first entry until it stands where its deadline is. The first entry is then the
 * earliest.
 */
static struct vb_timer *correct_first(struct vb_timers *timers)
{
	while (timers->count) {
		struct vb_timer *timer = timers->heap[1];

		if (timer->deadline_ns == timer->queued_ns)
			return timer;
		if (timer->deadline_ns == VB_NEVER) {
			vb_timer_remove(timers, timer);
			continue;
		}
		timer->queued_ns = timer->deadline_ns;
		sift_down(timers, 1, timer);
	}
	return NULL;
}

uint64_t vb_timers_deadline(struct vb_timers *timers)
{
	const struct vb_timer *timer = correct_first(timers);

	return timer ? timer->deadline_ns : VB_NEVER;
}

struct vb_timer *vb_timers_take_due(struct vb_timers *timers, uint64_t now_ns)
{
	struct vb_timer *timer;

	if (!timers->count || timers->heap[1]->queued_ns > now_ns)
		return NULL;
	timer = correct_first(timers);
	if (!timer || timer->deadline_ns > now_ns)
		return NULL;
	vb_timer_remove(timers, timer);
	return timer;
}
