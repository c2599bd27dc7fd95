/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an observer sees: why a QP sends no request, how long it was so, and the objects of an
 * adapter.
 */
#include "support_pair.h"

#include "nic/inspect.h"
#include "nic/peer_memory.h"

static struct pair *connect_with(const struct setup *setup)
{
	struct pair *p = pair_connect(setup);

	vb_qp_begin_hold(node_of(p, A)->qp, p->now_ns);
	return p;
}

static struct pair *connect_rc(void)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	return connect_with(&setup);
}

static struct vb_qp_view view_of(struct pair *p, enum side side)
{
	struct vb_qp_view view;

	vb_qp_inspect(node_of(p, side)->qp, p->now_ns, &view);
	return view;
}

static uint64_t held_ns(struct pair *p, enum vb_hold hold)
{
	return view_of(p, A).held_ns[hold];
}

/* A's QP is held for this reason and no other while time passes. */
static void expect_held(struct pair *p, enum vb_hold hold)
{
	struct vb_qp_view before = view_of(p, A);
	struct vb_qp_view after;

	EXPECT_EQ(before.hold, hold);
	wait_ns(p, 1000);
	after = view_of(p, A);
	for (uint32_t i = 0; i < VB_HOLD_COUNT; i++)
		EXPECT_EQ(after.held_ns[i] - before.held_ns[i], i == hold ? 1000 : 0);
}

TEST(a_qp_without_requests_is_empty)
{
	struct pair *p = connect_rc();

	expect_held(p, VB_HOLD_EMPTY);
	post_write(p, A, 1, 8);
	settle(p);
	expect_held(p, VB_HOLD_EMPTY);
	EXPECT_EQ(held_ns(p, VB_HOLD_EMPTY), 2000);
}

TEST(a_qp_that_is_not_in_rts_is_not_held)
{
	struct pair *p = connect_rc();

	wait_ns(p, 1000);
	modify_state(p, A, VB_STATE_ERR);
	wait_ns(p, 1000);
	EXPECT_EQ(view_of(p, A).hold, VB_HOLD_NONE);
	EXPECT_EQ(held_ns(p, VB_HOLD_EMPTY), 1000);
	modify_state(p, A, VB_STATE_RESET);
	EXPECT_EQ(held_ns(p, VB_HOLD_EMPTY), 0);
}

TEST(a_full_window_holds)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	setup.window_packets_max = 2;
	struct pair *p = connect_with(&setup);

	post_write(p, A, 1, 3 * 256);
	send_all(p, A);
	expect_held(p, VB_HOLD_WINDOW);
	settle(p);
	expect_held(p, VB_HOLD_EMPTY);
	EXPECT_EQ(held_ns(p, VB_HOLD_WINDOW), 1000);
}

TEST(a_qp_with_more_to_send_than_a_turn_takes_is_not_empty)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	setup.window_packets_max = 200;
	struct pair *p = connect_with(&setup);
	struct vb_slot slot;

	post_write(p, A, 1, 3 * 256);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, &slot, 1), 1);
	EXPECT_EQ(view_of(p, A).hold, VB_HOLD_NONE);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, &slot, 1), 1);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, &slot, 1), 1);
	expect_held(p, VB_HOLD_EMPTY);
}

TEST(missing_credits_hold)
{
	struct pair *p = connect_rc();

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1 credits=0");
	post_send(p, A, 2, 8);
	expect_silence(p, A);
	expect_held(p, VB_HOLD_CREDITS);
}

TEST(a_link_without_room_holds)
{
	struct pair *p = connect_rc();

	vb_nic_set_link_room(node_of(p, A)->nic, 0, 0);
	post_write(p, A, 1, 8);
	expect_silence(p, A);
	expect_held(p, VB_HOLD_ROOM);
	vb_nic_set_link_room(node_of(p, A)->nic, 0, VB_ROOM_UNLIMITED);
	settle(p);
	expect_held(p, VB_HOLD_EMPTY);
	EXPECT_EQ(held_ns(p, VB_HOLD_ROOM), 1000);
}

