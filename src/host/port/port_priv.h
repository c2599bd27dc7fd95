/* SPDX-License-Identifier: BSD-2-Clause */
/* The internals of a port: port.c drives, port_receive.c receives, port_send.c sends. */
#ifndef VB_HOST_PORT_PORT_PRIV_H
#define VB_HOST_PORT_PORT_PRIV_H

#include "framing/frame.h"
#include "host/policy/elsewhere.h"
#include "host/port/carrier.h"
#include "host/port/port.h"
#include "host/port/tap.h"
#include "nic/nic.h"

#include <sys/types.h>

#define VB_PORT_BATCH VB_CARRIER_BATCH

/* A deferred datagram for a local peer. */
struct vb_port_late {
	const struct vb_slot *slot;
	uint32_t number;
};

/* What the engine has executed itself since taps were last told. */
struct vb_port_executed {
	struct vb_executed parts[VB_TAP_EXECUTED_MAX];
	uint8_t bytes[VB_TAP_EXECUTED_BYTES];
};

struct vb_port {
	struct vb_nic *nic;
	struct vb_carrier *wire;
	struct vb_carrier *links; /* or NULL */
	struct vb_qp1 *qp1; /* or NULL */
	struct vb_local_peers *peers; /* or NULL */
	struct vb_port_member *member; /* or NULL */
	const struct vb_gid *host_gid; /* or NULL */
	const char *device_name;
	struct vb_async_log *events; /* or NULL */

	struct vb_slot slots[VB_PORT_BATCH];
	struct vb_port_late late[VB_PORT_BATCH];
	uint32_t late_count;
	/* What the wire had no room for, in order. Meanwhile the engine sends nothing there. */
	struct vb_slot held[VB_PORT_BATCH];
	uint32_t held_first;
	uint32_t held_end;
	uint64_t held_retry_ns; /* when the wire is asked again */

	struct vb_frame frames[VB_PORT_BATCH]; /* from the wire */
	struct vb_frame link_frames[VB_PORT_BATCH];
	/* the time of the last glance, by a clock that stands still for a moment */
	uint64_t glanced_ns;
	struct vb_elsewhere elsewhere; /* when a polling program looks beyond the links */
	bool has_links; /* the last frame came by a link */
	uint64_t direct_parts; /* parts executed by the engine when it was last asked to send */
	struct vb_gid asked_address; /* the last address that a datagram went to … */
	bool is_own_address; /* … and whether it is one of ours */
	bool is_observed; /* it has a tap or a fault point */
	const struct vb_tap *taps[VB_PORT_TAPS_MAX];
	uint32_t tap_count;
	struct vb_meter *meter; /* one of the taps, while an observer asks for it; or NULL */
	struct vb_recorder *recorder; /* has another while an observer traces; or NULL */
	pid_t process; /* that has made the port: a forked child only destroys it */
	const struct vb_fault_point *fault_point; /* or NULL */
	struct vb_port_executed *executed; /* for taps; NULL while there is none */
	uint32_t glances_without_qp1; /* since we last looked for mail to QP 1 */
};

/*
 * port_send.c, the one exit: sends the first `slot_count` of port->slots, on the path that each of
 * them takes.
 */
void vb_port_send_slots(struct vb_port *port, uint64_t now_ns, uint32_t slot_count);
/* Offers the wire again what it had no room for. False: it still has none. */
bool vb_port_send_held(struct vb_port *port, uint64_t now_ns);

static inline bool vb_port_has_held(const struct vb_port *port)
{
	return port->held_first != port->held_end;
}

/* port.c: for a port that is observed. Ends the meter and the recording that nobody wants. */
void vb_port_end_old_taps(struct vb_port *port, uint64_t now_ns);

/* port.c: if there is one. */
void vb_port_end_recording(struct vb_port *port);

/*
 * port_receive.c: receives up to a batch. True if there was any frame, also one that was not for
 * this adapter.
 */
bool vb_port_receive_from_links(struct vb_port *port, uint64_t now_ns);
bool vb_port_receive_from_wire(struct vb_port *port, uint64_t now_ns,
			       enum vb_carrier_effort effort);

#endif
