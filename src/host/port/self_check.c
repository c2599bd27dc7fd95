/* SPDX-License-Identifier: BSD-2-Clause */
/* The counting tap, and the comparison. */
#include "host/port/self_check.h"

#include "host/sys/log.h"
#include "nic/nic.h"

#include <inttypes.h>

static const enum vb_counter compared[] = {
	VB_COUNTER_TX_PACKETS, VB_COUNTER_TX_BYTES,	VB_COUNTER_RX_PACKETS,
	VB_COUNTER_RX_BYTES,   VB_COUNTER_DIRECT_PARTS,
};

/* A train counts as the packets that it stands for. */
static void count_train(const struct vb_train *train, uint64_t *packets, uint64_t *bytes)
{
	*packets += train->packet_count;
	*bytes += train->byte_count;
}

static void on_sent(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count)
{
	uint64_t *seen = ((struct vb_self_check *)owner)->seen.counts;

	(void)now_ns;
	for (uint32_t i = 0; i < count; i++) {
		if (slots[i].train.packet_count) {
			count_train(&slots[i].train, &seen[VB_COUNTER_TX_PACKETS],
				    &seen[VB_COUNTER_TX_BYTES]);
		} else {
			seen[VB_COUNTER_TX_PACKETS]++;
			seen[VB_COUNTER_TX_BYTES] += slots[i].length;
		}
	}
}

static void on_received(void *owner, uint64_t now_ns, const struct vb_frame *frames, uint32_t count)
{
	uint64_t *seen = ((struct vb_self_check *)owner)->seen.counts;

	(void)now_ns;
	for (uint32_t i = 0; i < count; i++) {
		if (frames[i].train.packet_count) {
			count_train(&frames[i].train, &seen[VB_COUNTER_RX_PACKETS],
				    &seen[VB_COUNTER_RX_BYTES]);
			continue;
		}
		seen[VB_COUNTER_RX_PACKETS]++;
		seen[VB_COUNTER_RX_BYTES] += frames[i].head.length;
		for (uint32_t k = 0; k < frames[i].rest_count; k++)
			seen[VB_COUNTER_RX_BYTES] += frames[i].rest[k].length;
	}
}

static void on_executed(void *owner, const struct vb_executed *parts, uint32_t count,
			const uint8_t *bytes)
{
	(void)parts, (void)bytes;
	((struct vb_self_check *)owner)->seen.counts[VB_COUNTER_DIRECT_PARTS] += count;
}

void vb_self_check_init(struct vb_self_check *check, const struct vb_nic *nic)
{
	*check = (struct vb_self_check){
		.tap = { check, on_sent, on_received, on_executed },
		.before = *vb_nic_counters(nic),
	};
}

void vb_self_check_report(const struct vb_self_check *check, const struct vb_nic *nic,
			  const char *device)
{
	const struct vb_counters *now = vb_nic_counters(nic);
	uint32_t differing = 0;

	for (uint32_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
		enum vb_counter counter = compared[i];
		uint64_t counted = now->counts[counter] - check->before.counts[counter];
		uint64_t seen = check->seen.counts[counter];

		if (counted == seen)
			continue;
		differing++;
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "close", .device = device),
			     "%s: self check: the engine counted %s %" PRIu64
			     ", the port saw %" PRIu64,
			     device, vb_counter_name(counter), counted, seen);
	}
	if (!differing)
		vb_log_about(VB_LOG_INFO, VB_LOG_ABOUT(.phase = "close", .device = device),
			     "%s: self check: %" PRIu64 " packets sent, %" PRIu64
			     " received and %" PRIu64 " parts executed, all of them counted",
			     device, check->seen.counts[VB_COUNTER_TX_PACKETS],
			     check->seen.counts[VB_COUNTER_RX_PACKETS],
			     check->seen.counts[VB_COUNTER_DIRECT_PARTS]);
}
