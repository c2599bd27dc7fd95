/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tag list of an SRQ: executing what was posted, matching messages, and their completions. All
 * completions belong to the SRQ: they go to its CQ, and stay there when the QP that the message
 * came by is destroyed.
 */
#include "nic/tag_list_priv.h"

#include "base/probe.h"
#include "base/heap.h"
#include "nic/payload_priv.h"
#include "nic/rendezvous_priv.h"

#include "base/bytes.h"

/* Beyond this distance the counts, which wrap, will soon be ambiguous. */
#define UNREPORTED_MAX 0x3fff

vb_err vb_tag_list_create(struct vb_srq *srq, const struct vb_srq_init *init)
{
	struct vb_tag_list *list = vb_heap_alloc(1, sizeof(*list));
	vb_err err = VB_ENOMEM;

	if (!list)
		return VB_ENOMEM;
	list->tags = vb_heap_alloc(init->tag_count, sizeof(*list->tags));
	if (!list->tags)
		goto free_list;
	err = vb_tag_list_init_posting(list, init);
	if (err)
		goto free_tags;
	vb_list_init(&list->enabled);
	vb_list_init(&list->waiting);
	for (uint32_t i = 0; i < init->tag_count; i++)
		vb_list_init(&list->tags[i].node);
	list->doorbell.nic = srq->pd->nic;
	list->doorbell.srq = srq;
	srq->tags = list;
	srq->tag_count = init->tag_count;
	return VB_OK;
free_tags:
	vb_heap_free(list->tags);
free_list:
	vb_heap_free(list);
	return err;
}

void vb_tag_list_destroy(struct vb_srq *srq)
{
	struct vb_tag_list *list = srq->tags;

	vb_qp_remove_from_doorbell(&list->doorbell);
	vb_tag_list_fini_posting(list);
	vb_heap_free(list->tags);
	vb_heap_free(list);
	srq->tags = NULL;
}

/* `qp` is that of the message, or NULL. */
static void complete(struct vb_srq *srq, const struct vb_qp *qp,
		     const struct vb_completion *completion, bool solicited)
{
	struct vb_completion *entry = vb_cq_claim(srq->cq, qp);

	if (!entry)
		return;
	*entry = *completion;
	entry->qp = NULL; /* it has no slot there that polling could free */
	entry->frees_slot = false;
	VB_PROBE4(complete, completion->qpn, completion->wr_id, completion->status,
		  completion->byte_length);
	vb_cq_publish(srq->cq, solicited || completion->status != VB_STATUS_SUCCESS);
}

static void release(struct vb_tag_list *list, struct vb_tag *tag)
{
	tag->state = VB_TAG_FREE;
	vb_tag_list_free_number(list, (uint16_t)(tag - list->tags));
}

/* --- operations --- */

static bool is_in_sync(const struct vb_tag_list *list)
{
	return list->unexpected == list->handled;
}

static void enable_if_in_sync(struct vb_tag_list *list)
{
	if (is_in_sync(list))
		vb_list_append_all(&list->enabled, &list->waiting);
}

static void add(struct vb_tag_list *list, const struct vb_tag_operation *operation)
{
	struct vb_tag *tag = &list->tags[operation->number];

	VB_CHECK(tag->state == VB_TAG_FREE);
	tag->state = VB_TAG_LISTED;
	tag->generation = operation->generation;
	tag->wr_id = operation->recv_wr_id;
	tag->tag = operation->tag;
	tag->mask = operation->mask;
	tag->length = operation->length;
	tag->sge_count = operation->sge_count;
	memcpy(tag->sges, operation->sges, sizeof(tag->sges));
	vb_list_append(&list->waiting, &tag->node);
	enable_if_in_sync(list);
}

/* A message may have been faster. */
static enum vb_status remove_tag(struct vb_tag_list *list, const struct vb_tag_operation *operation)
{
	struct vb_tag *tag = &list->tags[operation->number];

	if (tag->state != VB_TAG_LISTED || tag->generation != operation->generation)
		return VB_STATUS_TM_ERR;
	vb_list_remove(&tag->node);
	release(list, tag);
	return VB_STATUS_SUCCESS;
}

