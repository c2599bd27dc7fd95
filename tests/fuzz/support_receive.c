/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter of fuzz_receive: making it, keeping its books, and the checks. */
#include "support_receive.h"

#include "base/bytes.h"

#include <string.h>

static _Alignas(4096) uint8_t area[AREA_LENGTH];
static _Alignas(4096) uint8_t before[AREA_LENGTH];
static _Alignas(4096) uint8_t device_memory[DEVICE_LENGTH];
static uint8_t zero_page[4096];

const uint64_t key_offsets[KEY_COUNT] = {
	[KEY_OPEN] = OPEN,	   [KEY_READABLE] = READABLE, [KEY_LOCAL] = LOCAL,
	[KEY_FOREIGN] = FOREIGN,   [KEY_WINDOWED] = WINDOWED, [KEY_WINDOW_1] = WINDOW_1,
	[KEY_WINDOW_2] = WINDOW_2,
};

const struct plan plans[QP_COUNT] = {
	[RC_A] = { VB_QP_RC, VB_STATE_RTS, RC_B, false, 4 },
	[RC_B] = { VB_QP_RC, VB_STATE_RTS, RC_A, false, 2 },
	[RC_SHARED] = { VB_QP_RC, VB_STATE_RTS, RC_SHARED, true, 1 },
	[RC_NO_READS] = { VB_QP_RC, VB_STATE_RTS, RC_NO_READS, false, 0 },
	[RC_RTR] = { VB_QP_RC, VB_STATE_RTR, RC_RTR, false, 3 },
	[RC_INIT] = { VB_QP_RC, VB_STATE_INIT, RC_INIT, false, 3 },
	[RC_SQD] = { VB_QP_RC, VB_STATE_SQD, RC_SQD, false, 3 },
	[XRC_SEND] = { VB_QP_XRC_SEND, VB_STATE_RTS, XRC_RECV, false, 3 },
	[XRC_RECV] = { VB_QP_XRC_RECV, VB_STATE_RTS, XRC_SEND, false, 3 },
	[UC_A] = { VB_QP_UC, VB_STATE_RTS, UC_B, false, 0 },
	[UC_B] = { VB_QP_UC, VB_STATE_RTS, UC_A, false, 0 },
	[UC_SHARED] = { VB_QP_UC, VB_STATE_RTS, UC_SHARED, true, 0 },
	[UD_A] = { VB_QP_UD, VB_STATE_RTS, UD_A, false, 0 },
	[UD_SHARED] = { VB_QP_UD, VB_STATE_RTS, UD_SHARED, true, 0 },
	[UD_MANAGER] = { VB_QP_UD, VB_STATE_RTS, UD_MANAGER, false, 0 },
};

struct rig rig;

/*
 * Bytes that must never leave the adapter are filled with one word repeatedly. The word is
 * recognised by a product: a fuzzer watches comparisons and would soon send the word itself.
 */
#define SECRET 0x5ce3a91d7b42f806ull
#define SECRET_FACTOR 0x9e3779b97f4a7c15ull

static void fill_secret(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i + 8 <= to; i += 8)
		store64(area + i, SECRET);
}

bool rig_is_secret(const uint8_t *bytes)
{
	return load64(bytes) * SECRET_FACTOR == SECRET * SECRET_FACTOR;
}

static void create_region(uint32_t key, struct vb_pd *pd, uint32_t offset, uint32_t length,
			  uint32_t access)
{
	struct vb_mr_init init = {
		.address = (uintptr_t)area + offset,
		.length = length,
		.iova = IOVA + offset,
		.access = access,
	};

	MUST(vb_mr_create(pd, &init, &rig.mrs[key]));
}

