/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving and driving half of the pump. One round carries at most one batch in each
 * direction.
 */
#include "host/pump_priv.h"

#include "base/heap.h"
#include "host/log.h"
#include "host/member.h"
#include "host/neighbor.h"
#include "host/own_ports.h"
#include "host/qp1.h"
#include "host/state.h"
#include "link/udp.h"
#include "nic/gsi.h"
#include "nic/nic.h"
#include "nic/reach.h"

#define UNREACHABLE_AT_ONCE 16u
/* Few packets come by way of another process: most looks are for those from the wire. */
#define GLANCES_WITHOUT_MEMBERS 32u
/*
 * How often a polling program looks beyond the shared-memory links, when the last packet came by
 * one.
 */
#define ELSEWHERE_NS 20000u
#define GLANCES_WITHOUT_QP1 64u
#define GLANCES_A_TURN 16u

/* The descriptors to wait on. */
enum { LINK, MEMBER, QP1, NEIGHBORS };

vb_err vb_pump_create(struct vb_nic *nic, struct vb_udp *udp, struct vb_member *member,
		      struct vb_neighbors *neighbors, struct vb_qp1 *qp1,
		      const struct vb_gid *host_gid, struct vb_pump **pump_out)
{
	struct vb_pump *pump = vb_heap_alloc(1, sizeof(*pump));

	if (!pump)
		return VB_ENOMEM;
	if (vb_own_ports_create(vb_udp_source_port(udp, 0), &pump->own_ports) != VB_OK) {
		vb_heap_free(pump);
		return VB_ENOMEM;
	}
	for (uint32_t i = 0; i < vb_udp_source_count(udp); i++)
		vb_own_ports_add(pump->own_ports, vb_udp_source_port(udp, i));
	pump->nic = nic;
	pump->udp = udp;
	pump->member = member;
	pump->neighbors = neighbors;
	pump->qp1 = qp1;
	pump->host_gid = host_gid;
	for (uint32_t i = 0; i < VB_NUMBERED_FLOWS_MAX; i++)
		vb_nic_number_flow(nic, i, NULL, 0); /* set by an earlier link */
	*pump_out = pump;
	return VB_OK;
}

void vb_pump_destroy(struct vb_pump *pump)
{
	vb_own_ports_destroy(pump->own_ports);
	vb_heap_free(pump);
}

struct vb_own_ports *vb_pump_own_ports(struct vb_pump *pump)
{
	return pump->own_ports;
}

/* --- receiving --- */

static void fill_frame(struct vb_frame *frame, const struct vb_udp_datagram *datagram)
{
	*frame = (struct vb_frame){
		.flow = {
			.source_port = datagram->source_port,
			.traffic_class = datagram->traffic_class,
			.hop_limit = datagram->hop_limit,
		},
		.ip_id = datagram->segment_index,
		.head = { datagram->data, datagram->length },
	};
	memcpy(frame->flow.source.raw, datagram->source.ip, sizeof(frame->flow.source.raw));
	memcpy(frame->flow.destination.raw, datagram->destination.ip,
	       sizeof(frame->flow.destination.raw));
}

uint32_t vb_pump_owner_of(const struct vb_pump *pump, const struct vb_frame *frame)
{
	vb_qpn qpn;
	uint32_t owner;

	if (frame->head.length < VB_BTH_SIZE)
		return vb_member_number(pump->member);
	qpn = vb_bth_load(frame->head.data).destination;
	owner = vb_member_of_qpn(qpn);
	return owner < VB_MEMBER_COUNT && qpn.v > 1 ? owner : vb_member_number(pump->member);
}

/*
 * Packets that no process takes are refused by our engine, for the reason that it finds: a damaged
 * QPN may name a process that does not exist.
 */
VB_NOINLINE static void hand_over(struct vb_pump *pump, uint64_t now_ns)
{
	if (pump->handed_count &&
	    !vb_member_hand_over(pump->member, pump->handed_to, pump->handed, pump->handed_count))
		vb_nic_receive(pump->nic, now_ns, pump->handed, pump->handed_count);
	pump->handed_count = 0;
}

/* Collects packets for one process, so that they go in one message. */
static void hand_over_later(struct vb_pump *pump, uint64_t now_ns, uint32_t owner,
			    const struct vb_frame *frame)
{
	if (pump->handed_count == VB_MEMBER_BATCH || owner != pump->handed_to)
		hand_over(pump, now_ns);
	pump->handed_to = owner;
	pump->handed[pump->handed_count++] = *frame;
}

