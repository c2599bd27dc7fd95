/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter as an object: which configurations are valid, the port's tables, the limits, and full
 * tables.
 */
#include "harness.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <stdlib.h>

enum { ROWS = 16 };

struct tables {
	struct vb_key_row keys[ROWS];
	struct vb_qp_row qps[ROWS];
};

static struct vb_nic_config config_of(struct tables *tables)
{
	return (struct vb_nic_config){
		.key_rows = tables->keys,
		.key_row_count = ROWS,
		.qp_rows = tables->qps,
		.qp_row_count = ROWS,
		.seed = 1,
		.qpn_first = 2,
	};
}

static vb_err create_and_destroy(const struct vb_nic_config *config)
{
	struct vb_nic *nic;
	vb_err err = vb_nic_create(config, &nic);

	if (!err)
		EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
	return err;
}

TEST(a_configuration_needs_its_tables)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);

	EXPECT_EQ(create_and_destroy(&config), VB_OK);
	config.key_rows = NULL;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
	config = config_of(&tables);
	config.qp_rows = NULL;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
}

TEST(table_sizes_are_powers_of_two)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);

	config.key_row_count = 12;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
	config = config_of(&tables);
	config.qp_row_count = 0;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
}

TEST(the_range_of_qpns_ends_before_the_multicast_number)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);

	config.qpn_first = 0xfffff0;
	config.qpn_count = 0x10;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
	config.qpn_count = 0xf;
	EXPECT_EQ(create_and_destroy(&config), VB_OK);
}

TEST(the_gid_table_takes_entries_within_it)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_gid gid = vb_gid_from_ipv4(0x0a000001);
	struct vb_nic *nic;

	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT(vb_gid_is_zero(vb_nic_gid(nic, 5)));
	EXPECT_EQ(vb_nic_set_gid(nic, 5, &gid), VB_OK);
	EXPECT(vb_gid_equal(vb_nic_gid(nic, 5), &gid));
	EXPECT_EQ(vb_nic_set_gid(nic, VB_GID_COUNT, &gid), VB_EINVAL);
	EXPECT(!vb_nic_gid(nic, VB_GID_COUNT));
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}

TEST(the_pkey_table_begins_with_the_default_and_is_otherwise_empty)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_nic *nic;

	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT_EQ(vb_nic_pkey(nic, 0), VB_PKEY_DEFAULT);
	EXPECT_EQ(vb_nic_pkey(nic, 1), 0);
	EXPECT_EQ(vb_nic_set_pkey(nic, 1, 0x8001), VB_OK);
	EXPECT_EQ(vb_nic_pkey(nic, 1), 0x8001);
	EXPECT_EQ(vb_nic_set_pkey(nic, VB_PKEY_COUNT, 1), VB_EINVAL);
	EXPECT_EQ(vb_nic_pkey(nic, VB_PKEY_COUNT), 0);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}

TEST(limits_are_the_configured_ones)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_nic_limits limits;
	struct vb_nic *nic;

	config.qp_depth_max = 100;
	config.cq_depth_max = 200;
	config.srq_depth_max = 300;
	config.reads_max = 7;
	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	limits = vb_nic_limits(nic);
	EXPECT_EQ(limits.qp_depth, 100);
	EXPECT_EQ(limits.cq_depth, 200);
	EXPECT_EQ(limits.srq_depth, 300);
	EXPECT_EQ(limits.reads, 7);
	EXPECT_EQ(limits.sge, VB_SGE_MAX);
	EXPECT_EQ(limits.inline_length, VB_INLINE_MAX);
	EXPECT_EQ(limits.key_count, ROWS);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}

TEST(a_full_key_table_is_ENOSPC_and_every_row_can_be_used)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_mr_init init = { .address = 0x1000, .length = 8 };
	struct vb_mr *regions[ROWS], *one_more;
	struct vb_nic *nic;
	struct vb_pd *pd;

	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT_EQ(vb_pd_create(nic, &pd), VB_OK);
	for (int i = 0; i < ROWS; i++)
		EXPECT_EQ(vb_mr_create(pd, &init, &regions[i]), VB_OK);
	EXPECT_EQ(vb_mr_create(pd, &init, &one_more), VB_ENOSPC);
	EXPECT_EQ(vb_mr_destroy(regions[3]), VB_OK);
	EXPECT_EQ(vb_mr_create(pd, &init, &regions[3]), VB_OK);
	for (int i = 0; i < ROWS; i++)
		EXPECT_EQ(vb_mr_destroy(regions[i]), VB_OK);
	EXPECT_EQ(vb_pd_destroy(pd), VB_OK);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}

TEST(a_row_does_not_get_its_last_key_again_even_in_a_full_table)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_mr_init init = { .address = 0x1000, .length = 8 };
	struct vb_mr *regions[ROWS];
	struct vb_nic *nic;
	struct vb_pd *pd;

	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT_EQ(vb_pd_create(nic, &pd), VB_OK);
	for (int i = 0; i < ROWS; i++)
		EXPECT_EQ(vb_mr_create(pd, &init, &regions[i]), VB_OK);
	for (int i = 0; i < 1000; i++) {
		uint32_t key = vb_mr_key(regions[i % ROWS]);

		EXPECT_EQ(vb_mr_destroy(regions[i % ROWS]), VB_OK);
		EXPECT_EQ(vb_mr_create(pd, &init, &regions[i % ROWS]), VB_OK);
		EXPECT(vb_mr_key(regions[i % ROWS]) != key);
	}
	for (int i = 0; i < ROWS; i++)
		EXPECT_EQ(vb_mr_destroy(regions[i]), VB_OK);
	EXPECT_EQ(vb_pd_destroy(pd), VB_OK);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}

