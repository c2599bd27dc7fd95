/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules that a world must obey. The model knows only what programs know: what was posted where,
 * what was completed, what memory holds; and what the world did to it (faults, resets, deaths). The
 * model never asks the engine. The first broken rule is kept as a sentence.
 *
 *   model.c       objects, posting, slots of the queues, reset and death, the end
 *   completion_check.c     order and status of completions
 *   delivery.c    messages, buffers and their contents
 *   history.c     atomic operations on shared words
 */
#ifndef VB_SIM_MODEL_H
#define VB_SIM_MODEL_H

#include "nic/qp.h"
#include "nic/request.h"
#include "sim/arena.h"

#define VB_MODEL_NONE 0xffffffffu
#define VB_MODEL_PIECES_MAX 8
#define VB_MODEL_TEXT_MAX 400

/* The reasons why a QP may leave RTS, or never answer again. */
enum vb_model_cause {
	VB_CAUSE_OWN = 1 << 0, /* one of its requests may fail */
	/* it may have to refuse a request, or one of its receives is bad */
	VB_CAUSE_RESPONDER = 1 << 1,
	VB_CAUSE_EXPLICIT = 1 << 2, /* the program moved it to ERR */
	VB_CAUSE_OVERRUN = 1 << 3, /* its completion queue is too small */
	VB_CAUSE_HOSTILE = 1 << 4, /* the fabric may use up all retries */
	VB_CAUSE_GONE = 1 << 5, /* reset, destroyed, or its machine is dead */
};

/* A set of statuses. */
#define VB_STATUS_BIT(status) (1u << (status))

struct vb_model_piece {
	uint64_t address; /* in the arena */
	uint32_t length;
	bool is_block; /* allocated for this request and released with it */
};

enum vb_model_outcome {
	VB_OUTCOME_PENDING,
	VB_OUTCOME_DONE,
	VB_OUTCOME_DROPPED, /* the queue was reset: no completion may come */
};

/* A send or a receive. The caller sets the first part; the second belongs to the model. */
struct vb_model_request {
	bool is_receive;
	uint32_t qp; /* VB_MODEL_NONE for a receive of an SRQ */
	uint32_t srq; /* of a receive; the target of an XRC send */
	enum vb_wr_opcode opcode;
	bool is_signaled;
	bool is_solicited;
	uint32_t length; /* of the message, or the capacity of a receive */
	/* statuses that it may end with, besides flush and running out of retries */
	uint32_t allowed;
	uint64_t key; /* pattern of the data that it moves */
	struct vb_arena *arena; /* of the pieces */
	struct vb_model_piece pieces[VB_MODEL_PIECES_MAX];
	uint32_t piece_count;
	bool opens_local; /* may change its pieces */
	struct vb_arena *remote;
	uint64_t remote_address;
	bool opens_remote; /* may change remote memory */
	bool owns_remote; /* the remote range is a block that is released on success */
	bool is_message; /* consumes a receive */
	bool has_imm;
	bool has_inv;
	uint32_t imm;
	uint32_t target; /* UD: the QP, or VB_MODEL_NONE for a group */
	uint32_t group; /* UD multicast: bit set of groups it goes to, 0 for none */
	uint32_t deliveries_max; /* unreliable types: how often it may arrive at one QP, up to 2 */
	/* several writes of one range: the last one wins; VB_MODEL_NONE if alone */
	uint32_t series;
	uint32_t counter; /* atomics; otherwise VB_MODEL_NONE */
	uint64_t compare_add;
	uint64_t swap;

	enum vb_model_outcome outcome;
	uint8_t status;
	uint32_t position; /* in its queue, from 0 */
	uint32_t next; /* in its queue */
	uint32_t next_message; /* of the same sender */
	uint32_t delivered;
	uint64_t arrived_once; /* unreliable types: bit set of QPs (the first 64 of a world) */
	uint64_t arrived_twice;
	uint64_t old; /* atomics: the previous value */
	bool is_old_known;
};

struct vb_model_queue {
	uint32_t depth;
	uint32_t posted;
	uint32_t freed; /* slots that polling freed, counted from the beginning */
	uint32_t head; /* oldest request that is not done */
	uint32_t tail;
};

struct vb_model_qp {
	enum vb_qp_type type;
	uint32_t number; /* QPN; unique in a world */
	uint32_t node;
	struct vb_arena *arena;
	uint32_t peer; /* or VB_MODEL_NONE */
	uint32_t srq; /* or VB_MODEL_NONE */
	uint32_t cause;
	uint32_t recv_trouble; /* statuses that its receives may cause at a sender */
	uint32_t groups; /* UD: its multicast groups */
	struct vb_gid gids[2];
	bool has_failed; /* of the send queue: all later requests are flushed */
	bool has_recv_failed;
	bool is_waived; /* no further demands on it */
	bool is_removed; /* reset or destroyed */
	bool is_unordered; /* faults may reorder or repeat messages (UC) */
	bool is_lossy; /* faults may break messages (UC), so that a receive holds a part of one */
	bool is_patient; /* timeout 0: may wait forever under loss */
	bool is_drained; /* in SQD, and the event came */
	struct vb_model_queue send;
	struct vb_model_queue recv;
	uint32_t first_message; /* of all that it sends */
	uint32_t last_message;
	uint32_t next_message; /* the first undelivered one (reliable types) */
};

