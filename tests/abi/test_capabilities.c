/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capabilities that the device reports are real. Each capability that it advertises has a row
 * here, with a function that uses it or the name of the test that does; limits can be reached and
 * not exceeded; and what is not advertised answers EOPNOTSUPP.
 */
#include "harness.h"
#include "support_device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_device_attr_ex attr;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a; /* RC, connected to b */
static struct ibv_qp *b;
static char memory[4096];

static void start(void)
{
	context = open_device();
	EXPECT_EQ(ibv_query_device_ex(context, NULL, &attr), 0);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	mr = register_all(pd, memory, sizeof(memory));
	a = make_qp(pd, cq, IBV_QPT_RC);
	b = make_qp(pd, cq, IBV_QPT_RC);
	connect_pair(a, b);
}

static void finish(void)
{
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

static struct ibv_port_attr port(void)
{
	struct ibv_port_attr result;

	EXPECT_EQ(ibv_query_port(context, 1, &result), 0);
	return result;
}

/* --- flags --- */

static void check_state_modifier(void)
{
	struct ibv_qp_attr modify = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTS };

	EXPECT_EQ(ibv_modify_qp(a, &modify, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

static void check_image_guid(void)
{
	EXPECT(attr.orig_attr.sys_image_guid);
	EXPECT_EQ(ibv_get_device_guid(context->device), attr.orig_attr.node_guid);
}

static void check_rnr(void)
{
	post_send(a, mr, 0, 64); /* there is no receive yet */
	post_receive(b, mr, 1024, 64);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
}

static void check_srq_resize(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_srq_attr changed = { .max_wr = 100 };

	EXPECT_EQ(ibv_modify_srq(srq, &changed, IBV_SRQ_MAX_WR), 0);
	EXPECT_EQ(ibv_query_srq(srq, &changed), 0);
	EXPECT_EQ(changed.max_wr, 100);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

static void write_through(uint32_t rkey)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(a);

	qp->wr_id = 5;
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, rkey, (uintptr_t)memory + 1024);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 64);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_success(cq, 5);
}

static void check_window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .wr_id = 4,
				    .bind_info = { mr, (uintptr_t)memory + 1024, 64,
						   IBV_ACCESS_REMOTE_WRITE } };

	EXPECT_EQ(ibv_bind_mw(b, mw, &bind), 0);
	expect_success(cq, 4);
	write_through(mw->rkey);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

static void check_window_2b(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = { mr, (uintptr_t)memory + 1024, 64,
					 IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(b);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	qp->wr_id = 4;
	ibv_wr_start(qp);
	ibv_wr_bind_mw(qp, mw, rkey, &info);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_success(cq, 4);
	write_through(rkey);
	ibv_wr_start(qp);
	ibv_wr_local_inv(qp, rkey);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_success(cq, 4);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

static void check_qkey_counter(void)
{
	struct ibv_qp *ud = make_qp(pd, cq, IBV_QPT_UD);
	struct ibv_ah_attr address = loopback_address();
	struct ibv_ah *ah = ibv_create_ah(pd, &address);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ud);
	uint32_t before = port().qkey_viol_cntr;

	set_ready(ud);
	qp->wr_id = 3;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, ah, ud->qp_num, QKEY + 1);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_success(cq, 3);
	while (port().qkey_viol_cntr == before) /* until the packet has come back */
		;
	EXPECT_EQ(port().qkey_viol_cntr, before + 1);
	EXPECT_EQ(ibv_destroy_qp(ud), 0);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

static const struct {
	unsigned int flag;
	void (*check)(void); /* or: */
	const char *elsewhere;
} flags[] = {
	{ IBV_DEVICE_BAD_PKEY_CNTR, NULL, "conversation/test_drops" },
	{ IBV_DEVICE_BAD_QKEY_CNTR, check_qkey_counter, NULL },
	{ IBV_DEVICE_CURR_QP_STATE_MOD, check_state_modifier, NULL },
	{ IBV_DEVICE_PORT_ACTIVE_EVENT, NULL, "live/test_device" },
	{ IBV_DEVICE_SYS_IMAGE_GUID, check_image_guid, NULL },
	{ IBV_DEVICE_RC_RNR_NAK_GEN, check_rnr, NULL },
	{ IBV_DEVICE_SRQ_RESIZE, check_srq_resize, NULL },
	{ IBV_DEVICE_MEM_WINDOW, check_window, NULL },
	{ IBV_DEVICE_MEM_WINDOW_TYPE_2B, check_window_2b, NULL },
	{ IBV_DEVICE_MEM_MGT_EXTENSIONS, check_window_2b, NULL }, /* local invalidation */
	{ IBV_DEVICE_XRC, NULL, "abi/test_objects" },
};

TEST(each_flag_of_the_device_stands_for_something_that_works)
{
	unsigned int known = 0;

	start();
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		known |= flags[i].flag;
		if (flags[i].check)
			flags[i].check();
	}
	EXPECT_EQ(attr.orig_attr.device_cap_flags, known);
	EXPECT_EQ(attr.device_cap_flags_ex, known);
	finish();
}

