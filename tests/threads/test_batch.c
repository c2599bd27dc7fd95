/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that go out together, short and long ones in any order: each arrives with its bytes. An
 * adapter talks to itself, on the wire.
 */
#include "harness.h"
#include "support_adapter.h"

#include "host/adapter/adapter_priv.h"
#include "nic/counters.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <string.h>
#include <time.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum {
	DEPTH = 16,
	STEP = 4096,
	WAIT_S = 30,
	RIGHTS = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ
};

static struct vb_adapter *adapter;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_qp *qp;
static struct vb_mr *mr;
static uint8_t target[DEPTH * STEP]; /* as it should be */
static uint8_t memory[2 * DEPTH * STEP]; /* what is written, and where to */

static void on_event(void *owner, const struct vb_event *event)
{
	(void)owner;
	(void)event;
}

/* Lost packets are not sent again. */
static void begin(void)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_depth = DEPTH,
		.recv_depth = 1,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.signal_all = true,
	};
	struct vb_qp_attr attr = {
		.port = 1,
		.path_mtu = 1024,
		.address = { .destination = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
			     .source_index = 1 },
		.reads_out = 1,
		.reads_in = 1,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
	};
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)memory,
		.length = sizeof(memory),
		.iova = (uintptr_t)memory,
		.access = RIGHTS,
	};

	adapter_begin(on_event, &adapter, &pd);
	vb_adapter_enter(adapter);
	MUST(vb_cq_create(vb_adapter_nic(adapter), 64, NULL, &cq));
	MUST(vb_mr_create(pd, &mr_init, &mr));
	init.send_cq = init.recv_cq = cq;
	MUST(vb_qp_create(pd, &init, &qp));
	attr.destination = vb_qp_number(qp);
	adapter_raise_qp(NULL, qp, attr);
	vb_adapter_leave(adapter);
}

/* Expects that no packet was refused. */
static void end(void)
{
	const struct vb_counters *counters = vb_nic_counters(vb_adapter_nic(adapter));

	vb_adapter_enter(adapter);
	for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
		EXPECT_EQ(counters->drops[i], 0);
	MUST(vb_qp_destroy(qp));
	MUST(vb_mr_destroy(mr));
	MUST(vb_cq_destroy(cq));
	vb_adapter_leave(adapter);
	adapter_end(adapter, pd);
}

/* Transfers from the first half of the memory to the second, in either direction. */
static void post(enum vb_wr_opcode opcode, uint32_t index, uint32_t length)
{
	uint8_t *from = memory + (size_t)index * STEP, *to = from + (size_t)DEPTH * STEP;
	bool is_read = opcode == VB_WR_READ;
	struct vb_sge sge = { (uintptr_t)(is_read ? to : from), length, vb_mr_key(mr) };
	struct vb_send_request request = {
		.opcode = opcode,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)(is_read ? from : to),
		.rkey = vb_mr_key(mr),
	};

	MUST(vb_qp_post_send(qp, &request));
	vb_qp_publish_and_ring(qp);
}

static void await_completions(uint32_t count)
{
	time_t end_s = time(NULL) + WAIT_S;

	while (count) {
		struct vb_completion completion;

		if (time(NULL) > end_s)
			FAIL("%u requests are not done", count);
		vb_adapter_poll(adapter, NULL);
		if (!vb_cq_poll(cq, &completion, 1))
			continue;
		EXPECT_STR(vb_status_describe(completion.status), "SUCCESS");
		count--;
	}
}

static void fill_memory(void)
{
	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 2654435761u >> 24);
	memset(memory + sizeof(target), 0, sizeof(target));
	memset(target, 0, sizeof(target));
}

static void expect(uint32_t index, uint32_t length)
{
	memcpy(target + (size_t)index * STEP, memory + (size_t)index * STEP, length);
}

static void expect_to_arrive(const uint32_t *lengths, uint32_t count)
{
	fill_memory();
	for (uint32_t i = 0; i < count; i++) {
		post(VB_WR_WRITE, i, lengths[i]);
		expect(i, lengths[i]);
	}
	vb_adapter_kick(adapter);
	await_completions(count);
	EXPECT(!memcmp(memory + sizeof(target), target, sizeof(target)));
}

/* Also when the link has become faster, after some hundred messages in one direction. */
TEST(short_and_long_packets_that_go_together_keep_their_bytes)
{
	static const uint32_t alike[] = { 8, 8, 8, 8, 8, 8, 8, 8 };
	static const uint32_t short_behind_long[] = { 600, 8, 2000, 100, 8, 1024, 256, 4 };
	static const uint32_t long_behind_short[] = { 200, 100, 300, 8, 1000, 0, 3000, 257 };

	begin();
	for (uint32_t i = 0; i < 200; i++) {
		expect_to_arrive(alike, 8);
		expect_to_arrive(short_behind_long, 8);
		expect_to_arrive(long_behind_short, 8);
	}
	end();
}

/*
 * The answer to a READ is copied before it is sent, however long it is; the data of a WRITE is sent
 * from where it is.
 */
TEST(a_request_behind_an_answer_keeps_its_bytes)
{
	begin();
	for (uint32_t i = 0; i < 200; i++) {
		fill_memory();
		post(VB_WR_READ, 0, 1024);
		vb_adapter_kick(adapter);
		post(VB_WR_WRITE, 1, 600); /* goes with the answer */
		post(VB_WR_WRITE, 2, 8);
		expect(0, 1024);
		expect(1, 600);
		expect(2, 8);
		await_completions(3);
		EXPECT(!memcmp(memory + sizeof(target), target, sizeof(target)));
	}
	end();
}
