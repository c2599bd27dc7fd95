/* SPDX-License-Identifier: BSD-2-Clause */
/* The internals of local peers, and the messages they send each other when they meet. */
#ifndef VB_HOST_LOCAL_LOCAL_PEER_PRIV_H
#define VB_HOST_LOCAL_LOCAL_PEER_PRIV_H

#include "host/local/dma_peer.h"
#include "host/local/export.h"
#include "host/local/local_peer.h"
#include "host/local/shared.h"
#include "host/registry/port_member.h"
#include "link/ring.h"

/* Why there is no shared-memory link. */
enum vb_local_peer_why {
	VB_LOCAL_PEER_UNASKED,
	/* No process of this user in this network namespace has that number. */
	VB_LOCAL_PEER_NO_PROCESS,
	VB_LOCAL_PEER_SILENT,
	VB_LOCAL_PEER_REFUSED, /* it wants packets */
	VB_LOCAL_PEER_LIMITED, /* we have no memory or descriptor for a link */
	VB_LOCAL_PEER_ANOTHER_USER, /* its user has changed, or ours has */
};

struct vb_local_peer {
	enum vb_local_peer_state state;
	enum vb_local_peer_why absence_reason; /* as long as it is not open */
	/* It once had a link: it gets a new offer when we have new descriptors. */
	bool is_known;
	bool is_touched; /* something was sent since the last flush … */
	bool has_less_room; /* … without the engine's knowledge, such as a datagram */
	bool is_taken; /* something was received and not yet released */
	uint64_t asked_ns; /* when the last offer was made */
	uint64_t incarnation; /* of its export block; 0: none yet */
	uint64_t out_ring; /* the ring of ours that it is given, random; 0: none … */
	uint64_t in_ring; /* … the ring of its that we have … */
	uint64_t confirmed_ring; /* … and the one we have confirmed to it */
	bool is_unsent; /* its mailbox was full: the offer must be sent again */
	const struct vb_export *block;
	int wake_fd;
	pid_t pid; /* its process … */
	int pid_fd; /* … and a pidfd for it, or -1 */
	/* when a thread that waits for it first saw that it is dead; 0: not yet */
	uint64_t dead_ns;
	uint32_t woken; /* the sleep sequence that it was woken for */
	struct vb_ring_memory *out_memory; /* we write it … */
	int out_fd; /* … its descriptor, for the peer; -1 once the peer has it */
	struct vb_ring_memory *in_memory; /* the peer writes it */
	struct vb_ring_writer out;
	/* bytes that went into earlier rings, which are no longer read */
	uint64_t out_before;
	struct vb_ring_reader in;
	/* position of `in` when we last checked whether its writer waits for room */
	uint64_t answered;
	struct vb_peer_memory peer_memory; /* lent to QPs */
};

/*
 * Precedes a packet on a shared-memory link. In a train, struct vb_train and its references follow
 * before the packet.
 */
#define VB_IS_TRAIN 0x40000000u /* a flag above the PSN in piggyback_ack */
struct vb_shm_link_head {
	uint32_t flow_mark;
	uint8_t piggyback_ack[VB_PIGGYBACK_ACK_SIZE];
};

#define VB_OWN_SEGMENTS_MAX 256

struct vb_own_segment {
	uint32_t number; /* 0: free */
	struct vb_shared shared;
	/* the conversion that made the mapping; NULL: it was already shared */
	struct vb_conversion *conversion;
	uint8_t given[(VB_PORT_MEMBER_COUNT + 7) / 8]; /* peers that have it */
};