static void execute(struct vb_srq *srq, const struct vb_tag_operation *operation)
{
	struct vb_tag_list *list = srq->tags;
	struct vb_completion completion = {
		.wr_id = operation->wr_id,
		.status = VB_STATUS_SUCCESS,
		.timestamp_ns = srq->pd->nic->now_ns,
	};

	if (operation->flags & VB_TAG_HAS_COUNT) {
		list->handled = operation->unexpected_count;
		enable_if_in_sync(list);
	}
	switch ((enum vb_tag_opcode)operation->opcode) {
	case VB_TAG_ADD:
		completion.opcode = VB_COMPLETION_TM_ADD;
		add(list, operation);
		break;
	case VB_TAG_DELETE:
		completion.opcode = VB_COMPLETION_TM_DEL;
		completion.status = (uint8_t)remove_tag(list, operation);
		break;
	case VB_TAG_SYNC:
		completion.opcode = VB_COMPLETION_TM_SYNC;
		break;
	}
	if (!is_in_sync(list))
		completion.flags = VB_COMPLETION_TM_SYNC_REQ;
	if (operation->flags & VB_TAG_SIGNALED)
		complete(srq, NULL, &completion, false);
}

void vb_tag_list_execute(struct vb_srq *srq)
{
	struct vb_queue *operations = &srq->tags->operations;
	uint32_t end = vb_queue_published(operations);

	while (operations->taken != end) {
		execute(srq, vb_queue_slot(operations, operations->taken));
		operations->taken++;
		atomic_store_explicit(&operations->freed, operations->taken, memory_order_release);
	}
}

/* --- messages --- */

static struct vb_tag *find(const struct vb_tag_list *list, uint64_t tag)
{
	for (struct vb_list_node *node = list->enabled.next; node != &list->enabled;
	     node = node->next) {
		struct vb_tag *candidate = VB_CONTAINER(node, struct vb_tag, node);

		if ((tag & candidate->mask) == candidate->tag)
			return candidate;
	}
	return NULL;
}

struct headers {
	struct vb_tmh tmh;
	struct vb_rvh rvh;
};

/*
 * Only what is well-formed gets to the program: a message that promises a header and does not have
 * it is refused. A message that is not for matching may be shorter than a header, or empty.
 */
static enum vb_verdict read_headers(const struct vb_frame *frame, const struct vb_packet *packet,
				    struct headers *headers)
{
	struct vb_payload payload = vb_payload_of(frame, packet);
	uint32_t length = packet->payload_length;
	uint8_t bytes[VB_TMH_SIZE + VB_RVH_SIZE] = { 0 };

	vb_payload_read(&payload, bytes, min32(length, sizeof(bytes)));
	headers->tmh = vb_tmh_load(bytes);
	headers->rvh = vb_rvh_load(bytes + VB_TMH_SIZE);
	switch (headers->tmh.opcode) {
	case VB_TMH_NO_TAG:
	case VB_TMH_FIN:
		return VB_PASS;
	case VB_TMH_EAGER:
		return length >= VB_TMH_SIZE ? VB_PASS : VB_INVALID_REQUEST;
	case VB_TMH_RENDEZVOUS:
		return packet->traits & VB_IS_LAST && length >= VB_TMH_SIZE + VB_RVH_SIZE &&
				       length <= VB_RENDEZVOUS_LENGTH_MAX
			       ? VB_PASS
			       : VB_INVALID_REQUEST;
	default:
		return VB_INVALID_REQUEST;
	}
}

/*
 * Whether the adapter can read the data of a rendezvous: the tag's buffer has room for it, the QP
 * may use the keys of that buffer, and it may send READs. (A QP in RTR does not know yet.)
 */
static bool can_read(const struct vb_qp *qp, const struct vb_tag *tag, const struct vb_rvh *rvh)
{
	return rvh->length <= tag->length && qp->pd_number == qp->srq->pd->number &&
	       (qp->attr.reads_out || vb_qp_state_now(qp) == VB_STATE_RTR);
}

