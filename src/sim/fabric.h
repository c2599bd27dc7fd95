/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cables between simulated machines: every packet gets its fate, its latency and a place on the
 * agenda. A packet to a multicast address goes to every machine, the sender's own included; the
 * adapters filter.
 */
#ifndef VB_SIM_FABRIC_H
#define VB_SIM_FABRIC_H

#include "framing/frame.h"
#include "sim/agenda.h"
#include "sim/fault.h"
#include "sim/trace.h"

#define VB_FABRIC_NODES_MAX 8
#define VB_FABRIC_PARTS_MAX 4

/* A packet under way, in separate memory. */
struct vb_fabric_packet {
	struct vb_flow flow;
	uint16_t ip_id;
	uint32_t from;
	uint32_t to;
	uint16_t shm_link; /* the shared-memory link that it came by; 0: a cable */
	struct vb_piggyback_ack piggyback_ack; /* piggybacked ACK of a shared-memory link */
	struct vb_train train; /* on a shared-memory link */
	struct vb_reference references[VB_SGE_MAX];
	uint32_t ring; /* of the shared-memory link */
	uint32_t length;
	uint8_t bytes[];
};

struct vb_fabric {
	struct vb_agenda *agenda;
	struct vb_trace *trace;
	uint32_t agenda_kind; /* the kind of an arriving packet; its object is the packet */
	struct vb_fault_plan faults;
	struct vb_prng prng;
	uint32_t node_count;
	struct vb_gid gids[VB_FABRIC_NODES_MAX][2]; /* the addresses of each node */
	bool is_dead[VB_FABRIC_NODES_MAX];
	uint64_t latency_ns;
	uint32_t picoseconds_per_byte;
	/* when a node's cable has sent everything it was given */
	uint64_t link_free_ns[VB_FABRIC_NODES_MAX];
	uint64_t packets_sent;
	uint64_t fates[VB_FATE_COUNT];
	uint64_t unreadable; /* slots whose memory had vanished */
};

/*
 * Copies the packet into separate memory, which the caller frees. NULL if its memory has vanished.
 */
struct vb_fabric_packet *vb_fabric_gather(struct vb_fabric *fabric, uint32_t from,
					  const struct vb_slot *slot);

/* Sends a slot of the adapter. The slot is borrowed for the call. */
void vb_fabric_send(struct vb_fabric *fabric, uint64_t now_ns, uint32_t from,
		    const struct vb_slot *slot);

/*
 * Makes a frame over the packet's bytes, split into pieces at random places. `parts` is the frame's
 * memory.
 */
struct vb_frame vb_fabric_frame(struct vb_fabric *fabric, const struct vb_fabric_packet *packet,
				struct vb_bytes parts[VB_FABRIC_PARTS_MAX]);

#endif
