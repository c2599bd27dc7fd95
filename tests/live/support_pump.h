/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection between an engine and a UDP link: slots become messages, datagrams become frames.
 * A pump owns neither of them. The thread that calls the pump is the owner of both.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_PUMP_H
#define VB_TESTS_LIVE_SUPPORT_PUMP_H

#include "link/udp.h"
#include "nic/nic.h"

#define PUMP_SLOTS 64
#define PUMP_FRAMES 64
#define PUMP_IOVECS_PER_SLOT (VB_UDP_IOVECS_MAX / VB_UDP_SEGMENTS_MAX)

struct pump {
	struct vb_nic *nic;
	struct vb_udp *udp;
	/* Slots that the engine made and the link had no room for, or whose memory was missing. */
	uint64_t lost_slots;
	/* Reports that no process has the port. The transport finds out by itself. */
	uint64_t unreachable;
	struct vb_slot slots[PUMP_SLOTS];
	struct vb_udp_message messages[PUMP_SLOTS];
	uint32_t slots_of[PUMP_SLOTS]; /* how many each message holds */
	struct iovec iovecs[PUMP_SLOTS * PUMP_IOVECS_PER_SLOT];
	uint8_t gathered[PUMP_SLOTS][sizeof(((struct vb_slot *)0)->head)];
	struct vb_udp_datagram datagrams[PUMP_FRAMES];
	struct vb_frame frames[PUMP_FRAMES];
};

void pump_init(struct pump *pump, struct vb_nic *nic, struct vb_udp *udp);

/*
 * Receives what has arrived, lets timers fire and sends what is ready. Returns false if nothing
 * moved.
 */
bool pump_turn(struct pump *pump, uint64_t now_ns);

/* Waits until something arrives, until the engine's deadline, or for this long. */
void pump_wait(struct pump *pump, uint64_t now_ns, uint64_t timeout_ns);

#endif
