/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended posting interface: ibv_wr_start(), calls that name operations and calls that set
 * their buffers and addresses, ibv_wr_complete().
 */
#ifndef VB_ABI_WR_PRIV_H
#define VB_ABI_WR_PRIV_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* True if the operations that attr->send_ops_flags request exist for this QP type. */
bool vb_abi_wr_supports(const struct ibv_qp_init_attr_ex *attr);

/* Sets the ibv_wr_* functions of the QP. */
void vb_abi_wr_set_functions(struct ibv_qp_ex *qp);

#endif
