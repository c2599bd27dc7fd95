/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of the model. */
#ifndef VB_SIM_MODEL_PRIV_H
#define VB_SIM_MODEL_PRIV_H

#include "sim/model.h"

static inline bool vb_model_is_reliable(const struct vb_model_qp *qp)
{
	return qp->type != VB_QP_UC && qp->type != VB_QP_UD;
}

/* delivery.c: the effect of a finished send on memory. `is_success` is the sender's view. */
void vb_delivery_on_send_done(struct vb_model *model, uint32_t request, bool is_success);
/* A receive succeeded: finds its message and checks the data. */
void vb_delivery_on_receive(struct vb_model *model, uint32_t request,
			    const struct vb_model_completion *completion);
/* A receive ended without a message. */
void vb_delivery_on_receive_failed(struct vb_model *model, uint32_t request);
/* Returns the buffers to the program; the adapter may not touch them any more. */
void vb_delivery_give_back(struct vb_model *model, struct vb_model_request *request, bool release);
/* The next message of the peer, or VB_MODEL_NONE. */
uint32_t vb_delivery_next_message(const struct vb_model *model, uint32_t receiver);
void vb_delivery_check_end(struct vb_model *model);

/* history.c */
void vb_history_check(struct vb_model *model);

#endif
