/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The n-th allocation of a call fails, for n = 1, 2, … until the call needs fewer than that. Each
 * time the call must return VB_ENOMEM, leave no memory behind, and leave an adapter that still
 * sends. The linker wraps vb_heap_alloc() and vb_heap_free() (test_allocation_failure.link).
 */
#include "harness.h"
#include "support_allocator.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"

#include <string.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

/* --- an adapter that talks to itself ---------------------------------------------------------- */

enum {
	ROWS = 64,
	TIMERS_FIRST = 16, /* the initial room of the timer heap */
	MEMBERS_FIRST = 4, /* and of a multicast group */
	EXTRA_MAX = 32,
	MEMORY_LENGTH = 256,
	MESSAGE_LENGTH = 64,
	DEVICE_MEMORY_LENGTH = 4096,
};

struct rig {
	struct vb_nic *nic;
	struct vb_gid gid;
	struct vb_pd *pd;
	struct vb_xrcd *xrcd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp[2]; /* connected to each other */
	uint8_t message_count;
	/* Objects that a test makes. */
	struct vb_nic *made_nic;
	struct vb_pd *made_pd;
	struct vb_xrcd *made_xrcd;
	struct vb_mr *made_mr;
	struct vb_dm *dm;
	struct vb_mw *mw;
	struct vb_cq *made_cq;
	struct vb_srq *srq;
	struct vb_qp_init qp_init;
	struct vb_qp *made_qp;
	struct vb_ah *ah;
	struct vb_cq *extra_cqs[EXTRA_MAX];
	struct vb_qp *extra_qps[EXTRA_MAX];
};

static struct vb_key_row key_rows[ROWS];
static struct vb_qp_row qp_rows[ROWS];
static uint8_t memory[MEMORY_LENGTH];
static uint8_t zero_page[4096];
static _Alignas(4096) uint8_t device_memory[DEVICE_MEMORY_LENGTH];

static struct vb_nic_config config_of(struct vb_key_row *keys, struct vb_qp_row *qps)
{
	return (struct vb_nic_config){
		.key_rows = keys,
		.key_row_count = ROWS,
		.qp_rows = qps,
		.qp_row_count = ROWS,
		.seed = 1,
		.zero_page = (uintptr_t)zero_page,
		.device_memory = (uintptr_t)device_memory,
		.device_memory_length = DEVICE_MEMORY_LENGTH,
	};
}

static struct vb_qp_init qp_init_of(const struct rig *rig, enum vb_qp_type type)
{
	return (struct vb_qp_init){
		.type = type,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.xrcd = type == VB_QP_XRC_RECV ? rig->xrcd : NULL,
		.send_depth = 4,
		.recv_depth = 4,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.inline_max = 16,
	};
}

static vb_err to_init(struct vb_qp *qp)
{
	struct vb_qp_attr attr = { .state = VB_STATE_INIT,
				   .port = 1,
				   .access = VB_ACCESS_REMOTE_WRITE };
	uint32_t mask = VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT;

	return vb_qp_modify(qp, &attr,
			    mask | (vb_qp_type(qp) == VB_QP_UD ? VB_ATTR_QKEY : VB_ATTR_ACCESS));
}

static vb_err to_rtr(const struct rig *rig, struct vb_qp *qp, vb_qpn peer)
{
	struct vb_qp_attr attr = {
		.state = VB_STATE_RTR,
		.address = { .destination = rig->gid },
		.path_mtu = 1024,
		.destination = peer,
		.reads_in = 4,
	};

	return vb_qp_modify(qp, &attr,
			    VB_ATTR_STATE | VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU |
				    VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN | VB_ATTR_READS_IN |
				    VB_ATTR_MIN_RNR_TIMER);
}

static vb_err to_rts(struct vb_qp *qp)
{
	struct vb_qp_attr attr = { .state = VB_STATE_RTS, .timeout = 14, .reads_out = 4 };

	return vb_qp_modify(qp, &attr,
			    VB_ATTR_STATE | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT |
				    VB_ATTR_RNR_RETRY | VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT);
}

