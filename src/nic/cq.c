/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. `produced` is written by the engine and `consumed` by the poller. Resize and
 * purge change both, and therefore need the CQ's lock as well as ownership of the engine.
 */
#include "nic/cq.h"

#include "base/heap.h"
#include "nic/qp_priv.h"
#include "nic/rings.h"

#include "base/bytes.h"
#include "base/probe.h"

#include <string.h>

vb_err vb_cq_create(struct vb_nic *nic, uint32_t depth, void *owner_context, struct vb_cq **cq_out)
{
	struct vb_cq *cq;
	vb_err err = VB_ENOMEM;
	uint32_t ring;

	if (!depth || depth > nic->limits.cq_depth)
		return VB_EINVAL;
	ring = power_of_two_above(depth);
	cq = vb_heap_alloc(1, sizeof(*cq));
	if (!cq)
		return VB_ENOMEM;
	cq->entries = vb_heap_alloc(ring, sizeof(*cq->entries));
	if (!cq->entries)
		goto free_cq;
	err = vb_nic_add_timer(nic);
	if (err)
		goto free_entries;
	cq->nic = nic;
	cq->depth = depth;
	cq->mask = ring - 1;
	vb_list_init(&cq->overrun);
	vb_timer_init(&cq->timer, VB_TIMER_CQ);
	vb_event_source_init(&cq->source, VB_SOURCE_CQ, owner_context);
	cq->number = ++nic->cq_next;
	vb_list_append(&nic->cqs, &cq->node);
	nic->root_object_count++;
	*cq_out = cq;
	return VB_OK;
free_entries:
	vb_heap_free(cq->entries);
free_cq:
	vb_heap_free(cq);
	return err;
}

vb_err vb_cq_destroy(struct vb_cq *cq)
{
	struct vb_nic *nic = cq->nic;

	if (cq->user_count)
		return VB_EBUSY;
	vb_timer_remove(&nic->timers, &cq->timer);
	nic->timer_count--;
	vb_list_remove(&cq->overrun);
	vb_list_remove(&cq->node);
	vb_event_source_fini(&cq->source);
	nic->root_object_count--;
	vb_heap_free(cq->entries);
	vb_heap_free(cq);
	return VB_OK;
}

uint32_t vb_cq_depth(const struct vb_cq *cq)
{
	return cq->depth;
}

bool vb_cq_has_overrun(const struct vb_cq *cq)
{
	return cq->has_overrun;
}

uint32_t vb_cq_waiting(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->produced, memory_order_acquire) -
	       atomic_load_explicit(&cq->consumed, memory_order_relaxed);
}

vb_err vb_cq_resize(struct vb_cq *cq, uint32_t depth)
{
	uint32_t waiting = vb_cq_waiting(cq);
	struct vb_completion *entries;
	uint32_t first;
	uint32_t mask;

	if (!depth || depth > cq->nic->limits.cq_depth || depth < waiting)
		return VB_EINVAL;
	mask = power_of_two_above(depth) - 1;
	entries = vb_heap_alloc((size_t)mask + 1, sizeof(*entries));
	if (!entries)
		return VB_ENOMEM;
	first = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	for (uint32_t i = first; i != first + waiting; i++)
		entries[i & mask] = cq->entries[i & cq->mask];
	vb_heap_free(cq->entries);
	cq->entries = entries;
	cq->mask = mask;
	cq->depth = depth;
	return VB_OK;
}

vb_err vb_cq_moderate(struct vb_cq *cq, uint16_t count, uint16_t period_us)
{
	cq->moderation_count = count;
	cq->moderation_period_us = period_us;
	return VB_OK;
}

static void raise_armed(struct vb_cq *cq)
{
	cq->moderated = 0;
	vb_timer_stop(&cq->timer);
	atomic_store_explicit(&cq->armed, VB_ARMED_NOT, memory_order_relaxed);
	atomic_store_explicit(&cq->announced,
			      atomic_load_explicit(&cq->produced, memory_order_relaxed),
			      memory_order_relaxed);
	vb_event_raise(cq->nic, &cq->source, VB_EVENT_COMPLETION);
}

/*
 * An armed CQ got a completion it was armed for: raises the event now, or a little later together
 * with others.
 */
VB_NOINLINE static void on_awaited(struct vb_cq *cq)
{
	bool by_count = cq->moderation_count > 1;

	cq->moderated++;
	if (!cq->moderation_period_us || !by_count || cq->moderated >= cq->moderation_count) {
		raise_armed(cq);
		return;
	}
	if (cq->moderated == 1)
		vb_timer_start(&cq->nic->timers, &cq->timer,
			       cq->nic->now_ns + cq->moderation_period_us * 1000ull);
}

