/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter as a whole: its creation, its tables, and the calls with which its owner sends and
 * waits.
 */
#include "base/heap.h"
#include "base/probe.h"
#include "nic/direct_priv.h"
#include "nic/quiet_priv.h"
#include "nic/rings.h"
#include "nic/tag_list_priv.h"
#include "nic/train_priv.h"
#include "nic/unreliable_priv.h"

#include "base/bytes.h"

#define DEPTH_LIMIT (1u << 24)
#define QP_DEPTH_DEFAULT 32768u
#define CQ_DEPTH_DEFAULT 4194303u
#define SRQ_DEPTH_DEFAULT 65536u
#define READS_DEFAULT 128u
#define WINDOW_PACKETS_DEFAULT 1024u
#define PORT_MTU_DEFAULT 4096u
#define HOP_LIMIT_DEFAULT 64

/* Packets that a QP may send before the next QP has its turn: enough for one segmented send. */
#define TURN_PACKETS 64u

static bool is_power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

static vb_err check_config(const struct vb_nic_config *config)
{
	uint64_t qpn_end = (uint64_t)config->qpn_first + config->qpn_count;

	if (!config->key_rows || !is_power_of_two(config->key_row_count) ||
	    config->key_row_count > 1u << 24)
		return VB_EINVAL;
	if (!config->qp_rows || !is_power_of_two(config->qp_row_count) ||
	    config->qp_row_count < 4 || config->qp_row_count > 1u << 24)
		return VB_EINVAL;
	if (qpn_end > VB_QPN_MULTICAST.v || (config->qpn_count && config->qpn_first < 2))
		return VB_EINVAL;
	if (config->source_port_count && (!is_power_of_two(config->source_port_count) ||
					  config->source_port_count > VB_SOURCE_PORTS_MAX))
		return VB_EINVAL;
	if (config->reads_max > 255 || config->port_mtu > VB_PAYLOAD_MAX ||
	    config->train_length_max > VB_TRAIN_LENGTH_LIMIT ||
	    config->cq_depth_max > DEPTH_LIMIT || config->qp_depth_max > DEPTH_LIMIT ||
	    config->srq_depth_max > DEPTH_LIMIT)
		return VB_EINVAL;
	return VB_OK;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void init_limits(struct vb_nic *nic)
{
	const struct vb_nic_config *config = &nic->config;

	nic->limits = (struct vb_nic_limits){
		.qp_depth = or_default(config->qp_depth_max, QP_DEPTH_DEFAULT),
		.cq_depth = or_default(config->cq_depth_max, CQ_DEPTH_DEFAULT),
		.srq_depth = or_default(config->srq_depth_max, SRQ_DEPTH_DEFAULT),
		.sge = VB_SGE_MAX,
		.inline_length = VB_INLINE_MAX,
		.reads = or_default(config->reads_max, READS_DEFAULT),
		.qp_count = config->qp_row_count - VB_QP_ROWS_RESERVED,
		.key_count = config->key_row_count,
		.tags = VB_TAGS_MAX,
		.tag_sge = VB_TAG_SGE_MAX,
		.tag_depth = or_default(config->qp_depth_max, QP_DEPTH_DEFAULT),
		.rendezvous_length = VB_RENDEZVOUS_LENGTH_MAX,
	};
}

static void init_config(struct vb_nic *nic, const struct vb_nic_config *config)
{
	struct vb_nic_config *own = &nic->config;

	*own = *config;
	if (own->qpn_first < 2)
		own->qpn_first = 2;
	if (!own->qpn_count)
		own->qpn_count = VB_QPN_MULTICAST.v - own->qpn_first;
	own->window_packets_max = or_default(own->window_packets_max, WINDOW_PACKETS_DEFAULT);
	own->port_mtu = or_default(own->port_mtu, PORT_MTU_DEFAULT);
	own->train_length_min = or_default(own->train_length_min, UINT32_MAX);
	init_limits(nic);
}

vb_err vb_nic_create(const struct vb_nic_config *config, struct vb_nic **nic_out)
{
	struct vb_nic *nic;
	vb_err err = check_config(config);

	if (err)
		return err;
	nic = vb_heap_alloc(1, sizeof(*nic));
	if (!nic)
		return VB_ENOMEM;
	nic->qps = vb_heap_alloc(config->qp_row_count, sizeof(struct vb_qp *));
	if (!nic->qps)
		goto free_nic;
	nic->key_owners = vb_heap_alloc(config->key_row_count, sizeof(void *));
	if (!nic->key_owners)
		goto free_qps;
	nic->srqs = vb_heap_alloc(VB_SRQ_ROWS, sizeof(struct vb_srq *));
	if (!nic->srqs)
		goto free_key_owners;
	nic->srq_rows = vb_heap_alloc(VB_SRQ_ROWS, sizeof(struct vb_srq_row));
	if (!nic->srq_rows)
		goto free_srqs;
	init_config(nic, config);
	vb_prng_init(&nic->prng, config->seed);
	vb_timers_init(&nic->timers);
	vb_framing_init(&nic->framing, &config->framing);
	for (uint32_t i = 0; i < VB_FLIGHT_COUNT; i++)
		vb_flight_init(&nic->flights[i]);
	vb_list_init(&nic->active);
	vb_list_init(&nic->without_room);
	nic->link_room[0] = VB_ROOM_UNLIMITED;
	nic->counters = &nic->own_counters;
	vb_list_init(&nic->sent);
	vb_list_init(&nic->with_events);
	vb_list_init(&nic->overruns);
	vb_list_init(&nic->groups);
	vb_list_init(&nic->pds);
	vb_list_init(&nic->cqs);
	vb_list_init(&nic->device_memories);
	nic->qpn_next = nic->config.qpn_first +
			(uint32_t)vb_prng_below(&nic->prng, nic->config.qpn_count);
	nic->srqn_next = (uint32_t)vb_prng_below(&nic->prng, 1u << 24);
	nic->pkeys[0] = VB_PKEY_DEFAULT;
	*nic_out = nic;
	return VB_OK;
free_srqs:
	vb_heap_free(nic->srqs);
free_key_owners:
	vb_heap_free(nic->key_owners);
free_qps:
	vb_heap_free(nic->qps);
free_nic:
	vb_heap_free(nic);
	return VB_ENOMEM;
}

vb_err vb_nic_destroy(struct vb_nic *nic)
{
	if (nic->root_object_count)
		return VB_EBUSY;
	vb_timers_fini(&nic->timers);
	vb_heap_free(nic->srq_rows);
	vb_heap_free(nic->srqs);
	vb_heap_free(nic->key_owners);
	vb_heap_free(nic->qps);
	vb_heap_free(nic);
	return VB_OK;
}

uint32_t vb_nic_root_object_count(const struct vb_nic *nic)
{
	return nic->root_object_count;
}

struct vb_nic_limits vb_nic_limits(const struct vb_nic *nic)
{
	return nic->limits;
}

vb_err vb_nic_set_gid(struct vb_nic *nic, uint32_t index, const struct vb_gid *gid)
{
	if (index >= VB_GID_COUNT)
		return VB_EINVAL;
	nic->gids[index] = *gid;
	return VB_OK;
}

vb_err vb_nic_set_port_mtu(struct vb_nic *nic, uint32_t mtu)
{
	if (mtu < 256 || mtu > VB_PAYLOAD_MAX || !is_power_of_two(mtu))
		return VB_EINVAL;
	nic->config.port_mtu = mtu;
	return VB_OK;
}

vb_err vb_nic_set_pkey(struct vb_nic *nic, uint32_t index, uint16_t pkey)
{
	if (index >= VB_PKEY_COUNT)
		return VB_EINVAL;
	nic->pkeys[index] = pkey;
	return VB_OK;
}

const struct vb_gid *vb_nic_gid(const struct vb_nic *nic, uint32_t index)
{
	return index < VB_GID_COUNT ? &nic->gids[index] : NULL;
}

bool vb_nic_has_gid(const struct vb_nic *nic, const struct vb_gid *gid)
{
	for (uint32_t i = 0; i < VB_GID_COUNT; i++)
		if (vb_gid_equal(&nic->gids[i], gid))
			return true;
	return false;
}

uint16_t vb_nic_pkey(const struct vb_nic *nic, uint32_t index)
{
	return index < VB_PKEY_COUNT ? nic->pkeys[index] : 0;
}

const struct vb_counters *vb_nic_counters(const struct vb_nic *nic)
{
	return nic->counters;
}

/* Works with numbers that wrap. */
static void subtract(struct vb_counters *from, const struct vb_counters *counters)
{
	for (uint32_t i = 0; i < VB_COUNTER_COUNT; i++)
		from->counts[i] -= counters->counts[i];
	for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
		from->drops[i] -= counters->drops[i];
}

void vb_nic_counted(const struct vb_nic *nic, struct vb_counters *counters_out)
{
	*counters_out = *nic->counters;
	subtract(counters_out, &nic->counters_before);
}

void vb_nic_set_counters(struct vb_nic *nic, struct vb_counters *counters)
{
	struct vb_counters counted;

	vb_nic_counted(nic, &counted);
	nic->counters = counters;
	nic->counters_before = *counters;
	subtract(&nic->counters_before, &counted);
}

bool vb_nic_fill_flow(const struct vb_nic *nic, const struct vb_address *address,
		      struct vb_flow *flow)
{
	const struct vb_gid *source = vb_nic_gid(nic, address->source_index);

	if (!source || vb_gid_is_zero(source) || vb_gid_is_zero(&address->destination))
		return false;
	if (vb_gid_is_ipv4(source) != vb_gid_is_ipv4(&address->destination))
		return false; /* one header cannot carry both */
	*flow = (struct vb_flow){
		.source = *source,
		.destination = address->destination,
		.flow_label = address->flow_label,
		.traffic_class = address->traffic_class,
		.hop_limit = address->hop_limit ? address->hop_limit : HOP_LIMIT_DEFAULT,
	};
	return true;
}

uint16_t vb_nic_source_port(const struct vb_nic *nic, uint32_t flow_label, vb_qpn local,
			    vb_qpn remote)
{
	uint16_t port = vb_flow_source_port(flow_label, local.v, remote.v);

	if (!nic->config.source_port_count)
		return port;
	return nic->config.source_ports[port & (nic->config.source_port_count - 1)];
}

VB_COLD void vb_nic_drop(struct vb_nic *nic, enum vb_drop drop)
{
	VB_PROBE1(drop, drop);
	nic->counters->drops[drop]++;
}

vb_err vb_nic_add_timer(struct vb_nic *nic)
{
	vb_err err = vb_timers_reserve(&nic->timers, nic->timer_count + 1);

	if (!err)
		nic->timer_count++;
	return err;
}

void vb_nic_begin(struct vb_nic *nic, uint64_t now_ns)
{
	nic->now_ns = now_ns;
	while (vb_list_is_linked(&nic->sent)) {
		struct vb_qp *qp = VB_CONTAINER(nic->sent.next, struct vb_qp, sent);

		vb_list_remove(&qp->sent);
		vb_unreliable_complete_sent(qp);
	}
	vb_nic_fail_overruns(nic);
}

/* Takes the doorbells in the order in which they were rung. */
static void take_doorbells(struct vb_nic *nic)
{
	struct vb_qp *stack;
	struct vb_qp *ordered = NULL;

	if (!atomic_load_explicit(&nic->doorbells, memory_order_relaxed))
		return;
	stack = atomic_exchange_explicit(&nic->doorbells, NULL, memory_order_acquire);
	while (stack) {
		struct vb_qp *next = stack->next_rung;

		__builtin_prefetch(&stack->requester);
		stack->next_rung = ordered;
		ordered = stack;
		stack = next;
	}
	while (ordered) {
		struct vb_qp *qp = ordered;

		ordered = qp->next_rung;
		/*
		 * Pairs with the exchange in vb_qp_ring_doorbell(): anything posted after this
		 * rings again.
		 */
		atomic_exchange_explicit(&qp->is_rung, 0, memory_order_seq_cst);
		vb_qp_on_doorbell(qp);
	}
}

/* The QPs of a path without room wait for room. */
static uint32_t turn_length(const struct vb_nic *nic, const struct vb_qp *qp)
{
	return min32(TURN_PACKETS, nic->link_room[qp->path.link]);
}

uint32_t vb_nic_transmit(struct vb_nic *nic, uint64_t now_ns, struct vb_slot *slots,
			 uint32_t capacity)
{
	uint32_t count = 0;

	vb_nic_begin(nic, now_ns);
	vb_framing_end_batch(&nic->framing);
	nic->direct_left = VB_DIRECT_TURN;
	take_doorbells(nic);
	while (count < capacity && vb_list_is_linked(&nic->active) && nic->direct_left) {
		struct vb_qp *qp = VB_CONTAINER(nic->active.next, struct vb_qp, active);
		uint32_t begin = count;
		uint32_t turn_end = min32(capacity, count + turn_length(nic, qp));

		vb_list_remove(&qp->active);
		if (count == turn_end) {
			vb_list_append(&nic->without_room, &qp->active);
			vb_qp_note_no_room(qp);
			continue;
		}
		while (count < turn_end && vb_qp_emit(qp, &slots[count], count + 1 == turn_end)) {
			VB_PROBE3(transmit, qp->number.v, (const void *)slots[count].head,
				  slots[count].length);
			nic->counters->counts[VB_COUNTER_TX_BYTES] += slots[count].length;
			count++;
		}
		nic->link_room[qp->path.link] -= qp->path.link ? count - begin : 0;
		if (count == turn_end) {
			vb_qp_schedule(qp); /* it may have more */
			vb_qp_note_more(qp);
		}
	}
	nic->counters->counts[VB_COUNTER_TX_PACKETS] += count;
	/*
	 * Ending a QP completes its requests, but the link has yet to read the spans of these
	 * packets.
	 */
	if (!count)
		vb_nic_fail_overruns(nic);
	return count;
}

struct vb_framing *vb_nic_framing(struct vb_nic *nic)
{
	return &nic->framing;
}

void vb_nic_fire_timers(struct vb_nic *nic, uint64_t now_ns)
{
	struct vb_timer *timer;

	vb_nic_begin(nic, now_ns);
	while ((timer = vb_timers_take_due(&nic->timers, now_ns))) {
		switch ((enum vb_timer_kind)timer->kind) {
		case VB_TIMER_QP:
			vb_qp_on_timer(VB_CONTAINER(timer, struct vb_qp, timer));
			break;
		case VB_TIMER_CQ:
			vb_cq_on_timer(VB_CONTAINER(timer, struct vb_cq, timer));
			break;
		}
	}
	vb_nic_fail_overruns(nic);
}

uint64_t vb_nic_deadline(struct vb_nic *nic)
{
	return vb_timers_deadline(&nic->timers);
}

bool vb_nic_is_rung(const struct vb_nic *nic)
{
	return atomic_load_explicit(&nic->doorbells, memory_order_acquire);
}

bool vb_nic_has_work(const struct vb_nic *nic)
{
	return vb_list_is_linked(&nic->active) || vb_nic_has_work_beside_turns(nic);
}

/* Whether a QP's completions go to the CQ: directly, through its SRQ, or one of its XRC domain. */
static bool uses_cq(const struct vb_qp *qp, const struct vb_cq *cq)
{
	if (qp->send_cq == cq || qp->recv_cq == cq || (qp->srq && qp->srq->cq == cq))
		return true;
	if (!qp->xrcd)
		return false;
	for (struct vb_list_node *node = qp->xrcd->srqs.next; node != &qp->xrcd->srqs;
	     node = node->next)
		if (VB_CONTAINER(node, struct vb_srq, in_xrcd)->cq == cq)
			return true;
	return false;
}

/* There is no list of a CQ's QPs because it would be needed only here. */
static void fail_users_of(struct vb_nic *nic, const struct vb_cq *cq)
{
	for (uint32_t i = 0; i < nic->config.qp_row_count; i++) {
		struct vb_qp *qp = nic->qps[i];

		if (!qp || !uses_cq(qp, cq))
			continue;
		if (vb_qp_state_now(qp) == VB_STATE_RESET || vb_qp_state_now(qp) == VB_STATE_ERR)
			continue;
		vb_event_raise(nic, &qp->source, VB_EVENT_QP_FATAL);
		vb_qp_enter_error(qp);
	}
}

VB_COLD void vb_nic_fail_users_of_overruns(struct vb_nic *nic)
{
	/* Failing a QP fills its other CQ with flushes, which may then overrun. */
	while (vb_list_is_linked(&nic->overruns)) {
		struct vb_cq *cq = VB_CONTAINER(nic->overruns.next, struct vb_cq, overrun);

		vb_list_remove(&cq->overrun);
		fail_users_of(nic, cq);
	}
}
