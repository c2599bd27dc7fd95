/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A log of the parts of requests that the engine executed itself in the memory of a peer, for an
 * observer: they have no packets. The log has all that the packets would have had. As with packets
 * and events, the owner pulls it.
 */
#ifndef VB_NIC_EXECUTED_H
#define VB_NIC_EXECUTED_H

#include "nic/request.h"
#include "wire/flow.h"
#include "wire/number.h"

#include <stdint.h>

struct vb_nic;

struct vb_executed {
	uint64_t time_ns;
	uint64_t wr_id;
	uint64_t remote_address; /* of the whole request */
	uint64_t compare_add; /* as in struct vb_send_request */
	uint64_t swap;
	struct vb_flow flow; /* that its packets would have taken */
	vb_qpn initiator;
	vb_qpn target;
	vb_psn psn; /* that its first packet would have had */
	uint32_t opcode; /* enum vb_wr_opcode */
	uint32_t request_length;
	uint32_t offset; /* of this part in the request */
	uint32_t length; /* of this part */
	uint32_t rkey;
	uint32_t srqn; /* XRC */
	uint32_t mtu;
	uint16_t pkey;
	uint8_t service; /* enum vb_service */
	/*
	 * The data of a WRITE, what a READ brought, or the former value of an atomic's word in the
	 * CPU's byte order: in the log's bytes, or 0 bytes if they had no room or are gone.
	 */
	uint32_t data_offset;
	uint32_t data_length;
};

/* Memory of the caller, which the engine borrows. */
struct vb_executed_log {
	struct vb_executed *parts; /* NULL: nothing is logged */
	uint32_t capacity;
	uint8_t *bytes; /* NULL: no data is wanted */
	uint32_t byte_capacity;
};

/* From now on, parts are logged there; with NULL no longer. */
void vb_nic_log_executed(struct vb_nic *nic, const struct vb_executed_log *log);
/*
 * Returns how many parts were executed since the last call. Those beyond the capacity are not in
 * the log. The log is valid until the next call into the engine.
 */
uint32_t vb_nic_take_executed(struct vb_nic *nic);

#endif
