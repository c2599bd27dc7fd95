/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An adapter on an interface of the test's own, with the address 10.0.0.1. Only one exists at a
 * time.
 */
#ifndef VB_TESTS_SUPPORT_ADAPTER_H
#define VB_TESTS_SUPPORT_ADAPTER_H

#include "host/adapter/adapter.h"
#include "nic/pd.h"
#include "nic/qp.h"

void adapter_begin(void (*on_event)(void *owner, const struct vb_event *event),
		   struct vb_adapter **adapter_out, struct vb_pd **pd_out);
void adapter_end(struct vb_adapter *adapter, struct vb_pd *pd);

/*
 * Moves a QP from RESET to RTS, as the owner of the engine. The QP uses a shared-memory link if it
 * was prepared for one and `adapter` is given; NULL means the wire.
 */
void adapter_raise_qp(struct vb_adapter *adapter, struct vb_qp *qp, struct vb_qp_attr attr);

#endif
