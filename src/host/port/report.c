/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on an adapter, as one object of JSON. */
#include "host/port/report.h"

#include "base/heap.h"
#include "host/port/async_log.h"
#include "host/port/state.h"
#include "host/registry/port_member.h"
#include "host/sys/text.h"
#include "nic/inspect.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"

#include <arpa/inet.h>
#include <inttypes.h>

#define REMOTE (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC)

/* Begins an entry of a list. */
static void begin(struct vb_text *text, bool *is_later)
{
	vb_text_add(text, *is_later ? "," : "");
	*is_later = true;
}

static void add_counters(struct vb_text *text, const struct vb_nic *nic)
{
	struct vb_counters counters;

	vb_nic_counted(nic, &counters);
	vb_text_add(text, ",\"counters\":{");
	for (uint32_t i = 0; i < VB_COUNTER_COUNT; i++)
		vb_text_add(text, "%s\"%s\":%" PRIu64, i ? "," : "", vb_counter_name(i),
			    counters.counts[i]);
	vb_text_add(text, "},\"drops\":{");
	for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
		vb_text_add(text, "%s\"%s\":%" PRIu64, i ? "," : "", vb_drop_name(i),
			    counters.drops[i]);
	vb_text_add(text, "}");
}

static void add_pds(struct vb_text *text, const struct vb_nic *nic)
{
	const struct vb_pd *place = NULL;
	bool is_later = false;
	uint32_t number;

	vb_text_add(text, ",\"pd\":[");
	while (vb_nic_inspect_pd(nic, &place, &number)) {
		begin(text, &is_later);
		vb_text_add(text, "{\"pdn\":%u}", number);
	}
	vb_text_add(text, "]");
}

/* How programs on this host get at the memory. */
static const char *reach_of(const struct vb_state_source *source, const struct vb_key_row *row)
{
	if (!(row->access & REMOTE))
		return "local";
	if (!source->peers)
		return "packets";
	return row->segment ? "mapped" : "copied";
}

static void add_regions(struct vb_text *text, const struct vb_state_source *source)
{
	struct vb_key_row row;
	bool is_later = false;
	uint32_t place = 0;

	vb_text_add(text, ",\"mr\":[");
	while (vb_nic_inspect_region(source->nic, &place, &row)) {
		begin(text, &is_later);
		vb_text_add(text,
			    "{\"rkey\":%u,\"addr\":%" PRIu64 ",\"length\":%" PRIu64
			    ",\"access\":%u,\"reach\":\"%s\"}",
			    row.key, row.iova, row.length, row.access, reach_of(source, &row));
	}
	vb_text_add(text, "]");
}

static void add_cqs(struct vb_text *text, const struct vb_nic *nic)
{
	const struct vb_cq *place = NULL;
	struct vb_cq_view view;
	bool is_later = false;

	vb_text_add(text, ",\"cq\":[");
	while (vb_nic_inspect_cq(nic, &place, &view)) {
		begin(text, &is_later);
		vb_text_add(text, "{\"cqn\":%u,\"depth\":%u,\"used\":%u,\"armed\":%s}", view.number,
			    view.depth, view.used, view.is_armed ? "true" : "false");
	}
	vb_text_add(text, "]");
}

static void add_srqs(struct vb_text *text, const struct vb_nic *nic)
{
	struct vb_srq_view view;
	bool is_later = false;
	uint32_t place = 0;

	vb_text_add(text, ",\"srq\":[");
	while (vb_nic_inspect_srq(nic, &place, &view)) {
		begin(text, &is_later);
		vb_text_add(text, "{\"srqn\":%u,\"depth\":%u,\"used\":%u}", view.number,
			    view.queue.depth, view.queue.used);
	}
	vb_text_add(text, "]");
}

/* --- queue pairs --- */

