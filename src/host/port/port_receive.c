/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames on their way in. Whichever carrier brought them, they pass enter(). */
#include "host/port/port_priv.h"

#include "host/local/local_peer.h"
#include "host/port/meter.h"
#include "host/port/report.h"
#include "host/port/state.h"
#include "host/qp1/qp1.h"
#include "host/registry/port_member.h"
#include "nic/qp1_packet.h"

/* Lets the fault point lose frames and shows the tap the others. Returns their number. */
VB_COLD static uint32_t observe(struct vb_port *port, uint64_t now_ns, struct vb_frame *frames,
				uint32_t count)
{
	const struct vb_fault_point *faults = port->fault_point;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!faults || !faults->loses_received(faults->owner, &frames[i]))
			frames[kept++] = frames[i];
	for (uint32_t i = 0; kept && i < port->tap_count; i++)
		port->taps[i]->on_received(port->taps[i]->owner, now_ns, frames, kept);
	vb_port_end_old_taps(port, now_ns);
	return kept;
}

/* Gives QP 1 its packets. Returns how many are left for the engine. */
static uint32_t take_mads(struct vb_port *port, uint64_t now_ns, struct vb_frame *frames,
			  uint32_t count)
{
	uint32_t rest = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (vb_nic_is_for_qp1(&frames[i]))
			vb_qp1_receive(port->qp1, now_ns, &frames[i]);
		else if (rest++ != i)
			frames[rest - 1] = frames[i];
	}
	return rest;
}

/*
 * The one entrance: every frame for this adapter passes here. All frames of a call came by one
 * carrier. Those of QP 1 never come by a link.
 */
static void enter(struct vb_port *port, uint64_t now_ns, struct vb_frame *frames, uint32_t count)
{
	if (port->is_observed)
		count = observe(port, now_ns, frames, count);
	if (count && !frames[0].path.link && port->qp1)
		count = take_mads(port, now_ns, frames, count);
	if (count)
		vb_nic_receive(port->nic, now_ns, frames, count);
}

/* Returns the number of frames. */
static uint32_t receive_batch_from_links(struct vb_port *port, uint64_t now_ns)
{
	uint32_t count = 0;

	if (port->links)
		count = port->links->type->receive(port->links, now_ns, VB_CARRIER_GLANCE,
						   port->link_frames, VB_PORT_BATCH);
	if (!count)
		return 0;
	port->has_links = true;
	enter(port, now_ns, port->link_frames, count);
	port->links->type->release(port->links);
	return count;
}

bool vb_port_receive_from_links(struct vb_port *port, uint64_t now_ns)
{
	return receive_batch_from_links(port, now_ns);
}

/*
 * Senders on this host put a packet on their links before they send it by the wire. So all those
 * packets are on the links now, and the engine must have them before the wire's copies, to
 * recognize the copies. A sender that goes on writing does not hold us up.
 */
VB_NOINLINE static void prepare_for_multicast(struct vb_port *port, uint64_t now_ns, uint32_t count)
{
	uint32_t most = vb_local_peers_packets_max(port->peers);
	uint32_t batch;

	/* A train ends a batch, so batches are of any length. */
	for (uint32_t i = 0; i < most && (batch = receive_batch_from_links(port, now_ns));
	     i += batch)
		;
	for (uint32_t i = 0; i < count; i++)
		vb_local_peers_request_link_to_sender(port->peers, &port->frames[i]);
}

/* Begins to measure, if the port does not do so yet. */
static void ensure_meter(struct vb_port *port)
{
	if (port->meter)
		return;
	port->meter = vb_meter_create();
	if (port->meter && vb_port_add_tap(port, vb_meter_tap(port->meter))) {
		vb_meter_destroy(port->meter);
		port->meter = NULL;
	}
}

VB_COLD static void answer(struct vb_port *port, uint64_t now_ns)
{
	struct vb_state_source source = { port->nic, port->peers, port->device_name, port->events,
					  now_ns };

	switch (vb_port_member_question(port->member)) {
	case VB_PORT_MEMBER_NOT_ASKED:
		break;
	case VB_PORT_MEMBER_ASKED_STATE:
		vb_state_report(&source, port->member);
		break;
	case VB_PORT_MEMBER_ASKED_REPORT:
		vb_report_answer(&source, port->member);
		break;
	case VB_PORT_MEMBER_ASKED_METER:
		ensure_meter(port);
		vb_meter_answer(port->meter, &source, port->member);
		break;
	case VB_PORT_MEMBER_ASKED_RECORDING:
		vb_port_member_answer_recording(
			port->member,
			vb_port_begin_recording(port, vb_port_member_wish(port->member), now_ns));
		break;
	}
}

bool vb_port_receive_from_wire(struct vb_port *port, uint64_t now_ns, enum vb_carrier_effort effort)
{
	struct vb_carrier *wire = port->wire;
	uint32_t count = wire->type->receive(wire, now_ns, effort, port->frames, VB_PORT_BATCH);

	if (port->member && vb_port_member_question(port->member))
		answer(port, now_ns);
	if (!count)
		return wire->has_more;
	if (port->peers && vb_gid_is_multicast(&port->frames[0].path.ip.destination))
		prepare_for_multicast(port, now_ns, count);
	port->has_links = false;
	enter(port, now_ns, port->frames, count);
	wire->type->release(wire);
	return true;
}
