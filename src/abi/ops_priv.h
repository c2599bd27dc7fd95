/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs that programs do not call by name: the inline functions of verbs.h find them in the
 * tables of the context, which ops.c fills. Error conventions are those of the verbs.
 */
#ifndef VB_ABI_OPS_PRIV_H
#define VB_ABI_OPS_PRIV_H

#include <infiniband/verbs.h>

int vb_abi_op_query_device_ex(struct ibv_context *context,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr_out, size_t attr_size);
int vb_abi_op_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int vb_abi_op_query_port(struct ibv_context *context, uint8_t port_num,
			 struct ibv_port_attr *attr_out, size_t attr_size);
struct ibv_pd *vb_abi_op_alloc_parent_domain(struct ibv_context *context,
					     struct ibv_parent_domain_init_attr *attr);
struct ibv_td *vb_abi_op_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_abi_op_dealloc_td(struct ibv_td *td);
struct ibv_xrcd *vb_abi_op_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vb_abi_op_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_mr *vb_abi_op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				   size_t length, unsigned int access);
struct ibv_mr *vb_abi_op_alloc_null_mr(struct ibv_pd *pd);
int vb_abi_op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			struct ibv_sge *sg_list, uint32_t num_sges);
struct ibv_mw *vb_abi_op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_abi_op_dealloc_mw(struct ibv_mw *mw);
int vb_abi_op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_dm *vb_abi_op_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vb_abi_op_free_dm(struct ibv_dm *dm);
struct ibv_cq_ex *vb_abi_op_create_cq_ex(struct ibv_context *context,
					 struct ibv_cq_init_attr_ex *attr);
int vb_abi_op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_srq *vb_abi_op_create_srq_ex(struct ibv_context *context,
					struct ibv_srq_init_attr_ex *attr);
int vb_abi_op_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_qp *vb_abi_op_create_qp_ex(struct ibv_context *context,
				      struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_abi_op_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

#endif
