/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making queue pairs: what each type needs, what is refused, numbers, and the row that peers may
 * read.
 */
#include "harness.h"

#include "nic/cq.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/srq.h"

enum { ROWS = 16 };

static struct vb_key_row key_rows[ROWS];
static struct vb_qp_row qp_rows[ROWS];

struct world {
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_srq *srq;
	struct vb_srq *xrc_srq;
	struct vb_xrcd *xrcd;
};

static struct world world_begin(void)
{
	struct vb_nic_config config = { .key_rows = key_rows,
					.key_row_count = ROWS,
					.qp_rows = qp_rows,
					.qp_row_count = ROWS,
					.seed = 3 };
	struct vb_srq_init srq_init = { .depth = 4, .sge_max = 1 };
	struct world w;

	EXPECT_EQ(vb_nic_create(&config, &w.nic), VB_OK);
	EXPECT_EQ(vb_pd_create(w.nic, &w.pd), VB_OK);
	EXPECT_EQ(vb_cq_create(w.nic, 16, NULL, &w.cq), VB_OK);
	EXPECT_EQ(vb_xrcd_create(w.nic, &w.xrcd), VB_OK);
	EXPECT_EQ(vb_srq_create(w.pd, &srq_init, &w.srq), VB_OK);
	srq_init.xrcd = w.xrcd;
	srq_init.cq = w.cq;
	EXPECT_EQ(vb_srq_create(w.pd, &srq_init, &w.xrc_srq), VB_OK);
	return w;
}

static void world_end(struct world *w)
{
	EXPECT_EQ(vb_srq_destroy(w->srq), VB_OK);
	EXPECT_EQ(vb_srq_destroy(w->xrc_srq), VB_OK);
	EXPECT_EQ(vb_xrcd_destroy(w->xrcd), VB_OK);
	EXPECT_EQ(vb_cq_destroy(w->cq), VB_OK);
	EXPECT_EQ(vb_pd_destroy(w->pd), VB_OK);
	EXPECT_EQ(vb_nic_destroy(w->nic), VB_OK);
}

static struct vb_qp_init rc_init(const struct world *w)
{
	return (struct vb_qp_init){
		.type = VB_QP_RC,
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.send_depth = 5,
		.recv_depth = 7,
		.send_sge_max = 3,
		.recv_sge_max = 2,
		.inline_max = 33,
		.signal_all = true,
	};
}

static vb_err create_and_destroy(const struct world *w, const struct vb_qp_init *init)
{
	struct vb_qp *qp;
	vb_err err = vb_qp_create(w->pd, init, &qp);

	if (!err)
		EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	return err;
}

TEST(a_new_qp_is_in_RESET_and_has_exactly_what_was_asked_for)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w), capacity = { 0 };
	struct vb_qp *qp;

	EXPECT_EQ(vb_qp_create(w.pd, &init, &qp), VB_OK);
	EXPECT_EQ(vb_qp_state(qp), VB_STATE_RESET);
	EXPECT_EQ(vb_qp_type(qp), VB_QP_RC);
	vb_qp_query_init(qp, &capacity);
	EXPECT_EQ(capacity.send_depth, 5);
	EXPECT_EQ(capacity.recv_depth, 7);
	EXPECT_EQ(capacity.send_sge_max, 3);
	EXPECT_EQ(capacity.recv_sge_max, 2);
	EXPECT_EQ(capacity.inline_max, 33);
	EXPECT(capacity.signal_all);
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	world_end(&w);
}

TEST(a_qp_needs_the_cqs_of_its_type)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);

	init.send_cq = NULL;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init = rc_init(&w);
	init.recv_cq = NULL;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init.type = VB_QP_XRC_SEND;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_OK);
	world_end(&w);
}

TEST(only_an_xrc_recv_qp_has_a_domain)
{
	struct world w = world_begin();
	struct vb_qp_init init = { .type = VB_QP_XRC_RECV };

	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init.xrcd = w.xrcd;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_OK);
	init = rc_init(&w);
	init.xrcd = w.xrcd;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	world_end(&w);
}

TEST(an_xrc_srq_is_not_for_an_rc_qp)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);

	init.srq = w.xrc_srq;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init.srq = w.srq;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_OK);
	world_end(&w);
}

