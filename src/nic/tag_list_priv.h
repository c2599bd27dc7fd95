/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: an SRQ with a list of tags, each with a buffer of its own. A SEND to a QP of this
 * SRQ begins with a header (wire/tag_header.h). The first tag of the list that matches takes the
 * message; without one, the message is unexpected and takes a receive of the SRQ, headers included.
 *
 * The program matches unexpected messages itself. Until it has done so with all of them, a tag that
 * it adds could match a later message first. So such a tag waits: it is not matched before the
 * program has reported as many unexpected messages as the adapter has counted.
 *
 * The program posts its operations on the list to a queue (tag_post.c); the engine executes them
 * (tag_list.c). A tag's number goes back and forth: the posting thread takes it from the ring of
 * free numbers, the engine returns it there.
 */
#ifndef VB_NIC_TAG_LIST_PRIV_H
#define VB_NIC_TAG_LIST_PRIV_H

#include "nic/qp_priv.h"
#include "nic/srq.h"
#include "wire/tag_header.h"

#define VB_TAGS_MAX 1024u
#define VB_TAG_SGE_MAX 4u
#define VB_RENDEZVOUS_LENGTH_MAX 64u

enum vb_tag_state {
	VB_TAG_FREE = 0,
	VB_TAG_LISTED,
	VB_TAG_IN_USE, /* a message has matched it and is not complete */
};

struct vb_tag {
	struct vb_list_node node; /* LISTED: in enabled or waiting; IN_USE: rendezvous->waiting */
	uint64_t wr_id;
	uint64_t tag;
	uint64_t mask;
	uint32_t length;
	uint32_t sge_count;
	uint16_t generation; /* which of those that had this number it is */
	uint8_t state; /* enum vb_tag_state */
	struct vb_tmh tmh; /* IN_USE: the headers of its message */
	struct vb_rvh rvh;
	struct vb_sge sges[VB_TAG_SGE_MAX];
};

/* An operation in its slot. */
struct vb_tag_operation {
	uint64_t wr_id;
	uint64_t recv_wr_id;
	uint64_t tag;
	uint64_t mask;
	uint32_t length;
	uint32_t sge_count;
	uint16_t number; /* of the tag */
	uint16_t generation;
	uint16_t unexpected_count;
	uint8_t opcode; /* enum vb_tag_opcode */
	uint8_t flags; /* enum vb_tag_flag */
	struct vb_sge sges[VB_TAG_SGE_MAX];
};

struct vb_tag_list {
	struct vb_tag *tags; /* the engine's, by number */
	struct vb_list_node enabled; /* in the order in which they were added */
	struct vb_list_node waiting; /* added after all of these; not matched yet */
	/* Modulo 2^16, as hardware counts and programs rely on. */
	uint16_t unexpected; /* messages so far */
	uint16_t handled; /* as many as the program has reported */

	struct vb_queue operations;
	uint16_t *free_numbers; /* a ring */
	uint32_t free_mask;
	_Atomic uint32_t free_end; /* the engine's; release */
	uint32_t free_begin; /* the posting thread's, as is the next one */
	uint32_t *use_counts; /* how often each number was used */
	/*
	 * Only its doorbell is used, which has no equivalent for SRQs: an operation on tags must
	 * not cost other doorbells anything. It stays in RESET.
	 */
	struct vb_qp doorbell;
};

VB_MUST_USE vb_err vb_tag_list_create(struct vb_srq *srq, const struct vb_srq_init *init);
void vb_tag_list_destroy(struct vb_srq *srq);

/* tag_post.c */
VB_MUST_USE vb_err vb_tag_list_init_posting(struct vb_tag_list *list,
					    const struct vb_srq_init *init);
void vb_tag_list_fini_posting(struct vb_tag_list *list);
/* The engine is done with the tag. */
void vb_tag_list_free_number(struct vb_tag_list *list, uint16_t number);

/* tag_list.c */
/* Executes everything that is posted. */
void vb_tag_list_execute(struct vb_srq *srq);

/*
 * What a message that begins with this packet is, after the list was brought up to date. A tag that
 * matches is then in use, and is in the QP's receive. VB_NOT_FETCHED: the headers must come in a
 * packet.
 */
enum vb_verdict vb_tag_list_match(struct vb_qp *qp, const struct vb_frame *frame,
				  const struct vb_packet *packet, enum vb_tagged *tagged_out);
void vb_tag_list_on_unexpected(struct vb_tag_list *list);

/* The message in the QP's receive is complete, as described so far, or has failed. */
void vb_tag_list_on_received(struct vb_qp *qp, struct vb_completion *completion, bool solicited);

/* The rendezvous of the tag is over; it is free again. */
void vb_tag_list_on_read(struct vb_qp *qp, struct vb_tag *tag, enum vb_status status);

#endif
