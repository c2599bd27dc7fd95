/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check of the adapter by itself, which the setting `self_check` turns on: a tap counts what
 * passes the port, and the engine's own counters must have grown by the same numbers.
 */
#ifndef VB_HOST_PORT_SELF_CHECK_H
#define VB_HOST_PORT_SELF_CHECK_H

#include "host/port/tap.h"
#include "nic/counters.h"

struct vb_nic;

struct vb_self_check {
	struct vb_tap tap; /* for vb_port_add_tap() */
	struct vb_counters before; /* the engine's at the beginning */
	struct vb_counters seen; /* by the tap; only some of them are used */
};

void vb_self_check_init(struct vb_self_check *check, const struct vb_nic *nic);
/* Compares, and logs the result: an error for each counter that differs. */
void vb_self_check_report(const struct vb_self_check *check, const struct vb_nic *nic,
			  const char *device);

#endif
