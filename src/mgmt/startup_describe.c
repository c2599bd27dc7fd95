/* SPDX-License-Identifier: BSD-2-Clause */
/* States and reasons of a set-up in words. */
#include "mgmt/startup.h"

const char *vb_startup_state_describe(enum vb_startup_state state)
{
	switch (state) {
	case VB_STARTUP_IDLE:
		return "IDLE";
	case VB_STARTUP_CONNECTING:
		return "CONNECTING";
	case VB_STARTUP_REQUEST_SENT:
		return "REQUEST_SENT";
	case VB_STARTUP_AWAIT_REQUEST:
		return "AWAIT_REQUEST";
	case VB_STARTUP_REQUEST_RCVD:
		return "REQUEST_RCVD";
	case VB_STARTUP_REPLY_SENT:
		return "REPLY_SENT";
	case VB_STARTUP_UP:
		return "UP";
	case VB_STARTUP_CLOSING:
		return "CLOSING";
	case VB_STARTUP_CLOSED:
		return "CLOSED";
	}
	return "?";
}

const char *vb_startup_reason_describe(enum vb_startup_reason reason)
{
	switch (reason) {
	case VB_STARTUP_NO_REASON:
		return "none";
	case VB_STARTUP_REJECTED:
		return "the peer rejected the request";
	case VB_STARTUP_REFUSED:
		return "nobody listens at that port";
	case VB_STARTUP_TIMEOUT:
		return "the peer did not answer in time";
	case VB_STARTUP_LOST:
		return "the peer closed the connection";
	case VB_STARTUP_MALFORMED:
		return "the peer sent what is no frame of MPA";
	case VB_STARTUP_MARKERS:
		return "the peer demands markers";
	case VB_STARTUP_DEPTH:
		return "the peer demands more READs than the adapter takes";
	case VB_STARTUP_RTR:
		return "the peer knows no RTR that the adapter knows";
	case VB_STARTUP_GONE:
		return "the program gave the connection up";
	}
	return "?";
}