struct vb_model_srq {
	uint32_t depth;
	uint32_t outstanding; /* posted and not completed */
	uint32_t recv_trouble;
	bool is_gone;
};

/* Several writes of one range. */
struct vb_model_series {
	uint32_t pending;
	uint64_t last_key;
	bool is_broken;
};

struct vb_model_counter {
	struct vb_arena *arena;
	uint64_t address;
	uint64_t initial;
	bool is_swap; /* a chain of COMPARE_SWAP; otherwise FETCH_ADD */
};

/* The fields of a completion that a program sees. */
struct vb_model_completion {
	uint64_t wr_id;
	uint32_t qp; /* index in the model; VB_MODEL_NONE if no QP has that QPN */
	uint8_t status;
	uint8_t opcode;
	uint8_t flags;
	bool is_receive;
	uint32_t byte_length;
	uint32_t imm;
	uint32_t source_qp; /* UD: index in the model */
};

struct vb_model {
	char violation[VB_MODEL_TEXT_MAX]; /* "" while all rules hold */
	/* the message of the last successful receive, if its type is reliable */
	uint32_t last_message;
	struct vb_model_request *requests;
	uint32_t request_count;
	uint32_t request_capacity;
	struct vb_model_qp *qps;
	uint32_t qp_count;
	uint32_t qp_capacity;
	struct vb_model_srq *srqs;
	uint32_t srq_count;
	uint32_t srq_capacity;
	struct vb_model_series *series;
	uint32_t series_count;
	uint32_t series_capacity;
	struct vb_model_counter *counters;
	uint32_t counter_count;
	uint32_t counter_capacity;
};

void vb_model_init(struct vb_model *model);
void vb_model_fini(struct vb_model *model);

bool vb_model_is_violated(const struct vb_model *model);
/* Keeps the first broken rule; `request` may be VB_MODEL_NONE. */
void vb_model_report(struct vb_model *model, uint32_t request, const char *rule, uint64_t expected,
		     uint64_t found);

/* Add objects. Each function returns the object's number. */
uint32_t vb_model_add_qp(struct vb_model *model, const struct vb_model_qp *qp);
uint32_t vb_model_add_srq(struct vb_model *model, uint32_t depth);
uint32_t vb_model_add_series(struct vb_model *model);
uint32_t vb_model_add_counter(struct vb_model *model, struct vb_arena *arena, uint64_t address,
			      bool is_swap);

/* Both QPs start from scratch, as peers of each other. */
void vb_model_connect(struct vb_model *model, uint32_t a, uint32_t b);

/*
 * Announces that memory will go away under requests that use it. Pending requests may fail: with
 * one of local_statuses if the memory is local, with one of remote_statuses if it is remote.
 */
void vb_model_forgive(struct vb_model *model, const struct vb_arena *arena, uint64_t address,
		      uint32_t length, uint32_t local_statuses, uint32_t remote_statuses);

/* Records a cause on a QP. */
void vb_model_expect(struct vb_model *model, uint32_t qp, uint32_t cause);

/* The wr_id of the next recorded request. */
uint64_t vb_model_next_id(const struct vb_model *model);
/* A request without data, buffers or counter. */
struct vb_model_request vb_model_request_of(uint32_t qp, enum vb_wr_opcode opcode);
/* The engine took the request. */
void vb_model_on_post(struct vb_model *model, const struct vb_model_request *request);
/* Releases the blocks of a request that was not posted after all. */
void vb_model_release_pieces(struct vb_model_request *request);
/* True if a post to that queue must fail for lack of a slot. */
bool vb_model_is_full(const struct vb_model *model, uint32_t qp, bool is_receive);

void vb_model_on_completion(struct vb_model *model, const struct vb_model_completion *completion);

/* SQD: drained, and all completions were polled; then back to RTS. */
void vb_model_on_drained(struct vb_model *model, uint32_t qp);
void vb_model_on_resumed(struct vb_model *model, uint32_t qp);
/* From SQE back to RTS: the send queue works again. */
void vb_model_on_recovered(struct vb_model *model, uint32_t qp);
/* Reset or destroyed: pending requests are forgotten. */
void vb_model_on_removed(struct vb_model *model, uint32_t qp);
/* The QP's machine is dead or was restarted. */
void vb_model_on_death(struct vb_model *model, uint32_t qp);

/* The number of sends of the QP that are not known to be done. */
uint32_t vb_model_pending_sends(const struct vb_model *model, uint32_t qp);
/* True if a signaled send, or any send after a failure, has not completed. */
bool vb_model_is_waiting(const struct vb_model *model, uint32_t qp);

/* Checks a world at rest: everything that had to complete has completed. */
void vb_model_check_rest(struct vb_model *model);
/*
 * Checks the end: all QPs were moved to ERR and all CQs emptied, every request is accounted for,
 * data and atomics are correct.
 */
void vb_model_check_end(struct vb_model *model);

#endif
