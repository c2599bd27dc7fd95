/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbors of an adapter: other adapters of this user in this network namespace (the one with our own number among them), with which it
 * has lines, one each way, and whose memory it may be able to reach. docs/adr/0003 tells the whole. All is for the
 * engine's owner.
 */
#ifndef VB_HOST_NEIGHBOR_H
#define VB_HOST_NEIGHBOR_H

#include "base/err.h"
#include "nic/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_mail;
struct vb_member;
struct vb_neighbors;
struct vb_nic;
struct vb_qp;

/* Borrows the engine for its life, whose packets leave by that interface. It has no descriptors until it is plugged in. */
VB_MUST_USE vb_err vb_neighbors_create(struct vb_nic *nic, uint32_t interface_index,
				       struct vb_neighbors **neighbors_out);
void vb_neighbors_destroy(struct vb_neighbors *neighbors);

/* With new descriptors, which it offers to all neighbors that it had before. Borrows the member until it is unplugged. */
VB_MUST_USE vb_err vb_neighbors_plug_in(struct vb_neighbors *neighbors, struct vb_member *member);
void vb_neighbors_unplug(struct vb_neighbors *neighbors);
/* False if the program has closed its descriptors, of which there may be none. */
bool vb_neighbors_are_intact(const struct vb_neighbors *neighbors);

/* As the helper thread: marks us as alive. */
void vb_neighbors_hold_mark(struct vb_neighbors *neighbors);

/* --- meeting ------------------------------------------------------------------------------------ */

enum vb_neighbor_state {
	VB_NEIGHBOR_ABSENT, /* there is none, or it takes no offers, or did not answer in time: the wire it is */
	VB_NEIGHBOR_ASKED, /* an offer is on its way */
	VB_NEIGHBOR_OPEN,
};

/* Makes an offer to the member with that number, unless it has one. */
enum vb_neighbor_state vb_neighbor_meet(struct vb_neighbors *neighbors, uint32_t number);
/* Something has come by mail that members do not know: an offer, or what is about segments. */
void vb_neighbors_take_mail(struct vb_neighbors *neighbors, uint32_t kind, const void *bytes,
			    struct vb_mail *mail);
/* The same for who has no neighbors: who makes an offer is told so, and need not wait. */
void vb_neighbor_refuse(const struct vb_member *member, uint32_t kind, const struct vb_mail *mail);
/* Offers that did not fit a mailbox. */
void vb_neighbors_offer_again(struct vb_neighbors *neighbors);
/* Lets go of those that are dead and have left nothing to receive. */
void vb_neighbors_bury(struct vb_neighbors *neighbors);
/* From now on a connected QP takes the line to that neighbor, if there is one. */
void vb_neighbor_connect(struct vb_neighbors *neighbors, uint32_t number, struct vb_qp *qp);
/* Whether no process of this user has that number. */
bool vb_neighbor_is_nobody(const struct vb_neighbors *neighbors, uint32_t number);
/* In words, for a person: why a QP takes the way it does. */
const char *vb_neighbor_describe(const struct vb_neighbors *neighbors, uint32_t number);

/* --- packets ------------------------------------------------------------------------------------ */

/* Packets that came by lines, up to `capacity`; they lie in the rings until vb_neighbors_release(). */
uint32_t vb_neighbors_receive(struct vb_neighbors *neighbors, struct vb_frame *frames,
			      uint32_t capacity);
void vb_neighbors_release(struct vb_neighbors *neighbors);
/* More are never on the lines at once: who has received as many in full batches has all that were there when he began. */
uint32_t vb_neighbors_packets_max(const struct vb_neighbors *neighbors);

/* Puts a packet on the line of that neighbor. False: it is lost, since the neighbor or the packet's memory is gone, or there is no room. */
bool vb_neighbor_send(struct vb_neighbors *neighbors, uint32_t number, const struct vb_slot *slot);
/* After sending, or when somebody waits for room: wakes whoever sleeps, and tells the engine of the room there is. */
void vb_neighbors_flush(struct vb_neighbors *neighbors);
bool vb_neighbor_is_open(const struct vb_neighbors *neighbors, uint32_t number);