static void create_memory(void)
{
	const uint32_t all = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE |
			     VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC;
	struct vb_mr_init device = { .length = DEVICE_LENGTH,
				     .access = all | VB_ACCESS_ZERO_BASED };

	for (uint32_t i = 0; i < AREA_LENGTH; i++)
		area[i] = (uint8_t)(i * 7);
	fill_secret(FOREIGN, WINDOW_1);
	fill_secret(WINDOW_1 + WINDOW_LENGTH, WINDOW_2);
	fill_secret(WINDOW_2 + WINDOW_LENGTH, BUFFERS);
	memcpy(before, area, sizeof(area));
	create_region(KEY_OPEN, rig.pd, OPEN, ZONE_LENGTH, all);
	create_region(KEY_READABLE, rig.pd, READABLE, ZONE_LENGTH, VB_ACCESS_REMOTE_READ);
	create_region(KEY_FOREIGN, rig.other_pd, FOREIGN, ZONE_LENGTH, all);
	create_region(KEY_WINDOWED, rig.pd, WINDOWED, ZONE_LENGTH,
		      VB_ACCESS_LOCAL_WRITE | VB_ACCESS_MW_BIND);
	/* This region covers the whole area: only checks detect an access outside buffers. */
	create_region(KEY_LOCAL, rig.pd, 0, AREA_LENGTH, VB_ACCESS_LOCAL_WRITE);
	MUST(vb_mr_create_null(rig.pd, &rig.mrs[KEY_NULL]));
	MUST(vb_dm_create(rig.nic, DEVICE_LENGTH, 6, &rig.dm));
	MUST(vb_mr_create_on_dm(rig.pd, rig.dm, &device, &rig.mrs[KEY_DEVICE]));
	MUST(vb_mw_create(rig.pd, VB_MW_TYPE_1, &rig.mws[0]));
	MUST(vb_mw_create(rig.pd, VB_MW_TYPE_2, &rig.mws[1]));
	for (uint32_t i = 0; i < REGION_COUNT; i++)
		rig.keys[i] = vb_mr_key(rig.mrs[i]);
	rig.keys[KEY_WINDOW_1] = vb_mw_key(rig.mws[0]);
	rig.keys[KEY_WINDOW_2] = vb_mw_key(rig.mws[1]);
}

static void create_qp(uint32_t index)
{
	const struct plan *plan = &plans[index];
	struct vb_qp_init init = {
		.type = plan->type,
		.send_cq = rig.cq,
		.recv_cq = rig.cq,
		.srq = plan->is_shared ? rig.srq : NULL,
		.xrcd = plan->type == VB_QP_XRC_RECV ? rig.xrcd : NULL,
		.send_depth = SEND_DEPTH,
		.recv_depth = RECV_DEPTH,
		.send_sge_max = 3,
		.recv_sge_max = 3,
		.inline_max = 64,
		.qpn = { index == UD_MANAGER },
	};

	MUST(vb_qp_create(rig.pd, &init, &rig.qps[index]));
}

/* Moves the QP one step up from its state; all PSNs start just before they wrap. */
static void raise_qp(uint32_t index, enum vb_qp_state to)
{
	const struct plan *plan = &plans[index];
	struct vb_qp_attr attr = {
		.state = to,
		.port = 1,
		.qkey = QKEY,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC,
		.address = { .destination = rig.gid },
		.path_mtu = MTU,
		.destination = vb_qp_number(rig.qps[plan->peer]),
		.timeout = 1,
		.retry_count = 7,
		.rnr_retry = 2,
		.min_rnr_timer = 1,
		.reads_out = plan->reads,
		.reads_in = plan->reads,
		.rq_psn = { 0xfffff8 },
		.sq_psn = { 0xfffff8 },
	};
	static const uint32_t rc[] = {
		[VB_STATE_INIT] = VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS,
		[VB_STATE_RTR] = VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				 VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER,
		[VB_STATE_RTS] = VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY |
				 VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT,
		[VB_STATE_SQD] = 0,
	};
	static const uint32_t not_xrc_send = VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER;
	static const uint32_t not_xrc_recv = VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY |
					     VB_ATTR_READS_OUT;
	static const uint32_t not_uc = VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER | VB_ATTR_TIMEOUT |
				       VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY | VB_ATTR_READS_OUT;
	uint32_t mask = rc[to];

	switch (plan->type) {
	case VB_QP_RC:
		break;
	case VB_QP_XRC_SEND:
		mask &= ~not_xrc_send;
		break;
	case VB_QP_XRC_RECV:
		mask &= ~not_xrc_recv;
		break;
	case VB_QP_UC:
		mask &= ~not_uc;
		break;
	case VB_QP_UD:
		mask &= VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_SQ_PSN;
		mask |= to == VB_STATE_INIT ? VB_ATTR_QKEY : 0;
		break;
	}
	MUST(vb_qp_modify(rig.qps[index], &attr, mask | VB_ATTR_STATE));
}

void rig_bring_up(uint32_t index)
{
	for (uint32_t state = VB_STATE_INIT; state <= plans[index].state; state++)
		raise_qp(index, (enum vb_qp_state)state);
}

