/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port's meter (host/port/meter.h) has measured, as it goes to the process that asked for it
 * (`verbatim top`), in memory of its own. Both ends are this program, perhaps in different
 * versions: the layout says whether the reader understands it. All counts grow; the reader takes
 * differences.
 */
#ifndef VB_HOST_REGISTRY_METER_REPORT_H
#define VB_HOST_REGISTRY_METER_REPORT_H

#include <stdint.h>

#define VB_METER_HOLDS 12u
#define VB_METER_NAME_MAX 16u
/* A QP's latencies, counted in buckets: 8 for each power of two, up to 2^40 ns. */
#define VB_METER_BUCKETS_EACH 8u
#define VB_METER_BUCKETS (38u * VB_METER_BUCKETS_EACH)

struct vb_meter_row {
	uint32_t qpn;
	uint32_t peer_qpn; /* 0: it is not connected */
	char type[VB_METER_NAME_MAX];
	char state[VB_METER_NAME_MAX];
	char carrier[VB_METER_NAME_MAX]; /* "shm", "wire"; "" if it is not connected */
	char peer[48]; /* its address */
	char path_reason[96];
	uint32_t hold; /* why it sends no request now; an index of hold_names */
	uint32_t repeat_count; /* how often it went back to send packets again */
	uint32_t sq_depth, sq_used;
	uint32_t rq_depth, rq_used;
	/* Of requests of this end, and of the peer. Bytes are those of payloads, once. */
	uint64_t sent_messages, received_messages;
	uint64_t sent_bytes, received_bytes;
	uint64_t sent_packets, received_packets;
	uint64_t repeated_packets; /* that were sent before */
	uint64_t executed_messages; /* those of sent_messages that this end executed itself */
	uint64_t held_ns[VB_METER_HOLDS];
	uint32_t latencies[VB_METER_BUCKETS];
};

struct vb_meter_report {
	uint64_t layout; /* VB_METER_LAYOUT */
	uint64_t now_ns;
	char device[64];
	char hold_names[VB_METER_HOLDS][VB_METER_NAME_MAX];
	uint32_t hold_count;
	uint32_t row_count;
	struct vb_meter_row rows[];
};

#define VB_METER_LAYOUT (0x76626d7400000000ull | sizeof(struct vb_meter_row))

/* The bucket of a time, and the shortest time of a bucket. */
static inline uint32_t vb_meter_bucket(uint64_t ns)
{
	uint32_t power, bucket;

	if (ns < VB_METER_BUCKETS_EACH)
		return (uint32_t)ns;
	power = 63u - (uint32_t)__builtin_clzll(ns);
	bucket = (power - 2) * VB_METER_BUCKETS_EACH +
		 (uint32_t)(ns >> (power - 3) & (VB_METER_BUCKETS_EACH - 1));
	return bucket < VB_METER_BUCKETS ? bucket : VB_METER_BUCKETS - 1;
}

static inline uint64_t vb_meter_bucket_ns(uint32_t bucket)
{
	uint32_t power = bucket / VB_METER_BUCKETS_EACH + 2;

	if (bucket < VB_METER_BUCKETS_EACH)
		return bucket;
	return (VB_METER_BUCKETS_EACH + bucket % VB_METER_BUCKETS_EACH + 0ull) << (power - 3);
}

#endif