static struct rig rig_create(void)
{
	struct vb_nic_config config = config_of(key_rows, qp_rows);
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)memory,
		.length = MEMORY_LENGTH,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_ZERO_BASED,
	};
	struct rig rig = { .gid = vb_gid_from_ipv4(0x7f000001) };

	MUST(vb_nic_create(&config, &rig.nic));
	MUST(vb_nic_set_gid(rig.nic, 0, &rig.gid));
	MUST(vb_pd_create(rig.nic, &rig.pd));
	MUST(vb_xrcd_create(rig.nic, &rig.xrcd));
	MUST(vb_cq_create(rig.nic, 16, NULL, &rig.cq));
	MUST(vb_mr_create(rig.pd, &mr_init, &rig.mr));
	for (int i = 0; i < 2; i++) {
		struct vb_qp_init init = qp_init_of(&rig, VB_QP_RC);

		MUST(vb_qp_create(rig.pd, &init, &rig.qp[i]));
	}
	for (int i = 0; i < 2; i++) {
		MUST(to_init(rig.qp[i]));
		MUST(to_rtr(&rig, rig.qp[i], vb_qp_number(rig.qp[!i])));
		MUST(to_rts(rig.qp[i]));
	}
	return rig;
}

static void rig_destroy(struct rig *rig)
{
	MUST(vb_qp_destroy(rig->qp[0]));
	MUST(vb_qp_destroy(rig->qp[1]));
	MUST(vb_mr_destroy(rig->mr));
	MUST(vb_cq_destroy(rig->cq));
	MUST(vb_xrcd_destroy(rig->xrcd));
	MUST(vb_pd_destroy(rig->pd));
	MUST(vb_nic_destroy(rig->nic));
	EXPECT_EQ(live_count, 0);
}

/* Gives the adapter its own packets until it sends no more. */
static void run(struct rig *rig)
{
	static struct vb_slot slot;
	uint8_t bytes[2048];

	while (vb_nic_transmit(rig->nic, 0, &slot, 1)) {
		struct vb_frame frame = { .path.ip = slot.path.ip, .head = { bytes, slot.length } };

		EXPECT(vb_slot_gather(&slot, bytes));
		vb_nic_receive(rig->nic, 0, &frame, 1);
	}
}

static void expect_working(struct rig *rig)
{
	struct vb_sge from = { 0, MESSAGE_LENGTH, vb_mr_key(rig->mr) };
	struct vb_sge to = { MEMORY_LENGTH / 2, MESSAGE_LENGTH, vb_mr_key(rig->mr) };
	struct vb_recv_request recv = { .wr_id = 1, .sges = &to, .sge_count = 1 };
	struct vb_send_request send = {
		.wr_id = 2,
		.opcode = VB_WR_SEND,
		.flags = VB_SEND_SIGNALED,
		.sges = &from,
		.sge_count = 1,
	};
	struct vb_completion completions[3];

	memset(memory, ++rig->message_count, MEMORY_LENGTH / 2);
	MUST(vb_qp_post_recv(rig->qp[1], &recv));
	MUST(vb_qp_post_send(rig->qp[0], &send));
	vb_qp_publish_and_ring(rig->qp[0]);
	run(rig);
	EXPECT_EQ(vb_cq_poll(rig->cq, completions, 3), 2);
	EXPECT_EQ(completions[0].wr_id, 1);
	EXPECT_EQ(completions[0].status, VB_STATUS_SUCCESS);
	EXPECT_EQ(completions[1].wr_id, 2);
	EXPECT_EQ(completions[1].status, VB_STATUS_SUCCESS);
	EXPECT_MEM(memory, memory + MEMORY_LENGTH / 2, MESSAGE_LENGTH);
}

/* Lets each allocation of `make` fail, one after the other; then `make` succeeds. */
static void fail_each(struct rig *rig, vb_err (*make)(struct rig *rig))
{
	for (uint32_t n = 1;; n++) {
		int64_t before = live_count;
		vb_err err;

		fails_at = n;
		has_failed = false;
		err = make(rig);
		fails_at = 0;
		if (!has_failed) {
			EXPECT_EQ(err, VB_OK);
			EXPECT(n > 1); /* otherwise nothing was tested */
			break;
		}
		EXPECT_EQ(err, VB_ENOMEM);
		EXPECT_EQ(live_count, before);
		expect_working(rig);
	}
	expect_working(rig);
}

