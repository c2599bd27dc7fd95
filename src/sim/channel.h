/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel: two QPs that talk to each other, on two machines or one, with their queues. An XRC
 * channel is an XRC_SEND QP, the XRC_RECV QP that it is connected to and two XRC SRQs; a UD channel
 * is two QPs with address handles for each other and for a multicast group.
 */
#ifndef VB_SIM_CHANNEL_H
#define VB_SIM_CHANNEL_H

#include "nic/qp.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_CHANNEL_SRQS_MAX 2
#define VB_CHANNEL_RECONNECTS_MAX 3
#define VB_CHANNEL_SRQ_USERS_MAX 2
#define VB_CHANNEL_QKEY 0x11223344u

struct vb_world;

struct vb_channel_options {
	enum vb_qp_type type; /* RC, UC, UD, or XRC_SEND for an XRC channel */
	uint32_t nodes[2];
	uint32_t mtu;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t sge_max;
	uint32_t inline_max;
	bool signal_all;
	bool is_ipv6;
	bool has_srq;
	bool shares_srq; /* with another channel, if one can be found */
	bool is_clean; /* nothing on it goes wrong on purpose */
	bool shares_cq; /* with the previous channel on the same node */
	bool is_awaited; /* its CQs are awaited */
	bool is_moderated;
	bool is_passive; /* end 1 stays in RTR for a while */
	uint32_t cq_shortage; /* by how much its CQs are too small */
	uint8_t timeout;
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint32_t reads; /* max_rd_atomic and max_dest_rd_atomic */
	uint32_t access[2]; /* rights of each end's QP */
	uint32_t psn[2]; /* first PSN that each end sends */
	uint32_t message_max; /* the room in every receive */
};

enum vb_window_phase {
	VB_WINDOW_NONE,
	VB_WINDOW_BINDING,
	VB_WINDOW_BOUND,
	VB_WINDOW_INVALIDATING,
	VB_WINDOW_INVALID,
};

struct vb_channel_end {
	uint32_t node;
	uint32_t generation; /* of the node when the QP was made */
	uint32_t qp; /* index in the node */
	uint32_t model;
	uint32_t srqs[VB_CHANNEL_SRQS_MAX]; /* indices in the node */
	uint32_t srq_count;
	uint32_t handle; /* UD: to the other end */
	uint32_t group_handle; /* UD: to the multicast group */
	uint32_t group;
	uint32_t silent_run; /* unsignaled requests since the last signaled one */
	uint32_t series; /* in the model; the next two fields are its range */
	uint64_t series_address;
	uint32_t series_length;
	/* A memory window of this end, for the other end to use. */
	enum vb_window_phase window_phase;
	uint32_t window; /* index in the node */
	uint32_t window_key;
	uint64_t window_address; /* of the memory that it opens */
	uint32_t window_length;
	uint32_t window_series; /* in the model */
	uint32_t window_request; /* in the model: binds or invalidates */
	bool window_is_type_1;
	/* Draining the send queue. */
	bool is_draining; /* in SQD, waiting for the event */
	bool is_drained;
	uint32_t drains_asked; /* events that may still come */
};

enum vb_channel_state {
	VB_CHANNEL_OPEN,
	VB_CHANNEL_RESET, /* waits until old packets have died out */
	VB_CHANNEL_CLOSED, /* the program no longer uses it */
};

struct vb_channel {
	uint32_t index;
	struct vb_channel_options options;
	enum vb_channel_state state;
	struct vb_channel_end ends[2];
	uint64_t reopen_ns;
	/* Used by the workload: */
	uint32_t operations_left;
	uint64_t interval_ns;
	uint64_t deadline_ns;
	bool is_passive_now;
	uint32_t reconnects; /* up to VB_CHANNEL_RECONNECTS_MAX */
};

/* Makes both QPs and connects them. NULL if a machine has no room for more. */
struct vb_channel *vb_channel_create(struct vb_world *world,
				     const struct vb_channel_options *options);

/* Moves both ends from RESET to RTS, with these first PSNs. */
void vb_channel_connect(struct vb_world *world, struct vb_channel *channel);
/* Moves end 1 of a passive channel to RTS. */
void vb_channel_activate(struct vb_world *world, struct vb_channel *channel);
/* Moves both ends (that still exist) to RESET. */
void vb_channel_reset(struct vb_world *world, struct vb_channel *channel);

/* Destroys the QP of a live end. The other end is not notified. */
void vb_channel_destroy_end(struct vb_world *world, struct vb_channel *channel, uint32_t side);

/* True if the end's QP belongs to the machine's current generation, and the machine is alive. */
bool vb_channel_is_alive(const struct vb_world *world, const struct vb_channel_end *end);
/* The same, but the machine may be dead. */
bool vb_channel_is_there(const struct vb_world *world, const struct vb_channel_end *end);
struct vb_qp *vb_channel_qp(const struct vb_world *world, const struct vb_channel_end *end);
void vb_channel_set_state(struct vb_world *world, struct vb_channel_end *end,
			  enum vb_qp_state state);
/* Records that something may happen to this end's QP; see enum vb_model_cause. */
void vb_channel_expect(struct vb_world *world, const struct vb_channel_end *end, uint32_t cause);

bool vb_channel_can_send(const struct vb_channel *channel, uint32_t end);

#endif
