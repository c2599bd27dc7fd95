/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder's READs and atomics: as many as max_dest_rd_atomic, oldest overwritten first. The
 * peer never has more in flight, so an overwritten one has been answered and its response has
 * arrived.
 */
#include "nic/rc_priv.h"

#include "base/heap.h"

vb_err vb_rc_resize_resources(struct vb_qp *qp, uint32_t count)
{
	struct vb_responder *responder = &qp->responder;
	struct vb_resource *resources = NULL;
	uint32_t kept = 0;
	uint32_t pending = 0;
	uint32_t old_count = responder->resource_count;

	if (count < responder->resources_pending)
		return VB_EBUSY;
	if (count) {
		resources = vb_heap_alloc(count, sizeof(*resources));
		if (!resources)
			return VB_ENOMEM;
	}
	/*
	 * Keeps the youngest ones that fit, in their order. The peer asks again for a repetition
	 * that is lost here.
	 */
	for (uint32_t i = 0; i < old_count; i++) {
		uint32_t age_index = (responder->resource_next + i) % old_count;
		const struct vb_resource *old = &responder->resources[age_index];

		if (old->is_used && old_count - i <= count) {
			pending += old->is_pending;
			resources[kept++] = *old;
		}
	}
	vb_heap_free(responder->resources);
	responder->resources = resources;
	responder->resource_count = (uint8_t)count;
	responder->resources_pending = (uint8_t)pending;
	responder->resource_next = (uint8_t)(kept < count ? kept : 0);
	return VB_OK;
}

bool vb_rc_has_room(const struct vb_responder *responder)
{
	const struct vb_resource *next;

	if (!responder->resource_count)
		return false;
	next = &responder->resources[responder->resource_next];
	/*
	 * A response that waits to be repeated may be overwritten: the peer would not ask for more
	 * if it still needed it.
	 */
	return !next->is_pending || next->is_repeat;
}

struct vb_resource *vb_rc_claim_resource(struct vb_responder *responder)
{
	struct vb_resource *resource = &responder->resources[responder->resource_next];

	VB_CHECK(vb_rc_has_room(responder));
	if (!resource->is_pending)
		responder->resources_pending++;
	if (++responder->resource_next == responder->resource_count)
		responder->resource_next = 0;
	*resource = (struct vb_resource){ .is_used = true, .is_pending = true };
	return resource;
}

struct vb_resource *vb_rc_find_resource(struct vb_responder *responder, vb_psn psn)
{
	uint32_t index = responder->resource_next;

	/* Youngest first: an old one may have had the same PSN before the numbers wrapped. */
	for (uint32_t i = 0; i < responder->resource_count; i++) {
		struct vb_resource *resource;

		index = (index ? index : responder->resource_count) - 1;
		resource = &responder->resources[index];
		if (resource->is_used &&
		    vb_psn_distance(psn, resource->first_psn) < resource->packet_count)
			return resource;
	}
	return NULL;
}

struct vb_resource *vb_rc_next_pending(struct vb_responder *responder)
{
	if (!responder->resources_pending)
		return NULL;
	for (uint32_t i = 0; i < responder->resource_count; i++) {
		uint32_t index = responder->resource_next + i;
		struct vb_resource *resource;

		if (index >= responder->resource_count)
			index -= responder->resource_count;
		resource = &responder->resources[index];
		if (resource->is_pending)
			return resource; /* oldest first: replies leave in PSN order */
	}
	return NULL;
}

void vb_rc_drop_pending(struct vb_responder *responder)
{
	for (uint32_t i = 0; i < responder->resource_count; i++)
		responder->resources[i].is_pending = false;
	responder->resources_pending = 0;
}
