/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tap that measures each QP for an observer: messages, bytes, repeated packets and latencies. It
 * exists while an observer asks again and again, and for VB_METER_LEASE_NS after the last question:
 * an observer that is killed leaves nothing behind. A port without a meter pays nothing for it.
 *
 * A latency is the time from the first packet of a message of an RC or XRC QP to the packet that
 * acknowledges it, or that ends the response. One message of a QP is measured at a time; the others
 * pass uncounted. A request that the initiator executes itself has no packets and no latency.
 */
#ifndef VB_HOST_PORT_METER_H
#define VB_HOST_PORT_METER_H

#include "host/port/tap.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_METER_LEASE_NS 5000000000ull

struct vb_meter;
struct vb_port_member;
struct vb_state_source;

/* NULL: there is no memory. */
struct vb_meter *vb_meter_create(void);
void vb_meter_destroy(struct vb_meter *meter);
/* For vb_port_add_tap(). */
const struct vb_tap *vb_meter_tap(const struct vb_meter *meter);
/* Whether nobody has asked for so long that the meter should end. */
bool vb_meter_is_over(const struct vb_meter *meter, uint64_t now_ns);

/*
 * Answers the process that has asked, and measures the QPs that exist by now. NULL for `meter`: it
 * gets an empty answer.
 */
void vb_meter_answer(struct vb_meter *meter, const struct vb_state_source *source,
		     struct vb_port_member *member);

#endif
