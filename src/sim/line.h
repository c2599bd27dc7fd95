/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines between machines that are thought of as processes of one host: packets wait in a ring until the reader takes them, nothing is
 * lost or comes twice while both ends live, and a machine is reached by others as its shown rows permit. What may happen to a line is
 * what happens to a real one: it is full, its reader is slow, one end dies or begins anew, and then both meet again a little later.
 */
#ifndef VB_SIM_LINE_H
#define VB_SIM_LINE_H

#include "nic/frame.h"
#include "nic/reach.h"
#include "sim/fabric.h"
#include "sim/node.h"

struct vb_world;

/* A machine as it is reached, or whoever has its place later. */
struct vb_target {
	struct vb_reach_tables tables;
	bool is_open; /* the rows count */
	bool has_pages; /* others have them mapped: atomics, too */
};

struct vb_line {
	uint64_t sent_count; /* packets, since the beginning … */
	uint64_t gone_count; /* … and those of them that were taken, or are lost with their ring */
	uint32_t uc_counts[VB_NODE_QP_ROWS]; /* those in the ring for each UC QP */
	uint32_t ring; /* which one it is: a line that begins anew has another */
	uint64_t last_ns; /* when the reader will have taken them all */
	bool is_open; /* both have met */
};

/* How one machine reaches another. */
struct vb_reach {
	struct vb_world *world;
	const struct vb_target *target;
	struct vb_line *line;
};

struct vb_lines {
	uint32_t depth; /* packets that a ring holds; 0: there are no lines in this world */
	struct vb_prng prng;
	struct vb_line lines[VB_FABRIC_NODES_MAX][VB_FABRIC_NODES_MAX]; /* from, to */
	struct vb_target targets[VB_FABRIC_NODES_MAX];
	uint32_t epoch; /* of the rows that were shown last */
	struct vb_reach reaches[VB_FABRIC_NODES_MAX][VB_FABRIC_NODES_MAX]; /* from, to; lent to QPs */
};

void vb_lines_init(struct vb_world *world);
/* The machine shows its rows, for the first time or anew. */
void vb_lines_show(struct vb_world *world, struct vb_node *node);
/* Nobody reaches it any more: before it is stopped, or when it dies. */
void vb_lines_hide(struct vb_world *world, const struct vb_node *node);

/* The QP's way, which is chosen when its peer is known. */
void vb_lines_choose(struct vb_world *world, uint32_t channel, struct vb_node *node,
		     struct vb_qp *qp, struct vb_node *peer);

/* A packet with a line. The slot is borrowed for the call. */
void vb_lines_send(struct vb_world *world, struct vb_node *from, const struct vb_slot *slot);
/* Multicast without a line, which the fabric carries as well: the reader has a copy from the line first, if it has one at all. */
void vb_lines_send_copies(struct vb_world *world, struct vb_node *from, const struct vb_slot *slot);
/* The reader takes it: false if its ring is gone, and it with it. */
bool vb_lines_take(struct vb_world *world, const struct vb_fabric_packet *packet);
/* Tells the machine how much room its lines have. */
void vb_lines_tell_room(struct vb_world *world, struct vb_node *node);

/* The lines of a machine are gone, with what is in them; it meets its neighbors again later (VB_ITEM_MEETING). */
void vb_lines_break(struct vb_world *world, uint32_t node);
void vb_lines_meet(struct vb_world *world, uint32_t node);

#endif
