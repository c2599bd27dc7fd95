/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection between an engine and a UDP link: slots become messages, datagrams become frames.
 * A port owns neither of them. The thread that calls the port is the owner of both.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_ENGINE_PORT_H
#define VB_TESTS_LIVE_SUPPORT_ENGINE_PORT_H

#include "link/udp.h"
#include "nic/nic.h"

#define PORT_SLOTS 64
#define PORT_FRAMES 64
#define PORT_IOVECS_PER_SLOT (VB_UDP_IOVECS_MAX / VB_UDP_SEGMENTS_MAX)

struct engine_port {
	struct vb_nic *nic;
	struct vb_udp *udp;
	/* Slots that the engine made and the link had no room for, or whose memory was missing. */
	uint64_t lost_slots;
	/* Reports that no process has the port. The transport finds out by itself. */
	uint64_t unreachable;
	struct vb_slot slots[PORT_SLOTS];
	struct vb_udp_message messages[PORT_SLOTS];
	uint32_t slots_of[PORT_SLOTS]; /* how many each message holds */
	struct iovec iovecs[PORT_SLOTS * PORT_IOVECS_PER_SLOT];
	uint8_t gathered[PORT_SLOTS][sizeof(((struct vb_slot *)0)->head)];
	struct vb_udp_datagram datagrams[PORT_FRAMES];
	struct vb_frame frames[PORT_FRAMES];
};

void engine_port_init(struct engine_port *port, struct vb_nic *nic, struct vb_udp *udp);

/*
 * Receives what has arrived, lets timers fire and sends what is ready. Returns false if nothing
 * moved.
 */
bool engine_port_turn(struct engine_port *port, uint64_t now_ns);

/* Waits until something arrives, until the engine's deadline, or for this long. */
void engine_port_wait(struct engine_port *port, uint64_t now_ns, uint64_t timeout_ns);

#endif
