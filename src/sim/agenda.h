/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The future events of a world, by time. Items at the same time happen in the order in which they
 * were added.
 */
#ifndef VB_SIM_AGENDA_H
#define VB_SIM_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

struct vb_agenda_item {
	uint64_t time_ns;
	uint64_t sequence;
	uint32_t kind; /* chosen by the owner */
	uint32_t index; /* chosen by the owner */
	void *object; /* chosen by the owner */
};

struct vb_agenda {
	struct vb_agenda_item *heap; /* 0-based binary heap */
	uint32_t count;
	uint32_t capacity;
	uint64_t next_sequence;
};

void vb_agenda_fini(struct vb_agenda *agenda);
void vb_agenda_add(struct vb_agenda *agenda, uint64_t time_ns, uint32_t kind, uint32_t index,
		   void *object);
uint64_t vb_agenda_time(const struct vb_agenda *agenda); /* of the first item, or UINT64_MAX */
/* True if the first item is due by then and has that kind and index. */
bool vb_agenda_next_is(const struct vb_agenda *agenda, uint64_t now_ns, uint32_t kind,
		       uint32_t index);
bool vb_agenda_take(struct vb_agenda *agenda, struct vb_agenda_item *item);

#endif
