/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated machine: one adapter, its memory with a few regions of different rights, and the
 * objects that the program on it has made. The node only holds them; world.c and channel.c act on
 * them.
 */
#ifndef VB_SIM_NODE_H
#define VB_SIM_NODE_H

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"
#include "sim/arena.h"

#define VB_NODE_NONE 0xffffffffu
#define VB_NODE_KEY_ROWS 256u
#define VB_NODE_QP_ROWS 256u
#define VB_NODE_QPS_MAX 64
#define VB_NODE_CQS_MAX 64
#define VB_NODE_SRQS_MAX 16
#define VB_NODE_LOOSE_MAX 8
#define VB_NODE_WINDOWS_MAX 32
#define VB_NODE_HANDLES_MAX 64
#define VB_NODE_GROUPS 3 /* multicast groups of a world */

enum vb_node_region_kind {
	VB_REGION_FULL, /* every right */
	VB_REGION_LOCAL, /* local access only */
	VB_REGION_READABLE, /* remote reads, no writes */
	VB_REGION_OTHER_PD, /* every right, in the other protection domain */
	VB_REGION_DEVICE, /* on the adapter's own memory */
	VB_REGION_LOOSE, /* the first of several that may be deregistered at any time */
	VB_REGION_COUNT = VB_REGION_LOOSE + VB_NODE_LOOSE_MAX
};

struct vb_node_region {
	struct vb_mr *mr; /* NULL if not registered */
	uint32_t key;
	uint32_t access;
	uint64_t iova; /* the address of the first byte in requests */
	uint64_t address; /* its place in the arena */
	uint32_t length;
};

enum vb_node_cq_mode {
	VB_CQ_POLLED, /* the program polls from time to time */
	VB_CQ_AWAITED, /* the program sleeps until the event comes */
};

struct vb_node_cq {
	struct vb_cq *cq;
	enum vb_node_cq_mode mode;
	uint32_t depth;
	uint32_t needed; /* completions that its queues may have outstanding */
	bool can_overrun; /* made too small */
	bool has_overrun; /* and the event came */
	bool is_armed;
	bool is_solicited_only;
	bool is_moderated;
	bool is_fresh; /* armed, and the engine has not run since */
};

struct vb_node_qp {
	struct vb_qp *qp;
	vb_qpn number;
	uint32_t model;
	uint32_t channel;
	uint32_t end; /* of the channel */
	uint32_t send_cq; /* VB_NODE_NONE if none */
	uint32_t recv_cq;
	uint32_t groups; /* bit set of its multicast groups */
	bool saw_last_wqe;
};

struct vb_node_srq {
	struct vb_srq *srq;
	uint32_t number;
	uint32_t model;
	uint32_t cq; /* XRC */
	uint32_t depth;
	uint32_t sge_max;
	uint32_t limit; /* armed at this value, 0 if not armed */
	bool is_xrc;
	bool is_clean; /* its channels are clean */
	uint32_t capacity; /* the room in every receive */
	uint32_t users; /* QPs */
	uint32_t resets; /* of its QPs: each may have taken entries away */
	bool is_limit_certain; /* enough receives were left when the limit was armed */
};

struct vb_node {
	uint32_t index;
	uint32_t generation; /* the number of restarts */
	bool is_dead;
	bool has_drive_planned;
	struct vb_nic *nic;
	enum vb_icrc_mode icrc_mode;
	struct vb_gid gids[2]; /* IPv4, IPv6 */
	struct vb_arena *arena;
	struct vb_key_row *key_rows;
	struct vb_qp_row *qp_rows;
	/* published to machines of the same host; NULL: there are none */
	struct vb_row_mirror mirror;
	struct vb_pd *pds[2];
	struct vb_xrcd *xrcd;
	struct vb_dm *dm;
	struct vb_node_region regions[VB_REGION_COUNT];
	struct vb_node_cq *cqs[VB_NODE_CQS_MAX];
	uint32_t cq_count;
	struct vb_node_qp *qps[VB_NODE_QPS_MAX];
	uint32_t qp_count;
	struct vb_node_srq *srqs[VB_NODE_SRQS_MAX];
	uint32_t srq_count;
	struct vb_mw *windows[VB_NODE_WINDOWS_MAX];
	uint32_t window_count;
	struct vb_ah *handles[VB_NODE_HANDLES_MAX];
	uint32_t handle_count;
};

struct vb_node_options {
	uint32_t index;
	uint32_t generation;
	uint64_t seed;
	uint32_t memory_length;
	enum vb_icrc_mode icrc_mode;
	uint32_t batch_segments_max;
	uint32_t window_packets_max;
	uint32_t window_bytes_max;
	uint32_t flight_bytes_max;
	uint32_t train_length_min;
	uint32_t train_length_max;
	uint32_t train_sample_bytes;
	bool has_strange_iovas; /* regions whose iova is not their address */
};

struct vb_node *vb_node_create(const struct vb_node_options *options);

/*
 * Destroys all objects in the right order, then the adapter. The memory stays: the checker still
 * reads it. False if the engine refused something.
 */
bool vb_node_stop(struct vb_node *node);
void vb_node_free_mirror(struct vb_node *node);
/* After vb_node_stop(): frees the node itself and its memory. */
void vb_node_destroy(struct vb_node *node);

/*
 * Add objects of the program. Each function returns an index into the node's arrays, or
 * VB_NODE_NONE if an array is full.
 */
uint32_t vb_node_add_cq(struct vb_node *node, uint32_t depth);
uint32_t vb_node_add_qp(struct vb_node *node, uint32_t pd, struct vb_qp_init *init);
uint32_t vb_node_add_srq(struct vb_node *node, const struct vb_srq_init *init);
bool vb_node_remove_qp(struct vb_node *node, uint32_t index);
uint32_t vb_node_add_window(struct vb_node *node, enum vb_mw_type type);
uint32_t vb_node_add_handle(struct vb_node *node, const struct vb_address *address);

/* The address of a multicast group, over IPv4 or IPv6. */
struct vb_gid vb_node_group(uint32_t group, bool is_ipv6);
bool vb_node_attach(struct vb_node *node, uint32_t qp, uint32_t group, bool is_ipv6);

/* Registers (again) a region that may be deregistered while in use. */
bool vb_node_register_loose(struct vb_node *node, uint32_t which, uint32_t access);

struct vb_node_qp *vb_node_find_qp(struct vb_node *node, uint32_t qpn); /* or NULL */

/* The IOVA of an address in a region. */
static inline uint64_t vb_node_iova(const struct vb_node_region *region, uint64_t address)
{
	return region->iova + (address - region->address);
}

#endif
