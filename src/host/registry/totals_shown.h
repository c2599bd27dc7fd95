/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The totals of a device as users see them: in sysfs and in `verbatim stat`. The names are those
 * that hardware has, where the meaning is exactly the same, and otherwise our own.
 */
#ifndef VB_HOST_REGISTRY_TOTALS_SHOWN_H
#define VB_HOST_REGISTRY_TOTALS_SHOWN_H

#include "host/registry/totals_query.h"

#define VB_TOTALS_NAME_MAX 64

/* The folders of a port in sysfs. */
enum vb_totals_group {
	VB_TOTALS_COUNTERS, /* counters/ */
	VB_TOTALS_HW_COUNTERS, /* hw_counters/ */
};

/* One of them, from 0 on. False after the last. */
bool vb_totals_shown(const struct vb_totals_sum *sum, enum vb_totals_group group, uint32_t index,
		     char name_out[VB_TOTALS_NAME_MAX], uint64_t *value_out);

#endif
