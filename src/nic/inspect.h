/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the engine's objects for an observer that owns the engine meanwhile. Queues that
 * other threads use meanwhile may be a moment ahead.
 */
#ifndef VB_NIC_INSPECT_H
#define VB_NIC_INSPECT_H

#include "framing/path.h"
#include "nic/tables.h"
#include "wire/number.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_cq;
struct vb_nic;
struct vb_pd;
struct vb_qp;

/*
 * Why a QP (RC and XRC only) sends no request. A QP that was empty stays so while it sends what is
 * posted, unless that takes more than a turn.
 */
#define VB_HOLDS(X)                                                            \
	X(NONE, "none") /* it sends, or may not by its state */                \
	X(EMPTY, "empty") /* the program has posted nothing */                 \
	X(WINDOW, "window") /* enough is in flight */                          \
	X(CREDITS, "credits") /* the peer has no receive, as far as we know */ \
	X(ROOM, "room") /* the link, or the kernel's socket, is full */        \
	X(RNR, "rnr") /* the wait after an RNR NAK */                          \
	X(FENCE, "fence")                                                      \
	X(READS, "reads") /* the peer takes no more READs and atomics */

enum vb_hold {
#define X(symbol, name) VB_HOLD_##symbol,
	VB_HOLDS(X)
#undef X
		VB_HOLD_COUNT
};

const char *vb_qp_hold_name(enum vb_hold hold);

struct vb_queue_view {
	uint32_t depth;
	uint32_t used; /* entries whose completions the program has not polled yet */
};

struct vb_qp_view {
	struct vb_path path; /* of its packets to its peer; all 0 if it has none */
	struct vb_queue_view sq;
	struct vb_queue_view rq; /* all 0 if it has an SRQ */
	uint32_t srqn; /* 0: it has no SRQ */
	vb_psn sq_psn; /* of the next request packet */
	vb_psn rq_psn; /* that it expects next */
	uint32_t repeat_count; /* how often it went back to send packets again */
	enum vb_hold hold; /* now */
	uint64_t held_ns[VB_HOLD_COUNT]; /* since it was reset; NONE is not counted */
};

void vb_qp_inspect(const struct vb_qp *qp, uint64_t now_ns, struct vb_qp_view *view_out);

/*
 * The QP's state was changed at that time. An engine that nobody has driven for a while knows only
 * an older time.
 */
void vb_qp_begin_hold(struct vb_qp *qp, uint64_t now_ns);

bool vb_qp_is_connected_to(const struct vb_qp *qp, vb_qpn number, const struct vb_gid *gid);

/*
 * The request that a packet of this PSN belongs to, as long as it is not complete: its wr_id. False
 * if there is none.
 */
bool vb_qp_find_request(const struct vb_qp *qp, vb_psn psn, uint64_t *wr_id_out);
/*
 * Copies that many bytes of its data, from the packet of this PSN on. False also if memory is gone.
 */
bool vb_qp_read_request(const struct vb_qp *qp, vb_psn psn, uint8_t *to, uint32_t length);

struct vb_cq_view {
	uint32_t number;
	uint32_t depth;
	uint32_t used; /* completions that wait to be polled */
	bool is_armed;
};

struct vb_srq_view {
	uint32_t number;
	struct vb_queue_view queue;
};

/*
 * Iterators over the objects of an engine: *place is NULL or 0 at first. False at the end. Regions
 * are rows of the kinds REGION and NULL_REGION.
 */
bool vb_nic_inspect_pd(const struct vb_nic *nic, const struct vb_pd **place, uint32_t *number_out);
bool vb_nic_inspect_cq(const struct vb_nic *nic, const struct vb_cq **place,
		       struct vb_cq_view *view_out);
bool vb_nic_inspect_srq(const struct vb_nic *nic, uint32_t *place, struct vb_srq_view *view_out);
bool vb_nic_inspect_region(const struct vb_nic *nic, uint32_t *place, struct vb_key_row *row_out);

#endif