/* --- limits --- */

static bool can_create_cq(int depth)
{
	struct ibv_cq *made = ibv_create_cq(context, depth, NULL, NULL, 0);

	return made && !ibv_destroy_cq(made);
}

static bool can_create_qp(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	return made && !ibv_destroy_qp(made);
}

static bool can_create_srq(uint32_t depth, uint32_t sges)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = depth, .max_sge = sges } };
	struct ibv_srq *made = ibv_create_srq(pd, &init);

	return made && !ibv_destroy_srq(made);
}

static bool can_allocate_dm(size_t length)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = length };
	struct ibv_dm *made = ibv_alloc_dm(context, &dm_attr);

	return made && !ibv_free_dm(made);
}

TEST(limits_are_reached_and_not_exceeded)
{
	uint32_t depth, sges;

	start();
	depth = (uint32_t)attr.orig_attr.max_qp_wr;
	sges = (uint32_t)attr.orig_attr.max_sge;
	EXPECT(can_create_cq(attr.orig_attr.max_cqe) && !can_create_cq(attr.orig_attr.max_cqe + 1));
	EXPECT(can_create_qp((struct ibv_qp_cap){ depth, depth, sges, sges, 0 }));
	EXPECT(!can_create_qp((struct ibv_qp_cap){ depth + 1, 1, 1, 1, 0 }));
	EXPECT(!can_create_qp((struct ibv_qp_cap){ 1, depth + 1, 1, 1, 0 }));
	EXPECT(!can_create_qp((struct ibv_qp_cap){ 1, 1, sges + 1, 1, 0 }));
	EXPECT(!can_create_qp((struct ibv_qp_cap){ 1, 1, 1, sges + 1, 0 }));
	depth = (uint32_t)attr.orig_attr.max_srq_wr;
	sges = (uint32_t)attr.orig_attr.max_srq_sge;
	EXPECT(can_create_srq(depth, sges) && !can_create_srq(depth + 1, 1));
	EXPECT(!can_create_srq(1, sges + 1));
	EXPECT(can_allocate_dm(attr.max_dm_size) && !can_allocate_dm(attr.max_dm_size + 1));
	finish();
}

TEST(as_many_reads_as_the_device_says_can_be_asked_for)
{
	struct ibv_qp_attr modify = { .qp_state = IBV_QPS_RTR,
				      .path_mtu = IBV_MTU_1024,
				      .ah_attr = loopback_address() };
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp *qp;

	start();
	qp = make_qp(pd, cq, IBV_QPT_RC);
	modify.max_dest_rd_atomic = (uint8_t)(attr.orig_attr.max_qp_rd_atom + 1);
	EXPECT_EQ(ibv_modify_qp(qp, &modify, mask), EINVAL);
	modify.max_dest_rd_atomic = (uint8_t)attr.orig_attr.max_qp_rd_atom;
	EXPECT_EQ(ibv_modify_qp(qp, &modify, mask), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	finish();
}

TEST(the_port_is_what_it_says)
{
	struct ibv_port_attr p;
	union ibv_gid gid;
	__be16 pkey;

	start();
	p = port();
	EXPECT_EQ(p.state, IBV_PORT_ACTIVE);
	EXPECT_EQ(p.link_layer, IBV_LINK_LAYER_ETHERNET);
	EXPECT_EQ(p.flags, IBV_QPF_GRH_REQUIRED);
	EXPECT(p.active_mtu <= p.max_mtu && p.active_mtu >= IBV_MTU_256);
	EXPECT(p.active_width && p.active_speed);
	EXPECT_EQ(ibv_query_gid(context, 1, p.gid_tbl_len - 1, &gid), 0);
	EXPECT_EQ(ibv_query_gid(context, 1, p.gid_tbl_len, &gid), -1);
	EXPECT_EQ(ibv_query_pkey(context, 1, p.pkey_tbl_len - 1, &pkey), 0);
	EXPECT_EQ(ibv_query_pkey(context, 1, p.pkey_tbl_len, &pkey), -1);
	EXPECT_EQ(attr.orig_attr.max_pkeys, p.pkey_tbl_len);
	EXPECT_EQ(attr.orig_attr.phys_port_cnt, attr.phys_port_cnt_ex);
	EXPECT(attr.orig_attr.vendor_id && attr.orig_attr.vendor_id != 0xffffff);
	finish();
}

TEST(completions_can_be_moderated_as_far_as_the_device_says)
{
	struct ibv_modify_cq_attr modify = { .attr_mask = IBV_CQ_ATTR_MODERATE };

	start();
	modify.moderate.cq_count = attr.cq_mod_caps.max_cq_count;
	modify.moderate.cq_period = attr.cq_mod_caps.max_cq_period;
	EXPECT_EQ(ibv_modify_cq(cq, &modify), 0);
	finish();
}

/* --- what is not supported --- */

static int create_qp_of(struct ibv_qp_init_attr_ex init)
{
	init.send_cq = init.recv_cq = cq;
	init.pd = pd;
	init.comp_mask |= IBV_QP_INIT_ATTR_PD;
	return ibv_create_qp_ex(context, &init) ? 0 : errno;
}

static int create_cq_with(uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 1, .wc_flags = wc_flags };

	return ibv_create_cq_ex(context, &init) ? 0 : errno;
}

