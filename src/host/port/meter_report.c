/* SPDX-License-Identifier: BSD-2-Clause */
/* The QPs that a meter measures, and its answer to an observer. */
#include "host/port/meter_priv.h"

#include "base/heap.h"
#include "host/port/state.h"
#include "host/registry/port_member.h"
#include "nic/inspect.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

_Static_assert(VB_HOLD_COUNT <= VB_METER_HOLDS, "each reason has its place");

struct vb_meter *vb_meter_create(void)
{
	struct vb_meter *meter = vb_heap_alloc(1, sizeof(*meter));

	if (!meter)
		return NULL;
	meter->tap = (struct vb_tap){ meter, vb_meter_on_sent, vb_meter_on_received,
				      vb_meter_on_executed };
	memset(meter->by_own, 0xff, sizeof(meter->by_own));
	memset(meter->by_peer, 0xff, sizeof(meter->by_peer));
	return meter;
}

void vb_meter_destroy(struct vb_meter *meter)
{
	vb_heap_free(meter);
}

const struct vb_tap *vb_meter_tap(const struct vb_meter *meter)
{
	return &meter->tap;
}

bool vb_meter_is_over(const struct vb_meter *meter, uint64_t now_ns)
{
	return now_ns >= meter->until_ns;
}

/* --- which QPs there are --- */

static bool is_reliable(const struct vb_qp *qp)
{
	enum vb_qp_type type = vb_qp_type(qp);

	return type == VB_QP_RC || type == VB_QP_XRC_SEND || type == VB_QP_XRC_RECV;
}

/* A QP with another peer is another one for an observer. */
static bool is_same(const struct vb_meter_qp *measured, const struct vb_qp_attr *attr)
{
	return measured->peer.v == attr->destination.v &&
	       vb_gid_equal(&measured->peer_gid, &attr->address.destination);
}

static void init_qp(struct vb_meter_qp *measured, const struct vb_qp *qp,
		    const struct vb_qp_attr *attr)
{
	*measured = (struct vb_meter_qp){
		.number = vb_qp_number(qp),
		.peer = attr->destination,
		.peer_gid = attr->address.destination,
		.is_reliable = is_reliable(qp),
	};
}

static void link_qp(struct vb_meter *meter, uint16_t index)
{
	struct vb_meter_qp *qp = &meter->qps[index];
	uint16_t *own = &meter->by_own[qp->number.v & (VB_METER_HASH_SIZE - 1)];
	uint16_t *peer = &meter->by_peer[qp->peer.v & (VB_METER_HASH_SIZE - 1)];

	qp->next_of_own = *own;
	*own = index;
	qp->next_of_peer = *peer;
	*peer = index;
}

static void link_all(struct vb_meter *meter)
{
	memset(meter->by_own, 0xff, sizeof(meter->by_own));
	memset(meter->by_peer, 0xff, sizeof(meter->by_peer));
	for (uint32_t i = 0; i < meter->count; i++)
		link_qp(meter, (uint16_t)i);
}

void vb_meter_refresh(struct vb_meter *meter, const struct vb_nic *nic)
{
	struct vb_meter_qp *kept = vb_heap_alloc(VB_METER_QPS_MAX, sizeof(*kept));
	const struct vb_qp *qp;
	uint32_t place = 0, count = 0;

	if (!kept)
		return;
	while (count < VB_METER_QPS_MAX && (qp = vb_nic_next_qp(nic, &place))) {
		struct vb_meter_qp *before = vb_meter_find(meter, vb_qp_number(qp));
		struct vb_qp_attr attr;

		vb_qp_query(qp, &attr);
		if (before && is_same(before, &attr))
			kept[count++] = *before;
		else
			init_qp(&kept[count++], qp, &attr);
	}
	memcpy(meter->qps, kept, count * sizeof(*kept));
	vb_heap_free(kept);
	meter->count = count;
	link_all(meter);
}

/* --- the answer --- */

static void describe_peer(struct vb_meter_row *row, const struct vb_state_source *source,
			  const struct vb_qp *qp)
{
	const char *path = vb_state_path(source->nic, source->peers, qp);
	struct vb_qp_attr attr;

	row->peer_qpn = 0;
	row->peer[0] = row->carrier[0] = row->path_reason[0] = 0;
	if (!path)
		return;
	vb_qp_query(qp, &attr);
	row->peer_qpn = attr.destination.v;
	inet_ntop(AF_INET6, attr.address.destination.raw, row->peer, sizeof(row->peer));
	snprintf(row->carrier, sizeof(row->carrier), "%s", vb_qp_link(qp) ? "shm" : "wire");
	snprintf(row->path_reason, sizeof(row->path_reason), "%s", path);
}

static void describe_qp(struct vb_meter_row *row, const struct vb_state_source *source,
			const struct vb_qp *qp)
{
	struct vb_qp_view view;

	vb_qp_inspect(qp, source->now_ns, &view);
	row->qpn = vb_qp_number(qp).v;
	snprintf(row->type, sizeof(row->type), "%s", vb_qp_type_describe(vb_qp_type(qp)));
	snprintf(row->state, sizeof(row->state), "%s", vb_qp_state_describe(vb_qp_state(qp)));
	describe_peer(row, source, qp);
	row->hold = view.hold;
	row->repeat_count = view.repeat_count;
	row->sq_depth = view.sq.depth;
	row->sq_used = view.sq.used;
	row->rq_depth = view.rq.depth;
	row->rq_used = view.rq.used;
	for (uint32_t i = 0; i < VB_HOLD_COUNT; i++)
		row->held_ns[i] = view.held_ns[i];
}

static void fill_report(struct vb_meter *meter, const struct vb_state_source *source,
			struct vb_meter_report *report)
{
	const struct vb_qp *qp;
	uint32_t place = 0;

	report->layout = VB_METER_LAYOUT;
	report->now_ns = source->now_ns;
	snprintf(report->device, sizeof(report->device), "%s", source->device_name);
	report->hold_count = VB_HOLD_COUNT;
	for (uint32_t i = 0; i < VB_HOLD_COUNT; i++)
		snprintf(report->hold_names[i], VB_METER_NAME_MAX, "%s", vb_qp_hold_name(i));
	while (report->row_count < meter->count && (qp = vb_nic_next_qp(source->nic, &place))) {
		struct vb_meter_row *row = &meter->qps[report->row_count].row;

		describe_qp(row, source, qp);
		report->rows[report->row_count++] = *row;
	}
}

void vb_meter_answer(struct vb_meter *meter, const struct vb_state_source *source,
		     struct vb_port_member *member)
{
	struct vb_meter_report *report = NULL;
	size_t size = 0;

	if (meter) {
		meter->until_ns = source->now_ns + VB_METER_LEASE_NS;
		vb_meter_refresh(meter, source->nic);
		size = sizeof(*report) + meter->count * sizeof(report->rows[0]);
		report = vb_heap_alloc(1, size);
	}
	if (report)
		fill_report(meter, source, report);
	vb_port_member_answer_report(member, (const char *)report, report ? size : 0);
	vb_heap_free(report);
}
