/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: basic, XRC, and for tag matching. A QP's error flushes only the receive in
 * use, not the queue. With tag matching the SRQ also has a list of tags with a buffer each
 * (nic/tag_list_priv.h); nic/rings.h has the calls for it.
 */
#ifndef VB_NIC_SRQ_H
#define VB_NIC_SRQ_H

#include "base/err.h"

#include <stdint.h>

struct vb_cq;
struct vb_pd;
struct vb_srq;
struct vb_xrcd;

struct vb_srq_init {
	uint32_t depth;
	uint32_t sge_max;
	uint32_t limit; /* 0: none */
	struct vb_xrcd *xrcd; /* XRC: this and cq; otherwise NULL */
	struct vb_cq *cq; /* XRC and tag matching */
	uint32_t tag_count; /* tag matching: size of the list; otherwise 0 */
	uint32_t tag_depth; /* operations on the list that may wait to be executed */
	void *owner_context;
};

VB_MUST_USE vb_err vb_srq_create(struct vb_pd *pd, const struct vb_srq_init *init,
				 struct vb_srq **srq_out);
vb_err vb_srq_destroy(struct vb_srq *srq); /* VB_EBUSY while a QP uses it */

/*
 * Arms the limit event, which is raised once when fewer than `limit` receives are left. VB_EINVAL
 * beyond the depth.
 */
VB_MUST_USE vb_err vb_srq_set_limit(struct vb_srq *srq, uint32_t limit);
uint32_t vb_srq_limit(const struct vb_srq *srq); /* 0 after the event was raised */
uint32_t vb_srq_depth(const struct vb_srq *srq);
uint32_t vb_srq_sge_max(const struct vb_srq *srq);
uint32_t vb_srq_number(const struct vb_srq *srq); /* what XRC requests name */

/* Grows or shrinks the SRQ; also needs its lock. VB_EINVAL if the receives in it would not fit. */
VB_MUST_USE vb_err vb_srq_resize(struct vb_srq *srq, uint32_t depth);

#endif
