/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that post short WRITEs to one QP. Each thread executes its own WRITE while it posts, if
 * no other thread drives just then. The peer is a QP of the same adapter, over a shared-memory
 * link. Another thread polls, and one deregisters the memory in the middle of it.
 */
#include "harness.h"
#include "support_adapter.h"

#include "host/sys/lock.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)
#define WAIT_S 30

enum { POSTERS = 3, SEND_DEPTH = 16, MARK = 0x55 };

static struct vb_adapter *adapter;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_qp *qp, *target;
static struct vb_lock send_lock; /* of the QP */
static struct vb_mr *mr;
static uint32_t rkey;
static uint64_t words[POSTERS]; /* the region: each poster has one */
static uint32_t write_count; /* of each poster */
static _Atomic uint32_t posted, completed, at_once;
static _Atomic bool is_over; /* a request has failed, or there were enough */

static void on_event(void *owner, const struct vb_event *event)
{
	(void)owner, (void)event;
}

static void connect_qp(struct vb_qp *from, struct vb_qp *to)
{
	struct vb_qp_attr attr = {
		.port = 1,
		.path_mtu = 1024,
		.address = { .destination = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
			     .source_index = 1 },
		.destination = vb_qp_number(to),
		.timeout = 14,
		.retry_count = 7,
		.access = VB_ACCESS_REMOTE_WRITE,
	};

	vb_adapter_prepare_path(adapter, &attr.address.destination, attr.destination);
	vb_adapter_enter(adapter);
	adapter_raise_qp(adapter, from, attr);
	vb_adapter_leave(adapter);
}

static void make_objects(void)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_depth = SEND_DEPTH,
		.recv_depth = 1,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.inline_max = sizeof(words[0]),
		.signal_all = true,
	};
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)words,
		.iova = (uintptr_t)words,
		.length = sizeof(words),
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE,
	};

	vb_adapter_enter(adapter);
	MUST(vb_cq_create(vb_adapter_nic(adapter), 2 * SEND_DEPTH, NULL, &cq));
	init.send_cq = init.recv_cq = cq;
	MUST(vb_qp_create(pd, &init, &qp));
	MUST(vb_qp_create(pd, &init, &target));
	MUST(vb_mr_create(pd, &mr_init, &mr));
	rkey = vb_mr_key(mr);
	vb_adapter_leave(adapter);
}

static void open_shm_link(void)
{
	vb_lock_init(&send_lock);
	atomic_store(&posted, 0);
	atomic_store(&completed, 0);
	atomic_store(&at_once, 0);
	atomic_store(&is_over, false);
	make_objects();
	connect_qp(target, qp);
	connect_qp(qp, target);
}

static void deregister(void)
{
	vb_adapter_enter(adapter);
	MUST(vb_mr_destroy(mr));
	vb_adapter_await_local_peers(adapter);
	vb_adapter_leave(adapter);
}

static void close_shm_link(void)
{
	vb_adapter_enter(adapter);
	MUST(vb_qp_destroy(qp));
	MUST(vb_qp_destroy(target));
	MUST(vb_cq_destroy(cq));
	vb_adapter_leave(adapter);
}

/* Posts as a verb does. VB_ENOMEM: the queue is full. */
static vb_err write_word(uint32_t poster, uint64_t value)
{
	struct vb_sge sge = { .address = (uintptr_t)&value, .length = sizeof(value) };
	struct vb_send_request request = {
		.wr_id = (uint64_t)poster << 32 | value,
		.opcode = VB_WR_WRITE,
		.flags = VB_SEND_INLINE,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)&words[poster],
		.rkey = rkey,
	};
	vb_err err = VB_OK;
	bool is_done;

	vb_lock_take(&send_lock);
	is_done = vb_adapter_write_now(adapter, qp, &request);
	if (!is_done) {
		err = vb_qp_post_send(qp, &request);
		(void)vb_qp_publish_sends(qp);
	}
	vb_lock_give(&send_lock);
	if (err)
		return err;
	atomic_fetch_add(&posted, 1);
	if (is_done)
		atomic_fetch_add(&at_once, 1);
	else
		vb_adapter_kick_qp(adapter, qp);
	return VB_OK;
}

