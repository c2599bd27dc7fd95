/* SPDX-License-Identifier: BSD-2-Clause */
/* What an observer is told about a post. */
#include "abi/observe_priv.h"

#include "base/err.h"

VB_COLD void vb_abi_record_post(struct vb_recorder *recorder, const struct vb_qp *qp,
				const struct vb_send_request *request)
{
	uint32_t length = 0;

	for (uint32_t i = 0; i < request->sge_count; i++)
		length += request->sges[i].length;
	vb_recorder_on_post(recorder, vb_qp_number(qp), request->wr_id, request->opcode, length);
}
