/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The offer of a recording to `verbatim trace`, which has started this program or one of its
 * ancestors, and has left its name in the environment. Programs with more rights than their user
 * ignore the environment.
 */
#include "host/port/port_priv.h"

#include "host/registry/port_member.h"
#include "host/registry/recording_query.h"

#include <stdio.h>
#include <stdlib.h>

void vb_port_offer_recording(struct vb_port *port, uint64_t now_ns)
{
	const char *wanted = secure_getenv(VB_RECORDING_VARIABLE);
	struct vb_recording_wish wish = { 0 };
	char observer[32];
	int fd;

	if (!wanted || !port->member ||
	    sscanf(wanted, VB_RECORDING_FORM, observer, &wish.packet_length_max, &wish.qpn,
		   &wish.has_events) != 4)
		return;
	fd = vb_port_begin_recording(port, &wish, now_ns);
	if (fd >= 0 && !vb_port_member_offer_recording(port->member, observer, fd))
		vb_port_end_recording(port);
}
