/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters face to face: what one sends is handed to the other as frames that point into the
 * sender's slots and the program's memory, so that only the receiving engine copies payload. Node A
 * asks, node B serves.
 */
#ifndef BENCH_SUPPORT_RIG_H
#define BENCH_SUPPORT_RIG_H

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"

#define RIG_ROUND 64 /* packets that go one way before the other way's turn */

enum side { A, B };

struct rig_setup {
	uint32_t mtu;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t cq_depth;
	uint32_t qp_row_count;
	uint32_t batch; /* packets that are handed over at a time; 0: RIG_ROUND */
	uint64_t memory_length; /* registered at each node */
};

struct rig_node {
	struct vb_nic *nic;
	struct vb_key_row *key_rows;
	struct vb_qp_row *qp_rows;
	struct vb_pd *pd;
	struct vb_cq *send_cq;
	struct vb_cq *recv_cq;
	struct vb_mr *mr;
	uint8_t *memory;
	struct vb_gid gid;
};

struct rig {
	struct rig_setup setup;
	struct rig_node node[2];
	struct vb_slot *slots;
	struct vb_frame *frames;
	struct vb_bytes *parts; /* VB_SGE_MAX spans and a tail for each frame */
};

struct rig_link {
	struct vb_qp *qp[2];
};

struct rig *rig_create(const struct rig_setup *setup);
void rig_destroy(struct rig *rig); /* the QPs must be destroyed before */

struct vb_qp *rig_create_qp(struct rig *rig, enum side side);
void rig_bring_up(struct rig *rig, enum side side, struct vb_qp *qp, vb_qpn peer);

/* Makes an RC connection, with both ends in RTS. */
struct rig_link rig_connect(struct rig *rig);
void rig_disconnect(struct rig_link *link);

/* Runs one round each way, and the timers. */
void rig_drive(struct rig *rig);

/* Ends the program if an adapter dropped, refused or repeated anything. */
void rig_check_clean(const struct rig *rig);

#endif
