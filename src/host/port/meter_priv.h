/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a meter: the QPs that it measures. */
#ifndef VB_HOST_PORT_METER_PRIV_H
#define VB_HOST_PORT_METER_PRIV_H

#include "host/port/meter.h"
#include "host/registry/meter_report.h"
#include "wire/flow.h"
#include "wire/number.h"

struct vb_nic;

#define VB_METER_QPS_MAX 1024u
#define VB_METER_HASH_SIZE 1024u /* a power of two */
#define VB_METER_NONE 0xffffu

/* A message whose acknowledgement is awaited. */
struct vb_meter_mark {
	bool is_set;
	bool is_read; /* the end of its response counts */
	vb_psn psn; /* of its last packet; of a READ its only one */
	uint64_t began_ns;
};

struct vb_meter_qp {
	vb_qpn number;
	vb_qpn peer;
	struct vb_gid peer_gid;
	bool is_reliable;
	bool has_sent; /* next_psn counts */
	vb_psn next_psn; /* after the last that was ever sent */
	uint64_t message_began_ns; /* the last first packet */
	struct vb_meter_mark mark;
	uint16_t next_of_own, next_of_peer; /* in the chains of the hash tables */
	struct vb_meter_row row;
};

struct vb_meter {
	struct vb_tap tap;
	uint64_t until_ns;
	uint32_t count;
	uint16_t by_own[VB_METER_HASH_SIZE]; /* by the QP's number … */
	uint16_t by_peer[VB_METER_HASH_SIZE]; /* … and by its peer's; indices or VB_METER_NONE */
	struct vb_meter_qp qps[VB_METER_QPS_MAX];
};

/* meter.c: the QP with that number, or NULL; and the tap's functions */
struct vb_meter_qp *vb_meter_find(struct vb_meter *meter, vb_qpn number);
void vb_meter_on_sent(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count);
void vb_meter_on_received(void *owner, uint64_t now_ns, const struct vb_frame *frames,
			  uint32_t count);
void vb_meter_on_executed(void *owner, const struct vb_executed *parts, uint32_t count,
			  const uint8_t *bytes);

/*
 * meter_report.c: measures the QPs that exist, and keeps what was measured of those that existed
 * before. QPs beyond VB_METER_QPS_MAX are left out.
 */
void vb_meter_refresh(struct vb_meter *meter, const struct vb_nic *nic);

#endif