/* --- what is made ----------------------------------------------------------------------------- */

static vb_err make_nic(struct rig *rig)
{
	static struct vb_key_row other_keys[ROWS];
	static struct vb_qp_row other_qps[ROWS];
	struct vb_nic_config config = config_of(other_keys, other_qps);

	return vb_nic_create(&config, &rig->made_nic);
}

static vb_err make_pd(struct rig *rig)
{
	return vb_pd_create(rig->nic, &rig->made_pd);
}

static vb_err make_xrcd(struct rig *rig)
{
	return vb_xrcd_create(rig->nic, &rig->made_xrcd);
}

static vb_err make_mr(struct rig *rig)
{
	struct vb_mr_init init = { .address = (uintptr_t)memory, .length = 8 };

	return vb_mr_create(rig->pd, &init, &rig->made_mr);
}

static vb_err make_null_mr(struct rig *rig)
{
	return vb_mr_create_null(rig->pd, &rig->made_mr);
}

static vb_err make_dm(struct rig *rig)
{
	return vb_dm_create(rig->nic, DEVICE_MEMORY_LENGTH, 12, &rig->dm);
}

static vb_err make_mr_on_dm(struct rig *rig)
{
	struct vb_mr_init init = { .length = 64, .access = VB_ACCESS_ZERO_BASED };

	return vb_mr_create_on_dm(rig->pd, rig->dm, &init, &rig->made_mr);
}

static vb_err make_mw(struct rig *rig)
{
	return vb_mw_create(rig->pd, VB_MW_TYPE_2, &rig->mw);
}

static vb_err make_ah(struct rig *rig)
{
	return vb_ah_create(rig->pd, &(struct vb_address){ .destination = rig->gid }, &rig->ah);
}

static vb_err make_cq(struct rig *rig)
{
	return vb_cq_create(rig->nic, 5, NULL, &rig->made_cq);
}

static vb_err resize_cq(struct rig *rig)
{
	return vb_cq_resize(rig->cq, vb_cq_depth(rig->cq) * 2);
}

static vb_err make_srq(struct rig *rig)
{
	struct vb_srq_init init = { .depth = 4, .sge_max = 2 };

	return vb_srq_create(rig->pd, &init, &rig->srq);
}

static vb_err make_xrc_srq(struct rig *rig)
{
	struct vb_srq_init init = { .depth = 4, .xrcd = rig->xrcd, .cq = rig->cq };

	return vb_srq_create(rig->pd, &init, &rig->srq);
}

static vb_err make_tag_srq(struct rig *rig)
{
	struct vb_srq_init init = { .depth = 4, .cq = rig->cq, .tag_count = 3, .tag_depth = 5 };

	return vb_srq_create(rig->pd, &init, &rig->srq);
}

static vb_err resize_srq(struct rig *rig)
{
	return vb_srq_resize(rig->srq, vb_srq_depth(rig->srq) * 2);
}

static vb_err make_qp(struct rig *rig)
{
	return vb_qp_create(rig->pd, &rig->qp_init, &rig->made_qp);
}

static vb_err move_to_rtr(struct rig *rig)
{
	return to_rtr(rig, rig->made_qp, (vb_qpn){ 2 });
}

static vb_err raise_reads_in(struct rig *rig)
{
	struct vb_qp_attr attr = { .reads_in = 8 };

	return vb_qp_modify(rig->made_qp, &attr, VB_ATTR_READS_IN);
}

static vb_err attach(struct rig *rig)
{
	struct vb_gid group = vb_gid_from_ipv4(0xe0000005);

	return vb_qp_attach(rig->made_qp, &group);
}

static vb_err detach(struct vb_qp *qp)
{
	struct vb_gid group = vb_gid_from_ipv4(0xe0000005);

	return vb_qp_detach(qp, &group);
}

/* --- the tests -------------------------------------------------------------------------------- */

TEST(an_adapter_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_nic);
	MUST(vb_nic_destroy(rig.made_nic));
	rig_destroy(&rig);
}

TEST(a_domain_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_pd);
	fail_each(&rig, make_xrcd);
	MUST(vb_pd_destroy(rig.made_pd));
	MUST(vb_xrcd_destroy(rig.made_xrcd));
	rig_destroy(&rig);
}

