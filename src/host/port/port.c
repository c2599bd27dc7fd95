/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a port, and its rounds: which path is looked at when. One round carries at most one
 * batch in each direction. Frames come in through port_receive.c and go out through port_send.c.
 */
#include "host/port/port_priv.h"

#include "base/heap.h"
#include "host/port/state.h"
#include "host/local/local_peer.h"
#include "host/qp1/qp1.h"
#include "host/registry/own_ports.h"
#include "host/registry/port_member.h"
#include "host/sys/log.h"
#include "link/udp.h"
#include "nic/executed.h"
#include "nic/nic.h"
#include "nic/peer_memory.h"
#include "nic/qp1_packet.h"

#define UNREACHABLE_BATCH 16u
/* Few packets come by way of another process: most looks are for those from the wire. */
#define GLANCES_WITHOUT_MEMBERS 32u
/*
 * How often a polling program looks beyond the shared-memory links, when the last packet came by
 * one.
 */
#define ELSEWHERE_NS 20000u
#define GLANCES_WITHOUT_QP1 64u
#define GLANCES_PER_TURN 16u

/* The descriptors to wait on. */
enum { LINK, MEMBER, QP1, PEERS };

vb_err vb_port_create(struct vb_nic *nic, struct vb_udp *udp, struct vb_port_member *member,
		      struct vb_local_peers *peers, struct vb_qp1 *qp1,
		      const struct vb_gid *host_gid, struct vb_port **port_out)
{
	struct vb_port *port = vb_heap_alloc(1, sizeof(*port));

	if (!port)
		return VB_ENOMEM;
	if (vb_own_ports_create(vb_udp_source_port(udp, 0), &port->own_ports) != VB_OK) {
		vb_heap_free(port);
		return VB_ENOMEM;
	}
	for (uint32_t i = 0; i < vb_udp_source_count(udp); i++)
		vb_own_ports_add(port->own_ports, vb_udp_source_port(udp, i));
	port->nic = nic;
	port->udp = udp;
	port->member = member;
	port->peers = peers;
	port->qp1 = qp1;
	port->host_gid = host_gid;
	for (uint32_t i = 0; i < VB_NUMBERED_FLOWS_MAX; i++)
		vb_nic_number_flow(nic, i, NULL, 0); /* set by an earlier link */
	*port_out = port;
	return VB_OK;
}

void vb_port_destroy(struct vb_port *port)
{
	vb_nic_log_executed(port->nic, NULL, 0);
	vb_own_ports_destroy(port->own_ports);
	vb_heap_free(port);
}

struct vb_own_ports *vb_port_own_ports(struct vb_port *port)
{
	return port->own_ports;
}

void vb_port_set_tap(struct vb_port *port, const struct vb_tap *tap)
{
	port->tap = tap;
	port->is_observed = tap || port->fault_point;
	vb_nic_log_executed(port->nic, tap ? port->executed : NULL, VB_TAP_EXECUTED_MAX);
}

void vb_port_set_fault_point(struct vb_port *port, const struct vb_fault_point *fault_point)
{
	port->fault_point = fault_point;
	port->is_observed = port->tap || fault_point;
	if (fault_point)
		vb_nic_stop_batching(port->nic);
}

VB_COLD static void report_executed(struct vb_port *port)
{
	uint32_t count = vb_nic_take_executed(port->nic);

	if (count)
		port->tap->on_executed(port->tap->owner, port->executed, count);
}

void vb_port_report_executed(struct vb_port *port)
{
	if (port->tap)
		report_executed(port);
}

/* --- sending --- */

/* Logs it once: the program will notice by time-outs. */
static void log_drops(struct vb_port *port)
{
	if (port->has_logged_drops || !vb_udp_counters(port->udp)[VB_UDP_TX_DROP_PORT_HELD])
		return;
	port->has_logged_drops = true;
	vb_log(VB_LOG_WARN,
	       "packets to other hosts are dropped: UDP port %d was held by others when the first of this user's programs came",
	       VB_ROCE_PORT);
}

/* Both what the engine has moved itself and what it left for the next turn count. */
static bool note_direct_parts(struct vb_port *port)
{
	uint64_t parts = vb_nic_counters(port->nic)->counts[VB_COUNTER_DIRECT_PARTS];
	bool has_moved = parts != port->direct_parts;

	port->direct_parts = parts;
	return has_moved;
}

/* Looks for segments that requests of the previous turn needed. */
static void look_for_segments(struct vb_port *port, uint64_t now_ns)
{
	if (port->peers && vb_local_peers_ask_for_segments(port->peers))
		(void)vb_port_receive_from_members(port, now_ns);
}

static void look_for_room(struct vb_port *port)
{
	if (port->peers && vb_nic_has_qps_without_room(port->nic))
		vb_local_peers_flush(port->peers);
}

/* Sends what the engine has put into the slots. */
static void send_out(struct vb_port *port, uint64_t now_ns, uint32_t slot_count)
{
	if (!vb_port_send_slots(port, now_ns, slot_count))
		return;
	log_drops(port);
	if (port->glances >= GLANCES_WITHOUT_MEMBERS / 2)
		/* look on the next one: no answer can have come yet */
		port->glances = GLANCES_WITHOUT_MEMBERS;
	/*
	 * Only sending a message shows whether its interface segments. This message is lost to
	 * peers that check its ICRC.
	 */
	if (vb_udp_segments_max(port->udp) == 1)
		vb_nic_stop_batching(port->nic);
}

