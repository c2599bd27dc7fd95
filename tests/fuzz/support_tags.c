/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter of fuzz_tags: making it, keeping its books, and the checks. */
#include "support_tags.h"

#include <string.h>

_Alignas(4096) uint8_t tag_area[AREA_LENGTH];
static _Alignas(4096) uint8_t before[AREA_LENGTH];

struct tag_rig tag_rig;

void tag_rig_bring_up(uint32_t index)
{
	static const uint32_t masks[] = {
		[VB_STATE_INIT] = VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS,
		[VB_STATE_RTR] = VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				 VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER,
		[VB_STATE_RTS] = VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY |
				 VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT,
	};

	for (uint32_t state = VB_STATE_INIT; state <= VB_STATE_RTS; state++) {
		struct vb_qp_attr attr = {
			.state = (enum vb_qp_state)state,
			.port = 1,
			.access = VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_WRITE,
			.address = { .destination = tag_rig.gid },
			.path_mtu = MTU,
			.destination = vb_qp_number(tag_rig.qps[!index]),
			.timeout = 1,
			.retry_count = 3,
			.rnr_retry = 1,
			.min_rnr_timer = 1,
			.reads_out = 2,
			.reads_in = 2,
			.rq_psn = { 0xfffff8 },
			.sq_psn = { 0xfffff8 },
		};

		MUST(vb_qp_modify(tag_rig.qps[index], &attr, masks[state] | VB_ATTR_STATE));
	}
}

static void create_qp(uint32_t index, uint32_t send_depth)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_cq = tag_rig.send_cq,
		.recv_cq = tag_rig.send_cq,
		.srq = index == RECEIVER ? tag_rig.srq : NULL,
		.send_depth = send_depth,
		.recv_depth = SEND_DEPTH,
		.send_sge_max = 1,
		.recv_sge_max = 1,
	};

	MUST(vb_qp_create(tag_rig.pds[index], &init, &tag_rig.qps[index]));
}

void tag_rig_create(uint32_t send_depth)
{
	static struct vb_key_row key_rows[ROWS];
	static struct vb_qp_row qp_rows[ROWS];
	struct vb_nic_config config = {
		.key_rows = memset(key_rows, 0, sizeof(key_rows)),
		.key_row_count = ROWS,
		.qp_rows = memset(qp_rows, 0, sizeof(qp_rows)),
		.qp_row_count = ROWS,
		.seed = 5,
		.framing.icrc_mode = VB_ICRC_OFF,
		.port_mtu = 1024,
	};
	struct vb_srq_init srq_init = {
		.depth = 4, .sge_max = 1, .tag_count = TAGS, .tag_depth = TAG_DEPTH
	};
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)tag_area,
		.length = SECRET,
		.iova = IOVA,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_READ,
	};

	memset(&tag_rig, 0, sizeof(tag_rig) - sizeof(tag_rig.held));
	memset(tag_area, 0, sizeof(tag_area));
	memset(tag_area + SECRET, SECRET_BYTE, BUFFERS - SECRET);
	memcpy(before, tag_area, sizeof(tag_area));
	tag_rig.gid = vb_gid_from_ipv4(0x0a000001);
	MUST(vb_nic_create(&config, &tag_rig.nic));
	MUST(vb_nic_set_gid(tag_rig.nic, 0, &tag_rig.gid));
	MUST(vb_pd_create(tag_rig.nic, &tag_rig.pds[SENDER]));
	MUST(vb_pd_create(tag_rig.nic, &tag_rig.pds[RECEIVER]));
	MUST(vb_cq_create(tag_rig.nic, 1024, NULL, &tag_rig.send_cq));
	MUST(vb_cq_create(tag_rig.nic, 1024, NULL, &tag_rig.cq));
	srq_init.cq = tag_rig.cq;
	MUST(vb_srq_create(tag_rig.pds[RECEIVER], &srq_init, &tag_rig.srq));
	MUST(vb_mr_create(tag_rig.pds[SENDER], &mr_init, &tag_rig.messages));
	mr_init.length = AREA_LENGTH;
	MUST(vb_mr_create(tag_rig.pds[RECEIVER], &mr_init, &tag_rig.all));
	create_qp(SENDER, SEND_DEPTH);
	create_qp(RECEIVER, send_depth);
	tag_rig_bring_up(SENDER);
	tag_rig_bring_up(RECEIVER);
}

