/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world: machines, cables, time, and the model that watches them. vb_world_step() executes the
 * next event. A world made by vb_world_create() follows the random workload of its seed
 * (workload.h); one made by vb_world_create_bare() does only what its owner commands, for tests and
 * demonstrations.
 */
#ifndef VB_SIM_WORLD_H
#define VB_SIM_WORLD_H

#include "sim/agenda.h"
#include "sim/channel.h"
#include "sim/coverage.h"
#include "sim/fabric.h"
#include "sim/model.h"
#include "sim/node.h"
#include "sim/shm_link.h"
#include "sim/trace.h"

#define VB_WORLD_NODES_MAX 4
#define VB_WORLD_CHANNELS_MAX 32
#define VB_WORLD_COUNTERS 2 /* for each node: FETCH_ADD, COMPARE_SWAP */
#define VB_WORLD_NS_MAX 600000000000u /* a world that is not at rest by then never will be */
#define VB_WORLD_STEPS_MAX 3000000u
#define VB_WORLD_REQUESTS_MAX 50000u

enum vb_world_item {
	VB_ITEM_PACKET, /* index: node */
	VB_ITEM_PUMP, /* index: node */
	VB_ITEM_TICK, /* index: channel */
	VB_ITEM_DEATH,
	VB_ITEM_RESTART,
	VB_ITEM_BREAK, /* a machine loses its shared-memory links; index: node */
	VB_ITEM_SHM_LINKS_OPEN, /* … and it gets new ones */
	VB_ITEM_HOSTILE, /* from now on packets are harmed */
	VB_ITEM_EPOCH, /* new channels; index: the number of epochs still to come */
	VB_ITEM_CHECK, /* checks memory */
};

struct vb_world_options {
	uint64_t seed;
	uint32_t node_count;
	uint32_t memory_length;
	uint64_t latency_ns;
	uint32_t picoseconds_per_byte;
	enum vb_icrc_mode icrc_mode;
	uint32_t batch_segments_max;
	uint32_t window_packets_max;
	uint32_t window_bytes_max;
	uint32_t flight_bytes_max;
	uint32_t train_length_min; /* see struct vb_nic_config */
	uint32_t train_length_max;
	uint32_t train_sample_bytes;
	bool has_strange_iovas;
	/* packets that a shared-memory link between machines holds; 0: there are none */
	uint32_t shm_link_depth;
	bool is_steady; /* transmits without random back-pressure, polls immediately */
};

struct vb_world {
	struct vb_world_options options;
	uint64_t now_ns;
	uint64_t steps;
	uint64_t steps_here; /* while time stood still */
	struct vb_prng prng; /* for the program's choices */
	struct vb_agenda agenda;
	struct vb_trace trace;
	struct vb_fabric fabric;
	struct vb_shm_links shm_links;
	struct vb_model model;
	struct vb_coverage coverage;
	struct vb_slot *slots;
	struct vb_node *nodes[VB_WORLD_NODES_MAX];
	struct vb_node *retired[VB_WORLD_NODES_MAX]; /* nodes from before a restart */
	uint32_t retired_count;
	struct vb_channel *channels[VB_WORLD_CHANNELS_MAX];
	uint32_t channel_count;
	uint32_t counters[VB_WORLD_NODES_MAX][VB_WORLD_COUNTERS];
	uint64_t swap_seen[VB_WORLD_NODES_MAX]; /* the program's guess of the COMPARE_SWAP word */
	bool is_hostile; /* a request may run out of retries */
	bool has_workload;
	uint64_t fault_end_ns;
	uint32_t message_scale; /* the size of messages in this world, in bytes */
};

struct vb_world *vb_world_create_bare(const struct vb_world_options *options);
struct vb_world *vb_world_create(uint64_t seed);
void vb_world_destroy(struct vb_world *world);

/* Executes the next event. False if nothing will ever happen by itself, or a rule was broken. */
bool vb_world_step(struct vb_world *world);

/* Steps until the world is at rest; then checks the rules for a world at rest. */
void vb_world_run(struct vb_world *world);

/*
 * Moves all QPs to ERR, empties the queues, destroys all objects and checks everything that is left
 * to check.
 */
void vb_world_finish(struct vb_world *world);

/* "" if no rule was broken. */
const char *vb_world_violation(const struct vb_world *world);

/* For the files of a world: */
void vb_world_plan_drive(struct vb_world *world, uint32_t node, uint64_t delay_ns);
void vb_world_drive(struct vb_world *world, struct vb_node *node);
void vb_world_poll(struct vb_world *world, struct vb_node *node, uint32_t cq, uint32_t capacity);
void vb_world_poll_all(struct vb_world *world, struct vb_node *node);
void vb_world_arm(struct vb_world *world, struct vb_node *node, uint32_t cq, bool solicited_only);
void vb_world_take_events(struct vb_world *world, struct vb_node *node);
void vb_world_note(struct vb_world *world, uint32_t node, enum vb_trace_action action, uint64_t a,
		   uint64_t b);
void vb_world_check_memory(struct vb_world *world);

#endif
