/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of work queues, CQs and SRQs, for the engine and for the program's threads. Indices
 * count up without end and wrap at 2^32; a slot is index & mask. `published` is written by the
 * posting thread (release) and read by the engine (acquire). `freed` is written by the thread that
 * polls the completion, or in an SRQ by the engine when it takes the receive (release), and read by
 * the posting thread (acquire).
 */
#ifndef VB_NIC_QUEUE_PRIV_H
#define VB_NIC_QUEUE_PRIV_H

#include "nic/nic_priv.h"
#include "nic/operation_priv.h"
#include "nic/request.h"
#include "wire/number.h"

#include <stdatomic.h>

/* How far a send request has progressed. */
enum vb_wqe_progress {
	VB_WQE_NOT_STARTED = 0, /* staged or published */
	VB_WQE_STARTED, /* has its PSNs; packets may be out */
	VB_WQE_EXECUTED, /* a local operation that is done */
};

/* A send request in its ring slot. Its SGEs or its inline data follow it. */
struct vb_wqe {
	uint64_t wr_id;
	union {
		struct {
			uint64_t remote_address;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
			uint32_t srqn;
		} rdma;
		struct {
			struct vb_address address;
			uint32_t qpn;
			uint32_t qkey;
		} ud;
		struct {
			uint64_t address;
			uint64_t length;
			/*
			 * Keys, not pointers: the program may destroy either object before
			 * execution.
			 */
			uint32_t region_key;
			uint32_t rkey;
			uint32_t access;
		} bind;
	};
	uint32_t imm;
	uint32_t length;
	uint32_t ssn; /* send sequence number, which credits limit */
	uint32_t packet_count; /* PSNs that it takes; 0 for a local operation */
	vb_psn first_psn;
	uint32_t first_byte; /* position of its payload in all that the QP ever sent, modulo 2^32 */
	uint8_t opcode; /* enum vb_wr_opcode */
	uint8_t flags; /* enum vb_send_flag */
	uint8_t sge_count;
	uint8_t progress; /* enum vb_wqe_progress; written by the engine */
	uint8_t traits; /* those of its operation, where every packet asks for them */
};

/* A receive in its ring slot. Its SGEs follow it. */
struct vb_rwqe {
	uint64_t wr_id;
	uint32_t length;
	uint32_t sge_count;
};

struct vb_queue {
	uint8_t *slots;
	uint32_t mask;
	uint32_t stride;
	uint32_t depth;
	uint32_t sge_max;
	_Atomic uint32_t published;
	_Atomic uint32_t freed;
	uint32_t staged; /* the posting thread's: end of what is written, published or not */
	/* the engine's: end of the receives that it has taken; only receive queues and SRQs */
	uint32_t taken;
};

VB_MUST_USE vb_err vb_queue_init(struct vb_queue *queue, uint32_t depth, uint32_t sge_max,
				 uint32_t stride);
void vb_queue_fini(struct vb_queue *queue);
void vb_queue_reset(struct vb_queue *queue);

static inline void *vb_queue_slot(const struct vb_queue *queue, uint32_t index)
{
	return queue->slots + (size_t)(index & queue->mask) * queue->stride;
}

static inline struct vb_wqe *vb_queue_wqe(const struct vb_queue *queue, uint32_t index)
{
	return vb_queue_slot(queue, index);
}

static inline const struct vb_operation *vb_wqe_operation(const struct vb_wqe *wqe)
{
	return &vb_operations[wqe->opcode];
}

/* Whether a request completes only when its response has arrived. */
static inline bool vb_wqe_needs_response(const struct vb_wqe *wqe)
{
	return wqe->traits & VB_OPERATION_RESPONSE;
}

static inline bool vb_wqe_needs_receive(const struct vb_wqe *wqe)
{
	return wqe->traits & VB_OPERATION_NEEDS_RECEIVE;
}

static inline bool vb_wqe_is_local(const struct vb_wqe *wqe)
{
	return wqe->traits & VB_OPERATION_IS_LOCAL;
}

static inline struct vb_sge *vb_wqe_sges(const struct vb_wqe *wqe)
{
	return (struct vb_sge *)(uintptr_t)(wqe + 1);
}

static inline uint8_t *vb_wqe_inline(const struct vb_wqe *wqe)
{
	return (uint8_t *)(uintptr_t)(wqe + 1);
}

static inline struct vb_sge *vb_rwqe_sges(const struct vb_rwqe *rwqe)
{
	return (struct vb_sge *)(uintptr_t)(rwqe + 1);
}