void rig_create(bool has_icrc)
{
	static struct vb_key_row key_rows[ROWS];
	static struct vb_qp_row qp_rows[ROWS];
	struct vb_nic_config config = {
		.key_rows = memset(key_rows, 0, sizeof(key_rows)),
		.key_row_count = ROWS,
		.qp_rows = memset(qp_rows, 0, sizeof(qp_rows)),
		.qp_row_count = ROWS,
		.seed = 3,
		.framing.icrc_mode = has_icrc ? VB_ICRC_STRICT : VB_ICRC_OFF,
		.framing.batch_segments_max = 4,
		.port_mtu = 1024,
		.window_packets_max = 16,
		.zero_page = (uintptr_t)zero_page,
		.device_memory = (uintptr_t)device_memory,
		.device_memory_length = DEVICE_LENGTH,
	};
	struct vb_srq_init srq_init = { .depth = SRQ_DEPTH, .sge_max = 3, .limit = 2 };
	struct vb_address address = { 0 };

	memset(&rig, 0, offsetof(struct rig, held));
	rig.held_count = 0;
	rig.area = area;
	rig.gid = vb_gid_from_ipv4(0x0a000001);
	rig.group = vb_gid_from_ipv4(0xe0000001);
	MUST(vb_nic_create(&config, &rig.nic));
	MUST(vb_nic_set_gid(rig.nic, 0, &rig.gid));
	MUST(vb_pd_create(rig.nic, &rig.pd));
	MUST(vb_pd_create(rig.nic, &rig.other_pd));
	MUST(vb_cq_create(rig.nic, CQ_DEPTH, NULL, &rig.cq));
	MUST(vb_xrcd_create(rig.nic, &rig.xrcd));
	MUST(vb_srq_create(rig.pd, &srq_init, &rig.srq));
	srq_init.xrcd = rig.xrcd;
	srq_init.cq = rig.cq;
	MUST(vb_srq_create(rig.pd, &srq_init, &rig.xrc_srq));
	create_memory();
	address.destination = rig.gid;
	MUST(vb_ah_create(rig.pd, &address, &rig.ahs[0]));
	address.destination = rig.group;
	MUST(vb_ah_create(rig.pd, &address, &rig.ahs[1]));
	for (uint32_t i = 0; i < QP_COUNT; i++)
		create_qp(i);
	for (uint32_t i = 0; i < QP_COUNT; i++)
		rig_bring_up(i);
	MUST(vb_qp_attach(rig.qps[UD_A], &rig.group));
	MUST(vb_qp_attach(rig.qps[UD_SHARED], &rig.group));
}

uint8_t rig_find_buffer(void)
{
	for (int i = 0; i < BUFFER_COUNT; i++)
		if (!rig.is_buffer_open[i])
			return (uint8_t)(i + 1);
	return 0;
}

struct request *rig_new_request(uint32_t qp, bool is_receive, bool is_signaled, uint8_t buffer)
{
	struct request *request = &rig.requests[rig.request_count++];

	*request = (struct request){ (uint8_t)qp, is_receive, is_signaled, true, buffer };
	if (buffer)
		rig.is_buffer_open[buffer - 1] = true;
	return request;
}

/* --- what must hold --------------------------------------------------------------------------- */

static void check_unchanged(uint32_t from, uint32_t to)
{
	REQUIRE(!memcmp(area + from, before + from, to - from));
}

static void accept_changed(uint32_t from, uint32_t length)
{
	memcpy(before + from, area + from, length);
}

/* Walks through the area: bytes that no one may write are unchanged. */
static void check_memory(void)
{
	check_unchanged(0, OPEN);
	accept_changed(OPEN, ZONE_LENGTH);
	check_unchanged(OPEN + ZONE_LENGTH, WINDOW_1);
	accept_changed(WINDOW_1, WINDOW_LENGTH);
	check_unchanged(WINDOW_1 + WINDOW_LENGTH, WINDOW_2);
	accept_changed(WINDOW_2, WINDOW_LENGTH);
	check_unchanged(WINDOW_2 + WINDOW_LENGTH, BUFFERS);
	for (uint32_t i = 0; i < BUFFER_COUNT; i++) {
		uint32_t at = BUFFERS + i * BUFFER_STEP;

		if (rig.is_buffer_open[i])
			accept_changed(at, BUFFER_LENGTH);
		else
			check_unchanged(at, at + BUFFER_LENGTH);
		check_unchanged(at + BUFFER_LENGTH, at + BUFFER_STEP);
	}
	check_unchanged(BUFFERS + BUFFER_COUNT * BUFFER_STEP, AREA_LENGTH);
}

void rig_close_request(struct request *request)
{
	request->is_open = false;
	if (request->buffer)
		rig.is_buffer_open[request->buffer - 1] = false;
}

