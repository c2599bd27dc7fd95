/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs over a driver that exists only here: it has one port with two GIDs, and creates objects
 * without an adapter behind them. The linker puts it in the place of the real one
 * (test_verbs.link). The tests cover what the verbs themselves do: conventions of errors, checks of
 * arguments, public fields, waiting for acknowledgements.
 */
#include "harness.h"
#include "abi/driver_priv.h"
#include "abi/export_priv.h"
#include "abi/returns.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <endian.h>

enum { GID_COUNT = 4 };

static struct verbs_context open_context;
static struct ibv_context *const context = &open_context.context;
static int driver_error;
static struct vb_abi_reported reported;
static struct vb_abi_range range_seen;
static bool is_still_intact;
static atomic_int freed_count;

static const union ibv_gid link_local = { .raw = { 0xfe, 0x80, [15] = 1 } };
static const union ibv_gid ipv4 = { .raw = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } };

static void start(void)
{
	vb_abi_context_init(&open_context, NULL);
	context->num_comp_vectors = 1;
}

/* --- the driver ------------------------------------------------------------------------------- */

int vb_abi_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr_out)
{
	EXPECT(c == context);
	attr_out->orig_attr.phys_port_cnt = 1;
	attr_out->orig_attr.max_qp = 77;
	attr_out->phys_port_cnt_ex = 1;
	return driver_error;
}

int vb_abi_query_port(struct ibv_context *c, uint32_t port, struct ibv_port_attr *attr_out)
{
	EXPECT(c == context);
	if (port != 1)
		return EINVAL;
	attr_out->gid_tbl_len = GID_COUNT;
	attr_out->pkey_tbl_len = 1;
	attr_out->port_cap_flags2 = 0xffff;
	return 0;
}

int vb_abi_query_gid(struct ibv_context *c, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry_out)
{
	EXPECT(c == context);
	if (port != 1 || index >= GID_COUNT)
		return EINVAL;
	if (index > 1)
		return ENODATA;
	*entry_out = (struct ibv_gid_entry){ .gid = index ? ipv4 : link_local,
					     .gid_index = index,
					     .port_num = port,
					     .gid_type = IBV_GID_TYPE_ROCE_V2 };
	return 0;
}

int vb_abi_query_gids(struct ibv_context *c, uint32_t port,
		      struct ibv_gid_entry entries[VB_GID_COUNT], uint32_t *count_out)
{
	for (*count_out = 0; *count_out < 2; ++*count_out) {
		int error = vb_abi_query_gid(c, port, *count_out, &entries[*count_out]);

		if (error)
			return error;
	}
	return 0;
}

int vb_abi_query_pkey(struct ibv_context *c, uint32_t port, uint32_t index, __be16 *pkey_out)
{
	EXPECT(c == context);
	if (port != 1 || index > 0)
		return EINVAL;
	*pkey_out = 0xffff;
	return 0;
}

int vb_abi_context_close(struct ibv_context *c)
{
	(void)c;
	return driver_error;
}

int vb_abi_mr_register(struct ibv_pd *pd, const struct vb_abi_range *range, struct ibv_mr **mr_out)
{
	(void)pd;
	range_seen = *range;
	if (!driver_error)
		*mr_out = calloc(1, sizeof(**mr_out));
	return driver_error;
}

int vb_abi_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			 const struct vb_abi_range *range, bool *is_intact_out)
{
	(void)mr;
	(void)flags;
	(void)pd;
	(void)range;
	*is_intact_out = is_still_intact;
	return driver_error;
}

int vb_abi_channel_create(struct ibv_context *c, struct ibv_comp_channel **channel_out)
{
	(void)c;
	*channel_out = calloc(1, sizeof(**channel_out));
	return driver_error;
}

int vb_abi_channel_destroy(struct ibv_comp_channel *channel)
{
	free(channel);
	return 0;
}

int vb_abi_cq_create(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr,
		     struct ibv_cq_ex **cq_out)
{
	(void)c;
	if (driver_error)
		return driver_error;
	*cq_out = calloc(1, sizeof(**cq_out));
	(*cq_out)->cqe = (int)attr->cqe;
	return 0;
}

int vb_abi_cq_destroy(struct ibv_cq *cq, struct vb_abi_reported *reported_out)
{
	(void)cq;
	*reported_out = reported;
	return driver_error;
}

void vb_abi_cq_free(struct ibv_cq *cq)
{
	freed_count++;
	free(cq);
}

