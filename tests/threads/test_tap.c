/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap and the fault point of a port, on two QPs of one adapter that write into each other's
 * memory: by packets, which pass the port, and by the engine, which executes the WRITEs itself.
 */
#include "harness.h"
#include "support_writes.h"

#include "base/prng.h"
#include "host/adapter/adapter_priv.h"
#include "host/port/meter_priv.h"
#include "host/port/port_priv.h"
#include "nic/nic.h"

#include <string.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum { ONE_LOST_OF = 12 };

struct seen {
	uint64_t sent, sent_bytes, received, received_bytes;
	uint32_t executed, writes; /* … and those whose entry says so */
};

/* By dice: losses at a fixed interval could always hit the same packet of a window. */
struct losses {
	struct vb_prng dice;
	uint32_t sent, received;
};

static struct vb_adapter *adapter;
static struct writes writes;
static struct seen seen, seen_in_all; /* the helper may still add to the former */
static struct losses losses, lost_in_all;

/* --- the observer, and the faults --- */

static void on_sent(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count)
{
	struct seen *to = owner;

	EXPECT(now_ns > 0);
	to->sent += count;
	for (uint32_t i = 0; i < count; i++)
		to->sent_bytes += slots[i].length;
}

static void on_received(void *owner, uint64_t now_ns, const struct vb_frame *frames, uint32_t count)
{
	struct seen *to = owner;

	EXPECT(now_ns > 0);
	to->received += count;
	for (uint32_t i = 0; i < count; i++) {
		to->received_bytes += frames[i].head.length;
		for (uint32_t k = 0; k < frames[i].rest_count; k++)
			to->received_bytes += frames[i].rest[k].length;
	}
}

static void on_executed(void *owner, const struct vb_executed *parts, uint32_t count,
			const uint8_t *bytes)
{
	struct seen *to = owner;

	to->executed += count;
	for (uint32_t i = 0; i < count && i < VB_TAP_EXECUTED_MAX; i++)
		to->writes += parts[i].opcode == VB_WR_WRITE && parts[i].length == WRITES_LENGTH &&
			      parts[i].initiator.v == vb_qp_number(writes.qp).v &&
			      parts[i].target.v == vb_qp_number(writes.target).v &&
			      parts[i].data_length == WRITES_LENGTH &&
			      !memcmp(bytes + parts[i].data_offset, writes.memory, WRITES_LENGTH);
}

static bool loses_sent(void *owner, const struct vb_slot *slot)
{
	struct losses *counts = owner;
	bool is_lost = !vb_prng_below(&counts->dice, ONE_LOST_OF);

	(void)slot;
	counts->sent += is_lost;
	return is_lost;
}

static bool loses_received(void *owner, const struct vb_frame *frame)
{
	struct losses *counts = owner;
	bool is_lost = !vb_prng_below(&counts->dice, ONE_LOST_OF);

	(void)frame;
	counts->received += is_lost;
	return is_lost;
}

static const struct vb_tap tap = { &seen, on_sent, on_received, on_executed };
static const struct vb_fault_point faults = { &losses, loses_sent, loses_received };

static void begin(bool is_by_shared_memory, const struct vb_fault_point *fault_point)
{
	memset(&seen, 0, sizeof(seen));
	memset(&losses, 0, sizeof(losses));
	vb_prng_init(&losses.dice, 1);
	writes_begin(&writes, is_by_shared_memory);
	adapter = writes.adapter;
	vb_adapter_enter(adapter);
	MUST(vb_port_add_tap(adapter->port, &tap));
	vb_port_set_fault_point(adapter->port, fault_point);
	vb_adapter_leave(adapter);
}

/* As the owner: nothing moves meanwhile. */
static void expect_all_seen(void)
{
	const uint64_t *counts;

	vb_adapter_enter(adapter);
	counts = vb_nic_counters(vb_adapter_nic(adapter))->counts;
	EXPECT_EQ(seen.sent, counts[VB_COUNTER_TX_PACKETS]);
	EXPECT_EQ(seen.sent_bytes, counts[VB_COUNTER_TX_BYTES]);
	EXPECT_EQ(seen.received, counts[VB_COUNTER_RX_PACKETS]);
	EXPECT_EQ(seen.received_bytes, counts[VB_COUNTER_RX_BYTES]);
	EXPECT_EQ(seen.executed, counts[VB_COUNTER_DIRECT_PARTS]);
	seen_in_all = seen;
	lost_in_all = losses;
	vb_adapter_leave(adapter);
}

TEST(a_tap_sees_each_packet_that_the_engine_counts)
{
	begin(false, NULL);
	writes_run(&writes);
	expect_all_seen();
	EXPECT(seen_in_all.sent > WRITES_COUNT * (WRITES_LENGTH / 1024));
	EXPECT_EQ(seen_in_all.executed, 0);
	writes_end(&writes);
}

TEST(a_tap_sees_requests_that_the_engine_executes_itself)
{
	begin(true, NULL);
	writes_run(&writes);
	expect_all_seen();
	EXPECT_EQ(seen_in_all.executed, WRITES_COUNT);
	EXPECT_EQ(seen_in_all.writes, WRITES_COUNT);
	writes_end(&writes);
}

TEST(what_a_fault_point_loses_is_sent_again)
{
	begin(false, &faults);
	writes_run(&writes);
	expect_all_seen();
	EXPECT(lost_in_all.sent && lost_in_all.received);
	EXPECT(seen_in_all.received <= seen_in_all.sent - lost_in_all.sent - lost_in_all.received);
	writes_end(&writes);
}