TEST(a_qp_beyond_the_limits_is_EINVAL)
{
	struct world w = world_begin();
	struct vb_nic_limits limits = vb_nic_limits(w.nic);
	struct vb_qp_init init = rc_init(&w);

	init.send_depth = limits.qp_depth + 1;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init = rc_init(&w);
	init.recv_depth = limits.qp_depth + 1;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init = rc_init(&w);
	init.send_sge_max = limits.sge + 1;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init = rc_init(&w);
	init.recv_sge_max = limits.sge + 1;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init = rc_init(&w);
	init.inline_max = limits.inline_length + 1;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	world_end(&w);
}

TEST(a_type_that_does_not_exist_is_refused)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);

	init.type = (enum vb_qp_type)8;
	EXPECT(create_and_destroy(&w, &init) != VB_OK);
	world_end(&w);
}

TEST(only_a_ud_qp_may_ask_for_number_1_and_only_one_has_it)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);
	struct vb_qp *qp;

	init.qpn.v = 1;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	init.type = VB_QP_UD;
	EXPECT_EQ(vb_qp_create(w.pd, &init, &qp), VB_OK);
	EXPECT_EQ(vb_qp_number(qp).v, 1);
	EXPECT(create_and_destroy(&w, &init) != VB_OK);
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	init.qpn.v = 77;
	EXPECT_EQ(create_and_destroy(&w, &init), VB_EINVAL);
	world_end(&w);
}

TEST(a_full_qp_table_is_ENOSPC_and_a_freed_row_is_used_again)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);
	struct vb_qp *qps[ROWS + 1];
	uint32_t count = 0;
	vb_err err;

	while ((err = vb_qp_create(w.pd, &init, &qps[count])) == VB_OK)
		EXPECT(++count <= ROWS);
	EXPECT_EQ(err, VB_ENOSPC);
	EXPECT(count >= ROWS - 2);
	EXPECT_EQ(vb_qp_destroy(qps[5]), VB_OK);
	EXPECT_EQ(vb_qp_create(w.pd, &init, &qps[5]), VB_OK);
	while (count)
		EXPECT_EQ(vb_qp_destroy(qps[--count]), VB_OK);
	world_end(&w);
}

TEST(a_qp_keeps_its_parents_alive)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);
	struct vb_qp *qp;

	init.srq = w.srq;
	EXPECT_EQ(vb_qp_create(w.pd, &init, &qp), VB_OK);
	EXPECT_EQ(vb_pd_destroy(w.pd), VB_EBUSY);
	EXPECT_EQ(vb_cq_destroy(w.cq), VB_EBUSY);
	EXPECT_EQ(vb_srq_destroy(w.srq), VB_EBUSY);
	EXPECT_EQ(vb_nic_destroy(w.nic), VB_EBUSY);
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	world_end(&w);
}

TEST(an_srq_must_be_possible_too)
{
	struct world w = world_begin();
	struct vb_nic_limits limits = vb_nic_limits(w.nic);
	struct vb_srq_init init = { .depth = 0, .sge_max = 1 };
	struct vb_srq *srq;

	EXPECT_EQ(vb_srq_create(w.pd, &init, &srq), VB_EINVAL);
	init.depth = limits.srq_depth + 1;
	EXPECT_EQ(vb_srq_create(w.pd, &init, &srq), VB_EINVAL);
	init.depth = 4;
	init.limit = 5;
	EXPECT_EQ(vb_srq_create(w.pd, &init, &srq), VB_EINVAL);
	init.limit = 0;
	init.sge_max = limits.sge + 1;
	EXPECT_EQ(vb_srq_create(w.pd, &init, &srq), VB_EINVAL);
	init.sge_max = 1;
	init.xrcd = w.xrcd;
	EXPECT_EQ(vb_srq_create(w.pd, &init, &srq), VB_EINVAL);
	world_end(&w);
}

TEST(srq_numbers_differ)
{
	struct world w = world_begin();

	EXPECT(vb_srq_number(w.srq) != vb_srq_number(w.xrc_srq));
	EXPECT(vb_srq_number(w.srq) != 0 && vb_srq_number(w.srq) <= 0xffffff);
	EXPECT_EQ(vb_srq_depth(w.srq), 4);
	EXPECT_EQ(vb_srq_sge_max(w.srq), 1);
	world_end(&w);
}

