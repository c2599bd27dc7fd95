/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of what the worlds have seen: a proof can only be as good as what was tried. */
#ifndef VB_SIM_COVERAGE_H
#define VB_SIM_COVERAGE_H

#include "nic/counters.h"
#include "sim/fault.h"
#include "sim/trace.h"

#include <stdint.h>

#define VB_COVERAGE_TYPES 11 /* all of enum vb_qp_type are smaller */
#define VB_COVERAGE_OPCODES 16 /* all of enum vb_wr_opcode are smaller */
#define VB_COVERAGE_STATUSES 24 /* all of enum vb_status are smaller */
#define VB_COVERAGE_EVENTS 32 /* all of enum vb_event_kind are smaller */

/*
 * Errors in requests, which are the flaws proper. After them, from SHORT_RECEIVE on, come other
 * things that a world counts: errors in receives, disturbances, and rare events.
 */
#define VB_FLAWS(X)                                                \
	X(NONE, "none")                                            \
	X(WRONG_RKEY, "wrong_rkey")                                \
	X(OTHER_PD, "rkey_of_another_pd")                          \
	X(REMOTE_RANGE, "remote_range")                            \
	X(REMOTE_OVERFLOW, "remote_range_overflow")                \
	X(REGION_RIGHT, "region_lacks_right")                      \
	X(QP_RIGHT, "qp_lacks_right")                              \
	X(MISALIGNED, "misaligned_atomic")                         \
	X(WRONG_LKEY, "wrong_lkey")                                \
	X(LOCAL_OTHER_PD, "lkey_of_another_pd")                    \
	X(LOCAL_RANGE, "local_range")                              \
	X(LOCAL_RIGHT, "local_region_lacks_right")                 \
	X(FOREIGN_WINDOW, "window_of_another_qp")                  \
	X(DEAD_WINDOW, "invalidated_window")                       \
	X(WRONG_INVALIDATE, "send_invalidates_wrong_key")          \
	X(WRONG_LOCAL_INVALIDATE, "local_invalidate_of_wrong_key") \
	X(WRONG_BIND, "bind_without_right")                        \
	X(WRONG_QKEY, "wrong_qkey")                                \
	X(SHORT_RECEIVE, "short_receive")                          \
	X(RECEIVE_LKEY, "receive_wrong_lkey")                      \
	X(DEREGISTERED, "region_deregistered_under_way")           \
	X(VANISHED, "memory_vanished")                             \
	X(MOVED_TO_ERR, "moved_to_err")                            \
	X(RECONNECTED, "reset_and_reconnected")                    \
	X(DRAINED, "send_queue_drained")                           \
	X(RECOVERED, "back_from_sqe")                              \
	X(FULL_QUEUE, "post_to_full_queue")                        \
	X(BAD_POST, "post_that_is_refused")                        \
	X(CQ_OVERRUN, "cq_overrun")                                \
	X(CQ_RESIZED, "cq_resized")                                \
	X(CQ_EVENT, "cq_event")                                    \
	X(SRQ_LIMIT, "srq_limit")                                  \
	X(WINDOW_USED, "window_used")                              \
	X(RELAY, "read_and_fenced_write_of_it")                    \
	X(SERIES, "one_range_written_often")                       \
	X(PASSIVE, "peer_waits_in_rtr")                            \
	X(DIED, "machine_died")                                    \
	X(RESTARTED, "machine_restarted")                          \
	X(DESTROYED, "qp_destroyed_under_way")                     \
	X(REREGISTERED, "region_reregistered_under_way")           \
	X(SHM_LINK_FULL, "shm_link_full")                          \
	X(SHM_LINK_BROKEN, "shm_link_broken")                      \
	X(DIRECT_RC, "executed_directly_rc")                       \
	X(DIRECT_UC, "executed_directly_uc")                       \
	X(DIRECT_XRC, "executed_directly_xrc")                     \
	X(WHILE_POSTED, "executed_while_posted")                   \
	X(TRAIN_FETCHED, "train_fetched")                          \
	X(TRAIN_REFUSED, "train_refused")

enum vb_flaw {
#define X(symbol, name) VB_FLAW_##symbol,
	VB_FLAWS(X)
#undef X
		VB_FLAW_COUNT
};

struct vb_coverage {
	uint64_t worlds;
	uint64_t moods[VB_MOOD_COUNT];
	uint64_t fates[VB_FATE_COUNT];
	uint64_t requests[VB_COVERAGE_TYPES][VB_COVERAGE_OPCODES];
	uint64_t send_statuses[VB_COVERAGE_TYPES][VB_COVERAGE_STATUSES];
	uint64_t recv_statuses[VB_COVERAGE_TYPES][VB_COVERAGE_STATUSES];
	uint64_t events[VB_COVERAGE_EVENTS];
	uint64_t flaws[VB_FLAW_COUNT];
	uint64_t counts[VB_COUNTER_COUNT]; /* counters of the adapters */
	uint64_t drops[VB_DROP_COUNT];
};

void vb_coverage_add(struct vb_coverage *sum, const struct vb_coverage *more);
const char *vb_flaw_name(enum vb_flaw flaw);

/* Writes the row-th line of a report, without a line feed. False if there is no such line. */
bool vb_coverage_describe(const struct vb_coverage *coverage, uint32_t row, char *text,
			  uint32_t size);

#endif
