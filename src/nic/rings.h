/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings between the program's threads and the engine: the only calls that threads other than
 * the engine's owner may make. Each queue has one producer or consumer at a time: callers hold the
 * queue's own lock (send queue, receive queue, SRQ, CQ). The engine's side needs no lock: indices
 * are published with release and read with acquire.
 */
#ifndef VB_NIC_RINGS_H
#define VB_NIC_RINGS_H

#include "base/err.h"
#include "nic/request.h"

struct vb_cq;
struct vb_nic;
struct vb_qp;
struct vb_srq;

/*
 * Stages one request in the send queue. The engine does not see it before vb_qp_publish_and_ring().
 * VB_ENOMEM when the queue is full, VB_EINVAL for a request that can never be valid or a QP state
 * that takes none, VB_EOPNOTSUPP for an operation that the QP's type does not have, VB_EFAULT when
 * inline data could not be read. On failure nothing has changed; requests staged before stay.
 */
VB_MUST_USE vb_err vb_qp_post_send(struct vb_qp *qp, const struct vb_send_request *request);

/* Publishes all staged requests to the engine, and rings the doorbell if there were any. */
void vb_qp_publish_and_ring(struct vb_qp *qp);

/*
 * The same in two steps. The first publishes the requests and returns whether there are any; the
 * second rings. A thread that owns the engine by then can call vb_qp_on_doorbell() (nic/qp.h)
 * instead of ringing.
 */
bool vb_qp_publish_sends(struct vb_qp *qp);
void vb_qp_ring_doorbell(struct vb_qp *qp);

/*
 * Whether a request is worth a try with vb_qp_write_now() (nic/nic.h) before it is posted: a WRITE
 * to the memory of a local peer.
 */
bool vb_qp_may_write_now(const struct vb_qp *qp, const struct vb_send_request *request);

/* Discards all requests that are staged. */
void vb_qp_discard_staged(struct vb_qp *qp);

/* Whether a thread has rung and the engine has not looked since. */
bool vb_nic_is_rung(const struct vb_nic *nic);

/* Puts one receive into the queue; it is visible immediately. Errors as above. */
VB_MUST_USE vb_err vb_qp_post_recv(struct vb_qp *qp, const struct vb_recv_request *request);

/*
 * Whether the peer was told that no receive is posted, and waits for one. If so, posting one rings.
 */
bool vb_qp_has_waiting_peer(const struct vb_qp *qp);
VB_MUST_USE vb_err vb_srq_post_recv(struct vb_srq *srq, const struct vb_recv_request *request);

/*
 * Why a request is refused: the checks of posting, in this order. The check for a full queue comes
 * last.
 */
enum vb_post_refusal {
	VB_POST_OK = 0,
	VB_POST_OPCODE, /* no such operation */
	VB_POST_SERVICE, /* QPs of this type do not have it: VB_EOPNOTSUPP, all others VB_EINVAL */
	VB_POST_NO_QUEUE, /* receives come from an SRQ */
	VB_POST_STATE,
	VB_POST_SGE_COUNT,
	VB_POST_LENGTH, /* the sum of the SGEs */
	VB_POST_NO_INLINE, /* this operation has no data that could be inline */
	VB_POST_INLINE_LENGTH,
	VB_POST_ATOMIC_LENGTH, /* not 8 */
	VB_POST_WINDOW_KEY, /* no window, or the new key does not belong to it */
	VB_POST_ADDRESS_HANDLE, /* none, or one of another PD */
};
enum vb_post_refusal vb_qp_check_send(const struct vb_qp *qp,
				      const struct vb_send_request *request);
enum vb_post_refusal vb_qp_check_recv(const struct vb_qp *qp,
				      const struct vb_recv_request *request);
enum vb_post_refusal vb_srq_check_recv(const struct vb_srq *srq,
				       const struct vb_recv_request *request);

/*
 * Posts an operation on the tag list; needs the SRQ's lock, as posting a receive does. The engine
 * executes the operations in order, at the latest when vb_srq_ring_doorbell() was called.
 * `handle_out` names the new tag and is written by VB_TAG_ADD only. VB_ENOMEM: the list or the
 * queue of operations is full. VB_EINVAL: all other refusals.
 */
VB_MUST_USE vb_err vb_srq_post_tag(struct vb_srq *srq, const struct vb_tag_request *request,
				   uint32_t *handle_out);
void vb_srq_ring_doorbell(struct vb_srq *srq);

/* Why an operation is refused: the checks, in this order. */
enum vb_tag_refusal {
	VB_TAG_OK = 0,
	VB_TAG_NO_LIST, /* the SRQ is of another type */
	VB_TAG_OPCODE,
	VB_TAG_FLAGS,
	VB_TAG_SGE_COUNT,
	VB_TAG_LENGTH,
	VB_TAG_HANDLE, /* no tag ever had it */
	VB_TAG_QUEUE_FULL,
	VB_TAG_LIST_FULL,
};
enum vb_tag_refusal vb_srq_check_tag(const struct vb_srq *srq,
				     const struct vb_tag_request *request);

/*
 * The oldest completion, which stays in place until it is taken; NULL: there is none. Taking it
 * frees the queue slots of the requests that it completes.
 */
const struct vb_completion *vb_cq_peek(const struct vb_cq *cq);
void vb_cq_take(struct vb_cq *cq);

/* Takes up to `capacity` completions; returns how many. */
uint32_t vb_cq_poll(struct vb_cq *cq, struct vb_completion *completions, uint32_t capacity);

/*
 * Asks for one event (VB_EVENT_COMPLETION) at the next completion, or at the next solicited or
 * failed one. Completions that are already there raise nothing by themselves; if
 * vb_cq_has_unannounced() is true afterwards, the owner of the engine can raise their event
 * (vb_cq_raise_unannounced()).
 */
void vb_cq_arm(struct vb_cq *cq, bool solicited_only);

/* Completions wait, and no event told of any of them. */
bool vb_cq_has_unannounced(const struct vb_cq *cq);

#endif