struct vb_local_peers {
	struct vb_nic *nic;
	uint32_t ifindex;
	struct vb_totals_row *row; /* or NULL */
	uint32_t group_counts[VB_EXPORT_GROUP_BITS]; /* groups for each published bit */
	struct vb_port_member *member; /* NULL while unplugged */
	struct vb_export *block;
	vb_err block_err; /* why there is none */
	int block_fd;
	int wake_fd;
	uint32_t sleeper_count;
	uint32_t readable_count; /* peers that gave us their ring */
	uint32_t unsent_count;
	uint8_t readable[VB_PORT_MEMBER_COUNT]; /* their numbers, in order of arrival */
	uint32_t next; /* the place in `readable` to receive from first */
	/* numbers of the peers that something was sent to since the last flush */
	uint8_t touched[VB_PORT_MEMBER_COUNT];
	uint32_t touched_count;
	pid_t pid; /* the process that owns these descriptors */
	struct vb_local_peer_counts counts;
	struct vb_local_peer table[VB_PORT_MEMBER_COUNT];
	uint32_t last_segment;
	uint32_t epoch; /* epoch of the rows that were accessed last */
	/* one of those rows has a segment that we neither have nor have asked for */
	bool wants_segment;
	/* how many more times to look into the mailbox for a segment that was asked for */
	uint32_t segment_looks;
	struct vb_own_segment segments[VB_OWN_SEGMENTS_MAX];
};

enum vb_local_peer_mail {
	VB_LOCAL_PEER_OFFER = 0x76623191,
	VB_LOCAL_PEER_SEGMENT_QUERY, /* asks for a segment */
	VB_LOCAL_PEER_SEGMENT, /* a segment, with its descriptor */
	VB_LOCAL_PEER_FORGET, /* a segment is gone */
	/* refuses an offer; contains the first two fields below, and the reason */
	VB_LOCAL_PEER_REFUSES,
};

/*
 * Comes with the descriptors of the export block, the eventfd, and a ring that the sender writes.
 */
struct vb_local_peer_offer {
	uint32_t kind;
	uint32_t number; /* of the sender */
	uint64_t incarnation; /* in a refusal: enum vb_local_peer_refusal */
	uint64_t ring; /* the ring that comes with the offer */
	uint64_t answered; /* the ring of the receiver that the sender has; 0: none */
};
enum vb_local_peer_refusal { VB_REFUSAL_PATH, VB_REFUSAL_USER };
enum { VB_OFFER_BLOCK, VB_OFFER_WAKE, VB_OFFER_RING, VB_OFFER_FDS };

struct vb_local_peer_segment {
	uint32_t kind;
	uint32_t number; /* of the sender … */
	uint64_t incarnation; /* … and its incarnation */
	uint32_t segment;
	uint32_t is_sealed; /* 1: the descriptor is an envelope (host/local/kept.h) */
	uint64_t address; /* at the sender */
	uint64_t length;
	uint64_t offset; /* in the file */
};

/* local_peer_segment.c */
void vb_local_peers_on_segment(struct vb_local_peers *peers, const void *bytes,
			       const struct vb_mail *mail);
void vb_local_peer_forget_segments(struct vb_local_peer *peer);
void vb_local_peers_unshare_all(struct vb_local_peers *peers);

/* local_peer_group.c: publishes the groups in a new block */
void vb_local_peers_publish_groups(struct vb_local_peers *peers);

/* local_peer_access.c: it is dead, and none of its threads accesses our memory any more */
bool vb_local_peer_is_gone(const struct vb_local_peer *peer);

/* local_peer_handshake.c */
void vb_local_peers_on_offer(struct vb_local_peers *peers, const void *bytes, struct vb_mail *mail);
void vb_local_peers_on_refusal(struct vb_local_peers *peers, const void *bytes,
			       const struct vb_mail *mail);
void vb_local_peer_close(struct vb_local_peers *peers, uint32_t number);
/* local_peer_link.c: reports the available room to the engine */
/* How many packets of the longest kind its ring has room for. */
uint32_t vb_local_peer_room(struct vb_local_peer *peer);
void vb_local_peer_update_room(struct vb_local_peers *peers, uint32_t number);
void vb_local_peer_wake(struct vb_local_peers *peers, struct vb_local_peer *peer);

#endif