static void *write_words(void *argument)
{
	uint32_t poster = (uint32_t)(uintptr_t)argument;

	for (uint64_t value = 1; value <= write_count && !atomic_load(&is_over);) {
		if (write_word(poster, value) == VB_OK)
			value++;
		else
			sched_yield();
	}
	return NULL;
}

static void start_posters(pthread_t threads[POSTERS])
{
	for (uintptr_t i = 0; i < POSTERS; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, write_words, (void *)i), 0);
}

static void join_posters(const pthread_t threads[POSTERS])
{
	for (uint32_t i = 0; i < POSTERS; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Completions of each poster come in order, and each once. */
static void check_order(uint64_t last[POSTERS], const struct vb_completion *completion)
{
	uint64_t poster = completion->wr_id >> 32;

	EXPECT(poster < POSTERS);
	EXPECT_EQ(completion->wr_id & 0xffffffff, last[poster] + 1);
	last[poster]++;
}

/*
 * Polls until `count` completions have come or one has failed, and then until all posted requests
 * are complete. Returns the status of the first that failed.
 */
static uint8_t poll_until(uint32_t count, uint64_t last[POSTERS])
{
	double end_seconds = now_seconds() + WAIT_S;
	uint8_t status = VB_STATUS_SUCCESS;

	while (atomic_load(&completed) < count &&
	       !(atomic_load(&is_over) && atomic_load(&completed) == atomic_load(&posted))) {
		struct vb_completion completion;

		if (now_seconds() > end_seconds)
			FAIL("%u posted, %u completed", posted, completed);
		if (!vb_cq_poll(cq, &completion, 1)) {
			vb_adapter_poll(adapter, cq);
			continue;
		}
		vb_adapter_on_poll(adapter);
		check_order(last, &completion);
		atomic_fetch_add(&completed, 1);
		if (completion.status != VB_STATUS_SUCCESS && status == VB_STATUS_SUCCESS) {
			status = completion.status;
			atomic_store(&is_over, true);
		}
	}
	return status;
}

TEST(requests_of_many_threads_complete_once_and_in_order_at_once_or_not)
{
	uint64_t last[POSTERS] = { 0 };
	pthread_t threads[POSTERS];

	adapter_begin(on_event, &adapter, &pd);
	write_count = test_is_thorough() ? 200000 : 5000;
	open_shm_link();
	start_posters(threads);
	EXPECT_EQ(poll_until(POSTERS * write_count, last), VB_STATUS_SUCCESS);
	join_posters(threads);
	for (uint32_t i = 0; i < POSTERS; i++) {
		EXPECT_EQ(last[i], write_count);
		EXPECT_EQ(words[i], write_count);
	}
	EXPECT(atomic_load(&at_once) > 0);
	deregister();
	close_shm_link();
	adapter_end(adapter, pd);
}

static void *deregister_soon(void *argument)
{
	uint32_t count = *(uint32_t *)argument;

	while (atomic_load(&completed) < count)
		sched_yield();
	deregister();
	memset(words, MARK, sizeof(words));
	return NULL;
}

TEST(memory_that_was_taken_away_is_written_no_more)
{
	adapter_begin(on_event, &adapter, &pd);
	write_count = UINT32_MAX;
	for (uint32_t round = 0; round < 10; round++) {
		uint32_t count = 10 + round * 7;
		uint64_t last[POSTERS] = { 0 };
		pthread_t threads[POSTERS], taker;

		open_shm_link();
		start_posters(threads);
		EXPECT_EQ(pthread_create(&taker, NULL, deregister_soon, &count), 0);
		EXPECT_EQ(poll_until(UINT32_MAX, last), VB_STATUS_REM_ACCESS_ERR);
		join_posters(threads);
		EXPECT_EQ(pthread_join(taker, NULL), 0);
		for (uint32_t i = 0; i < sizeof(words); i++)
			EXPECT_EQ(((const uint8_t *)words)[i], MARK);
		close_shm_link();
	}
	adapter_end(adapter, pd);
}
