/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths as text. */
#include "framing/path.h"

#include <stdio.h>

static void describe_gid(const struct vb_gid *gid, char text[VB_PATH_TEXT_MAX])
{
	char address[48];

	vb_gid_describe(gid, address);
	snprintf(text, VB_PATH_TEXT_MAX, "%s%s", vb_gid_is_ipv4(gid) ? "::ffff:" : "", address);
}

void vb_path_describe(const struct vb_path *path, char text[VB_PATH_TEXT_MAX])
{
	switch ((enum vb_path_kind)path->kind) {
	case VB_PATH_IP:
		describe_gid(&path->ip.destination, text);
		return;
	case VB_PATH_LID:
		snprintf(text, VB_PATH_TEXT_MAX, "LID %u, SL %u, VL %u", path->lid.destination,
			 path->lid.service_level, path->lid.virtual_lane);
		return;
	case VB_PATH_STREAM:
		snprintf(text, VB_PATH_TEXT_MAX, "stream %u", path->link);
		return;
	}
	snprintf(text, VB_PATH_TEXT_MAX, "?");
}
