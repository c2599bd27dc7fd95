/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and definitions of the totals that users see. The data of operations that initiators
 * execute themselves counts as sent at one end and received at the other. They have no packets.
 */
#include "host/registry/totals_shown.h"

#include <stdio.h>

#define WORD 4u /* bytes: the unit of port_xmit_data and port_rcv_data */

/* --- counters/ --- */

static uint64_t sent_words(const struct vb_totals_sum *sum)
{
	return (sum->counters.counts[VB_COUNTER_TX_BYTES] + sum->initiated.written +
		sum->targeted.read) /
	       WORD;
}

static uint64_t received_words(const struct vb_totals_sum *sum)
{
	return (sum->counters.counts[VB_COUNTER_RX_BYTES] + sum->targeted.written +
		sum->initiated.read) /
	       WORD;
}

static uint64_t sent_packets(const struct vb_totals_sum *sum)
{
	return sum->counters.counts[VB_COUNTER_TX_PACKETS];
}

static uint64_t received_packets(const struct vb_totals_sum *sum)
{
	return sum->counters.counts[VB_COUNTER_RX_PACKETS];
}

static uint64_t sent_multicasts(const struct vb_totals_sum *sum)
{
	return sum->counters.counts[VB_COUNTER_TX_MULTICAST_PACKETS];
}

static uint64_t received_multicasts(const struct vb_totals_sum *sum)
{
	return sum->counters.counts[VB_COUNTER_RX_MULTICAST_PACKETS];
}

/* The counts of an adapter that sends meanwhile may not fit together yet. */
static uint64_t less(uint64_t all, uint64_t some)
{
	return all > some ? all - some : 0;
}

static uint64_t sent_unicasts(const struct vb_totals_sum *sum)
{
	return less(sent_packets(sum), sent_multicasts(sum));
}

static uint64_t received_unicasts(const struct vb_totals_sum *sum)
{
	return less(received_packets(sum), received_multicasts(sum));
}

/* Damaged, malformed, or no room in the buffer. */
static uint64_t receive_errors(const struct vb_totals_sum *sum)
{
	static const enum vb_drop drops[] = { VB_DROP_TOO_SHORT, VB_DROP_VERSION, VB_DROP_OPCODE,
					      VB_DROP_LENGTH, VB_DROP_ICRC };
	uint64_t count = sum->udp[VB_UDP_RX_DROP_OVERFLOW] + sum->udp[VB_UDP_RX_DROP_TRUNCATED] +
			 sum->udp[VB_UDP_RX_DROP_UNADDRESSED];

	for (uint32_t i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
		count += sum->counters.drops[drops[i]];
	return count;
}

/* What the kernel did not take. These packets also count as sent: the adapter has sent them. */
static uint64_t send_discards(const struct vb_totals_sum *sum)
{
	static const enum vb_udp_counter drops[] = {
		VB_UDP_TX_DROP_MEMORY,	  VB_UDP_TX_DROP_TOO_LONG,  VB_UDP_TX_DROP_NO_ROUTE,
		VB_UDP_TX_DROP_FORBIDDEN, VB_UDP_TX_DROP_PORT_HELD, VB_UDP_TX_DROP_NO_ROOM,
		VB_UDP_TX_DROP_NUMBER,	  VB_UDP_TX_DROP_OTHER,
	};
	uint64_t count = 0;

	for (uint32_t i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
		count += sum->udp[drops[i]];
	return count;
}

/* --- hw_counters/ --- */

static uint64_t direct_ops(const struct vb_totals_sum *sum)
{
	return sum->initiated.ops;
}

static uint64_t direct_bytes(const struct vb_totals_sum *sum)
{
	return sum->initiated.written + sum->initiated.read;
}

static uint64_t direct_target_ops(const struct vb_totals_sum *sum)
{
	return sum->targeted.ops;
}

static uint64_t direct_target_bytes(const struct vb_totals_sum *sum)
{
	return sum->targeted.written + sum->targeted.read;
}

/* Values are never remembered (Linux, Documentation/ABI/stable/sysfs-class-infiniband). */
static uint64_t lifespan(const struct vb_totals_sum *sum)
{
	(void)sum;
	return 0;
}

/* --- all of them --- */

struct shown {
	const char *name;
	uint64_t (*value)(const struct vb_totals_sum *sum);
};

/* clang-format off */
static const struct shown counters[] = {
	{ "port_xmit_data", sent_words },
	{ "port_rcv_data", received_words },
	{ "port_xmit_packets", sent_packets },
	{ "port_rcv_packets", received_packets },
	{ "unicast_xmit_packets", sent_unicasts },
	{ "unicast_rcv_packets", received_unicasts },
	{ "multicast_xmit_packets", sent_multicasts },
	{ "multicast_rcv_packets", received_multicasts },
	{ "port_rcv_errors", receive_errors },
	{ "port_xmit_discards", send_discards },
};

static const struct shown hw_counters[] = {
	{ "lifespan", lifespan },
	{ "direct_ops", direct_ops },
	{ "direct_bytes", direct_bytes },
	{ "direct_target_ops", direct_target_ops },
	{ "direct_target_bytes", direct_target_bytes },
};
/* clang-format on */

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))
#define HW_COUNTERS (sizeof(hw_counters) / sizeof(hw_counters[0]))

static void take(const struct shown *shown, const struct vb_totals_sum *sum,
		 char name[VB_TOTALS_NAME_MAX], uint64_t *value)
{
	snprintf(name, VB_TOTALS_NAME_MAX, "%s", shown->name);
	*value = shown->value(sum);
}

bool vb_totals_shown(const struct vb_totals_sum *sum, enum vb_totals_group group, uint32_t index,
		     char name_out[VB_TOTALS_NAME_MAX], uint64_t *value_out)
{
	if (group == VB_TOTALS_COUNTERS) {
		if (index < COUNTERS)
			take(&counters[index], sum, name_out, value_out);
		return index < COUNTERS;
	}
	if (index < HW_COUNTERS) {
		take(&hw_counters[index], sum, name_out, value_out);
		return true;
	}
	index -= (uint32_t)HW_COUNTERS;
	if (index < VB_COUNTER_COUNT) {
		snprintf(name_out, VB_TOTALS_NAME_MAX, "%s", vb_counter_name(index));
		*value_out = sum->counters.counts[index];
		return true;
	}
	index -= VB_COUNTER_COUNT;
	if (index < VB_DROP_COUNT) {
		snprintf(name_out, VB_TOTALS_NAME_MAX, "drop_%s", vb_drop_name(index));
		*value_out = sum->counters.drops[index];
		return true;
	}
	index -= VB_DROP_COUNT;
	if (index < VB_UDP_COUNTER_COUNT) {
		snprintf(name_out, VB_TOTALS_NAME_MAX, "%s", vb_udp_counter_name(index));
		*value_out = sum->udp[index];
		return true;
	}
	return false;
}