void vb_cq_on_timer(struct vb_cq *cq)
{
	if (cq->moderated)
		raise_armed(cq);
}

VB_COLD void vb_cq_on_overrun(struct vb_cq *cq, const struct vb_qp *qp)
{
	if (cq->has_overrun) {
		/* A QP that came into use since then must fail now. */
		if (qp && vb_qp_state_now(qp) != VB_STATE_ERR && !vb_list_is_linked(&cq->overrun))
			vb_list_append(&cq->nic->overruns, &cq->overrun);
		return;
	}
	cq->has_overrun = true;
	vb_list_append(&cq->nic->overruns, &cq->overrun);
	vb_event_raise(cq->nic, &cq->source, VB_EVENT_CQ_ERR);
}

void vb_cq_raise_if_armed(struct vb_cq *cq, bool solicited)
{
	uint32_t armed;

	/*
	 * Pairs with the fence in vb_cq_arm(): either we see the arming here, or the program's poll
	 * after arming sees this completion.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);
	if (armed == VB_ARMED_NEXT || (armed == VB_ARMED_SOLICITED && solicited))
		on_awaited(cq);
}

void vb_cq_stop_events(struct vb_cq *cq)
{
	cq->is_never_armed = true;
}

void vb_cq_arm(struct vb_cq *cq, bool solicited_only)
{
	uint32_t wanted = solicited_only ? VB_ARMED_SOLICITED : VB_ARMED_NEXT;

	/* A request for solicited completions only does not cancel one for any completion. */
	if (wanted == VB_ARMED_NEXT ||
	    atomic_load_explicit(&cq->armed, memory_order_relaxed) == VB_ARMED_NOT)
		atomic_store_explicit(&cq->armed, wanted, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

bool vb_cq_has_unannounced(const struct vb_cq *cq)
{
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	uint32_t waiting = atomic_load_explicit(&cq->produced, memory_order_relaxed) - consumed;
	uint32_t announced = atomic_load_explicit(&cq->announced, memory_order_relaxed) - consumed;

	/* An event that told of a completion that waits was raised at 1 to `waiting` from here. */
	return waiting && announced - 1 >= waiting;
}

void vb_cq_raise_unannounced(struct vb_cq *cq)
{
	if (atomic_load_explicit(&cq->armed, memory_order_relaxed) == VB_ARMED_NEXT &&
	    vb_cq_has_unannounced(cq))
		raise_armed(cq);
}

const struct vb_completion *vb_cq_peek(const struct vb_cq *cq)
{
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);

	if (consumed == atomic_load_explicit(&cq->produced, memory_order_acquire))
		return NULL;
	return &cq->entries[consumed & cq->mask];
}

void vb_cq_take(struct vb_cq *cq)
{
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	const struct vb_completion *entry = &cq->entries[consumed & cq->mask];

	if (entry->frees_slot)
		atomic_store_explicit(entry->is_receive ? &entry->qp->rq.freed
							: &entry->qp->sq.freed,
				      entry->slot_end, memory_order_release);
	VB_PROBE4(poll, cq->number, entry->wr_id, entry->status, entry->qpn);
	atomic_store_explicit(&cq->consumed, consumed + 1, memory_order_release);
}

uint32_t vb_cq_poll(struct vb_cq *cq, struct vb_completion *completions, uint32_t capacity)
{
	const struct vb_completion *entry;
	uint32_t count = 0;

	while (count < capacity && (entry = vb_cq_peek(cq))) {
		completions[count++] = *entry;
		vb_cq_take(cq);
	}
	return count;
}

void vb_cq_purge(struct vb_cq *cq, const struct vb_qp *qp)
{
	uint32_t first = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	uint32_t end = atomic_load_explicit(&cq->produced, memory_order_relaxed);
	uint32_t kept = first;

	for (uint32_t i = first; i != end; i++) {
		const struct vb_completion *entry = &cq->entries[i & cq->mask];

		if (entry->qp != qp)
			cq->entries[kept++ & cq->mask] = *entry;
	}
	atomic_store_explicit(&cq->produced, kept, memory_order_release);
}

void vb_cq_forget_xrcd(struct vb_cq *cq, const struct vb_xrcd *xrcd)
{
	uint32_t end = atomic_load_explicit(&cq->produced, memory_order_relaxed);

	for (uint32_t i = atomic_load_explicit(&cq->consumed, memory_order_relaxed); i != end;
	     i++) {
		struct vb_completion *entry = &cq->entries[i & cq->mask];

		if (entry->qp && entry->qp->xrcd == xrcd)
			entry->qp = NULL; /* polling it frees nothing of the QP */
	}
}
