/* SPDX-License-Identifier: BSD-2-Clause */
/* The newer way of posting: ibv_wr_start(), one call for each operation and its parts, ibv_wr_complete(). */
#ifndef VB_ABI_WR_PRIV_H
#define VB_ABI_WR_PRIV_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Whether the operations that attr->send_ops_flags ask for exist for that type of QP. */
bool vb_abi_wr_supports(const struct ibv_qp_init_attr_ex *attr);

/* Sets the functions. */
void vb_abi_wr_init(struct ibv_qp_ex *qp);

#endif
