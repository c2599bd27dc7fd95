/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agenda: a binary heap. The sequence number makes the order total, so that a run can be
 * repeated.
 */
#include "sim/agenda.h"

#include "sim/array.h"

#include <stdlib.h>

void vb_agenda_fini(struct vb_agenda *agenda)
{
	free(agenda->heap);
	*agenda = (struct vb_agenda){ 0 };
}

static bool is_before(const struct vb_agenda_item *a, const struct vb_agenda_item *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->sequence < b->sequence;
}

void vb_agenda_add(struct vb_agenda *agenda, uint64_t time_ns, uint32_t kind, uint32_t index,
		   void *object)
{
	struct vb_agenda_item item = { time_ns, agenda->next_sequence++, kind, index, object };
	uint32_t at = agenda->count;

	agenda->heap = vb_array_reserve(agenda->heap, agenda->count, &agenda->capacity,
					sizeof(*agenda->heap));
	agenda->count++;
	while (at > 0 && is_before(&item, &agenda->heap[(at - 1) / 2])) {
		agenda->heap[at] = agenda->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	agenda->heap[at] = item;
}

uint64_t vb_agenda_time(const struct vb_agenda *agenda)
{
	return agenda->count ? agenda->heap[0].time_ns : UINT64_MAX;
}

bool vb_agenda_next_is(const struct vb_agenda *agenda, uint64_t now_ns, uint32_t kind,
		       uint32_t index)
{
	const struct vb_agenda_item *first = agenda->heap;

	return agenda->count && first->time_ns <= now_ns && first->kind == kind &&
	       first->index == index;
}

bool vb_agenda_take(struct vb_agenda *agenda, struct vb_agenda_item *item)
{
	struct vb_agenda_item last;
	uint32_t at = 0, child;

	if (!agenda->count)
		return false;
	*item = agenda->heap[0];
	last = agenda->heap[--agenda->count];
	while ((child = at * 2 + 1) < agenda->count) {
		if (child + 1 < agenda->count &&
		    is_before(&agenda->heap[child + 1], &agenda->heap[child]))
			child++;
		if (!is_before(&agenda->heap[child], &last))
			break;
		agenda->heap[at] = agenda->heap[child];
		at = child;
	}
	if (agenda->count)
		agenda->heap[at] = last;
	return true;
}
