/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a port, and its rounds: which path is looked at when. One round carries at most one
 * batch in each direction. Frames come in through port_receive.c and go out through port_send.c.
 */
#include "host/port/port_priv.h"

#include "base/heap.h"
#include "host/local/local_peer.h"
#include "host/port/meter.h"
#include "host/port/recorder.h"
#include "host/qp1/qp1.h"
#include "host/registry/port_member.h"
#include "nic/executed.h"
#include "nic/nic.h"
#include "nic/peer_memory.h"
#include "nic/qp1_packet.h"

#include <unistd.h>

#define UNREACHABLE_BATCH 16u
#define GLANCES_WITHOUT_QP1 64u

vb_err vb_port_create(const struct vb_port_parts *parts, struct vb_port **port_out)
{
	struct vb_port *port = vb_heap_alloc(1, sizeof(*port));

	if (!port)
		return VB_ENOMEM;
	port->nic = parts->nic;
	port->wire = parts->wire;
	port->links = parts->links;
	port->qp1 = parts->qp1;
	port->peers = parts->peers;
	port->member = parts->member;
	port->host_gid = parts->host_gid;
	port->device_name = parts->device_name ? parts->device_name : "";
	port->events = parts->events;
	port->recorder = parts->recorder;
	port->process = getpid();
	vb_nic_set_link_room(port->nic, 0,
			     VB_ROOM_UNLIMITED); /* an earlier wire may have had none */
	*port_out = port;
	return VB_OK;
}

static void note_observers(struct vb_port *port)
{
	port->is_observed = port->tap_count || port->fault_point;
}

static vb_err log_executed(struct vb_port *port)
{
	struct vb_port_executed *executed = vb_heap_alloc(1, sizeof(*executed));
	struct vb_executed_log log;

	if (!executed)
		return VB_ENOMEM;
	log = (struct vb_executed_log){
		.parts = executed->parts,
		.capacity = VB_TAP_EXECUTED_MAX,
		.bytes = executed->bytes,
		.byte_capacity = VB_TAP_EXECUTED_BYTES,
	};
	vb_nic_log_executed(port->nic, &log);
	port->executed = executed;
	return VB_OK;
}

vb_err vb_port_add_tap(struct vb_port *port, const struct vb_tap *tap)
{
	vb_err err = VB_OK;

	if (port->tap_count == VB_PORT_TAPS_MAX)
		return VB_ENOSPC;
	if (!port->executed)
		err = log_executed(port);
	if (err)
		return err;
	port->taps[port->tap_count++] = tap;
	note_observers(port);
	return VB_OK;
}

void vb_port_remove_tap(struct vb_port *port, const struct vb_tap *tap)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < port->tap_count; i++)
		if (port->taps[i] != tap)
			port->taps[kept++] = port->taps[i];
	port->tap_count = kept;
	note_observers(port);
	if (kept)
		return;
	vb_nic_log_executed(port->nic, NULL);
	vb_heap_free(port->executed);
	port->executed = NULL;
}

void vb_port_end_recording(struct vb_port *port)
{
	if (!port->recorder || !vb_recorder_is_on(port->recorder))
		return;
	vb_port_remove_tap(port, vb_recorder_tap(port->recorder));
	vb_recorder_end(port->recorder, getpid() == port->process);
}

static void end_old_recording(struct vb_port *port, uint64_t now_ns)
{
	if (port->recorder && vb_recorder_is_over(port->recorder, now_ns))
		vb_port_end_recording(port);
}

int vb_port_begin_recording(struct vb_port *port, const struct vb_recording_wish *wish,
			    uint64_t now_ns)
{
	uint32_t number = port->member ? vb_port_member_number(port->member) : 0;

	if (!port->recorder)
		return -1;
	end_old_recording(port, now_ns);
	if (!vb_recorder_begin(port->recorder, port->nic, wish, port->device_name, number))
		return -1;
	if (vb_port_add_tap(port, vb_recorder_tap(port->recorder))) {
		vb_recorder_end(port->recorder, true);
		return -1;
	}
	return vb_recorder_fd(port->recorder);
}

void vb_port_end_old_taps(struct vb_port *port, uint64_t now_ns)
{
	end_old_recording(port, now_ns);
	if (!port->meter || !vb_meter_is_over(port->meter, now_ns))
		return;
	vb_port_remove_tap(port, vb_meter_tap(port->meter));
	vb_meter_destroy(port->meter);
	port->meter = NULL;
}

