/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and replies of MPA as text. */
#include "wire/mpa.h"

#include <stdio.h>

static const char *rtr_describe(uint8_t rtr)
{
	static const char *const names[8] = {
		"none", "send", "write", "send,write", "read", "send,read", "write,read", "any",
	};

	return names[rtr & 7];
}

static void describe_enhanced(const struct vb_mpa_frame *frame, char *text, uint32_t size)
{
	snprintf(text, size, " ird=%u ord=%u%s%s", frame->ird, frame->ord,
		 frame->is_peer_to_peer ? " p2p=" : "",
		 frame->is_peer_to_peer ? rtr_describe(frame->rtr) : "");
}

int vb_mpa_frame_describe(const struct vb_mpa_frame *frame, char *text, uint32_t size)
{
	char enhanced[64] = "";

	if (frame->is_enhanced)
		describe_enhanced(frame, enhanced, sizeof(enhanced));
	return snprintf(text, size, "MPA %s rev=%u%s%s%s%s private=%u",
			frame->kind == VB_MPA_REQUEST ? "request" : "reply", frame->revision,
			frame->is_rejected ? " rejected" : "",
			frame->wants_markers ? " markers" : "", frame->wants_crc ? " crc" : "",
			enhanced, frame->private_length);
}

const char *vb_mpa_parsing_describe(enum vb_mpa_parsing parsing)
{
	switch (parsing) {
	case VB_MPA_PARSED:
		return "right";
	case VB_MPA_INCOMPLETE:
		return "incomplete";
	case VB_MPA_BAD_KEY:
		return "not the key of MPA that was expected";
	case VB_MPA_BAD_REVISION:
		return "an unknown revision of MPA";
	case VB_MPA_BAD_LENGTH:
		return "a wrong length of the private data";
	}
	return "?";
}