static void add_peer(struct vb_text *text, const struct vb_state_source *source,
		     const struct vb_qp *qp)
{
	const char *path = vb_state_path(source->nic, source->peers, qp);
	char address[INET6_ADDRSTRLEN];
	struct vb_qp_attr attr;

	if (!path) {
		vb_text_add(text, ",\"peer_gid\":null,\"peer_qpn\":null,\"carrier\":null,"
				  "\"path_reason\":null");
		return;
	}
	vb_qp_query(qp, &attr);
	inet_ntop(AF_INET6, attr.address.destination.raw, address, sizeof(address));
	vb_text_add(text, ",\"peer_gid\":\"%s\",\"peer_qpn\":%u,\"carrier\":\"%s\"", address,
		    attr.destination.v, vb_qp_link(qp) ? "shm" : "wire");
	vb_text_add(text, ",\"path_reason\":");
	vb_text_add_json(text, path);
}

static void add_queues(struct vb_text *text, const struct vb_state_source *source,
		       const struct vb_qp *qp)
{
	struct vb_qp_view view;

	vb_qp_inspect(qp, source->now_ns, &view);
	vb_text_add(text,
		    ",\"sq\":{\"depth\":%u,\"used\":%u},\"rq\":{\"depth\":%u,\"used\":%u}"
		    ",\"sq_psn\":%u,\"rq_psn\":%u,\"retries\":%u,\"held_ns\":{",
		    view.sq.depth, view.sq.used, view.rq.depth, view.rq.used, view.sq_psn.v,
		    view.rq_psn.v, view.repeat_count);
	for (uint32_t i = VB_HOLD_NONE + 1; i < VB_HOLD_COUNT; i++)
		vb_text_add(text, "%s\"%s\":%" PRIu64, i > VB_HOLD_NONE + 1 ? "," : "",
			    vb_qp_hold_name(i), view.held_ns[i]);
	vb_text_add(text, "}");
}

static void add_qps(struct vb_text *text, const struct vb_state_source *source)
{
	const struct vb_qp *qp;
	bool is_later = false;
	uint32_t place = 0;

	vb_text_add(text, ",\"qp\":[");
	while ((qp = vb_nic_next_qp(source->nic, &place))) {
		begin(text, &is_later);
		vb_text_add(text, "{\"qpn\":%u,\"type\":\"%s\",\"state\":\"%s\"",
			    vb_qp_number(qp).v, vb_qp_type_describe(vb_qp_type(qp)),
			    vb_qp_state_describe(vb_qp_state(qp)));
		add_peer(text, source, qp);
		add_queues(text, source, qp);
		vb_text_add(text, "}");
	}
	vb_text_add(text, "]");
}

static void add_events(struct vb_text *text, const struct vb_state_source *source)
{
	struct vb_async_entry entry;
	bool is_later = false;
	uint32_t place = 0;

	vb_text_add(text, ",\"events\":[");
	while (source->events &&
	       vb_async_log_next(source->events, source->now_ns, &place, &entry)) {
		uint64_t ago_ns = source->now_ns > entry.time_ns ? source->now_ns - entry.time_ns
								 : 0;

		begin(text, &is_later);
		vb_text_add(text, "{\"event\":\"%s\",\"qpn\":%u,\"ago_ns\":%" PRIu64 "}",
			    entry.name, entry.qpn, ago_ns);
	}
	vb_text_add(text, "]");
}

void vb_report_answer(const struct vb_state_source *source, struct vb_port_member *member)
{
	struct vb_text text = { 0 };

	vb_text_add(&text, "{\"name\":");
	vb_text_add_json(&text, source->device_name);
	add_counters(&text, source->nic);
	add_pds(&text, source->nic);
	add_regions(&text, source);
	add_cqs(&text, source->nic);
	add_srqs(&text, source->nic);
	add_qps(&text, source);
	add_events(&text, source);
	vb_text_add(&text, "}");
	vb_port_member_answer_report(member, text.bytes, text.is_incomplete ? 0 : text.length);
	vb_text_fini(&text);
}
