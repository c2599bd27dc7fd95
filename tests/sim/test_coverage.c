/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In 200 simulated worlds no rule is violated, and the most important things that the simulator
 * promises to try happen at least once.
 */
#include "harness.h"

#include "nic/event.h"
#include "sim/coverage.h"
#include "sim/world.h"

#define WORLDS 200

static void run_world(uint64_t seed, struct vb_coverage *coverage)
{
	struct vb_world *world = vb_world_create(seed);

	vb_world_run(world);
	vb_world_finish(world);
	if (*vb_world_violation(world))
		FAIL("seed %llu: %s", (unsigned long long)seed, vb_world_violation(world));
	vb_coverage_add(coverage, &world->coverage);
	vb_world_destroy(world);
}

/* Of the operations below, UC has the first 4, and UD the first 2. */
enum { UC_OPERATIONS = 4, UD_OPERATIONS = 2 };

static void expect_operations(const struct vb_coverage *coverage)
{
	static const enum vb_wr_opcode common[] = { VB_WR_SEND,	       VB_WR_SEND_IMM,
						    VB_WR_WRITE,       VB_WR_WRITE_IMM,
						    VB_WR_READ,	       VB_WR_FETCH_ADD,
						    VB_WR_COMPARE_SWAP };

	for (uint32_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		EXPECT(coverage->requests[VB_QP_RC][common[i]] > 0);
		EXPECT(coverage->requests[VB_QP_XRC_SEND][common[i]] > 0);
		EXPECT(i >= UC_OPERATIONS || coverage->requests[VB_QP_UC][common[i]] > 0);
		EXPECT(i >= UD_OPERATIONS || coverage->requests[VB_QP_UD][common[i]] > 0);
	}
	EXPECT(coverage->requests[VB_QP_RC][VB_WR_ATOMIC_WRITE] > 0);
	EXPECT(coverage->requests[VB_QP_RC][VB_WR_BIND_MW] > 0);
	EXPECT(coverage->requests[VB_QP_RC][VB_WR_LOCAL_INV] > 0);
	EXPECT(coverage->requests[VB_QP_RC][VB_WR_SEND_INV] > 0);
}

static void expect_statuses(const struct vb_coverage *coverage)
{
	static const enum vb_status rc[] = { VB_STATUS_SUCCESS,		 VB_STATUS_LOC_PROT_ERR,
					     VB_STATUS_WR_FLUSH_ERR,	 VB_STATUS_REM_INV_REQ_ERR,
					     VB_STATUS_REM_ACCESS_ERR,	 VB_STATUS_RETRY_EXC_ERR,
					     VB_STATUS_RNR_RETRY_EXC_ERR };

	for (uint32_t i = 0; i < sizeof(rc) / sizeof(rc[0]); i++)
		EXPECT(coverage->send_statuses[VB_QP_RC][rc[i]] > 0);
	EXPECT(coverage->recv_statuses[VB_QP_RC][VB_STATUS_SUCCESS] > 0);
	EXPECT(coverage->recv_statuses[VB_QP_UC][VB_STATUS_SUCCESS] > 0);
	EXPECT(coverage->recv_statuses[VB_QP_UD][VB_STATUS_SUCCESS] > 0);
	EXPECT(coverage->recv_statuses[VB_QP_XRC_RECV][VB_STATUS_SUCCESS] > 0);
}

static void expect_faults(const struct vb_coverage *coverage)
{
	for (uint32_t i = 0; i < VB_FATE_COUNT; i++)
		EXPECT(coverage->fates[i] > 0);
	for (uint32_t i = 0; i < VB_MOOD_COUNT; i++)
		EXPECT(coverage->moods[i] > 0);
	EXPECT(coverage->flaws[VB_FLAW_DIED] > 0);
	EXPECT(coverage->flaws[VB_FLAW_RESTARTED] > 0);
	EXPECT(coverage->flaws[VB_FLAW_VANISHED] > 0);
}

static void expect_actions(const struct vb_coverage *coverage)
{
	static const enum vb_flaw flaws[] = {
		VB_FLAW_WRONG_RKEY,	 VB_FLAW_QP_RIGHT,     VB_FLAW_WRONG_LKEY,
		VB_FLAW_SHORT_RECEIVE,	 VB_FLAW_RECEIVE_LKEY, VB_FLAW_DEREGISTERED,
		VB_FLAW_MOVED_TO_ERR,	 VB_FLAW_RECONNECTED,  VB_FLAW_DRAINED,
		VB_FLAW_RECOVERED,	 VB_FLAW_FULL_QUEUE,   VB_FLAW_CQ_OVERRUN,
		VB_FLAW_CQ_EVENT,	 VB_FLAW_SRQ_LIMIT,    VB_FLAW_WINDOW_USED,
		VB_FLAW_SERIES,		 VB_FLAW_PASSIVE,      VB_FLAW_SHM_LINK_FULL,
		VB_FLAW_SHM_LINK_BROKEN, VB_FLAW_DIRECT_RC,    VB_FLAW_DIRECT_UC,
		VB_FLAW_DIRECT_XRC,	 VB_FLAW_WHILE_POSTED, VB_FLAW_TRAIN_FETCHED,
		VB_FLAW_TRAIN_REFUSED,
	};

	for (uint32_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
		if (!coverage->flaws[flaws[i]])
			FAIL("%s never happened", vb_flaw_name(flaws[i]));
	}
	EXPECT(coverage->events[VB_EVENT_COMM_EST] > 0);
	EXPECT(coverage->events[VB_EVENT_QP_LAST_WQE_REACHED] > 0);
	EXPECT(coverage->drops[VB_DROP_ICRC] > 0);
	EXPECT(coverage->drops[VB_DROP_NO_QP] > 0);
	EXPECT(coverage->drops[VB_DROP_COPY] > 0);
	EXPECT(coverage->counts[VB_COUNTER_DUPLICATE_REQUEST] > 0);
	EXPECT(coverage->counts[VB_COUNTER_PACKET_SEQ_ERR] > 0);
	EXPECT(coverage->counts[VB_COUNTER_IMPLIED_NAK_SEQ_ERR] > 0);
	EXPECT(coverage->counts[VB_COUNTER_LOCAL_ACK_TIMEOUT_ERR] > 0);
	EXPECT(coverage->counts[VB_COUNTER_DIRECT_PARTS] > 1000);
}

TEST(in_200_worlds_no_rule_is_violated_and_what_matters_most_is_tried)
{
	struct vb_coverage coverage = { 0 };

	for (uint64_t seed = 1; seed <= WORLDS; seed++)
		run_world(seed, &coverage);
	EXPECT_EQ(coverage.worlds, WORLDS);
	expect_operations(&coverage);
	expect_statuses(&coverage);
	expect_faults(&coverage);
	expect_actions(&coverage);
}