static bool receive_from_lines(struct vb_pump *pump, uint64_t now_ns)
{
	uint32_t count = 0;

	if (pump->neighbors)
		count = vb_neighbors_receive(pump->neighbors, pump->frames, VB_PUMP_BATCH);
	if (!count)
		return false;
	pump->has_lines = true;
	vb_nic_receive(pump->nic, now_ns, pump->frames, count);
	vb_neighbors_release(pump->neighbors);
	return true;
}

static bool is_multicast(const struct vb_udp_datagram *datagram)
{
	struct vb_gid gid = vb_pump_gid_of(&datagram->destination);

	return vb_gid_is_multicast(&gid);
}

/*
 * Senders on this host put a packet on their links before they send it by the wire. So all those
 * packets are on the links now, and the engine must have them before the wire's copies, to
 * recognize the copies. A sender that goes on writing does not hold us up.
 */
VB_NOINLINE static void prepare_for_multicast(struct vb_pump *pump, uint64_t now_ns, uint32_t count)
{
	uint32_t batches = vb_neighbors_packets_max(pump->neighbors) / VB_PUMP_BATCH;
	struct vb_frame frame;

	for (uint32_t i = 0; i < batches && receive_from_lines(pump, now_ns); i++)
		;
	for (uint32_t i = 0; i < count; i++) {
		fill_frame(&frame, &pump->datagrams[i]);
		vb_neighbors_meet_sender(pump->neighbors, &frame);
	}
}

/*
 * Drops what other users of this host send before it is examined: they can also send from our
 * addresses. Returns the size of the remaining batch.
 */
static uint32_t drop_strangers(struct vb_pump *pump, uint64_t now_ns, uint32_t count)
{
	const uint64_t *trusted = vb_own_ports_trusted(pump->own_ports);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_udp_datagram *datagram = &pump->datagrams[i];
		struct vb_gid source;

		if (!vb_own_ports_has(trusted, datagram->source_port)) {
			source = vb_pump_gid_of(&datagram->source);
			if (vb_own_ports_is_stranger(pump->own_ports, &source,
						     datagram->destination.scope,
						     datagram->source_port, now_ns)) {
				vb_nic_drop_mad(pump->nic, VB_DROP_STRANGER);
				continue;
			}
		}
		if (kept != i)
			pump->datagrams[kept] = *datagram;
		kept++;
	}
	return kept;
}

static bool receive_from_wire(struct vb_pump *pump, uint64_t now_ns)
{
	uint32_t received = vb_udp_receive(pump->udp, pump->datagrams, VB_PUMP_BATCH);
	uint32_t count = drop_strangers(pump, now_ns, received);
	uint32_t ours = 0;

	if (count)
		pump->has_lines = false;
	if (count && pump->neighbors && is_multicast(&pump->datagrams[0]))
		prepare_for_multicast(pump, now_ns, count);
	for (uint32_t i = 0; i < count; i++) {
		struct vb_frame *frame = &pump->frames[ours];
		uint32_t owner;

		fill_frame(frame, &pump->datagrams[i]);
		if (vb_nic_is_mad(frame)) {
			vb_qp1_receive(pump->qp1, now_ns, frame);
			continue;
		}
		owner = vb_pump_owner_of(pump, frame);
		if (owner == vb_member_number(pump->member))
			ours++;
		else
			hand_over_later(pump, now_ns, owner, frame);
	}
	hand_over(pump, now_ns);
	if (ours)
		vb_nic_receive(pump->nic, now_ns, pump->frames, ours);
	return received;
}

static bool receive_from_members(struct vb_pump *pump, uint64_t now_ns)
{
	uint32_t count = vb_member_take(pump->member, pump->handed);
	uint32_t others = 0;

	pump->glances = 0;
	vb_udp_allow_flow(pump->udp, vb_member_is_alone(pump->member));
	if (pump->neighbors)
		vb_neighbors_offer_again(pump->neighbors);
	if (vb_member_is_asked(pump->member))
		vb_state_tell(pump->nic, pump->neighbors, pump->member);
	for (uint32_t i = 0; i < count; i++) {
		if (vb_nic_is_mad(&pump->handed[i]))
			vb_qp1_receive(pump->qp1, now_ns, &pump->handed[i]);
		else
			pump->handed[others++] = pump->handed[i];
	}
	if (others)
		vb_nic_receive(pump->nic, now_ns, pump->handed, others);
	return count;
}

/* --- sending --- */

