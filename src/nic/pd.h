/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains: what belongs to different ones cannot be used together. Also XRC domains. */
#ifndef VB_NIC_PD_H
#define VB_NIC_PD_H

#include "base/err.h"

struct vb_nic;
struct vb_pd;
struct vb_xrcd;

/* The caller owns it; VB_EBUSY from destroy while a region, window, QP, SRQ or address handle uses it. */
VB_MUST_USE vb_err vb_pd_create(struct vb_nic *nic, struct vb_pd **pd_out);
vb_err vb_pd_destroy(struct vb_pd *pd);

/* An XRC domain ties XRC_RECV QPs to XRC SRQs; VB_EBUSY from destroy while one of them uses it. */
VB_MUST_USE vb_err vb_xrcd_create(struct vb_nic *nic, struct vb_xrcd **xrcd_out);
vb_err vb_xrcd_destroy(struct vb_xrcd *xrcd);

#endif
