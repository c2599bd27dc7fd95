/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of an open device: the engine knows which QPs are in them, the link receives
 * what is sent to them. For the engine's owner.
 */
#ifndef VB_HOST_ADAPTER_GROUP_H
#define VB_HOST_ADAPTER_GROUP_H

#include "base/err.h"

struct vb_adapter;
struct vb_gid;
struct vb_qp;

/* Like vb_qp_attach() and vb_qp_detach(), plus errors of the link: VB_ENOSPC, VB_ENOMEM … */
VB_MUST_USE vb_err vb_group_attach(struct vb_adapter *adapter, struct vb_qp *qp,
				   const struct vb_gid *gid);
VB_MUST_USE vb_err vb_group_detach(struct vb_adapter *adapter, struct vb_qp *qp,
				   const struct vb_gid *gid);

#endif