void tag_rig_destroy(void)
{
	MUST(vb_qp_destroy(tag_rig.qps[SENDER]));
	MUST(vb_qp_destroy(tag_rig.qps[RECEIVER]));
	MUST(vb_mr_destroy(tag_rig.messages));
	MUST(vb_mr_destroy(tag_rig.all));
	MUST(vb_srq_destroy(tag_rig.srq));
	MUST(vb_cq_destroy(tag_rig.cq));
	MUST(vb_cq_destroy(tag_rig.send_cq));
	MUST(vb_pd_destroy(tag_rig.pds[SENDER]));
	MUST(vb_pd_destroy(tag_rig.pds[RECEIVER]));
	MUST(vb_nic_destroy(tag_rig.nic));
}

/* --- what must hold --- */

static void check_memory(void)
{
	REQUIRE(!memcmp(tag_area + SECRET, before + SECRET, BUFFERS - SECRET));
	for (uint32_t i = 0; i < BUFFER_COUNT; i++) {
		uint8_t *at = tag_area + BUFFERS + (size_t)i * BUFFER_STEP;
		uint8_t *was = before + BUFFERS + (size_t)i * BUFFER_STEP;

		if (tag_rig.is_taken[i]) {
			REQUIRE(!memchr(at, SECRET_BYTE, BUFFER_LENGTH));
			memcpy(was, at, BUFFER_LENGTH);
		}
		REQUIRE(!memcmp(at, was, BUFFER_STEP));
	}
}

static void close_use(struct use *use)
{
	REQUIRE(use->is_open);
	use->is_open = false;
	tag_rig.is_taken[use->buffer] = false;
}

static struct use *use_of(uint64_t wr_id)
{
	REQUIRE(wr_id < tag_rig.use_count);
	return &tag_rig.uses[wr_id];
}

static void check_message(const struct vb_completion *completion)
{
	struct use *use = use_of(completion->wr_id);
	bool is_match = completion->flags & VB_COMPLETION_TM_MATCH;
	bool is_valid = completion->flags & VB_COMPLETION_TM_DATA_VALID;

	REQUIRE(use->is_open);
	if (completion->status == VB_STATUS_SUCCESS ||
	    completion->status == VB_STATUS_TM_RNDV_INCOMPLETE) {
		REQUIRE(use->is_tag == (is_match || is_valid));
		REQUIRE(completion->byte_length <= BUFFER_LENGTH);
		REQUIRE(!is_match || !use->is_matched);
		REQUIRE(is_match || !is_valid || use->is_matched);
		tag_rig.unexpected += !use->is_tag && completion->opcode == VB_COMPLETION_TM_RECV;
	}
	use->is_matched = true;
	if (is_valid || !use->is_tag || completion->status != VB_STATUS_SUCCESS)
		close_use(use);
}

static void check_completion(const struct vb_completion *completion)
{
	bool is_success = completion->status == VB_STATUS_SUCCESS;

	switch (completion->opcode) {
	case VB_COMPLETION_TM_ADD:
		REQUIRE(is_success && use_of(completion->wr_id)->is_tag);
		return;
	case VB_COMPLETION_TM_DEL:
		REQUIRE(is_success || completion->status == VB_STATUS_TM_ERR);
		if (is_success)
			close_use(use_of(completion->wr_id));
		return;
	case VB_COMPLETION_TM_SYNC:
		REQUIRE(is_success);
		return;
	default:
		check_message(completion);
	}
}

void tag_rig_check(void)
{
	struct vb_completion completion;
	struct vb_event event;

	check_memory();
	while (vb_cq_poll(tag_rig.cq, &completion, 1))
		check_completion(&completion);
	while (vb_cq_poll(tag_rig.send_cq, &completion, 1))
		if (completion.wr_id >= OWN_ID)
			REQUIRE(completion.wr_id == OWN_ID + tag_rig.own_done++);
	REQUIRE(!vb_cq_has_overrun(tag_rig.cq) && !vb_cq_has_overrun(tag_rig.send_cq));
	while (vb_nic_take_events(tag_rig.nic, &event, 1))
		;
}