static const struct vb_qp_row *row_of(vb_qpn number)
{
	for (int i = 0; i < ROWS; i++)
		if (qp_rows[i].qpn == number.v)
			return &qp_rows[i];
	FAIL("no row for QPN 0x%x", number.v);
}

TEST(the_row_of_a_qp_says_whether_and_from_whom_it_takes_requests)
{
	struct world w = world_begin();
	struct vb_qp_init init = rc_init(&w);
	struct vb_gid own = vb_gid_from_ipv4(0x0a000001), peer = vb_gid_from_ipv4(0x0a000002);
	struct vb_qp_attr attr = {
		.state = VB_STATE_INIT,
		.port = 1,
		.access = VB_ACCESS_REMOTE_READ,
		.path_mtu = 1024,
		.destination = { 0x4321 },
		.address = { .destination = peer },
	};
	const struct vb_qp_row *row;
	struct vb_qp *qp;

	EXPECT_EQ(vb_nic_set_gid(w.nic, 0, &own), VB_OK);
	EXPECT_EQ(vb_qp_create(w.pd, &init, &qp), VB_OK);
	row = row_of(vb_qp_number(qp));
	EXPECT_EQ(row->accepts, 0);
	EXPECT_EQ(vb_qp_modify(qp, &attr,
			       VB_ATTR_STATE | VB_ATTR_PORT | VB_ATTR_PKEY_INDEX | VB_ATTR_ACCESS),
		  VB_OK);
	EXPECT_EQ(row->accepts, 0);
	attr.state = VB_STATE_RTR;
	EXPECT_EQ(vb_qp_modify(qp, &attr,
			       VB_ATTR_STATE | VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU |
				       VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN | VB_ATTR_READS_IN |
				       VB_ATTR_MIN_RNR_TIMER),
		  VB_OK);
	EXPECT_EQ(row->accepts, 1);
	EXPECT_EQ(row->peer_qpn, 0x4321);
	EXPECT_EQ(row->access, VB_ACCESS_REMOTE_READ);
	EXPECT(vb_gid_equal(&row->peer, &peer) && vb_gid_equal(&row->local, &own));
	attr.state = VB_STATE_ERR;
	EXPECT_EQ(vb_qp_modify(qp, &attr, VB_ATTR_STATE), VB_OK);
	EXPECT_EQ(row->accepts, 0);
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	EXPECT_EQ(row->qpn, 0);
	EXPECT_EQ(row->generation & 1, 0);
	world_end(&w);
}

TEST(states_and_types_have_names)
{
	EXPECT_STR(vb_qp_state_describe(VB_STATE_SQE), "SQE");
	EXPECT_STR(vb_qp_state_describe((enum vb_qp_state)99), "?");
	EXPECT_STR(vb_qp_type_describe(VB_QP_XRC_RECV), "XRC_RECV");
	EXPECT_STR(vb_qp_type_describe((enum vb_qp_type)99), "?");
	EXPECT_STR(vb_status_describe(VB_STATUS_RETRY_EXC_ERR), "RETRY_EXC_ERR");
	EXPECT_STR(vb_completion_opcode_describe(VB_COMPLETION_FETCH_ADD), "FETCH_ADD");
}

TEST(qpns_come_from_the_range_of_the_configuration_and_go_round_in_it)
{
	struct vb_nic_config config = { .key_rows = key_rows,
					.key_row_count = ROWS,
					.qp_rows = qp_rows,
					.qp_row_count = ROWS,
					.qpn_first = 0x22,
					.qpn_count = 8 };
	struct vb_qp_init init = { .type = VB_QP_RC, .send_depth = 1, .recv_depth = 1 };
	bool seen[8] = { false };
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_cq *cq;

	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT_EQ(vb_pd_create(nic, &pd), VB_OK);
	EXPECT_EQ(vb_cq_create(nic, 4, NULL, &cq), VB_OK);
	init.send_cq = init.recv_cq = cq;
	for (int i = 0; i < 24; i++) {
		struct vb_qp *qp;
		uint32_t index;

		EXPECT_EQ(vb_qp_create(pd, &init, &qp), VB_OK);
		index = vb_qp_number(qp).v - 0x22;
		EXPECT(index < 8);
		EXPECT(i >= 8 || !seen[index]);
		seen[index] = true;
		EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	}
	EXPECT_EQ(vb_cq_destroy(cq), VB_OK);
	EXPECT_EQ(vb_pd_destroy(pd), VB_OK);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}
