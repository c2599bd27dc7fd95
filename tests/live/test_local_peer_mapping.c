/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator maps shared memory of a local peer once a thread has asked for it. A program that
 * posts one request at a time and finds each completion at its first poll never does the
 * housekeeping. So the helper thread asks, although the program seems to poll all the time. To make
 * that certain on a busy machine, time passes here only by what the program does, and the helper
 * thread never gets ahead of it.
 */
#include "support_ends.h"

#include "abi/objects_priv.h"
#include "host/adapter/adapter_priv.h"
#include "host/local/local_peer_priv.h"
#include "nic/cq.h"

#include <sched.h>
#include <time.h>

#define WAIT_S 30

int __real_clock_gettime(clockid_t clock, struct timespec *time_out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out);
int __real_vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns);
int __wrap_vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns);

static struct timespec begin_time;
static _Atomic bool is_slow; /* time passes by steps only, one nanosecond each */
static _Atomic uint32_t steps; /* of the program */
static _Atomic uint32_t sleeps; /* of the helper */

static void slow_time_down(void)
{
	EXPECT_EQ(__real_clock_gettime(CLOCK_MONOTONIC, &begin_time), 0);
	atomic_store(&is_slow, true);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out)
{
	uint64_t ns;

	if (clock != CLOCK_MONOTONIC || !atomic_load(&is_slow))
		return __real_clock_gettime(clock, time_out);
	ns = (uint64_t)begin_time.tv_nsec + atomic_load(&steps);
	time_out->tv_sec = begin_time.tv_sec + (time_t)(ns / VB_SECOND_NS);
	time_out->tv_nsec = (long)(ns % VB_SECOND_NS);
	return 0;
}

/*
 * For the helper thread: before it looks again, the program has ended two requests, and so has also
 * begun one.
 */
int __wrap_vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns)
{
	uint32_t steps_before = atomic_load(&steps);
	int result;

	atomic_fetch_add(&sleeps, 1);
	result = __real_vb_adapter_sleep(fds, count, until_ns);
	while (atomic_load(&is_slow) && atomic_load(&steps) - steps_before < 2)
		sched_yield();
	return result;
}

/*
 * Polls only when there is a completion. If the helper thread has the engine just now, it executes
 * the request, and waiting for that counts as steps.
 */
static void do_and_find(struct end *end, enum ibv_wr_opcode opcode, uint32_t length)
{
	const struct vb_cq *cq = vb_abi_cq_of(end->cq)->cq;

	post_at(end, opcode, 0, length);
	do
		atomic_fetch_add(&steps, 1);
	while (!vb_cq_waiting(cq));
	EXPECT_STR(poll_status(end), "success");
}

/*
 * Posts requests without bytes, which need no mapping, until the helper thread knows that the
 * program polls.
 */
static void begin_to_poll(struct end *end, enum ibv_wr_opcode opcode)
{
	uint32_t sleeps_before;

	do_and_find(end, opcode, 0);
	sleeps_before = atomic_load(&sleeps);
	while (atomic_load(&sleeps) == sleeps_before)
		do_and_find(end, opcode, 0);
}

static bool has_mapping(const struct end *end)
{
	struct vb_adapter *adapter = vb_abi_context_of(end->context)->adapter;
	uint32_t number = vb_port_member_of_qpn((vb_qpn){ end->peer.qpn });
	const struct vb_peer_memory_segment *segments;
	bool is_there = false;

	vb_lock_take(&adapter->owner);
	segments = adapter->peers->table[number].peer_memory.segments;
	EXPECT(segments);
	for (uint32_t i = 0; i < VB_PEER_MEMORY_SEGMENTS; i++)
		is_there |= segments[i].bytes &&
			    end->peer.address - segments[i].address < segments[i].length;
	vb_lock_give(&adapter->owner);
	return is_there;
}

static void expect_mapping(enum ibv_wr_opcode opcode)
{
	struct end end;
	pid_t child = begin_with_target(&end, IBV_QPT_RC, shared_memory);
	time_t end_s = time(NULL) + WAIT_S;

	slow_time_down();
	begin_to_poll(&end, opcode);
	EXPECT(!has_mapping(&end));
	do
		do_and_find(&end, opcode, 8);
	while (!has_mapping(&end) && time(NULL) < end_s);
	EXPECT(has_mapping(&end));
	atomic_store(&is_slow, false);
	end_target(child);
}

TEST(shared_memory_is_mapped_for_a_reader_that_finds_each_completion_at_once)
{
	expect_mapping(IBV_WR_RDMA_READ);
}

TEST(shared_memory_is_mapped_for_a_writer_that_finds_each_completion_at_once)
{
	expect_mapping(IBV_WR_RDMA_WRITE);
}