static bool transmit(struct vb_port *port, uint64_t now_ns)
{
	uint32_t slot_count = 0;

	look_for_segments(port, now_ns);
	look_for_room(port);
	if (vb_nic_has_work(port->nic))
		slot_count = vb_nic_transmit(port->nic, now_ns, port->slots, VB_PORT_BATCH);
	vb_port_report_executed(port);
	if (!slot_count)
		return note_direct_parts(port);
	send_out(port, now_ns, slot_count);
	return true;
}

bool vb_port_send_now(struct vb_port *port, struct vb_qp *qp, uint64_t now_ns)
{
	uint32_t slot_count = vb_qp_send_now(qp, now_ns, port->slots);

	if (!slot_count)
		return false;
	send_out(port, now_ns, slot_count);
	return true;
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
	struct vb_udp_address unreachable[UNREACHABLE_BATCH];
	uint32_t count;

	do {
		count = vb_udp_take_unreachable(port->udp, unreachable, UNREACHABLE_BATCH);
		for (uint32_t i = 0; i < count; i++) {
			struct vb_gid gid = vb_port_gid_of(&unreachable[i]);

			vb_qp1_on_unreachable(port->qp1, now_ns, &gid);
		}
	} while (count == UNREACHABLE_BATCH);
}

static void steer_if_claimed(struct vb_port *port)
{
	if (vb_qp1_take_steering_claim(port->qp1))
		vb_port_member_steer(port->udp, vb_port_member_number(port->member));
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
	port->asked_address = (struct vb_gid){ 0 }; /* addresses come and go … */
	vb_own_ports_expire(port->own_ports, now_ns); /* … and ports */
	if (port->peers)
		vb_local_peers_close_gone(port->peers);
	look_at_qp1(port, now_ns);
	if (vb_qp1_is_waiting(port->qp1))
		take_unreachable(port, now_ns);
}

/* Drives QP 1 if it has work. True if any packet went out. */
static bool drive_qp1(struct vb_port *port, uint64_t now_ns)
{
	uint32_t count;

	if (vb_qp1_deadline(port->qp1) > now_ns)
		return false;
	vb_qp1_expire(port->qp1, now_ns);
	count = vb_qp1_transmit(port->qp1, now_ns, port->slots, VB_PORT_BATCH);
	steer_if_claimed(port);
	if (count)
		(void)vb_port_send_slots(port, now_ns, count);
	return count;
}

uint64_t vb_port_deadline(const struct vb_port *port)
{
	uint64_t engine_ns = vb_nic_deadline(port->nic);
	uint64_t qp1_ns = vb_qp1_deadline(port->qp1);

	return engine_ns < qp1_ns ? engine_ns : qp1_ns;
}

/* --- driving --- */

bool vb_port_turn(struct vb_port *port, uint64_t now_ns)
{
	bool moved = vb_port_receive_from_shm_links(port, now_ns);

	vb_udp_read_others_next(port->udp);
	moved |= vb_port_receive_from_wire(port, now_ns);
	moved |= vb_port_receive_from_members(port, now_ns);
	glance_at_qp1(port, now_ns, GLANCES_PER_TURN);
	expire_timers(port, now_ns);
	moved |= drive_qp1(port, now_ns);
	return transmit(port, now_ns) || moved;
}

/* These are system calls; each takes longer than a message by a shared-memory link. */
static bool glance_elsewhere(struct vb_port *port, uint64_t now_ns)
{
	uint32_t weight = port->has_shm_links ? GLANCES_PER_TURN : 1;
	bool moved = vb_port_receive_from_wire(port, now_ns);

	port->elsewhere_ns = now_ns + ELSEWHERE_NS;
	port->glances += weight;
	if (port->glances > GLANCES_WITHOUT_MEMBERS)
		moved |= vb_port_receive_from_members(port, now_ns);
	glance_at_qp1(port, now_ns, weight);
	return moved;
}

bool vb_port_glance(struct vb_port *port, uint64_t now_ns)
{
	bool moved = vb_port_receive_from_shm_links(port, now_ns);

	if (!port->has_shm_links || now_ns >= port->elsewhere_ns)
		moved |= glance_elsewhere(port, now_ns);
	if (now_ns == port->glanced_ns) /* no deadline can have passed since */
		return moved;
	port->glanced_ns = now_ns;
	expire_timers(port, now_ns);
	return drive_qp1(port, now_ns) || moved;
}

void vb_port_on_wake(struct vb_port *port, const struct pollfd fds[VB_PORT_FDS_MAX],
		     uint64_t now_ns)
{
	if (fds[LINK].revents)
		take_unreachable(port, now_ns);
	if (fds[QP1].revents)
		look_at_qp1(port, now_ns);
	if (fds[PEERS].revents && port->peers)
		vb_local_peers_take_wake(port->peers);
}

uint32_t vb_port_fds(const struct vb_port *port, struct pollfd fds[VB_PORT_FDS_MAX])
{
	fds[LINK] = (struct pollfd){ .fd = vb_udp_fd(port->udp), .events = POLLIN };
	fds[MEMBER] = (struct pollfd){ .fd = vb_port_member_fd(port->member), .events = POLLIN };
	fds[QP1] = (struct pollfd){ .fd = vb_qp1_fd(port->qp1), .events = POLLIN };
	if (!port->peers)
		return PEERS;
	fds[PEERS] = (struct pollfd){ .fd = vb_local_peers_fd(port->peers), .events = POLLIN };
	return VB_PORT_FDS_MAX;
}
