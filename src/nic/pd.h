/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, and XRC domains. Objects of different protection domains cannot be used
 * together.
 */
#ifndef VB_NIC_PD_H
#define VB_NIC_PD_H

#include "base/err.h"

struct vb_nic;
struct vb_pd;
struct vb_xrcd;

/*
 * The caller owns the PD. Destroy returns VB_EBUSY while a region, window, QP, SRQ or address
 * handle uses it.
 */
VB_MUST_USE vb_err vb_pd_create(struct vb_nic *nic, struct vb_pd **pd_out);
vb_err vb_pd_destroy(struct vb_pd *pd);

/*
 * An XRC domain ties XRC_RECV QPs to XRC SRQs. Destroy returns VB_EBUSY while one of them uses it.
 */
VB_MUST_USE vb_err vb_xrcd_create(struct vb_nic *nic, struct vb_xrcd **xrcd_out);
vb_err vb_xrcd_destroy(struct vb_xrcd *xrcd);

#endif
