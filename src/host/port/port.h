/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port carries frames between an engine and its carriers (host/port/carrier.h), through one
 * entrance and one exit. It chooses the path of each frame on its way out. Frames for QP 1 go to
 * host/qp1/qp1.h.
 */
#ifndef VB_HOST_PORT_PORT_H
#define VB_HOST_PORT_PORT_H

#include "base/err.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_PORT_FDS_MAX 5

struct vb_carrier;
struct vb_async_log;
struct vb_fault_point;
struct vb_gid;
struct vb_local_peers;
struct vb_nic;
struct vb_port;
struct vb_port_member;
struct vb_qp;
struct vb_qp1;
struct vb_recorder;
struct vb_recording_wish;
struct vb_tap;

struct vb_port_parts {
	struct vb_nic *nic;
	struct vb_carrier *wire; /* for slots without a link */
	struct vb_carrier *links; /* for slots with a link; NULL: there are none */
	struct vb_qp1 *qp1; /* NULL: its packets are refused */
	/*
	 * The other adapters of this user on this host, to which some packets of the wire take
	 * another path; or NULL.
	 */
	struct vb_local_peers *peers;
	struct vb_port_member *member;
	/*
	 * A GID that is no address of the interface, or NULL. Packets to it are handed to their
	 * owner on this host and never see the wire.
	 */
	const struct vb_gid *host_gid;
	const char *device_name; /* for reports; NULL: "" */
	struct vb_async_log *events; /* for reports; or NULL */
	struct vb_recorder *recorder; /* for observers that trace; or NULL */
};

/* Borrows all parts for its lifetime. The caller owns the port. */
VB_MUST_USE vb_err vb_port_create(const struct vb_port_parts *parts, struct vb_port **port_out);
void vb_port_destroy(struct vb_port *port);

/*
 * To be called as the engine's owner: one round of receiving, timers and sending. True if any
 * packet moved.
 */
bool vb_port_turn(struct vb_port *port, uint64_t now_ns);

/*
 * To be called as the engine's owner: receives what may have come, for a caller that will look
 * again soon. True if any packet moved. What is to be sent waits for vb_port_send().
 */
bool vb_port_glance(struct vb_port *port, uint64_t now_ns);

/*
 * To be called as the engine's owner: starts what was just posted to this QP, and sends its
 * packets. The result is that of vb_qp_start_now() (nic/nic.h).
 */
bool vb_port_start_now(struct vb_port *port, struct vb_qp *qp, uint64_t now_ns);

/*
 * To be called as the engine's owner: only sends, after something was posted. True if any packet
 * went out.
 */
bool vb_port_send(struct vb_port *port, uint64_t now_ns);

/*
 * To be called as the engine's owner, after waiting on vb_port_fds(): takes errors off the sockets,
 * which would otherwise wake us again and again. QP 1 is notified of peers that answer "port
 * unreachable"; QPs notice by time-out.
 */
void vb_port_on_wake(struct vb_port *port, const struct pollfd fds[VB_PORT_FDS_MAX],
		     uint64_t now_ns);

/*
 * To be called as the engine's owner: when the engine, or QP 1, must be driven even without an
 * event.
 */
uint64_t vb_port_deadline(const struct vb_port *port);

#define VB_PORT_TAPS_MAX 3u

/*
 * To be called as the engine's owner, but not by a tap. All are borrowed. VB_ENOSPC: there are
 * VB_PORT_TAPS_MAX taps. With a fault point, which may be NULL, the engine builds no batches any
 * more, because each packet of a batch counts on those before it.
 */
VB_MUST_USE vb_err vb_port_add_tap(struct vb_port *port, const struct vb_tap *tap);
void vb_port_remove_tap(struct vb_port *port, const struct vb_tap *tap);
void vb_port_set_fault_point(struct vb_port *port, const struct vb_fault_point *fault_point);

/*
 * To be called as the engine's owner: records what passes from now on. Returns the descriptor of
 * the recording (host/registry/recording.h), lent until its end; negative if it records already or
 * cannot. The recording ends by itself when its observer is gone.
 */
int vb_port_begin_recording(struct vb_port *port, const struct vb_recording_wish *wish,
			    uint64_t now_ns);

/*
 * To be called when the port is made: records from the first packet if `verbatim trace` has started
 * the program.
 */
void vb_port_offer_recording(struct vb_port *port, uint64_t now_ns);

/* The descriptors to wait on for packets; returns their number. */
uint32_t vb_port_fds(const struct vb_port *port, struct pollfd fds[VB_PORT_FDS_MAX]);

#endif
