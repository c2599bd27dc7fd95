/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The totals of devices, for any process of the user: it asks a port member for the memory. It
 * needs no adapter.
 */
#ifndef VB_HOST_REGISTRY_TOTALS_QUERY_H
#define VB_HOST_REGISTRY_TOTALS_QUERY_H

#include "host/registry/totals.h"

/* The sum of all rows of a device. */
struct vb_totals_sum {
	struct vb_counters counters;
	uint64_t udp[VB_UDP_COUNTER_COUNT];
	struct vb_totals_direct initiated; /* requests that its adapters have executed … */
	struct vb_totals_direct targeted; /* … and those that were executed in their memory */
};

/*
 * Returns the totals, to read, until vb_totals_end_query(). NULL with *error_out 0: no process has
 * an adapter, so there are none. NULL with EAGAIN: none of the processes answers, perhaps because
 * all are stopped. EOPNOTSUPP: this user cannot be told from others, so no process answers.
 */
const struct vb_totals *vb_totals_query(int *error_out);
void vb_totals_end_query(const struct vb_totals *totals); /* NULL: does nothing */

/* `totals` may be NULL: then everything is 0. */
void vb_totals_add_up(const struct vb_totals *totals, uint32_t ifindex,
		      struct vb_totals_sum *sum_out);

#endif
