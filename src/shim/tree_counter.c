/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a port: the totals of all processes that have the device, or had it while others
 * did. Each read asks one of these processes. If there is none, all counters are 0.
 */
#include "shim/tree_entry_priv.h"

#include "host/registry/totals_shown.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const struct vb_totals_sum nothing;

static enum vb_totals_group group_of(enum vb_tree_naming naming)
{
	return naming == VB_TREE_BY_COUNTER ? VB_TOTALS_COUNTERS : VB_TOTALS_HW_COUNTERS;
}

uint32_t vb_tree_counter_count(enum vb_tree_naming naming)
{
	char name[VB_TOTALS_NAME_MAX];
	uint32_t count = 0;
	uint64_t value;

	while (vb_totals_shown(&nothing, group_of(naming), count, name, &value))
		count++;
	return count;
}

void vb_tree_counter_name(const struct vb_tree_node *node, char name[VB_TREE_NAME_MAX])
{
	uint64_t value;

	_Static_assert(VB_TOTALS_NAME_MAX <= VB_TREE_NAME_MAX, "all names fit");
	(void)vb_totals_shown(&nothing, group_of(node->entry->naming), node->number, name, &value);
}

int vb_tree_counter_show(const struct vb_tree_node *node, char *text, size_t size)
{
	int error;
	const struct vb_totals *totals = vb_totals_query(&error);
	char name[VB_TOTALS_NAME_MAX];
	struct vb_totals_sum sum;
	uint64_t value = 0;

	if (error)
		return -error;
	vb_totals_add_up(totals, node->device->ifindex, &sum);
	vb_totals_end_query(totals);
	(void)vb_totals_shown(&sum, group_of(node->entry->naming), node->number, name, &value);
	return snprintf(text, size, "%" PRIu64 "\n", value);
}
