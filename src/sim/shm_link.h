/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared-memory links between machines that act as processes of one host. Packets wait in a ring
 * until the reader takes them; nothing is lost or duplicated while both ends live; and other
 * machines access a machine's memory as its published rows permit. A simulated link meets the same
 * events as a real one: it is full, its reader is slow, or one end dies or starts again, and then
 * both ends meet again a little later.
 */
#ifndef VB_SIM_SHM_LINK_H
#define VB_SIM_SHM_LINK_H

#include "framing/frame.h"
#include "nic/peer_memory.h"
#include "sim/fabric.h"
#include "sim/node.h"

struct vb_world;

/* A machine as others access it, or its later successor in the same place. */
struct vb_target {
	struct vb_peer_memory_tables tables;
	bool is_open; /* the rows are valid */
	bool has_pages; /* others have its pages mapped, so atomics also work */
};

struct vb_shm_link {
	uint64_t sent_count; /* packets since the beginning … */
	uint64_t gone_count; /* … and those of them that were taken or lost with their ring */
	uint32_t uc_counts[VB_NODE_QP_ROWS]; /* packets in the ring for each UC QP */
	uint32_t ring; /* the ring's number: it changes when the link starts again */
	uint64_t last_ns; /* when the reader will have taken all packets */
	bool is_open; /* both ends have met */
};

/* The access of one machine to another. */
struct vb_peer_memory {
	struct vb_world *world;
	const struct vb_target *target;
	struct vb_shm_link *shm_link;
};

struct vb_shm_links {
	uint32_t depth; /* packets that a ring holds; 0: this world has no shared-memory links */
	struct vb_prng prng;
	struct vb_shm_link shm_links[VB_FABRIC_NODES_MAX][VB_FABRIC_NODES_MAX]; /* from, to */
	struct vb_target targets[VB_FABRIC_NODES_MAX];
	uint32_t epoch; /* of the rows published last */
	/* from, to; lent to QPs */
	struct vb_peer_memory peer_memories[VB_FABRIC_NODES_MAX][VB_FABRIC_NODES_MAX];
};

void vb_shm_links_init(struct vb_world *world);
/* Publishes the machine's rows, for the first time or again. */
void vb_shm_links_publish(struct vb_world *world, struct vb_node *node);
/* Ends all access by others: before the machine is stopped, or when it dies. */
void vb_shm_links_withdraw(struct vb_world *world, const struct vb_node *node);

/* Chooses the QP's path, when its peer is known. */
void vb_shm_links_choose(struct vb_world *world, uint32_t channel, struct vb_node *node,
			 struct vb_qp *qp, struct vb_node *peer);

/* Sends a packet over a shared-memory link. The slot is borrowed for the call. */
void vb_shm_links_send(struct vb_world *world, struct vb_node *from, const struct vb_slot *slot);
/*
 * Sends copies of a multicast packet that the fabric also carries: the reader gets the copy from
 * the shared-memory link first, if it gets one at all.
 */
void vb_shm_links_send_copies(struct vb_world *world, struct vb_node *from,
			      const struct vb_slot *slot);
/* The reader takes the packet. False if its ring is gone, and the packet with it. */
bool vb_shm_links_take(struct vb_world *world, const struct vb_fabric_packet *packet);
/* Notifies the machine of the room in its links. */
void vb_shm_links_report_room(struct vb_world *world, struct vb_node *node);

/*
 * Drops the links of a machine with their contents. The machine meets its local peers again later
 * (VB_ITEM_SHM_LINKS_OPEN).
 */
void vb_shm_links_break(struct vb_world *world, uint32_t node);
void vb_shm_links_open_again(struct vb_world *world, uint32_t node);

#endif
