/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a recorder: what there is while an observer lives. */
#ifndef VB_HOST_PORT_RECORDER_PRIV_H
#define VB_HOST_PORT_RECORDER_PRIV_H

#include "host/port/recorder.h"

#define VB_RECORDER_SENDERS 256u /* a power of two */

struct vb_recorder_session {
	struct vb_recording recording;
	struct vb_recording_wish wish;
	struct vb_tap tap;
	const struct vb_nic *nic;
	uint32_t beat; /* of the observer, when it last changed … */
	uint64_t beat_ns; /* … and when that was; 0: not seen yet */
	vb_qpn senders[VB_RECORDER_SENDERS]; /* the last sender to a QP, by its number */
};

/* recorder_packet.c: the functions of the tap */
void vb_recorder_on_sent(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count);
void vb_recorder_on_received(void *owner, uint64_t now_ns, const struct vb_frame *frames,
			     uint32_t count);
void vb_recorder_on_executed(void *owner, const struct vb_executed *parts, uint32_t count,
			     const uint8_t *bytes);

#endif