/* Logs it once: the program will notice by time-outs. */
static void tell_of_drops(struct vb_pump *pump)
{
	if (pump->has_told_of_drops || !vb_udp_counters(pump->udp)[VB_UDP_TX_DROP_PORT_HELD])
		return;
	pump->has_told_of_drops = true;
	vb_log(VB_LOG_WARN,
	       "packets to other hosts are dropped: UDP port %d was held by others when the first of this user's programs came",
	       VB_ROCE_PORT);
}

/* Both what the engine has moved itself and what it left for the next turn count. */
static bool has_moved_directly(struct vb_pump *pump)
{
	uint64_t parts = vb_nic_counters(pump->nic)->counts[VB_COUNTER_DIRECT_PARTS];
	bool has_moved = parts != pump->direct_parts;

	pump->direct_parts = parts;
	return has_moved;
}

/* Looks for segments that requests of the previous turn needed. */
static void look_for_segments(struct vb_pump *pump, uint64_t now_ns)
{
	if (pump->neighbors && vb_neighbors_ask_for_segments(pump->neighbors))
		(void)receive_from_members(pump, now_ns);
}

static void look_for_room(struct vb_pump *pump)
{
	if (pump->neighbors && vb_nic_has_waiting_lines(pump->nic))
		vb_neighbors_flush(pump->neighbors);
}

/* Sends what the engine has put into the slots. */
static void send_out(struct vb_pump *pump, uint32_t slot_count)
{
	if (!vb_pump_send_slots(pump, slot_count))
		return;
	tell_of_drops(pump);
	if (pump->glances >= GLANCES_WITHOUT_MEMBERS / 2)
		/* look on the next one: no answer can have come yet */
		pump->glances = GLANCES_WITHOUT_MEMBERS;
	/*
	 * Only sending a message shows whether its interface segments. This message is lost to
	 * peers that check its ICRC.
	 */
	if (vb_udp_segments_max(pump->udp) == 1)
		vb_nic_stop_batching(pump->nic);
}

static bool transmit(struct vb_pump *pump, uint64_t now_ns)
{
	uint32_t slot_count = 0;

	look_for_segments(pump, now_ns);
	look_for_room(pump);
	if (vb_nic_has_work(pump->nic))
		slot_count = vb_nic_transmit(pump->nic, now_ns, pump->slots, VB_PUMP_BATCH);
	if (!slot_count)
		return has_moved_directly(pump);
	send_out(pump, slot_count);
	return true;
}

bool vb_pump_send_at_once(struct vb_pump *pump, struct vb_qp *qp, uint64_t now_ns)
{
	const struct vb_slot *slot = &pump->slots[0];
	uint32_t slot_count = vb_qp_send_at_once(qp, now_ns, pump->slots);

	if (!slot_count)
		return false;
	if (slot->line) {
		(void)vb_neighbor_send(pump->neighbors, vb_neighbor_of_line(slot->line), slot);
		vb_neighbors_flush(pump->neighbors);
	} else {
		send_out(pump, slot_count);
	}
	return true;
}

bool vb_pump_send(struct vb_pump *pump, uint64_t now_ns)
{
	return transmit(pump, now_ns);
}

static void let_timers_fire(struct vb_pump *pump, uint64_t now_ns)
{
	if (vb_nic_deadline(pump->nic) <= now_ns)
		vb_nic_expire(pump->nic, now_ns);
}

/* --- QP 1 --- */

VB_COLD static void take_unreachable(struct vb_pump *pump, uint64_t now_ns)
{
	struct vb_udp_address unreachable[UNREACHABLE_AT_ONCE];
	uint32_t count;

	do {
		count = vb_udp_take_unreachable(pump->udp, unreachable, UNREACHABLE_AT_ONCE);
		for (uint32_t i = 0; i < count; i++) {
			struct vb_gid gid = vb_pump_gid_of(&unreachable[i]);

			vb_qp1_on_unreachable(pump->qp1, now_ns, &gid);
		}
	} while (count == UNREACHABLE_AT_ONCE);
}

static void steer_if_heir(struct vb_pump *pump)
{
	if (vb_qp1_is_heir(pump->qp1))
		vb_member_steer(pump->udp, vb_member_number(pump->member));
}

VB_COLD static void look_at_qp1(struct vb_pump *pump, uint64_t now_ns)
{
	vb_qp1_look(pump->qp1, now_ns);
	steer_if_heir(pump);
}

/*
 * No thread waits on the descriptors while a program polls. A turn counts more: the helper then
 * takes one per millisecond.
 */
