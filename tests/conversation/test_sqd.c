/* SPDX-License-Identifier: BSD-2-Clause */
/* SQD: the send queue drains, raises its event, and continues after the return to RTS. */
#include "support_pair.h"

static void modify_to_sqd(struct pair *p, enum side side, bool notify)
{
	struct vb_qp_attr attr = { .state = VB_STATE_SQD, .sqd_notify = notify };

	EXPECT_EQ(vb_qp_modify(p->node[side].qp, &attr, VB_ATTR_STATE | VB_ATTR_SQD_NOTIFY), VB_OK);
}

static bool is_draining(struct pair *p, enum side side)
{
	struct vb_qp_attr attr;

	vb_qp_query(p->node[side].qp, &attr);
	return attr.is_draining;
}

TEST(sqd_finishes_what_was_started_and_then_raises_its_event)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
	modify_to_sqd(p, A, true);
	EXPECT(is_draining(p, A));
	expect_no_event(p, A);
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_events(p, A, "SQ_DRAINED");
	EXPECT(!is_draining(p, A));
	expect_state(p, A, VB_STATE_SQD);
}

TEST(sqd_starts_nothing_new_until_RTS)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, true);
	post_write(p, A, 1, 8);
	expect_silence(p, A);
	expect_no_completion(p, A);
	modify_state(p, A, VB_STATE_RTS);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(sqd_completes_a_message_that_is_half_sent)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 600);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_LAST psn=2 len=88 ack");
	modify_to_sqd(p, A, true);
	deliver_nth(p, 0);
	lose(p);
	wait_until_work(p, A); /* retransmissions are part of draining */
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_events(p, A, "SQ_DRAINED");
}

TEST(sqd_with_nothing_under_way_raises_its_event_at_once)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, true);
	expect_events(p, A, "SQ_DRAINED");
}

TEST(sqd_without_notify_raises_no_event)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, false);
	expect_no_event(p, A);
	EXPECT(!is_draining(p, A));
}

TEST(sqd_waits_for_reads_and_atomics)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 8);
	post_fetch_add(p, A, 2, 1);
	send_all(p, A);
	modify_to_sqd(p, A, true);
	deliver(p);
	expect_no_event(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=8", "wr=2 SUCCESS FETCH_ADD len=8");
	expect_events(p, A, "SQ_DRAINED");
}

TEST(sqd_requests_answered_as_before)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, B, false);
	post_write(p, A, 1, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(sqd_an_error_while_draining_flushes)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request bad = write_request(p, A, 1, 8);

	bad.rkey ^= 0x100;
	post(p, A, bad);
	send_all(p, A);
	modify_to_sqd(p, A, true);
	post_write(p, A, 2, 8);
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR", "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

TEST(sqd_event_comes_again_with_the_next_sqd)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, true);
	expect_events(p, A, "SQ_DRAINED");
	modify_state(p, A, VB_STATE_RTS);
	modify_to_sqd(p, A, true);
	expect_events(p, A, "SQ_DRAINED");
}

TEST(sqd_attributes_may_change)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_qp_attr attr = { .state = VB_STATE_SQD, .timeout = 3, .retry_count = 0 };
	struct vb_qp_attr query;

	modify_to_sqd(p, A, false);
	EXPECT_EQ(vb_qp_modify(p->node[A].qp, &attr,
			       VB_ATTR_STATE | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT),
		  VB_OK);
	vb_qp_query(p->node[A].qp, &query);
	EXPECT_EQ(query.timeout, 3);
	EXPECT_EQ(query.retry_count, 0);
	modify_state(p, A, VB_STATE_RTS);
	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	EXPECT(wait_until_completion(p, A) <= 4 * (4096 << 3));
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
}

TEST(sqd_works_for_uc_and_ud)
{
	struct pair *p = pair_connect_uc(1024);

	modify_to_sqd(p, A, true);
	expect_events(p, A, "SQ_DRAINED");
	post_write(p, A, 1, 8);
	expect_silence(p, A);
	modify_state(p, A, VB_STATE_RTS);
	expect_sent(p, A, "UC WRITE_ONLY psn=0 len=8");
}

TEST(sqd_waits_for_a_receiver_that_is_not_ready)
{
	struct pair *p = pair_connect_rc(1024);

	post_send(p, A, 1, 8);
	settle(p);
	modify_to_sqd(p, A, true);
	expect_no_event(p, A);
	post_recv(p, B, 1, 8);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_events(p, A, "SQ_DRAINED");
}

TEST(sqd_keeps_what_waits_behind_in_its_order)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	send_all(p, A);
	modify_to_sqd(p, A, false);
	post_write(p, A, 2, 8);
	post_write(p, A, 3, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	modify_state(p, A, VB_STATE_RTS);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=8 ack", "WRITE_ONLY psn=2 len=8 ack");
	settle(p);
	expect_completions(p, A, "wr=2 SUCCESS WRITE", "wr=3 SUCCESS WRITE");
}

TEST(sqd_to_ERR_flushes_what_waits)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, false);
	post_write(p, A, 1, 8);
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR");
}

TEST(sqd_event_is_asked_for_anew_with_each_transition)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, true);
	expect_events(p, A, "SQ_DRAINED");
	modify_state(p, A, VB_STATE_RTS);
	modify_state(p, A, VB_STATE_SQD);
	expect_no_event(p, A);
}

TEST(sqd_event_is_not_raised_in_RTS)
{
	struct pair *p = pair_connect_rc(1024);

	modify_to_sqd(p, A, true);
	expect_events(p, A, "SQ_DRAINED");
	modify_state(p, A, VB_STATE_RTS);
	post_write(p, A, 1, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_no_event(p, A);
}

TEST(sqd_of_uc_finishes_the_message_that_was_begun)
{
	struct pair *p = pair_connect_uc(256);
	static struct vb_slot slot;

	post_write(p, A, 1, 600);
	post_write(p, A, 2, 8);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	modify_to_sqd(p, A, true);
	EXPECT(is_draining(p, A));
	expect_no_event(p, A);
	expect_sent(p, A, "UC WRITE_MIDDLE psn=1 len=256", "UC WRITE_LAST psn=2 len=88");
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_events(p, A, "SQ_DRAINED");
}
