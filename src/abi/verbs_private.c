/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IBVERBS_PRIVATE_34: the functions that rdma-core's library offers to its providers. Distribution
 * binaries are linked with libmlx5 and libefa, which load only if every symbol they use is found;
 * they register themselves and are never called, because no device here is theirs.
 */
#include "abi/export_priv.h"
#include "abi/returns.h"

int vb_abi_private_refuse(void);

VB_ABI_EXPORT bool verbs_allow_disassociate_destroy;

VB_ABI_EXPORT void verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	(void)ops;
}

VB_ABI_EXPORT void verbs_init_cq(struct ibv_cq *cq, struct ibv_context *context,
				 struct ibv_comp_channel *channel, void *cq_context)
{
	(void)cq;
	(void)context;
	(void)channel;
	(void)cq_context;
}

VB_ABI_EXPORT struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data)
{
	(void)device;
	(void)private_data;
	return vb_abi_return_null(EOPNOTSUPP);
}

VB_ABI_EXPORT void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops)
{
	(void)context;
	(void)ops;
}

VB_ABI_EXPORT void verbs_uninit_context(struct verbs_context *context)
{
	(void)context;
}

VB_ABI_EXPORT void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd,
						  size_t alloc_size,
						  struct verbs_context *context_offset,
						  uint32_t driver_id)
{
	(void)device;
	(void)cmd_fd;
	(void)alloc_size;
	(void)context_offset;
	(void)driver_id;
	return vb_abi_return_null(EOPNOTSUPP);
}

VB_ABI_EXPORT void __verbs_log(struct verbs_context *context, uint32_t level, const char *format,
			       ...)
{
	(void)context;
	(void)level;
	(void)format;
}

/* The number of attributes of a command and those linked to it: none are ever linked. */
VB_ABI_EXPORT unsigned int __ioctl_final_num_attrs(unsigned int count,
						   struct ibv_command_buffer *link)
{
	(void)link;
	return count;
}

/*
 * There is no kernel device to command. The function reads no arguments, so their types do not
 * matter.
 */
VB_ABI_EXPORT int vb_abi_private_refuse(void)
{
	return vb_abi_return_errno(EOPNOTSUPP);
}

VB_ABI_VERSION(vb_abi_private_refuse, "execute_ioctl@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_advise_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_alloc_dm@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_alloc_mw@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_alloc_pd@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_attach_mcast@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_close_xrcd@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_ah@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_counters@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_cq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_cq_ex@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_flow@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_flow_action_esp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_qp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_qp_ex@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_qp_ex2@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_rwq_ind_table@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_srq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_srq_ex@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_create_wq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_dealloc_mw@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_dealloc_pd@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_dereg_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_ah@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_counters@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_cq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_flow@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_flow_action@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_qp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_rwq_ind_table@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_srq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_destroy_wq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_detach_mcast@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_free_dm@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_get_context@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_modify_cq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_modify_flow_action_esp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_modify_qp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_modify_qp_ex@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_modify_srq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_modify_wq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_open_qp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_open_xrcd@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_poll_cq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_post_recv@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_post_send@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_post_srq_recv@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_query_context@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_query_device_any@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_query_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_query_port@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_query_qp@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_query_srq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_read_counters@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_reg_dm_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_reg_dmabuf_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_reg_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_req_notify_cq@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_rereg_mr@@IBVERBS_PRIVATE_34");
VB_ABI_VERSION(vb_abi_private_refuse, "ibv_cmd_resize_cq@@IBVERBS_PRIVATE_34");
