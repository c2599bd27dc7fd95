/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts and polls, for an observer that traces (host/port/recorder.h). Without one, each costs a
 * comparison.
 */
#ifndef VB_ABI_OBSERVE_PRIV_H
#define VB_ABI_OBSERVE_PRIV_H

#include "abi/objects_priv.h"
#include "host/port/recorder.h"
#include "nic/qp.h"
#include "nic/request.h"

/* observe.c */
void vb_abi_record_post(struct vb_recorder *recorder, const struct vb_qp *qp,
			const struct vb_send_request *request);

/* The request was just posted. */
static inline void vb_abi_note_post(struct vb_adapter *adapter, const struct vb_qp *qp,
				    const struct vb_send_request *request)
{
	struct vb_recorder *recorder = vb_adapter_recorder(adapter);

	if (vb_recorder_is_on(recorder))
		vb_abi_record_post(recorder, qp, request);
}

/* The program takes the completion, which is still in its CQ or was copied. */
static inline void vb_abi_note_poll(struct vb_adapter *adapter,
				    const struct vb_completion *completion)
{
	struct vb_recorder *recorder = vb_adapter_recorder(adapter);

	if (vb_recorder_is_on(recorder))
		vb_recorder_on_poll(recorder, completion);
}

#endif