void vb_port_destroy(struct vb_port *port)
{
	vb_port_end_recording(port);
	vb_nic_log_executed(port->nic, NULL);
	vb_heap_free(port->executed);
	vb_meter_destroy(port->meter);
	vb_heap_free(port);
}

void vb_port_set_fault_point(struct vb_port *port, const struct vb_fault_point *fault_point)
{
	port->fault_point = fault_point;
	note_observers(port);
	if (fault_point)
		vb_framing_stop_batching(vb_nic_framing(port->nic));
}

VB_COLD static void show_executed(struct vb_port *port, uint64_t now_ns)
{
	uint32_t count = vb_nic_take_executed(port->nic);

	for (uint32_t i = 0; count && i < port->tap_count; i++)
		port->taps[i]->on_executed(port->taps[i]->owner, port->executed->parts, count,
					   port->executed->bytes);
	vb_port_end_old_taps(port, now_ns);
}

static void report_executed(struct vb_port *port, uint64_t now_ns)
{
	if (port->is_observed)
		show_executed(port, now_ns);
}

/* --- sending --- */

/* Both what the engine has moved itself and what it left for the next turn count. */
static bool note_direct_parts(struct vb_port *port)
{
	uint64_t parts = vb_nic_counters(port->nic)->counts[VB_COUNTER_DIRECT_PARTS];
	bool has_moved = parts != port->direct_parts;

	port->direct_parts = parts;
	return has_moved;
}

/* Looks for segments that requests of the previous turn needed; they come by mail. */
static void look_for_segments(struct vb_port *port, uint64_t now_ns)
{
	if (port->peers && vb_local_peers_ask_for_segments(port->peers))
		(void)vb_port_receive_from_wire(port, now_ns, VB_CARRIER_SEARCH);
}

static void look_for_room(struct vb_port *port)
{
	if (port->links && vb_nic_has_qps_without_room(port->nic))
		port->links->type->flush(port->links);
}

static bool transmit(struct vb_port *port, uint64_t now_ns)
{
	uint32_t slot_count = 0;

	look_for_segments(port, now_ns);
	(void)vb_port_send_held(port, now_ns);
	look_for_room(port);
	if (vb_nic_has_work(port->nic))
		slot_count = vb_nic_transmit(port->nic, now_ns, port->slots, VB_PORT_BATCH);
	report_executed(port, now_ns);
	if (!slot_count)
		return note_direct_parts(port);
	vb_port_send_slots(port, now_ns, slot_count);
	return true;
}

bool vb_port_start_now(struct vb_port *port, struct vb_qp *qp, uint64_t now_ns)
{
	uint32_t slot_count;
	bool is_all = vb_qp_start_now(qp, now_ns, port->slots, &slot_count);

	report_executed(port, now_ns);
	if (slot_count)
		vb_port_send_slots(port, now_ns, slot_count);
	return is_all;
}

bool vb_port_send(struct vb_port *port, uint64_t now_ns)
{
	return transmit(port, now_ns);
}

static void expire_timers(struct vb_port *port, uint64_t now_ns)
{
	if (vb_nic_deadline(port->nic) <= now_ns)
		vb_nic_fire_timers(port->nic, now_ns);
}

/* --- QP 1 --- */

VB_COLD static void take_unreachable(struct vb_port *port, uint64_t now_ns)
{
	struct vb_gid unreachable[UNREACHABLE_BATCH];
	uint32_t count;

	if (!port->wire->type->take_unreachable)
		return;
	do {
		count = port->wire->type->take_unreachable(port->wire, unreachable,
							   UNREACHABLE_BATCH);
		for (uint32_t i = 0; i < count && port->qp1; i++)
			vb_qp1_on_unreachable(port->qp1, now_ns, &unreachable[i]);
	} while (count == UNREACHABLE_BATCH);
}

static void steer_if_claimed(struct vb_port *port)
{
	if (vb_qp1_take_steering_claim(port->qp1) && port->wire->type->claim_mads)
		port->wire->type->claim_mads(port->wire);
}

VB_COLD static void look_at_qp1(struct vb_port *port, uint64_t now_ns)
{
	vb_qp1_receive_mail(port->qp1, now_ns);
	steer_if_claimed(port);
}

/*
 * No thread waits on the descriptors while a program polls. A turn counts more: the helper then
 * takes one per millisecond.
 */
