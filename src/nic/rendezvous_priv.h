/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous: the adapter itself reads the data of a message that has matched a tag, and then tells
 * the sender so. Both are requests of the adapter's own in the QP's send queue, between those of
 * the program. So the program's requests come from another queue, that only the program fills:
 * `posted`. The engine moves them to the send queue, which only the engine fills. The program
 * notices nothing of the other requests: its queue has exactly the depth that it asked for.
 *
 * Only QPs with an SRQ for tag matching have this.
 */
#ifndef VB_NIC_RENDEZVOUS_PRIV_H
#define VB_NIC_RENDEZVOUS_PRIV_H

#include "nic/qp_priv.h"

struct vb_tag;

/* Requests of the adapter's own that are in the send queue at a time. All others wait. */
#define VB_OWN_REQUESTS_MAX 16u

struct vb_rendezvous {
	struct vb_queue posted;
	uint32_t moved; /* end of those that are in the send queue, or were */
	uint32_t own_count; /* requests of the adapter's own in the send queue */
	struct vb_list_node waiting; /* tags whose READ is not in the send queue yet */
};

/* The send queue also has room for the adapter's own requests. */
VB_MUST_USE vb_err vb_rendezvous_create(struct vb_qp *qp, const struct vb_qp_init *init,
					uint32_t stride);
void vb_rendezvous_destroy(struct vb_qp *qp);
/* All tags are free again, and the QP has nothing posted. */
void vb_rendezvous_reset(struct vb_qp *qp);

/* For the posting thread, when `posted` seems to be full: whether it is not. */
bool vb_rendezvous_find_room(struct vb_qp *qp);

void vb_rendezvous_take_posted(struct vb_qp *qp);
void vb_rendezvous_begin(struct vb_qp *qp, struct vb_tag *tag);
/* A request of the adapter's own is complete, or has failed. */
void vb_rendezvous_on_done(struct vb_qp *qp, const struct vb_wqe *wqe, enum vb_status status);
/* The QP has failed: nothing more is read. */
void vb_rendezvous_flush(struct vb_qp *qp);

#endif
