/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cable inside one process, as a carrier for tests. It loses nothing, but takes only 0 to n of n
 * frames, by dice: whatever is above it must keep the others, in order.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_CABLE_H
#define VB_TESTS_LIVE_SUPPORT_CABLE_H

#include "base/prng.h"
#include "host/port/carrier.h"

struct cable;

/* The two ends of a new cable. The caller ends it with cable_close(). */
struct cable *cable_open(uint64_t seed, struct vb_carrier *ends_out[2]);
void cable_close(struct cable *cable);

/* How many frames it did not take when they were offered. */
uint64_t cable_refused(const struct cable *cable);
/* While it is shut, it takes none. */
void cable_shut(struct cable *cable, bool is_shut);

#endif
