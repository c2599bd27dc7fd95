/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local peers of an adapter: other adapters of this user in this network namespace (and the one
 * with our own number). It has shared-memory links with them, one in each direction, and may be
 * able to access their memory. docs/adr/0003 describes the whole. Only the engine's owner uses all
 * this.
 */
#ifndef VB_HOST_LOCAL_LOCAL_PEER_H
#define VB_HOST_LOCAL_LOCAL_PEER_H

#include "base/err.h"
#include "framing/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_mail;
struct vb_port_member;
struct vb_local_peers;
struct vb_nic;
struct vb_qp;
struct vb_totals_row;

/*
 * Borrows the engine for the lifetime of the peers; its packets leave by that interface. There are
 * no descriptors until vb_local_peers_plug_in().
 */
VB_MUST_USE vb_err vb_local_peers_create(struct vb_nic *nic, uint32_t ifindex,
					 struct vb_local_peers **peers_out);
void vb_local_peers_destroy(struct vb_local_peers *peers);

/*
 * Creates new descriptors, and offers them to all local peers known before. Borrows the member
 * until it is unplugged.
 */
/*
 * The row that requests are counted in which this adapter executes itself, from the next
 * vb_local_peers_plug_in() on; lent until then. NULL: they are not counted there.
 */
void vb_local_peers_count_in(struct vb_local_peers *peers, struct vb_totals_row *row);
VB_MUST_USE vb_err vb_local_peers_plug_in(struct vb_local_peers *peers,
					  struct vb_port_member *member);
void vb_local_peers_unplug(struct vb_local_peers *peers);
/* False if the program has closed the descriptors, of which there may be none. */
bool vb_local_peers_are_intact(const struct vb_local_peers *peers);

/* To be called by the helper thread: marks this process as alive. */
void vb_local_peers_hold_mark(struct vb_local_peers *peers);

/* --- meeting ---------------------------------------------------------------------------------- */

enum vb_local_peer_state {
	/* No such peer, or it takes no offers, or did not answer in time: packets take the wire. */
	VB_LOCAL_PEER_ABSENT,
	VB_LOCAL_PEER_ASKED, /* an offer is on its way */
	VB_LOCAL_PEER_OPEN,
};

/* Makes an offer to the member with that number, unless it already has one. */
enum vb_local_peer_state vb_local_peer_request_link(struct vb_local_peers *peers, uint32_t number);
/* Handles mail that port members do not know: an offer, or a message about segments. */
void vb_local_peers_on_mail(struct vb_local_peers *peers, uint32_t kind, const void *bytes,
			    struct vb_mail *mail);
/*
 * The same for an adapter without local peers: it refuses an offer, so that the peer need not wait,
 * and ignores other mail.
 */
void vb_local_peer_refuse_mail(const struct vb_port_member *member, uint32_t kind,
			       const struct vb_mail *mail);
/* The one or the other, for vb_port_member_set_taker(). `owner` is the local peers, or NULL. */
void vb_local_peers_take_member_mail(void *owner, const struct vb_port_member *member,
				     uint32_t kind, const void *bytes, struct vb_mail *mail);
/* Sends offers again that found a mailbox full. */
void vb_local_peers_offer_again(struct vb_local_peers *peers);
/* Releases the peers that are dead and have left nothing to receive. */
void vb_local_peers_close_gone(struct vb_local_peers *peers);
/* From now on, a connected QP uses the shared-memory link to that peer, if there is one. */
void vb_local_peer_attach_qp(struct vb_local_peers *peers, uint32_t number, struct vb_qp *qp);
/* Whether no process of this user has that number. */
bool vb_local_peer_has_no_process(const struct vb_local_peers *peers, uint32_t number);
/* Describes for a person why a QP takes its path. */
const char *vb_local_peer_describe(const struct vb_local_peers *peers, uint32_t number);

/* --- packets ---------------------------------------------------------------------------------- */

#define VB_LOCAL_PEER_FRAME_MAX 9622u /* bytes: the longest frame that a link takes */

/*
 * Receives up to `capacity` packets from the shared-memory links; they lie in the rings until
 * vb_local_peers_release().
 */
uint32_t vb_local_peers_receive(struct vb_local_peers *peers, struct vb_frame *frames,
				uint32_t capacity);
void vb_local_peers_release(struct vb_local_peers *peers);
/*
 * The most packets that can be on the links at the same time. A caller that has received this many
 * in full batches has all that were there when it began.
 */
uint32_t vb_local_peers_packets_max(const struct vb_local_peers *peers);

/*
 * Puts a packet on the link to that peer. False: the packet is lost, since the peer or the packet's
 * memory is gone, or there is no room.
 */
