/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recorder of an adapter: a tap that writes what passes the port into a recording
 * (host/registry/recording.h), and the posts, doorbells and polls of the program's threads. It
 * records while an observer lives, and for VB_RECORDER_LEASE_NS after its last sign of life.
 * Without an observer the port pays nothing, and a post or poll one comparison.
 */
#ifndef VB_HOST_PORT_RECORDER_H
#define VB_HOST_PORT_RECORDER_H

#include "host/port/tap.h"
#include "host/registry/recording.h"
#include "wire/number.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_RECORDER_LEASE_NS 5000000000ull

struct vb_completion;
struct vb_nic;
struct vb_recorder_session;

/* Of an adapter, whose ports may come and go. All zero at first. */
struct vb_recorder {
	_Atomic(struct vb_recorder_session *) current; /* NULL: nobody observes */
	_Atomic uint32_t writers; /* threads that may be writing an event */
	/* The owner's: ended, but a thread was writing an event. */
	struct vb_recorder_session *retired;
};

/* --- the owner of the engine --- */

/* False: it records already, or there is no memory. The caller adds the tap to the port. */
bool vb_recorder_begin(struct vb_recorder *recorder, const struct vb_nic *nic,
		       const struct vb_recording_wish *wish, const char *device, uint32_t number);
const struct vb_tap *vb_recorder_tap(const struct vb_recorder *recorder);
/* Of the memory; lent until the end. */
int vb_recorder_fd(const struct vb_recorder *recorder);
/* Whether it records and the observer wants no more, or has been silent for too long. */
bool vb_recorder_is_over(struct vb_recorder *recorder, uint64_t now_ns);
/*
 * The caller has removed the tap. `is_ours`: the observer is told that no more will come, which a
 * forked child must not do.
 */
void vb_recorder_end(struct vb_recorder *recorder, bool is_ours);

/* --- any thread --- */

static inline bool vb_recorder_is_on(const struct vb_recorder *recorder)
{
	return atomic_load_explicit(&recorder->current, memory_order_relaxed);
}

/* recorder_event.c: for a recorder that is on, or was a moment ago. */
void vb_recorder_on_post(struct vb_recorder *recorder, vb_qpn qpn, uint64_t wr_id, uint32_t opcode,
			 uint32_t length);
void vb_recorder_on_doorbell(struct vb_recorder *recorder, vb_qpn qpn);
void vb_recorder_on_poll(struct vb_recorder *recorder, const struct vb_completion *completion);

#endif
