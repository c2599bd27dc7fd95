/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting operations on the tag list of an SRQ: checks, the queue, and the numbers of tags, which
 * the program knows as handles. A handle is a number and how often it was used, so that a handle
 * whose tag is gone is never taken for that of its successor.
 */
#include "nic/tag_list_priv.h"

#include "base/heap.h"
#include "nic/rings.h"

#include "base/bytes.h"

vb_err vb_tag_list_init_posting(struct vb_tag_list *list, const struct vb_srq_init *init)
{
	uint32_t ring = power_of_two_above(init->tag_count);
	vb_err err = vb_queue_init(&list->operations, init->tag_depth, VB_TAG_SGE_MAX,
				   sizeof(struct vb_tag_operation));

	if (err)
		return err;
	list->free_numbers = vb_heap_alloc(ring, sizeof(*list->free_numbers));
	list->use_counts = vb_heap_alloc(init->tag_count, sizeof(*list->use_counts));
	if (!list->free_numbers || !list->use_counts) {
		vb_tag_list_fini_posting(list);
		return VB_ENOMEM;
	}
	list->free_mask = ring - 1;
	for (uint32_t i = 0; i < init->tag_count; i++)
		vb_tag_list_free_number(list, (uint16_t)i);
	return VB_OK;
}

void vb_tag_list_fini_posting(struct vb_tag_list *list)
{
	vb_heap_free(list->use_counts);
	vb_heap_free(list->free_numbers);
	vb_queue_fini(&list->operations);
}

void vb_tag_list_free_number(struct vb_tag_list *list, uint16_t number)
{
	uint32_t end = atomic_load_explicit(&list->free_end, memory_order_relaxed);

	list->free_numbers[end & list->free_mask] = number;
	atomic_store_explicit(&list->free_end, end + 1, memory_order_release);
}

static bool is_list_full(const struct vb_tag_list *list)
{
	return list->free_begin == atomic_load_explicit(&list->free_end, memory_order_acquire);
}

static uint16_t number_of(uint32_t handle)
{
	return (uint16_t)handle;
}

static uint16_t generation_of(uint32_t handle)
{
	return (uint16_t)(handle >> 16);
}

/* Whether a tag ever had this handle. */
static bool is_handle_known(const struct vb_tag_list *list, uint32_t tag_count, uint32_t handle)
{
	uint32_t uses;

	if (number_of(handle) >= tag_count)
		return false;
	uses = list->use_counts[number_of(handle)];
	return uses > UINT16_MAX || (generation_of(handle) && generation_of(handle) <= uses);
}

static enum vb_tag_refusal check_buffers(const struct vb_tag_request *request, uint32_t *length)
{
	uint64_t total = 0;

	if (request->sge_count > VB_TAG_SGE_MAX)
		return VB_TAG_SGE_COUNT;
	for (uint32_t i = 0; i < request->sge_count; i++)
		total += request->sges[i].length;
	*length = (uint32_t)total;
	return total > VB_MESSAGE_LENGTH_MAX ? VB_TAG_LENGTH : VB_TAG_OK;
}

static enum vb_tag_refusal check(const struct vb_srq *srq, const struct vb_tag_request *request,
				 uint32_t *length)
{
	const struct vb_tag_list *list = srq->tags;
	enum vb_tag_refusal refusal = VB_TAG_OK;

	*length = 0;
	if (!list)
		return VB_TAG_NO_LIST;
	if ((uint32_t)request->opcode > VB_TAG_SYNC)
		return VB_TAG_OPCODE;
	if (request->flags & ~(uint32_t)(VB_TAG_SIGNALED | VB_TAG_HAS_COUNT))
		return VB_TAG_FLAGS;
	if (request->opcode == VB_TAG_ADD)
		refusal = check_buffers(request, length);
	if (request->opcode == VB_TAG_DELETE &&
	    !is_handle_known(list, srq->tag_count, request->handle))
		refusal = VB_TAG_HANDLE;
	if (refusal)
		return refusal;
	if (vb_queue_is_full(&list->operations))
		return VB_TAG_QUEUE_FULL;
	return request->opcode == VB_TAG_ADD && is_list_full(list) ? VB_TAG_LIST_FULL : VB_TAG_OK;
}

enum vb_tag_refusal vb_srq_check_tag(const struct vb_srq *srq, const struct vb_tag_request *request)
{
	uint32_t length;

	return check(srq, request, &length);
}

/* Takes a free number; the generation of its first user is 1, and so no handle is 0. */
static uint32_t take_handle(struct vb_tag_list *list)
{
	uint16_t number = list->free_numbers[list->free_begin++ & list->free_mask];

	return ++list->use_counts[number] << 16 | number;
}

vb_err vb_srq_post_tag(struct vb_srq *srq, const struct vb_tag_request *request,
		       uint32_t *handle_out)
{
	struct vb_tag_list *list = srq->tags;
	uint32_t handle = request->handle;
	struct vb_tag_operation *operation;
	uint32_t length;
	enum vb_tag_refusal refusal = check(srq, request, &length);

	if (refusal)
		return refusal >= VB_TAG_QUEUE_FULL ? VB_ENOMEM : VB_EINVAL;
	if (request->opcode == VB_TAG_ADD)
		*handle_out = handle = take_handle(list);
	operation = vb_queue_slot(&list->operations, list->operations.staged);
	*operation = (struct vb_tag_operation){
		.wr_id = request->wr_id,
		.opcode = (uint8_t)request->opcode,
		.flags = (uint8_t)request->flags,
		.unexpected_count = (uint16_t)request->unexpected_count,
		.number = number_of(handle),
		.generation = generation_of(handle),
	};
	if (request->opcode == VB_TAG_ADD) {
		operation->recv_wr_id = request->recv_wr_id;
		operation->tag = request->tag;
		operation->mask = request->mask;
		operation->length = length;
		operation->sge_count = request->sge_count;
		for (uint32_t i = 0; i < request->sge_count; i++)
			operation->sges[i] = request->sges[i];
	}
	atomic_store_explicit(&list->operations.published, ++list->operations.staged,
			      memory_order_release);
	return VB_OK;
}

void vb_srq_ring_doorbell(struct vb_srq *srq)
{
	if (srq->tags)
		vb_qp_ring_doorbell(&srq->tags->doorbell);
}
