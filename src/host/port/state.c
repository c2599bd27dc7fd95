/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of an adapter's state. */
#include "host/port/state.h"

#include "base/heap.h"
#include "host/local/local_peer.h"
#include "host/port/async_log.h"
#include "host/registry/port_member.h"
#include "host/registry/state_query.h"
#include "link/udp.h"
#include "nic/counters.h"
#include "nic/inspect.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *bytes;
	uint32_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	uint32_t room = VB_STATE_TEXT_MAX - text->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (length > 0 && (uint32_t)length < room) /* else the text is truncated here */
		text->length += (uint32_t)length;
}

static bool is_on_this_host(const struct vb_nic *nic, const struct vb_gid *gid)
{
	struct vb_udp_address address = { 0 };

	if (vb_nic_has_gid(nic, gid))
		return true;
	memcpy(address.ip, gid->raw, sizeof(address.ip));
	return vb_udp_address_is_local(&address);
}

static bool is_connected(const struct vb_qp *qp)
{
	enum vb_qp_state state = vb_qp_state(qp);

	return vb_qp_type(qp) != VB_QP_UD && state != VB_STATE_RESET && state != VB_STATE_INIT;
}

const char *vb_state_path(const struct vb_nic *nic, const struct vb_local_peers *peers,
			  const struct vb_qp *qp)
{
	struct vb_qp_attr attr;
	uint32_t number;

	if (!is_connected(qp))
		return NULL;
	vb_qp_query(qp, &attr);
	number = vb_port_member_of_qpn(attr.destination);
	if (!is_on_this_host(nic, &attr.address.destination))
		return "wire: the peer is on another host";
	if (!peers)
		return "wire: the path is set to wire";
	if (number >= VB_PORT_MEMBER_COUNT)
		return "wire: the peer is no adapter of ours";
	if (!vb_qp_link(qp) && vb_local_peer_is_open(peers, number))
		return "wire: the peer had not answered when they were connected";
	if (vb_qp_link(qp) && !vb_local_peer_is_open(peers, number))
		return "shared memory, the peer is gone";
	return vb_local_peer_describe(peers, number);
}

/* `verbatim stat` shows this line only if it is asked to. */
static void add_holds(struct text *text, const struct vb_qp *qp, uint64_t now_ns)
{
	struct vb_qp_view view;
	bool is_any = false;

	vb_qp_inspect(qp, now_ns, &view);
	for (uint32_t i = VB_HOLD_NONE + 1; i < VB_HOLD_COUNT; i++) {
		if (!view.held_ns[i])
			continue;
		add(text, "%s%s %.3f ms", is_any ? ", " : VB_STATE_HELD, vb_qp_hold_name(i),
		    (double)view.held_ns[i] / 1e6);
		is_any = true;
	}
	if (is_any)
		add(text, "\n");
}

static void add_qp(struct text *text, const struct vb_state_source *source, const struct vb_qp *qp)
{
	const char *path = vb_state_path(source->nic, source->peers, qp);
	char peer[VB_PATH_TEXT_MAX];
	struct vb_qp_view view;
	struct vb_qp_attr attr;

	add(text, "QP 0x%06x %s %s", vb_qp_number(qp).v, vb_qp_type_describe(vb_qp_type(qp)),
	    vb_qp_state_describe(vb_qp_state(qp)));
	if (path) {
		vb_qp_query(qp, &attr);
		vb_qp_inspect(qp, source->now_ns, &view);
		vb_path_describe(&view.path, peer);
		add(text, " to %s QP 0x%06x: %s", peer, attr.destination.v, path);
	}
	add(text, "\n");
	add_holds(text, qp, source->now_ns);
}

static void add_counts(struct text *text, const struct vb_nic *nic,
		       const struct vb_local_peers *peers)
{
	const struct vb_local_peer_counts *by_shm;
	struct vb_counters counters;

	vb_nic_counted(nic, &counters);
	add(text, "executed directly: %" PRIu64 " parts of requests\n",
	    counters.counts[VB_COUNTER_DIRECT_PARTS]);
	if (!peers)
		return;
	by_shm = vb_local_peer_counts(peers);
	add(text,
	    "by shared memory: %" PRIu64 " packets sent, %" PRIu64 " received, %" PRIu64
	    " lost, %" PRIu64 " wakes\n",
	    by_shm->sent, by_shm->received, by_shm->lost, by_shm->wakes);
	if (counters.drops[VB_DROP_COPY])
		add(text,
		    "multicast that came by shared memory and by the wire again: %" PRIu64
		    " packets\n",
		    counters.drops[VB_DROP_COPY]);
}

static void add_events(struct text *text, const struct vb_state_source *source)
{
	struct vb_async_entry entry;
	uint32_t place = 0;

	while (source->events &&
	       vb_async_log_next(source->events, source->now_ns, &place, &entry)) {
		uint64_t ago_ns = source->now_ns > entry.time_ns ? source->now_ns - entry.time_ns
								 : 0;

		add(text, "event %.3f s ago: %s", (double)ago_ns / 1e9, entry.name);
		if (entry.qpn)
			add(text, " of QP 0x%06x", entry.qpn);
		add(text, "\n");
	}
}

void vb_state_report(const struct vb_state_source *source, struct vb_port_member *member)
{
	struct text text = { .bytes = vb_heap_alloc(1, VB_STATE_TEXT_MAX) };
	const struct vb_qp *qp;
	uint32_t place = 0;

	if (text.bytes) {
		add_counts(&text, source->nic, source->peers);
		add_events(&text, source);
		while ((qp = vb_nic_next_qp(source->nic, &place)))
			add_qp(&text, source, qp);
	}
	vb_port_member_answer_state(member, text.bytes, text.length);
	vb_heap_free(text.bytes);
}
