/* SPDX-License-Identifier: BSD-2-Clause */
/* Pending events, kept as bits of the objects that they come from. */
#include "nic/qp_priv.h"

void vb_event_source_init(struct vb_event_source *source, enum vb_event_source_kind kind,
			  void *owner_context)
{
	vb_list_init(&source->node);
	source->pending = 0;
	source->kind = kind;
	source->owner_context = owner_context;
}

void vb_event_source_fini(struct vb_event_source *source)
{
	vb_list_remove(&source->node);
	source->pending = 0;
}

void vb_event_raise(struct vb_nic *nic, struct vb_event_source *source, enum vb_event_kind kind)
{
	source->pending |= 1u << kind;
	if (!vb_list_is_linked(&source->node))
		vb_list_append(&nic->with_events, &source->node);
}

static struct vb_event event_of(struct vb_event_source *source, enum vb_event_kind kind)
{
	struct vb_event event = { .kind = kind, .owner_context = source->owner_context };

	switch (source->kind) {
	case VB_SOURCE_QP:
		event.qp = VB_CONTAINER(source, struct vb_qp, source);
		break;
	case VB_SOURCE_CQ:
		event.cq = VB_CONTAINER(source, struct vb_cq, source);
		break;
	case VB_SOURCE_SRQ:
		event.srq = VB_CONTAINER(source, struct vb_srq, source);
		break;
	}
	return event;
}

bool vb_nic_has_events(const struct vb_nic *nic)
{
	return vb_list_is_linked(&nic->with_events);
}

uint32_t vb_nic_take_events(struct vb_nic *nic, struct vb_event *events, uint32_t capacity)
{
	uint32_t count = 0;

	while (count < capacity && vb_list_is_linked(&nic->with_events)) {
		struct vb_event_source *source =
			VB_CONTAINER(nic->with_events.next, struct vb_event_source, node);
		enum vb_event_kind kind = (enum vb_event_kind)__builtin_ctz(source->pending);

		source->pending &= source->pending - 1;
		if (!source->pending)
			vb_list_remove(&source->node);
		events[count++] = event_of(source, kind);
	}
	return count;
}
