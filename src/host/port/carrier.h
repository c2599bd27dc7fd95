/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A carrier moves frames between this adapter and others: UDP sockets do it, and shared memory. A
 * port has one for the wire and one for links, and knows them only by this type. To add one, write
 * a file that fills in a struct vb_carrier_type, and a row in tests/live/test_carriers.c, which
 * states what every carrier must do. Only the engine's owner calls a carrier.
 *
 * Frames of one link (vb_path.link) keep their order. Frames may be lost; then the carrier
 * counts them itself.
 */
#ifndef VB_HOST_PORT_CARRIER_H
#define VB_HOST_PORT_CARRIER_H

#include "framing/frame.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_CARRIER_FDS_MAX 2
#define VB_CARRIER_BATCH 64u /* frames; the capacity that receive() always gets */

struct vb_carrier;

/*
 * How hard to look for frames. A carrier may have places where it looks only now and then, because
 * few frames come from there and each look is a system call: a look adds its effort to a count, and
 * the carrier looks everywhere when that is high enough.
 */
enum vb_carrier_effort {
	VB_CARRIER_GLANCE = 1, /* the caller looks again immediately */
	VB_CARRIER_LOOK = 16, /* the caller looks again in some microseconds */
	VB_CARRIER_SEARCH = 64, /* the caller sleeps if nothing is found: looks everywhere */
};

struct vb_carrier_type {
	const char *name; /* for a person */
	uint32_t frame_length_max; /* the longest frame that it takes, from the BTH to the ICRC */
	/*
	 * Takes frames, from the first on, and returns how many; each is sent, or lost and counted.
	 * Fewer than `count` means that there is no room now. The slots, and the memory that they
	 * point to, are borrowed for the call.
	 */
	uint32_t (*send)(struct vb_carrier *carrier, struct vb_slot *slots, uint32_t count);
	/* To be called after one or more calls of send(): wakes receivers that sleep. */
	void (*flush)(struct vb_carrier *carrier);
	/*
	 * Never waits. Returns the number of frames, which lie in the carrier's memory until
	 * release(). Only if it returns 0 and `has_more` is false may the caller wait for fds().
	 */
	uint32_t (*receive)(struct vb_carrier *carrier, uint64_t now_ns,
			    enum vb_carrier_effort effort, struct vb_frame *frames,
			    uint32_t capacity);
	void (*release)(struct vb_carrier *carrier);
	/*
	 * The descriptors that become readable when there may be frames; returns their number. When
	 * one of them was readable, on_wake() is called before the next receive().
	 */
	uint32_t (*fds)(struct vb_carrier *carrier, struct pollfd fds[VB_CARRIER_FDS_MAX]);
	void (*on_wake)(struct vb_carrier *carrier);
	/*
	 * Takes out up to `capacity` addresses where, since the last call, no process had the port,
	 * or which do not exist. NULL: the carrier never learns of that.
	 */
	uint32_t (*take_unreachable)(struct vb_carrier *carrier, struct vb_gid *addresses,
				     uint32_t capacity);
	/* From now on, the MADs that arrive at this host come here; NULL: they always do. */
	void (*claim_mads)(struct vb_carrier *carrier);
};

/* The first member of the struct of every carrier. */
struct vb_carrier {
	const struct vb_carrier_type *type;
	bool has_more; /* the last receive() took only frames that were not for this adapter */
};

#endif