TEST(a_region_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_mr);
	MUST(vb_mr_destroy(rig.made_mr));
	fail_each(&rig, make_null_mr);
	MUST(vb_mr_destroy(rig.made_mr));
	rig_destroy(&rig);
}

TEST(device_memory_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_dm); /* all of it: what a failed call kept would be missing now */
	fail_each(&rig, make_mr_on_dm);
	MUST(vb_mr_destroy(rig.made_mr));
	MUST(vb_dm_destroy(rig.dm)); /* would fail if a failed call had counted a region */
	rig_destroy(&rig);
}

TEST(a_window_or_an_address_handle_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_mw);
	fail_each(&rig, make_ah);
	MUST(vb_mw_destroy(rig.mw));
	MUST(vb_ah_destroy(rig.ah));
	rig_destroy(&rig);
}

TEST(a_completion_queue_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_cq);
	MUST(vb_cq_destroy(rig.made_cq));
	rig_destroy(&rig);
}

TEST(a_completion_queue_that_cannot_grow_stays_as_it_is)
{
	struct rig rig = rig_create();

	fail_each(&rig, resize_cq);
	EXPECT_EQ(vb_cq_depth(rig.cq), 32);
	rig_destroy(&rig);
}

/* Fills the sixteen places of the timer heap: the next object makes it grow. */
static void fill_timers(struct rig *rig)
{
	for (int i = 0; i < TIMERS_FIRST - 3; i++) /* the rig has one CQ and two QPs */
		MUST(vb_cq_create(rig->nic, 1, NULL, &rig->extra_cqs[i]));
}

static void drain_timers(struct rig *rig)
{
	for (int i = 0; i < TIMERS_FIRST - 3; i++)
		MUST(vb_cq_destroy(rig->extra_cqs[i]));
}

TEST(a_completion_queue_whose_timer_finds_no_room_leaves_nothing)
{
	struct rig rig = rig_create();

	fill_timers(&rig);
	fail_each(&rig, make_cq);
	MUST(vb_cq_destroy(rig.made_cq));
	drain_timers(&rig);
	rig_destroy(&rig);
}

TEST(a_queue_pair_whose_timer_finds_no_room_leaves_nothing)
{
	struct rig rig = rig_create();

	fill_timers(&rig);
	rig.qp_init = qp_init_of(&rig, VB_QP_RC);
	fail_each(&rig, make_qp);
	MUST(vb_qp_destroy(rig.made_qp));
	drain_timers(&rig);
	rig_destroy(&rig);
}

TEST(a_shared_receive_queue_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	fail_each(&rig, make_srq);
	MUST(vb_srq_destroy(rig.srq));
	fail_each(&rig, make_xrc_srq);
	MUST(vb_srq_destroy(rig.srq));
	fail_each(&rig, make_tag_srq);
	MUST(vb_srq_destroy(rig.srq));
	rig_destroy(&rig);
}

TEST(a_shared_receive_queue_that_cannot_grow_stays_as_it_is)
{
	struct rig rig = rig_create();

	MUST(make_srq(&rig));
	fail_each(&rig, resize_srq);
	EXPECT_EQ(vb_srq_depth(rig.srq), 8);
	MUST(vb_srq_destroy(rig.srq));
	rig_destroy(&rig);
}

TEST(a_queue_pair_that_cannot_be_made_leaves_nothing)
{
	static const enum vb_qp_type types[] = { VB_QP_RC, VB_QP_UC, VB_QP_UD, VB_QP_XRC_SEND,
						 VB_QP_XRC_RECV };
	struct rig rig = rig_create();

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		rig.qp_init = qp_init_of(&rig, types[i]);
		fail_each(&rig, make_qp);
		EXPECT_EQ(vb_pd_destroy(rig.pd), VB_EBUSY);
		MUST(vb_qp_destroy(rig.made_qp));
	}
	rig_destroy(&rig);
}

