/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of executed parts. */
#include "nic/executed.h"

#include "nic/direct_priv.h"
#include "nic/qp_priv.h"

void vb_nic_log_executed(struct vb_nic *nic, struct vb_executed *log, uint32_t capacity)
{
	nic->executed.log = log;
	nic->executed.capacity = log ? capacity : 0;
	nic->executed.count = 0;
}

uint32_t vb_nic_take_executed(struct vb_nic *nic)
{
	uint32_t count = nic->executed.count;

	nic->executed.count = 0;
	return count;
}

VB_COLD void vb_executed_add(const struct vb_qp *qp, uint32_t opcode, uint32_t length)
{
	struct vb_executed_log *executed = &qp->nic->executed;

	if (executed->count < executed->capacity)
		executed->log[executed->count] = (struct vb_executed){
			.time_ns = qp->nic->now_ns,
			.initiator = qp->number,
			.target = qp->attr.destination,
			.opcode = opcode,
			.length = length,
		};
	executed->count++;
}