int vb_abi_qp_create(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr,
		     struct ibv_qp **qp_out)
{
	(void)c;
	attr->cap.max_send_wr = 64;
	*qp_out = calloc(1, sizeof(**qp_out));
	return 0;
}

int vb_abi_qp_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return driver_error;
}

int vb_abi_qp_destroy(struct ibv_qp *qp, struct vb_abi_reported *reported_out)
{
	(void)qp;
	*reported_out = reported;
	return 0;
}

void vb_abi_qp_free(struct ibv_qp *qp)
{
	freed_count++;
	free(qp);
}

/* --- errors ----------------------------------------------------------------------------------- */

TEST(what_the_engine_answers_becomes_an_errno_number)
{
	EXPECT_EQ(vb_abi_errno(VB_OK), 0);
	EXPECT_EQ(vb_abi_errno(VB_ENOMEM), ENOMEM);
	EXPECT_EQ(vb_abi_errno(VB_EINVAL), EINVAL);
	EXPECT_EQ(vb_abi_errno(VB_EBUSY), EBUSY);
	EXPECT_EQ(vb_abi_errno(VB_ENOSPC), ENOSPC);
	EXPECT_EQ(vb_abi_errno(VB_EOPNOTSUPP), EOPNOTSUPP);
	EXPECT_EQ(vb_abi_errno(VB_EFAULT), EFAULT);
}

TEST(each_verb_reports_errors_in_its_own_way)
{
	struct ibv_device_attr attr;

	start();
	driver_error = ENOMEM;
	errno = 0;
	EXPECT_EQ(ibv_query_device(context, &attr), ENOMEM);
	EXPECT_EQ(ibv_close_device(context), -1);
	EXPECT_EQ(errno, ENOMEM);
	errno = 0;
	EXPECT(ibv_create_cq(context, 1, NULL, NULL, 0) == NULL);
	EXPECT_EQ(errno, ENOMEM);
}

/* --- queries ---------------------------------------------------------------------------------- */

TEST(attributes_are_cut_to_the_callers_struct)
{
	struct ibv_device_attr_ex attr;

	start();
	memset(&attr, 0xa5, sizeof(attr));
	EXPECT_EQ(open_context.query_device_ex(context, NULL, &attr, sizeof(attr) - 8), 0);
	EXPECT_EQ(attr.orig_attr.max_qp, 77);
	EXPECT_EQ(attr.phys_port_cnt_ex, 0xa5a5a5a5);
	EXPECT_EQ(ibv_query_device_ex(context, NULL, &attr), 0);
	EXPECT_EQ(attr.phys_port_cnt_ex, 1);
}

TEST(the_function_for_ports_writes_48_bytes)
{
	struct ibv_port_attr attr;

	start();
	memset(&attr, 0, sizeof(attr));
	EXPECT_EQ((ibv_query_port)(context, 1, (struct _compat_ibv_port_attr *)&attr), 0);
	EXPECT_EQ(attr.gid_tbl_len, GID_COUNT);
	EXPECT_EQ(attr.port_cap_flags2, 0);
	EXPECT_EQ(ibv_query_port(context, 1, &attr), 0);
	EXPECT_EQ(attr.port_cap_flags2, 0xffff);
	EXPECT_EQ(ibv_query_port(context, 2, &attr), EINVAL);
}

TEST(an_empty_gid_is_zero_to_old_programs_and_no_data_to_new_ones)
{
	union ibv_gid gid;
	struct ibv_gid_entry entry;
	int type;

	start();
	EXPECT_EQ(ibv_query_gid(context, 1, 1, &gid), 0);
	EXPECT_MEM(&gid, &ipv4, sizeof(gid));
	EXPECT_EQ(ibv_query_gid(context, 1, 2, &gid), 0);
	EXPECT_MEM(&gid, &(union ibv_gid){ 0 }, sizeof(gid));
	EXPECT_EQ(ibv_query_gid(context, 1, GID_COUNT, &gid), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(ibv_query_gid(context, 1, -1, &gid), -1);
	EXPECT_EQ(ibv_query_gid_type(context, 1, 1, &type), 0);
	EXPECT_EQ(type, 1);
	EXPECT_EQ(ibv_query_gid_type(context, 1, 3, &type), 0);
	EXPECT_EQ(type, 0);
	EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, &entry, 0), 0);
	EXPECT_EQ(ibv_query_gid_ex(context, 1, 2, &entry, 0), ENODATA);
	EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, &entry, 1), EOPNOTSUPP);
}

