/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tap sees everything that passes a port, in order: each frame on its way out and on its way in,
 * and each part of a request that the engine executed itself. A train (framing/frame.h) is one
 * frame that says for how many packets and bytes it stands. A fault point decides which frames are
 * lost. Both are for observers and tests; a port without them pays one comparison for a batch.
 * While there is a tap, no request is executed before it is posted (nic/direct_write.c).
 */
#ifndef VB_HOST_PORT_TAP_H
#define VB_HOST_PORT_TAP_H

#include "framing/frame.h"
#include "nic/executed.h"

#include <stdbool.h>
#include <stdint.h>

/* The functions are called by the engine's owner and must not call the port or the engine. */
struct vb_tap {
	void *owner; /* their first argument */
	void (*on_sent)(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count);
	void (*on_received)(void *owner, uint64_t now_ns, const struct vb_frame *frames,
			    uint32_t count);
	/*
	 * `bytes` has the data of the parts (nic/executed.h). More than VB_TAP_EXECUTED_MAX: those
	 * beyond are not in the list.
	 */
	void (*on_executed)(void *owner, const struct vb_executed *parts, uint32_t count,
			    const uint8_t *bytes);
};

/* A turn of the engine executes less: that many words of 8 bytes, or one part of 128 KB. */
#define VB_TAP_EXECUTED_MAX 16384u
#define VB_TAP_EXECUTED_BYTES (160u << 10)

struct vb_fault_point {
	void *owner;
	/*
	 * True: the frame is lost, after the tap has seen it leave, or before the tap sees it
	 * arrive.
	 */
	bool (*loses_sent)(void *owner, const struct vb_slot *slot);
	bool (*loses_received)(void *owner, const struct vb_frame *frame);
};

#endif