bool vb_local_peer_send(struct vb_local_peers *peers, uint32_t number, const struct vb_slot *slot);
/*
 * To be called after sending, or when a QP waits for room: wakes sleeping peers, and reports the
 * available room to the engine.
 */
void vb_local_peers_flush(struct vb_local_peers *peers);
bool vb_local_peer_is_open(const struct vb_local_peers *peers, uint32_t number);

/* --- multicast -------------------------------------------------------------------------------- */

/* The first QP of our engine has joined the group, or the last one has left it. */
void vb_local_peers_on_joined(struct vb_local_peers *peers, const struct vb_gid *group);
void vb_local_peers_on_left(struct vb_local_peers *peers, const struct vb_gid *group);
/*
 * Sends copies of what then goes to the group by the wire to local peers in the group, possibly to
 * us. A peer without room gets the one from the wire.
 */
void vb_local_peers_send_copies(struct vb_local_peers *peers, const struct vb_slot *slot);
/*
 * A multicast packet came by the wire. If a local peer sent it with which we have no link, we make
 * it an offer.
 */
void vb_local_peers_request_link_to_sender(struct vb_local_peers *peers,
					   const struct vb_frame *frame);

/* --- shared-memory links ---------------------------------------------------------------------- */

/* The number of a link: the peer's number plus 1. */
static inline uint32_t vb_local_peer_shm_link(uint32_t number)
{
	return number + 1;
}

static inline uint32_t vb_local_peer_of_shm_link(uint32_t shm_link)
{
	return shm_link - 1;
}

/* --- sleeping --------------------------------------------------------------------------------- */

/* Readable when a local peer has woken us. */
int vb_local_peers_fd(const struct vb_local_peers *peers);
void vb_local_peers_take_wake(struct vb_local_peers *peers);

/*
 * A thread is about to sleep on that descriptor. False: there is work, and it must not sleep. Each
 * call needs its end.
 */
bool vb_local_peers_begin_sleep(struct vb_local_peers *peers);
void vb_local_peers_end_sleep(struct vb_local_peers *peers);

/* --- memory ----------------------------------------------------------------------------------- */

/* Whether so many segments are free that regions which no peer accesses may have some. */
bool vb_local_peers_has_spare_segments(const struct vb_local_peers *peers);
/*
 * If a range that is about to be registered lies in a shared mapping, or part of it may be
 * converted to one (host/local/conversion.h), local peers may also map it. Returns its number among
 * our segments, or 0.
 */
uint32_t vb_local_peers_share(struct vb_local_peers *peers, uint64_t address, uint64_t length,
			      bool may_convert);
/* To be called when no row names that segment any more. The number may be 0. */
void vb_local_peers_unshare(struct vb_local_peers *peers, uint32_t segment);

/*
 * Asks for segments that a request needs and that we do not have. True: it is time to look into the
 * mail for those that were asked for.
 */
bool vb_local_peers_ask_for_segments(struct vb_local_peers *peers);
/* Whether vb_local_peers_ask_for_segments() should be called again soon. */
bool vb_local_peers_has_wanted_segments(const struct vb_local_peers *peers);

/* From now on no peer accesses our memory, until it is opened again. */
void vb_local_peers_close_memory(struct vb_local_peers *peers);
void vb_local_peers_open_memory(struct vb_local_peers *peers);
/*
 * To be called while the memory is closed: rows no longer name conversions that overlap the range.
 */
void vb_local_peers_unshare_conversions(struct vb_local_peers *peers, uint64_t address,
					uint64_t length);

/* To be called after a row was closed: returns when no peer acts on the row's earlier content. */
void vb_local_peers_await(struct vb_local_peers *peers);

/*
 * An access that does not end immediately. This is the same wait in steps, between which the caller
 * may release the engine.
 */
struct vb_local_peer_access {
	uint32_t number; /* the peer that accesses … */
	uint64_t ring; /* … the ring of that peer that announced it … */
	uint32_t busy; /* … and the word there */
	uint64_t begin_ns; /* when it was found */
	bool is_logged; /* it has been logged */
};

/*
 * Finds any access that may act on a row's earlier content; false if there is none. After waiting
 * for it, the caller must look for others again.
 */
bool vb_local_peers_find_access(struct vb_local_peers *peers,
				struct vb_local_peer_access *access_out);
bool vb_local_peers_poll_access(struct vb_local_peers *peers, struct vb_local_peer_access *access);

/* Numbers of packets since the beginning. */
struct vb_local_peer_counts {
	uint64_t sent;
	uint64_t received;
	uint64_t lost;
	uint64_t wakes;
};

const struct vb_local_peer_counts *vb_local_peer_counts(const struct vb_local_peers *peers);

#endif