TEST(the_gid_table_has_what_is_there_and_must_fit)
{
	struct ibv_gid_entry entries[3];

	start();
	EXPECT_EQ(ibv_query_gid_table(context, entries, 3, 0), 2);
	EXPECT_EQ(entries[1].gid_index, 1);
	EXPECT_EQ(ibv_query_gid_table(context, entries, 2, 0), 2);
	EXPECT_EQ(ibv_query_gid_table(context, entries, 1, 0), -EINVAL);
	EXPECT_EQ(ibv_query_gid_table(context, entries, 0, 0), -EINVAL);
}

TEST(a_pkey_is_found_by_its_value)
{
	start();
	EXPECT_EQ(ibv_get_pkey_index(context, 1, 0xffff), 0);
	EXPECT_EQ(ibv_get_pkey_index(context, 1, 0x1234), -1);
	EXPECT_EQ(ibv_get_pkey_index(context, 2, 0xffff), -1);
}

/* --- memory ----------------------------------------------------------------------------------- */

TEST(a_region_with_remote_write_must_have_local_write)
{
	struct ibv_pd pd = { .context = context };
	char bytes[8];

	start();
	EXPECT((ibv_reg_mr)(&pd, bytes, 8, IBV_ACCESS_REMOTE_WRITE) == NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT((ibv_reg_mr)(&pd, bytes, 8, IBV_ACCESS_REMOTE_ATOMIC) == NULL);
	EXPECT((ibv_reg_mr)(&pd, bytes, 8, 1 << 19) == NULL);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT((ibv_reg_mr)(&pd, bytes, SIZE_MAX, 0) == NULL);
	EXPECT_EQ(errno, EINVAL);
}

TEST(a_region_has_its_public_fields_and_optional_wishes_are_dropped)
{
	struct ibv_pd pd = { .context = context };
	char bytes[8];
	struct ibv_mr *mr;

	start();
	mr = ibv_reg_mr_iova2(&pd, bytes, 8, 0x1000, IBV_ACCESS_RELAXED_ORDERING | 1);
	EXPECT(mr && mr->pd == &pd && mr->context == context && mr->addr == bytes);
	EXPECT_EQ(mr->length, 8);
	EXPECT_EQ(range_seen.access, IBV_ACCESS_LOCAL_WRITE);
	EXPECT_EQ(range_seen.iova, 0x1000);
	free(mr);
}

TEST(changing_a_region_tells_what_is_left_of_it)
{
	struct ibv_pd pd = { .context = context };
	struct ibv_mr mr = { .pd = NULL };

	start();
	EXPECT_EQ(ibv_rereg_mr(&mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	EXPECT_EQ(ibv_rereg_mr(&mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
		  IBV_REREG_MR_ERR_INPUT);
	driver_error = ENOMEM;
	EXPECT_EQ(ibv_rereg_mr(&mr, IBV_REREG_MR_CHANGE_PD, &pd, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
	EXPECT_EQ(errno, ENOMEM);
	driver_error = 0;
	EXPECT_EQ(ibv_rereg_mr(&mr, IBV_REREG_MR_CHANGE_PD, &pd, NULL, 0, 0), 0);
	EXPECT(mr.pd == &pd);
}

/* --- queues and events ------------------------------------------------------------------------ */

TEST(a_cq_is_refused_for_wrong_arguments)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .comp_mask = 1u << 31 };

	start();
	EXPECT(ibv_create_cq(context, 0, NULL, NULL, 0) == NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(ibv_create_cq(context, 1, NULL, NULL, 1) == NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(ibv_create_cq_ex(context, &attr) == NULL);
	EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(a_channel_outlives_its_cqs)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;

	start();
	channel = ibv_create_comp_channel(context);
	cq = ibv_create_cq(context, 5, &freed_count, channel, 0);
	EXPECT(cq && cq->channel == channel && cq->cq_context == &freed_count);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
	driver_error = EBUSY;
	EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
	EXPECT(ibv_create_cq(context, 5, NULL, channel, 0) == NULL);
	driver_error = 0;
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(freed_count, 1);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

static void *destroy_cq(void *cq)
{
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	return NULL;
}

TEST(destroying_a_cq_waits_for_all_acknowledgements)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_CQ_ERR };
	struct ibv_cq *cq;
	pthread_t thread;

	start();
	cq = ibv_create_cq(context, 5, NULL, NULL, 0);
	event.element.cq = cq;
	reported = (struct vb_abi_reported){ .completion_events = 3, .async_events = 1 };
	ibv_ack_cq_events(cq, 1);
	EXPECT_EQ(pthread_create(&thread, NULL, destroy_cq, cq), 0);
	EXPECT_EQ(freed_count, 0);
	ibv_ack_cq_events(cq, 2);
	EXPECT_EQ(freed_count, 0);
	ibv_ack_async_event(&event);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	EXPECT_EQ(freed_count, 1);
}

TEST(a_qp_has_its_public_fields_and_follows_its_state)
{
	struct ibv_pd pd = { .context = context };
	struct ibv_cq cq = { .context = context };
	struct ibv_qp_init_attr init = { .send_cq = &cq, .recv_cq = &cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL };
	struct ibv_qp *qp;

	start();
	qp = ibv_create_qp(&pd, &init);
	EXPECT(qp && qp->pd == &pd && qp->send_cq == &cq && qp->context == context);
	EXPECT_EQ(init.cap.max_send_wr, 64);
	driver_error = EINVAL;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	EXPECT_EQ(qp->state, IBV_QPS_RESET);
	driver_error = 0;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	EXPECT_EQ(qp->state, IBV_QPS_INIT);
	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT), EOPNOTSUPP);
	event.element.qp = qp;
	reported.async_events = 1;
	ibv_ack_async_event(&event);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(freed_count, 1);
}

TEST(a_qp_is_refused_without_its_parents)
{
	struct ibv_pd pd = { .context = context };
	struct ibv_cq cq = { .context = context };
	struct ibv_qp_init_attr init = { .send_cq = &cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr_ex xrc = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = 0 };

	start();
	EXPECT(ibv_create_qp(&pd, &init) == NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(ibv_create_qp_ex(context, &xrc) == NULL);
	EXPECT_EQ(errno, EINVAL);
	init.recv_cq = &cq;
	init.qp_type = IBV_QPT_DRIVER;
	EXPECT(ibv_create_qp(&pd, &init) == NULL);
	EXPECT_EQ(errno, EOPNOTSUPP);
}

/* --- answering a datagram --------------------------------------------------------------------- */

TEST(the_answer_to_an_ipv4_datagram_goes_back_where_it_came_from)
{
	/* 10.0.0.9 to 10.0.0.1, with the header's checksum. */
	uint8_t grh[40] = { [20] = 0x45, 0x08, 0,  0x44, 0, 0, 0x40, 0, 0x40, 0x11,
			    0x26,	 0x98, 10, 0,	 0, 9, 10,   0, 0,    1 };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;

	start();
	EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)(void *)grh, &attr), 0);
	EXPECT_EQ(attr.is_global, 1);
	EXPECT_EQ(attr.port_num, 1);
	EXPECT_EQ(attr.grh.sgid_index, 1);
	EXPECT_EQ(attr.grh.traffic_class, 8);
	EXPECT_MEM(attr.grh.dgid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x09", 16);
	grh[39] = 2; /* neither our address nor a valid checksum any longer */
	EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)(void *)grh, &attr), -1);
}

TEST(the_answer_to_an_ipv6_datagram_goes_back_where_it_came_from)
{
	struct ibv_grh grh = { .version_tclass_flow = htobe32(0x60000000 | 3 << 20 | 0x12345),
			       .sgid = { .raw = { 0xfe, 0x80, [15] = 9 } },
			       .dgid = { .raw = { 0xfe, 0x80, [15] = 1 } } };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .sl = 2 };
	struct ibv_ah_attr attr;

	start();
	EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), 0);
	EXPECT_EQ(attr.sl, 2);
	EXPECT_EQ(attr.grh.sgid_index, 0);
	EXPECT_EQ(attr.grh.traffic_class, 3);
	EXPECT_EQ(attr.grh.flow_label, 0x12345);
	EXPECT_MEM(&attr.grh.dgid, &grh.sgid, 16);
	grh.dgid = (union ibv_gid){ .raw = { 0xff, 0x02, [15] = 1 } };
	EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), 0);
	EXPECT_EQ(attr.grh.sgid_index, 0);
	grh.dgid = (union ibv_gid){ .raw = { 0x20, 0x01, [15] = 1 } };
	EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), -1);
	EXPECT_EQ(errno, ENOENT);
}