static void glance_at_qp1(struct vb_port *port, uint64_t now_ns, uint32_t weight)
{
	port->glances_without_qp1 += weight;
	if (port->glances_without_qp1 < GLANCES_WITHOUT_QP1)
		return;
	port->glances_without_qp1 = 0;
	port->asked_address = (struct vb_gid){ 0 }; /* addresses come and go */
	if (port->peers) {
		vb_local_peers_offer_again(port->peers);
		vb_local_peers_close_gone(port->peers);
	}
	if (!port->qp1)
		return;
	look_at_qp1(port, now_ns);
	if (vb_qp1_is_waiting(port->qp1))
		take_unreachable(port, now_ns);
}

/* Drives QP 1 if it has work. True if any packet went out. */
static bool drive_qp1(struct vb_port *port, uint64_t now_ns)
{
	uint32_t count;

	if (!port->qp1 || vb_qp1_deadline(port->qp1) > now_ns)
		return false;
	vb_qp1_expire(port->qp1, now_ns);
	if (vb_port_has_held(port)) /* MADs are not lost without need */
		return false;
	count = vb_qp1_transmit(port->qp1, now_ns, port->slots, VB_PORT_BATCH);
	steer_if_claimed(port);
	if (count)
		vb_port_send_slots(port, now_ns, count);
	return count;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t vb_port_deadline(const struct vb_port *port)
{
	uint64_t deadline_ns = vb_nic_deadline(port->nic);

	if (port->qp1)
		deadline_ns = earlier(deadline_ns, vb_qp1_deadline(port->qp1));
	if (vb_port_has_held(port))
		deadline_ns = earlier(deadline_ns, port->held_retry_ns);
	return deadline_ns;
}

/* --- driving --- */

bool vb_port_turn(struct vb_port *port, uint64_t now_ns)
{
	bool moved = vb_port_receive_from_links(port, now_ns);

	moved |= vb_port_receive_from_wire(port, now_ns, VB_CARRIER_SEARCH);
	glance_at_qp1(port, now_ns, VB_CARRIER_LOOK);
	expire_timers(port, now_ns);
	moved |= drive_qp1(port, now_ns);
	return transmit(port, now_ns) || moved;
}

/* These are system calls; each takes longer than a message by a shared-memory link. */
static bool glance_elsewhere(struct vb_port *port, uint64_t now_ns)
{
	enum vb_carrier_effort effort = port->has_links ? VB_CARRIER_LOOK : VB_CARRIER_GLANCE;
	bool moved = vb_port_receive_from_wire(port, now_ns, effort);

	vb_elsewhere_on_look(&port->elsewhere, now_ns);
	glance_at_qp1(port, now_ns, effort);
	return moved;
}

bool vb_port_glance(struct vb_port *port, uint64_t now_ns)
{
	bool moved = vb_port_receive_from_links(port, now_ns);

	if (!port->has_links || vb_elsewhere_is_due(&port->elsewhere, now_ns))
		moved |= glance_elsewhere(port, now_ns);
	if (now_ns == port->glanced_ns) /* no deadline can have passed since */
		return moved;
	port->glanced_ns = now_ns;
	expire_timers(port, now_ns);
	return drive_qp1(port, now_ns) || moved;
}

/* --- waiting --- */

static uint32_t add_fds(struct vb_carrier *carrier, struct pollfd *fds)
{
	return carrier ? carrier->type->fds(carrier, fds) : 0;
}

uint32_t vb_port_fds(const struct vb_port *port, struct pollfd fds[VB_PORT_FDS_MAX])
{
	uint32_t count = add_fds(port->wire, fds);

	count += add_fds(port->links, fds + count);
	if (port->qp1)
		fds[count++] = (struct pollfd){ .fd = vb_qp1_fd(port->qp1), .events = POLLIN };
	return count;
}

static bool has_woken(const struct pollfd *fds, uint32_t count)
{
	bool has_any = false;

	for (uint32_t i = 0; i < count; i++)
		has_any |= fds[i].revents != 0;
	return has_any;
}

/* Returns how many of the descriptors are the carrier's. */
static uint32_t wake_carrier(struct vb_carrier *carrier, const struct pollfd *fds)
{
	struct pollfd own[VB_CARRIER_FDS_MAX];
	uint32_t count = add_fds(carrier, own);

	if (count && has_woken(fds, count))
		carrier->type->on_wake(carrier);
	return count;
}

void vb_port_on_wake(struct vb_port *port, const struct pollfd fds[VB_PORT_FDS_MAX],
		     uint64_t now_ns)
{
	uint32_t count = wake_carrier(port->wire, fds);

	if (has_woken(fds, count))
		take_unreachable(port, now_ns);
	count += wake_carrier(port->links, fds + count);
	if (port->qp1 && fds[count].revents)
		look_at_qp1(port, now_ns);
}
