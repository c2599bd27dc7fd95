/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of neighbors, and what they write each other when they meet. */
#ifndef VB_HOST_NEIGHBOR_PRIV_H
#define VB_HOST_NEIGHBOR_PRIV_H

#include "host/dma_reach.h"
#include "host/export.h"
#include "host/member.h"
#include "host/neighbor.h"
#include "host/shared.h"
#include "link/ring.h"

/* Why there is no line. */
enum vb_neighbor_why {
	VB_NEIGHBOR_UNASKED,
	VB_NEIGHBOR_NOBODY, /* of this user, in this network namespace, has that number */
	VB_NEIGHBOR_SILENT,
	VB_NEIGHBOR_REFUSED, /* it wants packets */
	VB_NEIGHBOR_LIMITED, /* we have no memory or descriptor for a line */
	VB_NEIGHBOR_ANOTHER_USER, /* it is another user now, or we are */
};

struct vb_neighbor {
	enum vb_neighbor_state state;
	enum vb_neighbor_why why; /* as long as it is not open */
	bool is_known; /* it had a line once: it is offered one again when we have new descriptors */
	bool is_touched; /* something was sent since the last flush … */
	bool has_less_room; /* … that the engine knows nothing of, such as a datagram */
	bool is_taken; /* something was received and not released */
	uint64_t asked_ns; /* when the last offer was made */
	uint64_t incarnation; /* of its export block; 0: none yet */
	uint64_t out_ring; /* which ring of ours it is given, random; 0: none … */
	uint64_t in_ring; /* … and which of its we have … */
	uint64_t told_ring; /* … and have told it that we have */
	bool is_unsent; /* its mailbox was full: it is to be sent an offer again */
	const struct vb_export *block;
	int wake_fd;
	pid_t pid; /* its process … */
	int pid_fd; /* … and a descriptor of it; -1: there is none to be had */
	uint64_t dead_ns; /* when somebody who waits for it saw first that it is dead; 0: not yet */
	uint32_t woken; /* the sleep sequence that it was woken for */
	struct vb_ring_memory *out_memory; /* ours to write … */
	int out_fd; /* … to be given to it; -1 when it has it */
	struct vb_ring_memory *in_memory; /* its to write */
	struct vb_ring_writer out;
	uint64_t out_before; /* bytes that went into earlier rings, of which nothing is read any more */
	struct vb_ring_reader in;
	uint64_t answered; /* where `in` stood when we last looked whether its writer waits for room */
	struct vb_reach reach; /* lent to QPs */
};

/* In front of a packet on a line. */
#define VB_NO_RIDER UINT32_MAX
struct vb_line_head {
	uint32_t flow_mark;
	uint32_t rider_psn; /* struct vb_rider */
	uint32_t rider_aeth;
};

#define VB_OWN_SEGMENTS_MAX 256

struct vb_own_segment {
	uint32_t number; /* 0: free */
	struct vb_shared shared;
	struct vb_conversion *conversion; /* that the mapping is; NULL: it was shared already */
	uint8_t given[(VB_MEMBER_COUNT + 7) / 8]; /* neighbors that have it */
};

struct vb_neighbors {
	struct vb_nic *nic;
	uint32_t interface_index;
	uint32_t group_counts[VB_EXPORT_GROUP_BITS]; /* behind each bit that is shown */
	struct vb_member *member; /* NULL while it is unplugged */
	struct vb_export *block;
	vb_err block_err; /* why there is none */
	int block_fd;
	int wake_fd;
	uint32_t sleeper_count;
	uint32_t open_count; /* neighbors whose ring we have */
	uint32_t unsent_count;
	uint8_t open[VB_MEMBER_COUNT]; /* numbers, in the order in which they came */
	uint32_t next; /* the place in `open` that is received from first */
	uint8_t touched
		[VB_MEMBER_COUNT]; /* numbers of those that something was sent to since the last flush */
	uint32_t touched_count;
	pid_t pid; /* whose descriptors these are */
	struct vb_neighbor_counts counts;
	struct vb_neighbor table[VB_MEMBER_COUNT];
	uint32_t last_segment;
	uint32_t epoch; /* of the rows that were reached last */
	bool wants_segment; /* one of them has a segment that we do not have and have not asked for */
	uint32_t segment_looks; /* how often more the mailbox is looked into for one that was asked for */
	struct vb_own_segment segments[VB_OWN_SEGMENTS_MAX];
};

enum vb_neighbor_mail {
	VB_NEIGHBOR_OFFER = 0x76623181,
	VB_NEIGHBOR_ASKS, /* for a segment */
	VB_NEIGHBOR_SEGMENT, /* which is this; with its descriptor */
	VB_NEIGHBOR_FORGET, /* it is gone */
	VB_NEIGHBOR_REFUSES, /* an offer: of the fields below it has the first two, and why */
};

/* With the descriptors of the export block, the eventfd, and a ring that the sender writes. */
struct vb_neighbor_offer {
	uint32_t kind;
	uint32_t number; /* of the sender */
	uint64_t incarnation; /* of a refusal: enum vb_neighbor_refusal */
	uint64_t ring; /* which one it is that comes along */
	uint64_t answered; /* the ring of the receiver that the sender has; 0: none */
};
enum vb_neighbor_refusal { VB_REFUSAL_PATH, VB_REFUSAL_USER };
enum { VB_OFFER_BLOCK, VB_OFFER_WAKE, VB_OFFER_RING, VB_OFFER_FDS };

struct vb_neighbor_segment {
	uint32_t kind;
	uint32_t number; /* of the sender … */
	uint64_t incarnation; /* … and which one it is */
	uint32_t segment;
	uint32_t is_sealed; /* 1: the descriptor is an envelope (host/kept.h) */
	uint64_t address; /* at the sender */
	uint64_t length;
	uint64_t offset; /* in the file */
};

/* neighbor_segment.c */
void vb_neighbors_take_segment(struct vb_neighbors *neighbors, const void *bytes,
			       const struct vb_mail *mail);
void vb_neighbor_forget_segments(struct vb_neighbor *neighbor);
void vb_neighbors_unshare_all(struct vb_neighbors *neighbors);

/* neighbor_group.c: in a new block */
void vb_neighbors_show_groups(struct vb_neighbors *neighbors);

/* neighbor_access.c: it is dead, and nobody of it acts in our memory any more */
bool vb_neighbor_is_gone(const struct vb_neighbor *neighbor);

/* neighbor_meet.c */
void vb_neighbors_take_offer(struct vb_neighbors *neighbors, const void *bytes,
			     struct vb_mail *mail);
void vb_neighbors_take_refusal(struct vb_neighbors *neighbors, const void *bytes,
			       const struct vb_mail *mail);
void vb_neighbor_close(struct vb_neighbors *neighbors, uint32_t number);
/* neighbor_line.c: the engine is told how much room there is */
void vb_neighbor_tell_room(struct vb_neighbors *neighbors, uint32_t number);
void vb_neighbor_wake(struct vb_neighbors *neighbors, struct vb_neighbor *neighbor);

#endif
