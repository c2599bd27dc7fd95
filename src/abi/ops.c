/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of operations in a context. An entry of the extended table that stays NULL makes its
 * inline function return EOPNOTSUPP: raw packet work queues, flows, counters, rate limits. The
 * old table is called without a check, so every entry that verbs.h calls is filled.
 */
#include "abi/driver_priv.h"
#include "abi/ops_priv.h"

static void fill_old_table(struct ibv_context_ops *ops)
{
	ops->alloc_mw = vb_abi_op_alloc_mw;
	ops->bind_mw = vb_abi_op_bind_mw;
	ops->dealloc_mw = vb_abi_op_dealloc_mw;
	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = (ibv_query_port);
	ops->poll_cq = vb_abi_cq_poll;
	ops->req_notify_cq = vb_abi_cq_arm;
	ops->post_srq_recv = vb_abi_srq_post;
	ops->post_send = vb_abi_qp_post_send;
	ops->post_recv = vb_abi_qp_post_recv;
}

static void fill_extended_table(struct verbs_context *context)
{
	context->query_port = vb_abi_op_query_port;
	context->query_device_ex = vb_abi_op_query_device_ex;
	context->query_rt_values = vb_abi_op_query_rt_values;
	context->alloc_parent_domain = vb_abi_op_alloc_parent_domain;
	context->alloc_td = vb_abi_op_alloc_td;
	context->dealloc_td = vb_abi_op_dealloc_td;
	context->open_xrcd = vb_abi_op_open_xrcd;
	context->close_xrcd = vb_abi_op_close_xrcd;
	context->advise_mr = vb_abi_op_advise_mr;
	context->alloc_null_mr = vb_abi_op_alloc_null_mr;
	context->reg_dm_mr = vb_abi_op_reg_dm_mr;
	context->alloc_dm = vb_abi_op_alloc_dm;
	context->free_dm = vb_abi_op_free_dm;
	context->create_cq_ex = vb_abi_op_create_cq_ex;
	context->modify_cq = vb_abi_op_modify_cq;
	context->create_srq_ex = vb_abi_op_create_srq_ex;
	context->get_srq_num = vb_abi_op_get_srq_num;
	context->post_srq_ops = vb_abi_srq_post_ops;
	context->create_qp_ex = vb_abi_op_create_qp_ex;
	context->open_qp = vb_abi_op_open_qp;
}

void vb_abi_context_init(struct verbs_context *context, struct ibv_device *device)
{
	memset(context, 0, sizeof(*context));
	context->sz = sizeof(*context);
	context->context.device = device;
	context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->context.cmd_fd = -1;
	context->context.async_fd = -1;
	pthread_mutex_init(&context->context.mutex, NULL);
	fill_old_table(&context->context.ops);
	fill_extended_table(context);
}
