/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A log of the parts of requests that the engine executed itself in the memory of a peer, for an
 * observer: they have no packets. As with packets and events, the owner pulls it.
 */
#ifndef VB_NIC_EXECUTED_H
#define VB_NIC_EXECUTED_H

#include "nic/request.h"
#include "wire/number.h"

#include <stdint.h>

struct vb_nic;

struct vb_executed {
	uint64_t time_ns;
	vb_qpn initiator;
	vb_qpn target;
	uint32_t opcode; /* enum vb_wr_opcode */
	uint32_t length; /* of this part */
};

/*
 * From now on, parts are logged in the caller's memory, which the engine borrows; with NULL no
 * longer.
 */
void vb_nic_log_executed(struct vb_nic *nic, struct vb_executed *log, uint32_t capacity);
/*
 * Returns how many parts were executed since the last call. Those beyond the capacity are not in
 * the log. The log is valid until the next call into the engine.
 */
uint32_t vb_nic_take_executed(struct vb_nic *nic);

#endif
