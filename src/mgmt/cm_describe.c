/* SPDX-License-Identifier: BSD-2-Clause */
/* States and events in words. */
#include "mgmt/cm.h"

const char *vb_cm_state_describe(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_IDLE:
		return "IDLE";
	case VB_CM_REQ_SENT:
		return "REQ_SENT";
	case VB_CM_MRA_REQ_RCVD:
		return "MRA_REQ_RCVD";
	case VB_CM_REQ_RCVD:
		return "REQ_RCVD";
	case VB_CM_MRA_REQ_SENT:
		return "MRA_REQ_SENT";
	case VB_CM_REP_SENT:
		return "REP_SENT";
	case VB_CM_MRA_REP_RCVD:
		return "MRA_REP_RCVD";
	case VB_CM_REP_RCVD:
		return "REP_RCVD";
	case VB_CM_MRA_REP_SENT:
		return "MRA_REP_SENT";
	case VB_CM_CONNECTED:
		return "CONNECTED";
	case VB_CM_DREQ_SENT:
		return "DREQ_SENT";
	case VB_CM_DREQ_RCVD:
		return "DREQ_RCVD";
	case VB_CM_TIMEWAIT:
		return "TIMEWAIT";
	case VB_CM_SIDR_REQ_SENT:
		return "SIDR_REQ_SENT";
	case VB_CM_SIDR_REQ_RCVD:
		return "SIDR_REQ_RCVD";
	case VB_CM_CLOSED:
		return "CLOSED";
	}
	return "?";
}

const char *vb_cm_event_describe(enum vb_cm_event_kind kind)
{
	switch (kind) {
	case VB_CM_REQUEST:
		return "REQUEST";
	case VB_CM_SIDR_REQUEST:
		return "SIDR_REQUEST";
	case VB_CM_RESPONSE:
		return "RESPONSE";
	case VB_CM_SIDR_RESPONSE:
		return "SIDR_RESPONSE";
	case VB_CM_ESTABLISHED:
		return "ESTABLISHED";
	case VB_CM_REJECTED:
		return "REJECTED";
	case VB_CM_UNREACHABLE:
		return "UNREACHABLE";
	case VB_CM_DISCONNECTED:
		return "DISCONNECTED";
	case VB_CM_TIMEWAIT_EXIT:
		return "TIMEWAIT_EXIT";
	}
	return "?";
}
