/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts that programs were compiled with (x86-64). They come from the installed headers; the
 * numbers here were measured in the binaries of Debian 12, so that neither headers of another
 * release nor another compiler can move a field unnoticed.
 */
#include "harness.h"
#include "abi/driver_priv.h"

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)

SIZE(struct ibv_device, 664);
AT(struct ibv_device, node_type, 16);
AT(struct ibv_device, transport_type, 20);
AT(struct ibv_device, name, 24);
AT(struct ibv_device, dev_name, 88);
AT(struct ibv_device, dev_path, 152);
AT(struct ibv_device, ibdev_path, 408);
AT(struct vb_abi_device, provider, 664);

SIZE(struct ibv_context_ops, 256);
AT(struct ibv_context_ops, _compat_query_device, 0);
AT(struct ibv_context_ops, _compat_query_port, 8);
AT(struct ibv_context_ops, alloc_mw, 56);
AT(struct ibv_context_ops, bind_mw, 64);
AT(struct ibv_context_ops, dealloc_mw, 72);
AT(struct ibv_context_ops, poll_cq, 88);
AT(struct ibv_context_ops, req_notify_cq, 96);
AT(struct ibv_context_ops, post_srq_recv, 160);
AT(struct ibv_context_ops, post_send, 200);
AT(struct ibv_context_ops, post_recv, 208);

SIZE(struct ibv_context, 328);
AT(struct ibv_context, device, 0);
AT(struct ibv_context, ops, 8);
AT(struct ibv_context, cmd_fd, 264);
AT(struct ibv_context, async_fd, 268);
AT(struct ibv_context, num_comp_vectors, 272);
AT(struct ibv_context, mutex, 280);
AT(struct ibv_context, abi_compat, 320);

SIZE(struct verbs_context, 648);
AT(struct verbs_context, query_port, 0);
AT(struct verbs_context, create_cq_ex, 200);
AT(struct verbs_context, priv, 208);
AT(struct verbs_context, query_device_ex, 216);
AT(struct verbs_context, ibv_destroy_flow, 224);
AT(struct verbs_context, ABI_placeholder2, 232);
AT(struct verbs_context, ibv_create_flow, 240);
AT(struct verbs_context, ABI_placeholder1, 248);
AT(struct verbs_context, open_qp, 256);
AT(struct verbs_context, create_qp_ex, 264);
AT(struct verbs_context, get_srq_num, 272);
AT(struct verbs_context, create_srq_ex, 280);
AT(struct verbs_context, open_xrcd, 288);
AT(struct verbs_context, close_xrcd, 296);
AT(struct verbs_context, sz, 312);
AT(struct verbs_context, context, 320);

SIZE(struct ibv_cq, 128);
SIZE(struct ibv_cq_ex, 288);
AT(struct ibv_cq_ex, comp_mask, 128);
AT(struct ibv_cq_ex, status, 132);
AT(struct ibv_cq_ex, wr_id, 136);
AT(struct ibv_cq_ex, start_poll, 144);
AT(struct ibv_cq_ex, read_opcode, 168);
AT(struct ibv_cq_ex, read_completion_wallclock_ns, 280);

SIZE(struct ibv_qp, 160);
AT(struct ibv_qp, qp_num, 52);
AT(struct ibv_qp, state, 56);
AT(struct ibv_qp, qp_type, 60);
SIZE(struct ibv_qp_ex, 352);
AT(struct ibv_qp_ex, comp_mask, 160);
AT(struct ibv_qp_ex, wr_id, 168);
AT(struct ibv_qp_ex, wr_flags, 176);
AT(struct ibv_qp_ex, wr_atomic_cmp_swp, 184);
AT(struct ibv_qp_ex, wr_start, 320);
AT(struct ibv_qp_ex, wr_complete, 328);
AT(struct ibv_qp_ex, wr_abort, 336);
AT(struct ibv_qp_ex, wr_atomic_write, 344);

SIZE(struct ibv_srq, 128);
SIZE(struct ibv_wq, 152);
AT(struct ibv_wq, post_recv, 48);
SIZE(struct ibv_mr, 48);
AT(struct ibv_mr, addr, 16);
AT(struct ibv_mr, length, 24);
AT(struct ibv_mr, handle, 32);
AT(struct ibv_mr, lkey, 36);
AT(struct ibv_mr, rkey, 40);
SIZE(struct ibv_mw, 32);
SIZE(struct ibv_dm, 32);
SIZE(struct ibv_comp_channel, 16);
SIZE(struct ibv_ah, 24);
SIZE(struct ibv_xrcd, 8);
SIZE(struct ibv_flow, 24);
SIZE(struct ibv_port_attr, 52);
AT(struct ibv_port_attr, port_cap_flags2, 48);
SIZE(struct ibv_device_attr, 232);
SIZE(struct ibv_device_attr_ex, 400);

TEST(an_extended_cq_begins_like_a_plain_one)
{
	EXPECT_EQ(offsetof(struct ibv_cq_ex, context), offsetof(struct ibv_cq, context));
	EXPECT_EQ(offsetof(struct ibv_cq_ex, channel), offsetof(struct ibv_cq, channel));
	EXPECT_EQ(offsetof(struct ibv_cq_ex, cqe), offsetof(struct ibv_cq, cqe));
	EXPECT_EQ(offsetof(struct ibv_cq_ex, mutex), offsetof(struct ibv_cq, mutex));
	EXPECT_EQ(offsetof(struct ibv_cq_ex, async_events_completed),
		  offsetof(struct ibv_cq, async_events_completed));
}

TEST(a_context_of_ours_passes_for_an_extended_one)
{
	struct ibv_device device = { 0 };
	struct verbs_context context;

	vb_abi_context_init(&context, &device);
	EXPECT(verbs_get_ctx(&context.context) == &context);
	EXPECT(verbs_get_ctx_op(&context.context, query_port) == &context);
	EXPECT(verbs_get_ctx_op(&context.context, create_wq) == NULL);
	EXPECT(context.close_xrcd != NULL);
	EXPECT(context.context.ops.poll_cq != NULL);
	EXPECT(context.context.ops.dealloc_mw != NULL);
}
