/* SPDX-License-Identifier: BSD-2-Clause */
/* The table from a verdict to NAK, completion status, event and counter. */
#include "nic/verdict_priv.h"

#include "nic/counters.h"
#include "nic/event.h"
#include "nic/request.h"

#include "wire/syndrome.h"

const struct vb_refusal *vb_refusal_of(enum vb_verdict verdict)
{
	/* clang-format off */
	static const struct vb_refusal invalid_request =
		{ VB_NAK_INVALID_REQUEST,  VB_STATUS_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_COUNTER_RESP_REMOTE_INVALID_REQUEST };
	static const struct vb_refusal access_refused =
		{ VB_NAK_REMOTE_ACCESS,    VB_STATUS_REM_ACCESS_ERR, VB_EVENT_QP_ACCESS_ERR, VB_COUNTER_RESP_REMOTE_ACCESS_ERRORS };
	static const struct vb_refusal operation_failed =
		{ VB_NAK_REMOTE_OPERATION, VB_STATUS_REM_OP_ERR, VB_EVENT_QP_FATAL, VB_COUNTER_RESP_REMOTE_OP_ERRORS };
	static const struct vb_refusal receive_too_short =
		{ VB_NAK_INVALID_REQUEST,  VB_STATUS_LOC_LEN_ERR,  VB_NO_EVENT,            VB_COUNTER_RESP_LOCAL_LENGTH_ERROR };
	static const struct vb_refusal receive_refused =
		{ VB_NAK_REMOTE_OPERATION, VB_STATUS_LOC_PROT_ERR, VB_NO_EVENT,            VB_COUNTER_RESP_REMOTE_OP_ERRORS };
	/* clang-format on */

	switch (verdict) {
	case VB_ACCESS_REFUSED:
		return &access_refused;
	case VB_OPERATION_FAILED:
		return &operation_failed;
	case VB_RECEIVE_TOO_SHORT:
		return &receive_too_short;
	case VB_RECEIVE_REFUSED:
		return &receive_refused;
	case VB_INVALID_REQUEST:
	case VB_PASS:
	case VB_NOT_READY:
	case VB_NOT_FETCHED:
		break;
	}
	return &invalid_request;
}