TEST(a_queue_pair_with_a_shared_receive_queue_that_cannot_be_made_leaves_nothing)
{
	static const enum vb_qp_type types[] = { VB_QP_RC, VB_QP_UC, VB_QP_UD };
	struct rig rig = rig_create();

	MUST(make_srq(&rig));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		rig.qp_init = qp_init_of(&rig, types[i]);
		rig.qp_init.srq = rig.srq;
		fail_each(&rig, make_qp);
		EXPECT_EQ(vb_srq_destroy(rig.srq), VB_EBUSY);
		MUST(vb_qp_destroy(rig.made_qp));
	}
	MUST(vb_srq_destroy(rig.srq));
	MUST(make_tag_srq(&rig));
	rig.qp_init = qp_init_of(&rig, VB_QP_RC);
	rig.qp_init.srq = rig.srq;
	fail_each(&rig, make_qp);
	EXPECT_EQ(vb_srq_destroy(rig.srq), VB_EBUSY);
	MUST(vb_qp_destroy(rig.made_qp));
	MUST(vb_srq_destroy(rig.srq));
	rig_destroy(&rig);
}

TEST(a_move_to_rtr_without_memory_changes_nothing)
{
	struct rig rig = rig_create();
	struct vb_qp_attr attr;

	rig.qp_init = qp_init_of(&rig, VB_QP_RC);
	MUST(make_qp(&rig));
	MUST(to_init(rig.made_qp));
	fails_at = 1;
	EXPECT_EQ(move_to_rtr(&rig), VB_ENOMEM);
	vb_qp_query(rig.made_qp, &attr);
	EXPECT_EQ(attr.state, VB_STATE_INIT);
	EXPECT_EQ(attr.reads_in, 0);
	EXPECT_EQ(attr.destination.v, 0);
	fail_each(&rig, move_to_rtr);
	EXPECT_EQ(vb_qp_state(rig.made_qp), VB_STATE_RTR);
	MUST(vb_qp_destroy(rig.made_qp));
	rig_destroy(&rig);
}

TEST(more_room_for_reads_without_memory_changes_nothing)
{
	struct rig rig = rig_create();
	struct vb_qp_attr attr = { .state = VB_STATE_SQD };

	rig.qp_init = qp_init_of(&rig, VB_QP_RC);
	MUST(make_qp(&rig));
	MUST(to_init(rig.made_qp));
	MUST(move_to_rtr(&rig));
	MUST(to_rts(rig.made_qp));
	MUST(vb_qp_modify(rig.made_qp, &attr, VB_ATTR_STATE));
	fails_at = 1;
	EXPECT_EQ(raise_reads_in(&rig), VB_ENOMEM);
	vb_qp_query(rig.made_qp, &attr);
	EXPECT_EQ(attr.reads_in, 4);
	fail_each(&rig, raise_reads_in);
	MUST(vb_qp_destroy(rig.made_qp));
	rig_destroy(&rig);
}

TEST(a_multicast_group_that_cannot_be_made_leaves_nothing)
{
	struct rig rig = rig_create();

	rig.qp_init = qp_init_of(&rig, VB_QP_UD);
	MUST(make_qp(&rig));
	fails_at = 1;
	EXPECT_EQ(attach(&rig), VB_ENOMEM);
	EXPECT_EQ(detach(rig.made_qp), VB_EINVAL); /* the QP is not a member */
	fail_each(&rig, attach);
	MUST(detach(rig.made_qp));
	MUST(vb_qp_destroy(rig.made_qp));
	rig_destroy(&rig);
}

TEST(a_multicast_group_that_cannot_grow_keeps_its_members)
{
	struct rig rig = rig_create();

	rig.qp_init = qp_init_of(&rig, VB_QP_UD);
	for (int i = 0; i <= MEMBERS_FIRST; i++) {
		MUST(make_qp(&rig));
		rig.extra_qps[i] = rig.made_qp;
		if (i < MEMBERS_FIRST)
			MUST(attach(&rig));
	}
	fails_at = 1;
	EXPECT_EQ(attach(&rig), VB_ENOMEM);
	EXPECT_EQ(detach(rig.made_qp), VB_EINVAL);
	fail_each(&rig, attach);
	for (int i = 0; i <= MEMBERS_FIRST; i++) {
		MUST(detach(rig.extra_qps[i]));
		MUST(vb_qp_destroy(rig.extra_qps[i]));
	}
	rig_destroy(&rig);
}