TEST(an_rnr_nak_holds_and_counts_as_a_repetition)
{
	struct pair *p = connect_rc();

	post_send(p, A, 1, 8);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	expect_silence(p, A);
	expect_held(p, VB_HOLD_RNR);
	EXPECT_EQ(view_of(p, A).repeat_count, 1);
}

TEST(a_fence_holds)
{
	struct pair *p = connect_rc();
	struct vb_send_request request = write_request(p, A, 2, 8);

	post_read(p, A, 1, 8);
	request.flags |= VB_SEND_FENCE;
	post(p, A, request);
	send_all(p, A);
	expect_held(p, VB_HOLD_FENCE);
}

TEST(as_many_reads_as_the_peer_takes_hold)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	setup.reads_out = 1;
	struct pair *p = connect_with(&setup);

	post_read(p, A, 1, 8);
	post_read(p, A, 2, 8);
	send_all(p, A);
	expect_held(p, VB_HOLD_READS);
}

TEST(a_timeout_counts_as_a_repetition)
{
	struct pair *p = connect_rc();

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	EXPECT_EQ(view_of(p, A).repeat_count, 1);
}

TEST(queues_and_psns_are_seen)
{
	struct pair *p = connect_rc();
	struct vb_qp_view view;

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	post_send(p, A, 1, 8);
	send_all(p, A);
	view = view_of(p, A);
	EXPECT_EQ(view.sq.depth, p->setup.send_depth);
	EXPECT_EQ(view.sq.used, 1);
	EXPECT_EQ(view.sq_psn.v, 1);
	settle(p);
	view = view_of(p, B);
	EXPECT_EQ(view.rq.depth, p->setup.recv_depth);
	EXPECT_EQ(view.rq.used, 2); /* the first one is not polled yet */
	EXPECT_EQ(view.rq_psn.v, 1);
}

TEST(all_objects_are_seen)
{
	struct pair *p = connect_rc();
	const struct vb_nic *nic = node_of(p, A)->nic;
	const struct vb_pd *pd = NULL;
	const struct vb_cq *cq = NULL;
	uint32_t place = 0, number, count = 0;
	struct vb_key_row row;
	struct vb_cq_view cq_view;
	struct vb_srq_view srq_view;

	while (vb_nic_inspect_pd(nic, &pd, &number))
		count++;
	EXPECT_EQ(count, 2);
	EXPECT(vb_nic_inspect_cq(nic, &cq, &cq_view));
	EXPECT(cq == node_of(p, A)->send_cq);
	EXPECT_EQ(cq_view.depth, p->setup.cq_depth);
	EXPECT_EQ(cq_view.used, 0);
	EXPECT(!cq_view.is_armed);
	EXPECT(vb_nic_inspect_cq(nic, &cq, &cq_view));
	EXPECT(!vb_nic_inspect_cq(nic, &cq, &cq_view));
	EXPECT(vb_nic_inspect_region(nic, &place, &row));
	EXPECT_EQ(row.key, key_of(p, A));
	EXPECT_EQ(row.length, MEMORY_LENGTH);
	EXPECT(!vb_nic_inspect_region(nic, &place, &row));
	place = 0;
	EXPECT(!vb_nic_inspect_srq(nic, &place, &srq_view));
}

TEST(an_srq_is_seen)
{
	struct setup setup = setup_of(VB_QP_RC, 256);

	setup.has_srq = true;
	struct pair *p = connect_with(&setup);
	uint32_t place = 0;
	struct vb_srq_view view;

	post_recv(p, B, 1, 100);
	EXPECT(vb_nic_inspect_srq(node_of(p, B)->nic, &place, &view));
	EXPECT_EQ(view.number, vb_srq_number(node_of(p, B)->srq));
	EXPECT_EQ(view.queue.used, 1);
	EXPECT_EQ(view_of(p, B).srqn, view.number);
	EXPECT(!vb_nic_inspect_srq(node_of(p, B)->nic, &place, &view));
}