/* --- the meter, a tap for `verbatim top` --- */

static struct vb_meter *begin_meter(void)
{
	struct vb_meter *meter = vb_meter_create();

	EXPECT(meter);
	vb_adapter_enter(adapter);
	meter->until_ns = UINT64_MAX;
	vb_meter_refresh(meter, vb_adapter_nic(adapter));
	MUST(vb_port_add_tap(adapter->port, vb_meter_tap(meter)));
	adapter->port->meter = meter;
	vb_adapter_leave(adapter);
	return meter;
}

/* As the owner: a copy of what was measured. */
static struct vb_meter_row measured(struct vb_meter *meter, const struct vb_qp *of)
{
	const struct vb_meter_qp *found;
	struct vb_meter_row row;

	vb_adapter_enter(adapter);
	found = vb_meter_find(meter, vb_qp_number(of));
	EXPECT(found);
	row = found->row;
	vb_adapter_leave(adapter);
	return row;
}

static uint64_t count_latencies(const struct vb_meter_row *row)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < VB_METER_BUCKETS; i++)
		count += row->latencies[i];
	return count;
}

TEST(a_meter_counts_messages_and_bytes_of_each_qp)
{
	struct vb_meter_row from, to;
	struct vb_meter *meter;

	begin(false, NULL);
	meter = begin_meter();
	writes_run(&writes);
	from = measured(meter, writes.qp);
	to = measured(meter, writes.target);
	EXPECT_EQ(from.sent_messages, WRITES_COUNT);
	EXPECT_EQ(from.sent_bytes, WRITES_COUNT * WRITES_LENGTH);
	EXPECT_EQ(from.received_messages, 0);
	EXPECT_EQ(from.executed_messages, 0);
	EXPECT_EQ(to.received_messages, WRITES_COUNT);
	EXPECT_EQ(to.received_bytes, WRITES_COUNT * WRITES_LENGTH);
	EXPECT_EQ(to.sent_messages, 0);
	EXPECT_EQ(from.received_packets, to.sent_packets);
	EXPECT(count_latencies(&from) > 0 && count_latencies(&from) <= WRITES_COUNT);
	EXPECT_EQ(count_latencies(&to), 0);
	writes_end(&writes);
}

TEST(a_meter_counts_packets_that_are_sent_again_apart)
{
	struct vb_meter *meter;
	struct vb_meter_row row;

	begin(false, &faults);
	meter = begin_meter();
	writes_run(&writes);
	row = measured(meter, writes.qp);
	EXPECT_EQ(row.sent_messages, WRITES_COUNT);
	EXPECT_EQ(row.sent_bytes, WRITES_COUNT * WRITES_LENGTH);
	EXPECT(row.repeated_packets > 0);
	EXPECT_EQ(row.sent_packets,
		  WRITES_COUNT * ((WRITES_LENGTH + 1023) / 1024) + row.repeated_packets);
	writes_end(&writes);
}

TEST(a_meter_counts_requests_that_the_engine_executes_itself)
{
	struct vb_meter *meter;
	struct vb_meter_row row;

	begin(true, NULL);
	meter = begin_meter();
	writes_run(&writes);
	row = measured(meter, writes.qp);
	EXPECT_EQ(row.sent_messages, WRITES_COUNT);
	EXPECT_EQ(row.executed_messages, WRITES_COUNT);
	EXPECT_EQ(row.sent_bytes, WRITES_COUNT * WRITES_LENGTH);
	writes_end(&writes);
}

static void expect_end_of_meter(bool is_by_shared_memory)
{
	struct vb_meter *meter;

	begin(is_by_shared_memory, NULL);
	vb_adapter_enter(adapter);
	vb_port_remove_tap(adapter->port, &tap);
	vb_adapter_leave(adapter);
	meter = begin_meter();
	writes_run(&writes);
	EXPECT_EQ(measured(meter, writes.qp).sent_messages, WRITES_COUNT);
	vb_adapter_enter(adapter);
	EXPECT(adapter->port->is_observed);
	meter->until_ns = 1;
	vb_adapter_leave(adapter);
	writes_run(&writes);
	vb_adapter_enter(adapter);
	EXPECT(!adapter->port->meter && !adapter->port->is_observed);
	vb_adapter_leave(adapter);
	writes_end(&writes);
}

TEST(a_meter_that_nobody_asks_ends_with_the_next_packets)
{
	expect_end_of_meter(false);
}

TEST(a_meter_that_nobody_asks_ends_with_the_next_executed_request)
{
	expect_end_of_meter(true);
}

TEST(each_latency_has_its_bucket)
{
	for (uint32_t i = 0; i + 1 < VB_METER_BUCKETS; i++) {
		EXPECT_EQ(vb_meter_bucket(vb_meter_bucket_ns(i)), i);
		EXPECT_EQ(vb_meter_bucket(vb_meter_bucket_ns(i + 1) - 1), i);
	}
	EXPECT_EQ(vb_meter_bucket(UINT64_MAX), VB_METER_BUCKETS - 1);
}

TEST(without_a_tap_nothing_is_logged)
{
	begin(true, NULL);
	vb_adapter_enter(adapter);
	vb_port_remove_tap(adapter->port, &tap);
	vb_adapter_leave(adapter);
	writes_run(&writes);
	EXPECT_EQ(seen.executed, 0);
	EXPECT_EQ(seen.sent, 0);
	writes_end(&writes);
}
