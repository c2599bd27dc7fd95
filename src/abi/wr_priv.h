/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended posting interface: ibv_wr_start(), one call for each operation and its parts,
 * ibv_wr_complete().
 */
#ifndef VB_ABI_WR_PRIV_H
#define VB_ABI_WR_PRIV_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* True if the operations that attr->send_ops_flags request exist for this QP type. */
bool vb_abi_wr_supports(const struct ibv_qp_init_attr_ex *attr);

/* Sets the functions. */
void vb_abi_wr_init(struct ibv_qp_ex *qp);

#endif