static inline uint32_t vb_queue_published(const struct vb_queue *queue)
{
	return atomic_load_explicit(&queue->published, memory_order_acquire);
}

/* To be called only by the posting thread. */
static inline bool vb_queue_is_full(const struct vb_queue *queue)
{
	return queue->staged - atomic_load_explicit(&queue->freed, memory_order_acquire) >=
	       queue->depth;
}

struct vb_cq {
	struct vb_nic *nic;
	struct vb_completion *entries;
	uint32_t mask;
	uint32_t depth;
	uint32_t user_count;
	_Atomic uint32_t produced; /* the engine's; release */
	_Atomic uint32_t consumed; /* the poller's; release */
	_Atomic uint32_t armed; /* enum vb_armed */
	_Atomic uint32_t announced; /* what `produced` was when the last event was raised */
	bool has_overrun;
	bool is_never_armed; /* vb_cq_stop_events(): no thread waits for its events */
	struct vb_list_node overrun; /* in nic->overruns until its QPs are in error */
	uint16_t moderation_count;
	uint16_t moderation_period_us;
	uint32_t moderated; /* completions since the event was first held back */
	uint32_t number; /* for observers */
	struct vb_list_node node; /* in nic->cqs */
	struct vb_timer timer;
	struct vb_event_source source;
};

enum vb_armed { VB_ARMED_NOT = 0, VB_ARMED_SOLICITED = 1, VB_ARMED_NEXT = 2 };

void vb_cq_on_overrun(struct vb_cq *cq, const struct vb_qp *qp);
void vb_cq_raise_if_armed(struct vb_cq *cq, bool solicited);

/*
 * Returns the place for a completion of this QP, if any, to be filled in and published; NULL: the
 * CQ overran, which is reported. A call would cost every completion as much as the function itself.
 */
static inline __attribute__((always_inline)) struct vb_completion *vb_cq_claim(
	struct vb_cq *cq, const struct vb_qp *qp)
{
	uint32_t produced = atomic_load_explicit(&cq->produced, memory_order_relaxed);

	if (cq->has_overrun ||
	    produced - atomic_load_explicit(&cq->consumed, memory_order_acquire) >= cq->depth) {
		vb_cq_on_overrun(cq, qp);
		return NULL;
	}
	return &cq->entries[produced & cq->mask];
}

/*
 * Publishes the completion. `solicited` decides whether a CQ armed for solicited completions raises
 * its event; callers pass true for a failure.
 */
static inline void vb_cq_publish(struct vb_cq *cq, bool solicited)
{
	uint32_t produced = atomic_load_explicit(&cq->produced, memory_order_relaxed);

	atomic_store_explicit(&cq->produced, produced + 1, memory_order_release);
	if (!cq->is_never_armed)
		vb_cq_raise_if_armed(cq, solicited);
}

void vb_cq_purge(struct vb_cq *cq, const struct vb_qp *qp);
/*
 * To be called when an XRC SRQ of this CQ is destroyed. Completions of this XRC domain's QPs stay,
 * but no longer refer to the QPs.
 */
void vb_cq_forget_xrcd(struct vb_cq *cq, const struct vb_xrcd *xrcd);
void vb_cq_on_timer(struct vb_cq *cq);

struct vb_srq {
	struct vb_pd *pd;
	struct vb_xrcd *xrcd;
	struct vb_list_node in_xrcd;
	struct vb_cq *cq;
	struct vb_tag_list *tags; /* NULL: no tag matching */
	uint32_t tag_count;
	struct vb_queue queue;
	uint32_t number;
	uint32_t limit; /* fewer receives than this raise SRQ_LIMIT_REACHED; 0: not armed */
	uint32_t user_count;
	struct vb_event_source source;
};

void vb_srq_publish_row(const struct vb_srq *srq); /* brings its row up to date */

/* The SRQ with that number in this XRC domain, or NULL. */
struct vb_srq *vb_srq_find(const struct vb_nic *nic, const struct vb_xrcd *xrcd, uint32_t number);

/* Removes the QP's completions from the CQs of all SRQs of its XRC domain. */
void vb_srq_purge_xrc(const struct vb_qp *qp);

/*
 * The next receive of the SRQ, or NULL. vb_srq_consume() then takes it, and raises the limit event
 * if that is due.
 */
struct vb_rwqe *vb_srq_peek(struct vb_srq *srq);
void vb_srq_consume(struct vb_srq *srq);

#endif