static int modify_with(struct ibv_qp_attr modify, int mask)
{
	modify.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(a, &modify, IBV_QP_STATE | mask);
}

TEST(queue_pairs_do_only_what_is_advertised)
{
	struct ibv_qp_open_attr open_attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM |
							   IBV_QP_OPEN_ATTR_XRCD |
							   IBV_QP_OPEN_ATTR_TYPE,
					      .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_xrcd_init_attr xrcd_attr = { .comp_mask = 3, .fd = -1, .oflags = O_CREAT };
	struct ibv_xrcd *xrcd;
	struct ibv_ece ece = { 0 };

	start();
	EXPECT_EQ(attr.raw_packet_caps, 0);
	EXPECT_EQ(create_qp_of((struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_RAW_PACKET }),
		  EOPNOTSUPP);
	EXPECT_EQ(create_qp_of((struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_DRIVER }),
		  EOPNOTSUPP);
	EXPECT_EQ(create_qp_of((struct ibv_qp_init_attr_ex){
			  .qp_type = IBV_QPT_UD,
			  .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
			  .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB }),
		  EOPNOTSUPP);
	EXPECT_EQ(attr.tso_caps.max_tso, 0);
	EXPECT_EQ(create_qp_of((struct ibv_qp_init_attr_ex){
			  .qp_type = IBV_QPT_UD,
			  .comp_mask = IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
			  .max_tso_header = 64 }),
		  EOPNOTSUPP);
	EXPECT_EQ(modify_with((struct ibv_qp_attr){ .path_mig_state = IBV_MIG_ARMED },
			      IBV_QP_PATH_MIG_STATE),
		  EOPNOTSUPP);
	EXPECT_EQ(modify_with((struct ibv_qp_attr){ .alt_port_num = 1 }, IBV_QP_ALT_PATH),
		  EOPNOTSUPP);
	EXPECT_EQ(modify_with((struct ibv_qp_attr){ .cap = { .max_send_wr = 99 } }, IBV_QP_CAP),
		  EOPNOTSUPP);
	EXPECT_EQ(attr.packet_pacing_caps.qp_rate_limit_max, 0);
	EXPECT_EQ(modify_with((struct ibv_qp_attr){ .rate_limit = 1 }, IBV_QP_RATE_LIMIT),
		  EOPNOTSUPP);
	EXPECT_EQ(ibv_modify_qp_rate_limit(a, &(struct ibv_qp_rate_limit_attr){ 0 }), EOPNOTSUPP);
	EXPECT_EQ(ibv_set_ece(a, &ece), EOPNOTSUPP);
	EXPECT_EQ(ibv_query_ece(a, &ece), EOPNOTSUPP);
	xrcd = ibv_open_xrcd(context, &xrcd_attr);
	open_attr.xrcd = xrcd;
	EXPECT(!ibv_open_qp(context, &open_attr));
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	finish();
}

TEST(other_objects_do_only_what_is_advertised)
{
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
	struct ibv_rwq_ind_table_init_attr table = { 0 };
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct ibv_flow_action_esp_attr esp = { 0 };

	start();
	EXPECT_EQ(attr.max_wq_type_rq, 0);
	wq.pd = pd;
	wq.cq = cq;
	EXPECT(!ibv_create_wq(context, &wq) && errno == EOPNOTSUPP);
	EXPECT_EQ(attr.rss_caps.supported_qpts, 0);
	EXPECT(!ibv_create_rwq_ind_table(context, &table) && errno == EOPNOTSUPP);
	EXPECT(!ibv_create_counters(context, &counters) && errno == EOPNOTSUPP);
	EXPECT(!ibv_create_flow(a, &flow) && errno == EOPNOTSUPP);
	EXPECT(!ibv_create_flow_action_esp(context, &esp) && errno == EOPNOTSUPP);
	EXPECT(!ibv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0) && errno == EOPNOTSUPP);
	EXPECT_EQ(create_cq_with(IBV_WC_EX_WITH_CVLAN), EOPNOTSUPP);
	EXPECT_EQ(create_cq_with(IBV_WC_EX_WITH_FLOW_TAG), EOPNOTSUPP);
	finish();
}
