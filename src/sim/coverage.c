/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of counts, and a report. Every member of the struct is a 64-bit count, which makes adding
 * simple.
 */
#include "sim/coverage.h"

#include "nic/event.h"
#include "nic/qp.h"
#include "nic/request.h"

#include <inttypes.h>
#include <stdio.h>

void vb_coverage_add(struct vb_coverage *sum, const struct vb_coverage *more)
{
	uint64_t *to = (uint64_t *)(void *)sum;
	const uint64_t *from = (const uint64_t *)(const void *)more;

	for (uint32_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

const char *vb_flaw_name(enum vb_flaw flaw)
{
	static const char *const names[VB_FLAW_COUNT] = {
#define X(symbol, name) name,
		VB_FLAWS(X)
#undef X
	};

	return names[flaw];
}

static bool describe_table(const uint64_t table[VB_COVERAGE_TYPES][VB_COVERAGE_STATUSES],
			   uint32_t row, const char *what, char *text, uint32_t size)
{
	uint32_t type = row / VB_COVERAGE_STATUSES, status = row % VB_COVERAGE_STATUSES;

	text[0] = '\0';
	if (table[type][status])
		snprintf(text, size, "%-9s %-8s %-24s %12" PRIu64, what,
			 vb_qp_type_describe((enum vb_qp_type)type),
			 vb_status_describe((uint8_t)status), table[type][status]);
	return true;
}

static bool describe_requests(const struct vb_coverage *coverage, uint32_t row, char *text,
			      uint32_t size)
{
	uint32_t type = row / VB_COVERAGE_OPCODES, opcode = row % VB_COVERAGE_OPCODES;

	text[0] = '\0';
	if (coverage->requests[type][opcode])
		snprintf(text, size, "%-9s %-8s %-24s %12" PRIu64, "request",
			 vb_qp_type_describe((enum vb_qp_type)type),
			 vb_wr_opcode_describe((uint8_t)opcode), coverage->requests[type][opcode]);
	return true;
}

static bool describe_count(const char *what, const char *name, uint64_t count, char *text,
			   uint32_t size)
{
	snprintf(text, size, "%-9s %-33s %12" PRIu64, what, name, count);
	return true;
}

/* Subtracts `count` rows from *row if they come before it. */
static bool seek_in_table(uint32_t *row, uint32_t count)
{
	if (*row < count)
		return true;
	*row -= count;
	return false;
}

bool vb_coverage_describe(const struct vb_coverage *coverage, uint32_t row, char *text,
			  uint32_t size)
{
	const uint32_t statuses = VB_COVERAGE_TYPES * VB_COVERAGE_STATUSES;

	if (seek_in_table(&row, 1))
		return describe_count("worlds", "", coverage->worlds, text, size);
	if (seek_in_table(&row, VB_MOOD_COUNT))
		return describe_count("mood", vb_mood_describe((enum vb_fault_mood)row),
				      coverage->moods[row], text, size);
	if (seek_in_table(&row, VB_FATE_COUNT))
		return describe_count(
			"packets", row ? vb_fate_describe((enum vb_packet_fate)row) : "delivered",
			coverage->fates[row], text, size);
	if (seek_in_table(&row, VB_COVERAGE_TYPES * VB_COVERAGE_OPCODES))
		return describe_requests(coverage, row, text, size);
	if (seek_in_table(&row, statuses))
		return describe_table(coverage->send_statuses, row, "send", text, size);
	if (seek_in_table(&row, statuses))
		return describe_table(coverage->recv_statuses, row, "receive", text, size);
	if (seek_in_table(&row, VB_COVERAGE_EVENTS)) {
		text[0] = '\0';
		return !coverage->events[row] ||
		       describe_count("event", vb_event_describe((enum vb_event_kind)row),
				      coverage->events[row], text, size);
	}
	if (seek_in_table(&row, VB_FLAW_COUNT))
		return describe_count("action", vb_flaw_name((enum vb_flaw)row),
				      coverage->flaws[row], text, size);
	if (seek_in_table(&row, VB_COUNTER_COUNT))
		return describe_count("counter", vb_counter_name((enum vb_counter)row),
				      coverage->counts[row], text, size);
	if (seek_in_table(&row, VB_DROP_COUNT))
		return describe_count("drop", vb_drop_name((enum vb_drop)row), coverage->drops[row],
				      text, size);
	return false;
}
