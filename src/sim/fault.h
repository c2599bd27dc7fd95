/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The faults of a world, drawn from its seed: probabilities for packets, and a schedule for links
 * and machines. Every fault ends, so that the world must come to rest.
 */
#ifndef VB_SIM_FAULT_H
#define VB_SIM_FAULT_H

#include "base/prng.h"
#include "sim/trace.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_FAULT_SCRIPT_MAX 16
/* No packet is under way longer than this plus the link's latency. */
#define VB_FAULT_DELAY_MAX_NS 20000000u
#define VB_FAULT_NODE_NONE 0xffffffffu

enum vb_fault_mood {
	VB_MOOD_CALM, /* nothing goes wrong below the transport */
	VB_MOOD_MILD, /* so few packets are harmed that seven retries always suffice */
	VB_MOOD_HOSTILE,
	VB_MOOD_CATASTROPHIC, /* machines also die or restart */
	VB_MOOD_COUNT
};

struct vb_fault_window {
	uint64_t begin_ns;
	uint64_t end_ns; /* begin_ns if it never opens */
};

struct vb_fault_plan {
	enum vb_fault_mood mood;
	struct vb_fault_window packets; /* when the probabilities below apply */
	uint32_t loss; /* this and the following in 1/10000 */
	uint32_t duplicate;
	uint32_t reorder;
	uint32_t delay;
	uint32_t corrupt;
	uint32_t truncate;
	uint32_t budget; /* the total number of packets that may be harmed */

	struct vb_fault_window partition;
	uint32_t partition_nodes; /* a bit for each node on one of the two sides */
	struct vb_fault_window down;
	uint32_t down_node;
	uint32_t death_node;
	uint64_t death_ns;
	uint32_t restart_node;
	uint64_t restart_ns;

	/* For exhaustive tests: the fates of the first packets, in the order of sending. */
	enum vb_packet_fate script[VB_FAULT_SCRIPT_MAX];
	uint32_t script_length;
};

/* Makes a plan without faults. */
void vb_fault_init(struct vb_fault_plan *plan);

/* Draws a plan for a world of node_count nodes. */
void vb_fault_draw(struct vb_fault_plan *plan, struct vb_prng *prng, uint32_t node_count);

/*
 * The fate of the packet_number-th packet, sent now. Draws from prng only while faults are active.
 */
enum vb_packet_fate vb_fault_decide(struct vb_fault_plan *plan, struct vb_prng *prng,
				    uint64_t now_ns, uint64_t packet_number, uint32_t from,
				    uint32_t to);

/* After this time no packet is harmed, and no harmed packet is still under way. */
uint64_t vb_fault_end(const struct vb_fault_plan *plan);

/* True if the plan may harm so many packets that a request runs out of retries. */
bool vb_fault_is_hostile(const struct vb_fault_plan *plan);

const char *vb_mood_describe(enum vb_fault_mood mood);

#endif