/* The send queue has completed in order: the requests that it skipped asked for no completion. */
static void check_send_order(uint32_t qp, uint32_t index)
{
	REQUIRE(index >= rig.sent_last[qp]);
	for (uint32_t i = rig.sent_last[qp]; i < index; i++) {
		struct request *request = &rig.requests[i];

		if (request->qp != qp || request->is_receive || !request->is_open)
			continue;
		REQUIRE(!request->is_signaled);
		rig_close_request(request);
	}
	rig.sent_last[qp] = index + 1;
}

static uint32_t qp_index_of(uint32_t number)
{
	for (uint32_t i = 0; i < QP_COUNT; i++)
		if (vb_qp_number(rig.qps[i]).v == number)
			return i;
	return NO_QP;
}

static void check_completion(const struct vb_completion *completion)
{
	uint32_t qp = qp_index_of(completion->qpn);
	struct request *request;

	REQUIRE(completion->wr_id < rig.request_count);
	request = &rig.requests[completion->wr_id];
	REQUIRE(request->is_open && request->is_receive == completion->is_receive);
	REQUIRE(qp != NO_QP && (request->qp == qp || request->qp == NO_QP));
	if (!completion->is_receive)
		check_send_order(qp, (uint32_t)completion->wr_id);
	else if (completion->status == VB_STATUS_SUCCESS &&
		 completion->opcode == VB_COMPLETION_RECV)
		REQUIRE(completion->byte_length <= BUFFER_LENGTH);
	rig_close_request(request);
}

void rig_check(void)
{
	struct vb_completion completion;
	struct vb_event event;

	/* Memory first: what a completion closes was open until now. */
	check_memory();
	while (vb_cq_poll(rig.cq, &completion, 1))
		check_completion(&completion);
	REQUIRE(!vb_cq_has_overrun(rig.cq));
	while (vb_nic_take_events(rig.nic, &event, 1))
		REQUIRE(vb_event_describe(event.kind)[0] != '?');
}

void rig_forget_requests(uint32_t qp)
{
	for (uint32_t i = 0; i < rig.request_count; i++)
		if (rig.requests[i].is_open && rig.requests[i].qp == qp)
			rig_close_request(&rig.requests[i]);
	rig.sent_last[qp] = rig.request_count;
}

void rig_renew_region(void)
{
	MUST(vb_mr_destroy(rig.mrs[KEY_OPEN]));
	create_region(KEY_OPEN, rig.pd, OPEN, ZONE_LENGTH,
		      VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ |
			      VB_ACCESS_REMOTE_ATOMIC);
	rig.keys[KEY_OPEN] = vb_mr_key(rig.mrs[KEY_OPEN]);
}

void rig_flush(void)
{
	struct vb_qp_attr attr = { .state = VB_STATE_ERR };

	for (uint32_t i = 0; i < QP_COUNT; i++) {
		MUST(vb_qp_modify(rig.qps[i], &attr, VB_ATTR_STATE));
		rig_check();
	}
	REQUIRE(vb_nic_transmit(rig.nic, rig.now_ns, NULL, 0) == 0);
	rig_check();
	for (uint32_t i = 0; i < rig.request_count; i++) {
		const struct request *request = &rig.requests[i];

		REQUIRE(!request->is_open || request->qp == NO_QP || !request->is_signaled);
	}
}

void rig_destroy(void)
{
	MUST(vb_qp_detach(rig.qps[UD_A], &rig.group));
	MUST(vb_qp_detach(rig.qps[UD_SHARED], &rig.group));
	for (uint32_t i = 0; i < QP_COUNT; i++)
		MUST(vb_qp_destroy(rig.qps[i]));
	for (uint32_t i = 0; i < COUNT_OF(rig.ahs); i++)
		MUST(vb_ah_destroy(rig.ahs[i]));
	for (uint32_t i = 0; i < COUNT_OF(rig.mws); i++)
		MUST(vb_mw_destroy(rig.mws[i]));
	for (uint32_t i = 0; i < REGION_COUNT; i++)
		MUST(vb_mr_destroy(rig.mrs[i]));
	MUST(vb_dm_destroy(rig.dm));
	MUST(vb_srq_destroy(rig.srq));
	MUST(vb_srq_destroy(rig.xrc_srq));
	MUST(vb_xrcd_destroy(rig.xrcd));
	MUST(vb_cq_destroy(rig.cq));
	MUST(vb_pd_destroy(rig.other_pd));
	MUST(vb_pd_destroy(rig.pd));
	MUST(vb_nic_destroy(rig.nic));
}