/* --- multicast ---------------------------------------------------------------------------------- */

/* The first QP of our engine is in the group, or none is any more. */
void vb_neighbors_on_joined(struct vb_neighbors *neighbors, const struct vb_gid *group);
void vb_neighbors_on_left(struct vb_neighbors *neighbors, const struct vb_gid *group);
/* Copies of what is then sent to the group by the wire, for neighbors that are in it; we may be one. Who has no room waits for the wire's. */
void vb_neighbors_send_copies(struct vb_neighbors *neighbors, const struct vb_slot *slot);
/* By the wire came multicast: if a neighbor sent it that we have no line with, we make it an offer. */
void vb_neighbors_meet_sender(struct vb_neighbors *neighbors, const struct vb_frame *frame);

/* --- lines -------------------------------------------------------------------------------------- */

/* The number of a line: that of the neighbor, from 1 on. */
static inline uint32_t vb_neighbor_line(uint32_t number)
{
	return number + 1;
}

static inline uint32_t vb_neighbor_of_line(uint32_t line)
{
	return line - 1;
}

/* --- sleeping ----------------------------------------------------------------------------------- */

/* Readable when a neighbor has woken us. */
int vb_neighbors_fd(const struct vb_neighbors *neighbors);
void vb_neighbors_take_wake(struct vb_neighbors *neighbors);

/* A thread goes to sleep on that descriptor. False: there is something to do, and it must not. Each call wants its end. */
bool vb_neighbors_begin_sleep(struct vb_neighbors *neighbors);
void vb_neighbors_end_sleep(struct vb_neighbors *neighbors);

/* --- memory ------------------------------------------------------------------------------------- */

/*
 * If a range that is about to be registered lies in a shared mapping, or some of it may be converted to one (host/conversion.h), neighbors may have it, too: its
 * number among our segments, or 0.
 */
uint32_t vb_neighbors_share(struct vb_neighbors *neighbors, uint64_t address, uint64_t length,
			    bool may_convert);
/* No row has that number any more, or it is 0. */
void vb_neighbors_unshare(struct vb_neighbors *neighbors, uint32_t segment);

/* Asks for segments that a request has met and that we do not have. True: it is time to look for those that were asked for among the mail. */
bool vb_neighbors_ask_for_segments(struct vb_neighbors *neighbors);
/* Whether it should be called again soon. */
bool vb_neighbors_await_segments(const struct vb_neighbors *neighbors);

/* Nobody acts in our memory from now on, until it is opened again. */
void vb_neighbors_close_memory(struct vb_neighbors *neighbors);
void vb_neighbors_open_memory(struct vb_neighbors *neighbors);
/* While it is closed: rows no longer name conversions that overlap the range. */
void vb_neighbors_unshare_conversions(struct vb_neighbors *neighbors, uint64_t address,
				      uint64_t length);

/* A row was closed: returns when no neighbor is acting on what it said before. */
void vb_neighbors_await(struct vb_neighbors *neighbors);

/* One that does not end at once: the same in steps, between which the caller may let go of the engine. */
struct vb_neighbor_access {
	uint32_t number; /* whose it is … */
	uint64_t ring; /* … and by which of its rings it was announced … */
	uint32_t busy; /* … with this word */
	uint64_t begin_ns; /* when it was found */
	bool is_told; /* the log has been told */
};

/* Any that may be acting on what a row said before; false if there is none. After waiting for it, others are to be looked for again. */
bool vb_neighbors_find_access(struct vb_neighbors *neighbors,
			      struct vb_neighbor_access *access_out);
bool vb_neighbors_has_access(struct vb_neighbors *neighbors, struct vb_neighbor_access *access);

/* Packets, since the beginning. */
struct vb_neighbor_counts {
	uint64_t sent;
	uint64_t received;
	uint64_t lost;
	uint64_t wakes;
};

const struct vb_neighbor_counts *vb_neighbor_counts(const struct vb_neighbors *neighbors);

#endif