TEST(a_key_row_shows_what_its_region_opens_and_nothing_once_it_is_gone)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_mr_init init = {
		.address = 0x1000, .length = 8, .iova = 0x5000, .access = VB_ACCESS_REMOTE_READ
	};
	const struct vb_key_row *row;
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_mr *mr;

	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT_EQ(vb_pd_create(nic, &pd), VB_OK);
	EXPECT_EQ(vb_mr_create(pd, &init, &mr), VB_OK);
	for (row = tables.keys; row->key != vb_mr_key(mr); row++)
		EXPECT(row < tables.keys + ROWS - 1);
	EXPECT_EQ(row->kind, VB_KEY_REGION);
	EXPECT_EQ(row->iova, 0x5000);
	EXPECT_EQ(row->length, 8);
	EXPECT_EQ(row->address, 0x1000);
	EXPECT_EQ(row->access, VB_ACCESS_REMOTE_READ);
	EXPECT_EQ(row->generation & 1, 0);
	uint32_t generation = row->generation;
	EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
	EXPECT_EQ(row->kind, VB_KEY_FREE);
	EXPECT_EQ(row->key, 0);
	EXPECT_EQ(row->access, 0);
	EXPECT(row->generation != generation && !(row->generation & 1));
	EXPECT_EQ(vb_pd_destroy(pd), VB_OK);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}

TEST(the_same_seed_gives_the_same_keys)
{
	struct tables tables[2] = { 0 };
	struct vb_mr_init init = { .address = 0x1000, .length = 8 };
	uint32_t keys[2];

	for (int i = 0; i < 2; i++) {
		struct vb_nic_config config = config_of(&tables[i]);
		struct vb_nic *nic;
		struct vb_pd *pd;
		struct vb_mr *mr;

		EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
		EXPECT_EQ(vb_pd_create(nic, &pd), VB_OK);
		EXPECT_EQ(vb_mr_create(pd, &init, &mr), VB_OK);
		keys[i] = vb_mr_key(mr);
		EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
		EXPECT_EQ(vb_pd_destroy(pd), VB_OK);
		EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
	}
	EXPECT_EQ(keys[0], keys[1]);
}

TEST(the_count_of_source_ports_is_a_power_of_two)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);

	config.source_port_count = 3;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
	config.source_port_count = 2 * VB_SOURCE_PORTS_MAX;
	EXPECT_EQ(create_and_destroy(&config), VB_EINVAL);
	config.source_port_count = VB_SOURCE_PORTS_MAX;
	EXPECT_EQ(create_and_destroy(&config), VB_OK);
}

static struct vb_qp *make_datagram_qp(struct vb_pd *pd, struct vb_cq *cq)
{
	struct vb_qp_attr attr = { .state = VB_STATE_INIT, .port = 1 };
	struct vb_qp *qp;

	EXPECT_EQ(vb_qp_create(pd,
			       &(struct vb_qp_init){ .type = VB_QP_UD,
						     .send_cq = cq,
						     .recv_cq = cq,
						     .send_depth = 64,
						     .inline_max = 8 },
			       &qp),
		  VB_OK);
	EXPECT_EQ(vb_qp_modify(qp, &attr,
			       VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_QKEY),
		  VB_OK);
	attr.state = VB_STATE_RTR;
	EXPECT_EQ(vb_qp_modify(qp, &attr, VB_ATTR_STATE), VB_OK);
	attr.state = VB_STATE_RTS;
	EXPECT_EQ(vb_qp_modify(qp, &attr, VB_ATTR_STATE | VB_ATTR_SQ_PSN), VB_OK);
	return qp;
}

TEST(packets_leave_from_the_source_ports_that_the_link_has)
{
	struct tables tables = { 0 };
	struct vb_nic_config config = config_of(&tables);
	struct vb_gid gid = vb_gid_from_ipv4(0x0a000001);
	struct vb_address address = { .destination = vb_gid_from_ipv4(0x0a000002) };
	static struct vb_slot slots[64];
	uint32_t from[2] = { 0, 0 };
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_ah *ah;
	struct vb_qp *qp;

	config.source_ports[0] = 1111;
	config.source_ports[1] = 2222;
	config.source_port_count = 2;
	EXPECT_EQ(vb_nic_create(&config, &nic), VB_OK);
	EXPECT_EQ(vb_nic_set_gid(nic, 0, &gid), VB_OK);
	EXPECT_EQ(vb_pd_create(nic, &pd), VB_OK);
	EXPECT_EQ(vb_cq_create(nic, 64, NULL, &cq), VB_OK);
	EXPECT_EQ(vb_ah_create(pd, &address, &ah), VB_OK);
	qp = make_datagram_qp(pd, cq);
	for (uint32_t i = 0; i < 64; i++)
		EXPECT_EQ(vb_qp_post_send(qp, &(struct vb_send_request){ .opcode = VB_WR_SEND,
									 .flags = VB_SEND_INLINE,
									 .ah = ah,
									 .remote_qpn = 100 + i }),
			  VB_OK);
	vb_qp_publish_and_ring(qp);
	EXPECT_EQ(vb_nic_transmit(nic, 0, slots, 64), 64);
	for (uint32_t i = 0; i < 64; i++) {
		EXPECT(slots[i].path.ip.source_port == 1111 ||
		       slots[i].path.ip.source_port == 2222);
		from[slots[i].path.ip.source_port == 2222]++;
	}
	EXPECT(from[0] && from[1]);
	EXPECT_EQ(vb_qp_destroy(qp), VB_OK);
	EXPECT_EQ(vb_ah_destroy(ah), VB_OK);
	EXPECT_EQ(vb_cq_destroy(cq), VB_OK);
	EXPECT_EQ(vb_pd_destroy(pd), VB_OK);
	EXPECT_EQ(vb_nic_destroy(nic), VB_OK);
}
