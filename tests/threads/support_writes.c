/* SPDX-License-Identifier: BSD-2-Clause */
/* Two QPs of one adapter, and what one of them writes. */
#include "support_writes.h"

#include "harness.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/rings.h"

#include <string.h>
#include <time.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)
#define WAIT_S 30

static void on_event(void *owner, const struct vb_event *event)
{
	(void)owner, (void)event;
}

static void connect_qp(struct vb_adapter *adapter, struct vb_qp *from, struct vb_qp *to,
		       bool is_by_shared_memory)
{
	struct vb_qp_attr attr = {
		.port = 1,
		.path_mtu = 1024,
		.address = { .destination = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
			     .source_index = 1 },
		.destination = vb_qp_number(to),
		.timeout = 14, /* 67 ms: others may need the CPU for a while */
		.retry_count = 7,
		.access = VB_ACCESS_REMOTE_WRITE,
	};

	if (is_by_shared_memory)
		vb_adapter_prepare_path(adapter, &attr.address.destination, attr.destination);
	vb_adapter_enter(adapter);
	adapter_raise_qp(is_by_shared_memory ? adapter : NULL, from, attr);
	vb_adapter_leave(adapter);
}

void writes_begin(struct writes *writes, bool is_by_shared_memory)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_depth = WRITES_COUNT,
		.recv_depth = 1,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.signal_all = true,
	};
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)writes->memory,
		.iova = (uintptr_t)writes->memory,
		.length = sizeof(writes->memory),
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE,
	};

	memset(writes->memory, 0, sizeof(writes->memory));
	adapter_begin(on_event, &writes->adapter, &writes->pd);
	vb_adapter_enter(writes->adapter);
	MUST(vb_cq_create(vb_adapter_nic(writes->adapter), 2 * WRITES_COUNT, NULL, &writes->cq));
	init.send_cq = init.recv_cq = writes->cq;
	MUST(vb_qp_create(writes->pd, &init, &writes->qp));
	MUST(vb_qp_create(writes->pd, &init, &writes->target));
	MUST(vb_mr_create(writes->pd, &mr_init, &writes->mr));
	vb_adapter_leave(writes->adapter);
	connect_qp(writes->adapter, writes->target, writes->qp, is_by_shared_memory);
	connect_qp(writes->adapter, writes->qp, writes->target, is_by_shared_memory);
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void expect_success(struct writes *writes, uint32_t count)
{
	double end_seconds = now_seconds() + WAIT_S;

	while (count) {
		struct vb_completion completion;

		EXPECT(now_seconds() < end_seconds);
		if (!vb_cq_poll(writes->cq, &completion, 1)) {
			vb_adapter_poll(writes->adapter, writes->cq);
			continue;
		}
		vb_adapter_on_poll(writes->adapter);
		EXPECT_EQ(completion.status, VB_STATUS_SUCCESS);
		count--;
	}
}

/* Writes the first half of the memory into the second, again and again. */
void writes_run(struct writes *writes)
{
	struct vb_sge sge = { (uintptr_t)writes->memory, WRITES_LENGTH, vb_mr_key(writes->mr) };
	struct vb_send_request request = {
		.opcode = VB_WR_WRITE,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)writes->memory + WRITES_LENGTH,
		.rkey = vb_mr_key(writes->mr),
	};

	for (uint32_t i = 0; i < WRITES_LENGTH; i++)
		writes->memory[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t i = 0; i < WRITES_COUNT; i++) {
		request.wr_id = i;
		MUST(vb_qp_post_send(writes->qp, &request));
		(void)vb_qp_publish_sends(writes->qp);
		vb_adapter_kick_qp(writes->adapter, writes->qp);
	}
	expect_success(writes, WRITES_COUNT);
	EXPECT_MEM(writes->memory + WRITES_LENGTH, writes->memory, WRITES_LENGTH);
}

void writes_end(struct writes *writes)
{
	vb_adapter_enter(writes->adapter);
	MUST(vb_mr_destroy(writes->mr));
	vb_adapter_await_local_peers(writes->adapter);
	MUST(vb_qp_destroy(writes->qp));
	MUST(vb_qp_destroy(writes->target));
	MUST(vb_cq_destroy(writes->cq));
	vb_adapter_leave(writes->adapter);
	adapter_end(writes->adapter, writes->pd);
}
