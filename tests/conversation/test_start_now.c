/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one entry for what goes at once: what a call starts of the requests that were posted, and
 * whether it says that nothing is left to do. (That each request has the same result as by turns:
 * test_send_now.c, test_direct_write.c, test_shm_link.c.)
 */
#include "support_direct.h"

#include "nic/peer_memory.h"

/* A newly connected QP has work to do, which is done here. */
static struct pair *connect_idle_as(struct setup setup)
{
	struct pair *p = connect_directly_as(setup);

	expect_silence(p, A);
	return p;
}

static struct pair *connect_idle(void)
{
	return connect_idle_as(setup_of(VB_QP_RC, 1024));
}

static void stage(struct pair *p, struct vb_send_request request)
{
	EXPECT_EQ(vb_qp_post_send(node_of(p, A)->qp, &request), VB_OK);
}

struct started {
	bool is_all;
	uint32_t slot_count;
	struct vb_slot slots[2];
};

static struct started start(struct pair *p)
{
	struct started started;

	EXPECT(vb_qp_publish_sends(node_of(p, A)->qp));
	started.is_all =
		vb_qp_start_now(node_of(p, A)->qp, p->now_ns, started.slots, &started.slot_count);
	return started;
}

static void expect_send(const struct vb_slot *slot, uint32_t psn)
{
	struct vb_bth bth = vb_bth_load(slot->head);

	EXPECT_EQ(bth.opcode, VB_OPCODE(VB_SERVICE_RC, VB_OP_SEND_ONLY));
	EXPECT_EQ(bth.psn.v, psn);
}

TEST(a_write_and_the_send_behind_it_go_in_one_call)
{
	struct pair *p = connect_idle();
	struct started started;

	stage(p, write_request(p, A, 1, 8));
	stage(p, send_request(p, A, 2, 8));
	started = start(p);
	EXPECT(started.is_all);
	EXPECT_EQ(started.slot_count, 1);
	expect_send(&started.slots[0], 0);
	expect_copied(p, A, LOCAL, B, TARGET, 8);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_silence(p, A);
}

TEST(short_writes_go_in_one_call_and_fill_no_slot)
{
	struct pair *p = connect_idle();
	struct started started;

	stage(p, write_request(p, A, 1, 8));
	stage(p, write_request(p, A, 2, 8));
	stage(p, read_request(p, A, 3, 8));
	started = start(p);
	EXPECT(started.is_all);
	EXPECT_EQ(started.slot_count, 0);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE",
			   "wr=3 SUCCESS READ len=8");
}

/* The WRITE may not overtake the SEND, which is on its way. */
TEST(a_write_behind_a_send_is_left)
{
	struct pair *p = connect_idle();
	struct started started;

	post_recv(p, B, 3, 100);
	stage(p, send_request(p, A, 1, 8));
	stage(p, write_request(p, A, 2, 8));
	started = start(p);
	EXPECT(!started.is_all);
	EXPECT_EQ(started.slot_count, 1);
	expect_untouched(p, B, TARGET, 8);
	EXPECT(vb_nic_has_work(node_of(p, A)->nic)); /* the QP takes a turn without a doorbell */
}

TEST(a_long_write_behind_a_short_one_is_left)
{
	struct pair *p = connect_idle();
	struct started started;

	stage(p, write_request(p, A, 1, 8));
	stage(p, write_request(p, A, 2, 8192));
	started = start(p);
	EXPECT(!started.is_all);
	EXPECT_EQ(started.slot_count, 0);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	vb_qp_ring_doorbell(node_of(p, A)->qp);
	expect_executed(p, "wr=2 SUCCESS WRITE");
}

TEST(where_nothing_is_posted_nothing_starts)
{
	struct pair *p = connect_idle();
	struct vb_slot slots[2];
	uint32_t slot_count;

	stage(p, send_request(p, A, 1, 8)); /* but not published */
	EXPECT(!vb_qp_start_now(node_of(p, A)->qp, p->now_ns, slots, &slot_count));
	EXPECT_EQ(slot_count, 0);
	expect_silence(p, A);
}

/* An executed WRITE has no packet that the ACK could travel with. */
TEST(a_qp_that_owes_an_ack_takes_its_turn_for_a_write)
{
	struct pair *p = connect_idle();
	struct started started;

	post_write(p, B, 1, 8);
	expect_sent(p, B, "WRITE_ONLY psn=5000 len=8 ack");
	deliver(p);
	stage(p, write_request(p, A, 2, 8));
	started = start(p);
	EXPECT(!started.is_all);
	EXPECT_EQ(started.slot_count, 0);
	expect_untouched(p, B, TARGET, 8);
	expect_sent(p, A, "ACKNOWLEDGE psn=5000 msn=1");
	expect_completions(p, A, "wr=2 SUCCESS WRITE");
}

/* Its reply waits for room in the link, and no turn could send it. */
TEST(a_qp_whose_reply_waits_for_room_executes_at_once)
{
	struct pair *p = connect_idle();

	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, 0);
	post_write(p, B, 1, 8);
	expect_sent(p, B, "WRITE_ONLY psn=5000 len=8 ack");
	deliver(p);
	expect_silence(p, A);
	stage(p, write_request(p, A, 2, 8));
	EXPECT(start(p).is_all);
	expect_completions(p, A, "wr=2 SUCCESS WRITE");
	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, ROOM);
	expect_sent(p, A, "ACKNOWLEDGE psn=5000 msn=1");
}

TEST(a_drained_qp_starts_nothing)
{
	struct pair *p = connect_idle();
	struct started started;

	modify_state(p, A, VB_STATE_SQD);
	stage(p, write_request(p, A, 1, 8));
	stage(p, send_request(p, A, 2, 8));
	started = start(p);
	EXPECT(!started.is_all);
	EXPECT_EQ(started.slot_count, 0);
	expect_untouched(p, B, TARGET, 8);
}

TEST(behind_a_cq_that_runs_over_nothing_is_sent)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.cq_depth = 1;
	struct pair *p = connect_idle_as(setup);
	struct started started;

	stage(p, write_request(p, A, 1, 8));
	stage(p, write_request(p, A, 2, 8));
	stage(p, send_request(p, A, 3, 8));
	started = start(p);
	EXPECT_EQ(started.slot_count, 0);
	expect_state(p, A, VB_STATE_ERR);
	expect_events(p, A, "CQ_ERR", "QP_FATAL");
}

TEST(xrc_executes_at_once_but_sends_by_turns)
{
	struct pair *p = connect_idle_as(setup_of(VB_QP_XRC_SEND, 1024));
	struct started started;

	stage(p, write_request(p, A, 1, 8));
	EXPECT(start(p).is_all);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	stage(p, send_request(p, A, 2, 8));
	started = start(p);
	EXPECT(!started.is_all);
	EXPECT_EQ(started.slot_count, 0);
}

TEST(uc_takes_turns_for_everything)
{
	struct pair *p = connect_idle_as(setup_of(VB_QP_UC, 1024));
	struct started started;

	stage(p, write_request(p, A, 1, 8));
	started = start(p);
	EXPECT(!started.is_all);
	EXPECT_EQ(started.slot_count, 0);
	expect_untouched(p, B, TARGET, 8);
}
