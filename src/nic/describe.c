/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of numbers, for logs, traces and tests. */
#include "nic/counters.h"
#include "nic/event.h"
#include "nic/qp.h"
#include "nic/request.h"

const char *vb_status_describe(uint8_t status)
{
	switch ((enum vb_status)status) {
	case VB_STATUS_SUCCESS:
		return "SUCCESS";
	case VB_STATUS_LOC_LEN_ERR:
		return "LOC_LEN_ERR";
	case VB_STATUS_LOC_QP_OP_ERR:
		return "LOC_QP_OP_ERR";
	case VB_STATUS_LOC_PROT_ERR:
		return "LOC_PROT_ERR";
	case VB_STATUS_WR_FLUSH_ERR:
		return "WR_FLUSH_ERR";
	case VB_STATUS_MW_BIND_ERR:
		return "MW_BIND_ERR";
	case VB_STATUS_BAD_RESP_ERR:
		return "BAD_RESP_ERR";
	case VB_STATUS_LOC_ACCESS_ERR:
		return "LOC_ACCESS_ERR";
	case VB_STATUS_REM_INV_REQ_ERR:
		return "REM_INV_REQ_ERR";
	case VB_STATUS_REM_ACCESS_ERR:
		return "REM_ACCESS_ERR";
	case VB_STATUS_REM_OP_ERR:
		return "REM_OP_ERR";
	case VB_STATUS_RETRY_EXC_ERR:
		return "RETRY_EXC_ERR";
	case VB_STATUS_RNR_RETRY_EXC_ERR:
		return "RNR_RETRY_EXC_ERR";
	case VB_STATUS_REM_INV_RD_REQ_ERR:
		return "REM_INV_RD_REQ_ERR";
	case VB_STATUS_FATAL_ERR:
		return "FATAL_ERR";
	case VB_STATUS_TM_ERR:
		return "TM_ERR";
	case VB_STATUS_TM_RNDV_INCOMPLETE:
		return "TM_RNDV_INCOMPLETE";
	}
	return "?";
}

const char *vb_completion_opcode_describe(uint8_t opcode)
{
	switch ((enum vb_completion_opcode)opcode) {
	case VB_COMPLETION_SEND:
		return "SEND";
	case VB_COMPLETION_WRITE:
		return "WRITE";
	case VB_COMPLETION_READ:
		return "READ";
	case VB_COMPLETION_COMPARE_SWAP:
		return "COMPARE_SWAP";
	case VB_COMPLETION_FETCH_ADD:
		return "FETCH_ADD";
	case VB_COMPLETION_BIND_MW:
		return "BIND_MW";
	case VB_COMPLETION_LOCAL_INV:
		return "LOCAL_INV";
	case VB_COMPLETION_ATOMIC_WRITE:
		return "ATOMIC_WRITE";
	case VB_COMPLETION_RECV:
		return "RECV";
	case VB_COMPLETION_RECV_WRITE_IMM:
		return "RECV_WRITE_IMM";
	case VB_COMPLETION_TM_ADD:
		return "TM_ADD";
	case VB_COMPLETION_TM_DEL:
		return "TM_DEL";
	case VB_COMPLETION_TM_SYNC:
		return "TM_SYNC";
	case VB_COMPLETION_TM_RECV:
		return "TM_RECV";
	case VB_COMPLETION_TM_NO_TAG:
		return "TM_NO_TAG";
	}
	return "?";
}

const char *vb_event_describe(enum vb_event_kind kind)
{
	switch (kind) {
	case VB_EVENT_CQ_ERR:
		return "CQ_ERR";
	case VB_EVENT_QP_FATAL:
		return "QP_FATAL";
	case VB_EVENT_QP_REQ_ERR:
		return "QP_REQ_ERR";
	case VB_EVENT_QP_ACCESS_ERR:
		return "QP_ACCESS_ERR";
	case VB_EVENT_COMM_EST:
		return "COMM_EST";
	case VB_EVENT_SQ_DRAINED:
		return "SQ_DRAINED";
	case VB_EVENT_SRQ_ERR:
		return "SRQ_ERR";
	case VB_EVENT_SRQ_LIMIT_REACHED:
		return "SRQ_LIMIT_REACHED";
	case VB_EVENT_QP_LAST_WQE_REACHED:
		return "QP_LAST_WQE_REACHED";
	case VB_EVENT_COMPLETION:
		return "COMPLETION";
	}
	return "?";
}

const char *vb_qp_state_describe(enum vb_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

const char *vb_qp_type_describe(enum vb_qp_type type)
{
	switch (type) {
	case VB_QP_RC:
		return "RC";
	case VB_QP_UC:
		return "UC";
	case VB_QP_UD:
		return "UD";
	case VB_QP_XRC_SEND:
		return "XRC_SEND";
	case VB_QP_XRC_RECV:
		return "XRC_RECV";
	}
	return "?";
}

const char *vb_counter_name(enum vb_counter counter)
{
	static const char *const names[] = {
#define X(symbol, name) name,
		VB_COUNTERS(X)
#undef X
	};

	return (unsigned)counter < VB_COUNTER_COUNT ? names[counter] : "?";
}

const char *vb_drop_name(enum vb_drop drop)
{
	static const char *const names[] = {
#define X(symbol, name) name,
		VB_DROPS(X)
#undef X
	};

	return (unsigned)drop < VB_DROP_COUNT ? names[drop] : "?";
}
