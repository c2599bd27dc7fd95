/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. The engine writes completions into the ring; the program's threads take them
 * out (nic/rings.h). A CQ that overruns stays in error: it keeps what it has, loses what does not
 * fit, raises CQ_ERR and moves its QPs to ERR.
 */
#ifndef VB_NIC_CQ_H
#define VB_NIC_CQ_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_cq;
struct vb_nic;

/* VB_EINVAL for a depth of 0 or beyond the limit. Events carry owner_context back. */
VB_MUST_USE vb_err vb_cq_create(struct vb_nic *nic, uint32_t depth, void *owner_context,
				struct vb_cq **cq_out);
vb_err vb_cq_destroy(struct vb_cq *cq); /* VB_EBUSY while a QP or SRQ uses it */

/*
 * The caller holds the CQ's lock (nic/rings.h) as well as the engine. VB_EINVAL if the completions
 * in it would not fit.
 */
VB_MUST_USE vb_err vb_cq_resize(struct vb_cq *cq, uint32_t depth);
uint32_t vb_cq_depth(const struct vb_cq *cq);

/*
 * Moderation: an armed CQ raises its event after `count` completions or `period_us` after the first
 * of them, whichever comes first. A count below 2 or a period of 0 switches it off.
 */
VB_MUST_USE vb_err vb_cq_moderate(struct vb_cq *cq, uint16_t count, uint16_t period_us);

/* The CQ will never be armed: its completions raise no events. */
void vb_cq_stop_events(struct vb_cq *cq);

/*
 * Raises the event of a CQ that is armed for any completion if completions wait in it of which no
 * event told. Without this, a program that polls and arms, in this order, would never hear of a
 * completion that comes in between. ibv_req_notify_cq(3) promises an event for new entries only, so
 * a program should poll once more. Common hardware gets the consumer index with the request, and
 * raises the event if there are entries beyond it; UCX relies on that.
 */
void vb_cq_raise_unannounced(struct vb_cq *cq);

bool vb_cq_has_overrun(const struct vb_cq *cq);
/* Completions not taken yet; without the CQ's lock only a hint. */
uint32_t vb_cq_waiting(const struct vb_cq *cq);

#endif