static void glance_at_qp1(struct vb_pump *pump, uint64_t now_ns, uint32_t weight)
{
	pump->glances_without_qp1 += weight;
	if (pump->glances_without_qp1 < GLANCES_WITHOUT_QP1)
		return;
	pump->glances_without_qp1 = 0;
	pump->asked_address = (struct vb_gid){ 0 }; /* addresses come and go … */
	vb_own_ports_grow_old(pump->own_ports, now_ns); /* … and ports */
	if (pump->neighbors)
		vb_neighbors_bury(pump->neighbors);
	look_at_qp1(pump, now_ns);
	if (vb_qp1_is_waiting(pump->qp1))
		take_unreachable(pump, now_ns);
}

/* Drives QP 1 if it has work. True if any packet went out. */
static bool drive_qp1(struct vb_pump *pump, uint64_t now_ns)
{
	uint32_t count;

	if (vb_qp1_deadline(pump->qp1) > now_ns)
		return false;
	vb_qp1_expire(pump->qp1, now_ns);
	count = vb_qp1_transmit(pump->qp1, now_ns, pump->slots, VB_PUMP_BATCH);
	steer_if_heir(pump);
	if (count)
		vb_pump_send_slots(pump, count);
	return count;
}

uint64_t vb_pump_deadline(const struct vb_pump *pump)
{
	uint64_t engine_ns = vb_nic_deadline(pump->nic);
	uint64_t qp1_ns = vb_qp1_deadline(pump->qp1);

	return engine_ns < qp1_ns ? engine_ns : qp1_ns;
}

/* --- driving --- */

bool vb_pump_turn(struct vb_pump *pump, uint64_t now_ns)
{
	bool moved = receive_from_lines(pump, now_ns);

	vb_udp_look_everywhere(pump->udp);
	moved |= receive_from_wire(pump, now_ns);
	moved |= receive_from_members(pump, now_ns);
	glance_at_qp1(pump, now_ns, GLANCES_A_TURN);
	let_timers_fire(pump, now_ns);
	moved |= drive_qp1(pump, now_ns);
	return transmit(pump, now_ns) || moved;
}

/* These are system calls; each takes longer than a message by a shared-memory link. */
static bool glance_elsewhere(struct vb_pump *pump, uint64_t now_ns)
{
	uint32_t weight = pump->has_lines ? GLANCES_A_TURN : 1;
	bool moved = receive_from_wire(pump, now_ns);

	pump->elsewhere_ns = now_ns + ELSEWHERE_NS;
	pump->glances += weight;
	if (pump->glances > GLANCES_WITHOUT_MEMBERS)
		moved |= receive_from_members(pump, now_ns);
	glance_at_qp1(pump, now_ns, weight);
	return moved;
}

bool vb_pump_glance(struct vb_pump *pump, uint64_t now_ns)
{
	bool moved = receive_from_lines(pump, now_ns);

	if (!pump->has_lines || now_ns >= pump->elsewhere_ns)
		moved |= glance_elsewhere(pump, now_ns);
	if (now_ns == pump->glanced_ns) /* no deadline can have passed since */
		return moved;
	pump->glanced_ns = now_ns;
	let_timers_fire(pump, now_ns);
	return drive_qp1(pump, now_ns) || moved;
}

void vb_pump_on_wake(struct vb_pump *pump, const struct pollfd fds[VB_PUMP_FDS_MAX],
		     uint64_t now_ns)
{
	if (fds[LINK].revents)
		take_unreachable(pump, now_ns);
	if (fds[QP1].revents)
		look_at_qp1(pump, now_ns);
	if (fds[NEIGHBORS].revents && pump->neighbors)
		vb_neighbors_take_wake(pump->neighbors);
}

uint32_t vb_pump_fds(const struct vb_pump *pump, struct pollfd fds[VB_PUMP_FDS_MAX])
{
	fds[LINK] = (struct pollfd){ .fd = vb_udp_fd(pump->udp), .events = POLLIN };
	fds[MEMBER] = (struct pollfd){ .fd = vb_member_fd(pump->member), .events = POLLIN };
	fds[QP1] = (struct pollfd){ .fd = vb_qp1_fd(pump->qp1), .events = POLLIN };
	if (!pump->neighbors)
		return NEIGHBORS;
	fds[NEIGHBORS] =
		(struct pollfd){ .fd = vb_neighbors_fd(pump->neighbors), .events = POLLIN };
	return VB_PUMP_FDS_MAX;
}