enum vb_verdict vb_tag_list_match(struct vb_qp *qp, const struct vb_frame *frame,
				  const struct vb_packet *packet, enum vb_tagged *tagged_out)
{
	struct headers headers;
	enum vb_verdict verdict;
	struct vb_tag *tag;

	if (frame->train.packet_count)
		return VB_NOT_FETCHED;
	verdict = read_headers(frame, packet, &headers);
	if (verdict != VB_PASS)
		return verdict;
	*tagged_out = VB_TAGGED_UNTAGGED;
	if (headers.tmh.opcode == VB_TMH_NO_TAG || headers.tmh.opcode == VB_TMH_FIN)
		return VB_PASS;
	*tagged_out = VB_TAGGED_UNEXPECTED;
	vb_tag_list_execute(qp->srq);
	tag = find(qp->srq->tags, headers.tmh.tag);
	if (!tag)
		return VB_PASS;
	if (headers.tmh.opcode == VB_TMH_EAGER)
		*tagged_out = VB_TAGGED_EAGER;
	else
		*tagged_out = can_read(qp, tag, &headers.rvh) ? VB_TAGGED_RENDEZVOUS
							      : VB_TAGGED_INCOMPLETE;
	vb_list_remove(&tag->node);
	tag->state = VB_TAG_IN_USE;
	tag->tmh = headers.tmh;
	tag->rvh = headers.rvh;
	qp->responder.receive.tag = tag;
	return VB_PASS;
}

void vb_tag_list_on_unexpected(struct vb_tag_list *list)
{
	list->unexpected++;
}

static void describe_match(const struct vb_tag *tag, struct vb_completion *completion)
{
	completion->opcode = VB_COMPLETION_TM_RECV;
	completion->flags |= VB_COMPLETION_TM_MATCH;
	completion->tag = tag->tmh.tag;
	completion->tag_context = tag->tmh.app_context;
}

static void on_unexpected_received(struct vb_tag_list *list, struct vb_completion *completion)
{
	completion->opcode = VB_COMPLETION_TM_RECV;
	if ((uint16_t)(list->unexpected - list->handled) > UNREPORTED_MAX)
		completion->flags |= VB_COMPLETION_TM_SYNC_REQ;
	if (completion->status == VB_STATUS_SUCCESS)
		return;
	/* The program never sees this message, and will not count it. */
	list->unexpected--;
	enable_if_in_sync(list);
}

void vb_tag_list_on_received(struct vb_qp *qp, struct vb_completion *completion, bool solicited)
{
	const struct vb_receive *receive = &qp->responder.receive;
	struct vb_srq *srq = qp->srq;
	struct vb_tag *tag = receive->tag;
	bool is_success = completion->status == VB_STATUS_SUCCESS;
	bool is_read_next = false;

	switch ((enum vb_tagged)receive->tagged) {
	case VB_TAGGED_NOT:
		break;
	case VB_TAGGED_UNTAGGED:
		completion->opcode = VB_COMPLETION_TM_NO_TAG;
		break;
	case VB_TAGGED_UNEXPECTED:
		on_unexpected_received(srq->tags, completion);
		break;
	case VB_TAGGED_INCOMPLETE:
		if (is_success)
			completion->status = VB_STATUS_TM_RNDV_INCOMPLETE;
		describe_match(tag, completion);
		completion->flags |= VB_COMPLETION_TM_DATA_VALID;
		break;
	case VB_TAGGED_EAGER:
		describe_match(tag, completion);
		completion->flags |= VB_COMPLETION_TM_DATA_VALID;
		break;
	case VB_TAGGED_RENDEZVOUS:
		describe_match(tag, completion);
		is_read_next = is_success;
		break;
	}
	complete(srq, qp, completion, solicited);
	if (is_read_next)
		vb_rendezvous_begin(qp, tag);
	else if (tag)
		release(srq->tags, tag);
}

void vb_tag_list_on_read(struct vb_qp *qp, struct vb_tag *tag, enum vb_status status)
{
	struct vb_completion completion = {
		.wr_id = tag->wr_id,
		.status = (uint8_t)status,
		.opcode = VB_COMPLETION_TM_RECV,
		.flags = VB_COMPLETION_TM_DATA_VALID,
		.byte_length = tag->rvh.length,
		.qpn = qp->number.v,
		.pkey_index = qp->attr.pkey_index,
		.service_level = qp->responder.headers,
		.is_receive = true,
		.timestamp_ns = qp->nic->now_ns,
	};

	complete(qp->srq, qp, &completion, false);
	release(qp->srq->tags, tag);
}
